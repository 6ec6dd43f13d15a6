//! NVRTC's functions.

use std::ffi::{c_char, c_int};

use crate::compiler::{self, Program};
use crate::image::Code as Compiled;
use crate::options::{self, architectures};
use crate::programs::{
    Code, add_expression, compile, compiler_functions, create, destroy, log, lowered_name, set,
    with, write,
};

compiler_functions! {
    nvrtcVersion(major: *mut c_int, minor: *mut c_int) {
        let [known_major, known_minor] = options::version();
        set(major, known_major)?;
        set(minor, known_minor)
    }

    nvrtcGetNumSupportedArchs(count: *mut c_int) {
        set(count, architectures().len() as c_int)
    }

    nvrtcGetSupportedArchs(list: *mut c_int) {
        architectures()
            .iter()
            .enumerate()
            .try_for_each(|(index, architecture)| set(list.wrapping_add(index), *architecture))
    }

    nvrtcCreateProgram(
        program: *mut u64,
        source: *const c_char,
        name: *const c_char,
        count: c_int,
        headers: *const *const c_char,
        names: *const *const c_char,
    ) {
        // Headers are read from files only.
        if count != 0 || !headers.is_null() || !names.is_null() {
            return Err(Code::INVALID_INPUT);
        }
        create(program, source, name)
    }

    nvrtcDestroyProgram(program: *mut u64) {
        destroy(program)?;
        // NVRTC clears the caller's handle. cudarc passes a pointer derived from a shared
        // reference, which is written as well.
        set(program, 0)
    }

    nvrtcCompileProgram(program: u64, count: c_int, options: *const *const c_char) {
        compile(program, count, options)
    }

    nvrtcGetProgramLogSize(program: u64, len_bytes: *mut usize) {
        with(program, |program| set(len_bytes, log(program).len() + 1))
    }

    nvrtcGetProgramLog(program: u64, place: *mut c_char) {
        with(program, |program| write(place, log(program)))
    }

    // Without PTX, after a failed compilation for example, it is an empty text.
    nvrtcGetPTXSize(program: u64, len_bytes: *mut usize) {
        with(program, |program| set(len_bytes, ptx(program).len() + 1))
    }

    nvrtcGetPTX(program: u64, place: *mut c_char) {
        with(program, |program| write(place, ptx(program)))
    }

    // For a virtual architecture, for code that is linked later, and after a failure there is no
    // cubin, and its size is 0. Otherwise the cubin is the PTX, including the final zero.
    nvrtcGetCUBINSize(program: u64, len_bytes: *mut usize) {
        with(program, |program| set(len_bytes, cubin(program).map_or(0, |cubin| cubin.len() + 1)))
    }

    nvrtcGetCUBIN(program: u64, place: *mut c_char) {
        with(program, |program| cubin(program).map_or(Ok(()), |cubin| write(place, cubin)))
    }

    nvrtcAddNameExpression(program: u64, expression: *const c_char) {
        add_expression(program, expression)
    }

    nvrtcGetLoweredName(program: u64, expression: *const c_char, lowered: *mut *const c_char) {
        lowered_name(program, expression, lowered)
    }
}

/// `nvrtcGetErrorString`.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "NVRTC's name")]
extern "C" fn nvrtcGetErrorString(code: u32) -> *const c_char {
    let text = match code {
        0 => c"NVRTC_SUCCESS",
        1 => c"NVRTC_ERROR_OUT_OF_MEMORY",
        2 => c"NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
        3 => c"NVRTC_ERROR_INVALID_INPUT",
        4 => c"NVRTC_ERROR_INVALID_PROGRAM",
        5 => c"NVRTC_ERROR_INVALID_OPTION",
        6 => c"NVRTC_ERROR_COMPILATION",
        7 => c"NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
        8 => c"NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
        9 => c"NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
        10 => c"NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
        11 => c"NVRTC_ERROR_INTERNAL_ERROR",
        _ => c"NVRTC_ERROR unknown",
    };
    text.as_ptr()
}

/// Called by the client.
#[unsafe(no_mangle)]
extern "C" fn resident_stand_in_nvrtc_compilations() -> u64 {
    compiler::compilations()
}

/// Called by the client.
#[unsafe(no_mangle)]
extern "C" fn resident_stand_in_nvrtc_set_version(major: c_int, minor: c_int) {
    options::set_version([major, minor]);
}

fn code(program: &Program) -> Option<&Compiled> {
    program.outcome.as_ref()?.code.as_ref()
}

fn ptx(program: &Program) -> &str {
    code(program).map_or("", |code| &code.ptx)
}

fn cubin(program: &Program) -> Option<&str> {
    code(program).filter(|code| code.has_cubin).map(|code| code.ptx.as_str())
}
