//! NVRTC's functions.

use std::ffi::{c_char, c_int};

use crate::options::{self, NvrtcOptions, architectures};
use resident_stand_in_compiler::compiler::{self, Program};
use resident_stand_in_compiler::programs::{
    Code, add_expression, code, compile, create, destroy, log, lowered_name, set, with, write_text,
};
use resident_stand_in_compiler::{compiler_functions, name_of_result};

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
        compile::<NvrtcOptions>(program, count, options)
    }

    nvrtcGetProgramLogSize(program: u64, len_bytes: *mut usize) {
        with(program, |program| set(len_bytes, log(program).len() + 1))
    }

    nvrtcGetProgramLog(program: u64, place: *mut c_char) {
        with(program, |program| write_text(place, log(program).as_bytes()))
    }

    // Without PTX, after a failed compilation for example, it is an empty text.
    nvrtcGetPTXSize(program: u64, len_bytes: *mut usize) {
        with(program, |program| set(len_bytes, ptx(program).len() + 1))
    }

    nvrtcGetPTX(program: u64, place: *mut c_char) {
        with(program, |program| write_text(place, ptx(program)))
    }

    // For a virtual architecture, for code that is linked later, and after a failure there is no
    // cubin, and its size is 0. Otherwise the cubin is the PTX, including the final zero.
    nvrtcGetCUBINSize(program: u64, len_bytes: *mut usize) {
        with(program, |program| set(len_bytes, cubin(program).map_or(0, |cubin| cubin.len() + 1)))
    }

    nvrtcGetCUBIN(program: u64, place: *mut c_char) {
        with(program, |program| cubin(program).map_or(Ok(()), |cubin| write_text(place, cubin)))
    }

    nvrtcAddNameExpression = add_expression(program: u64, expression: *const c_char);

    nvrtcGetLoweredName = lowered_name(
        program: u64, expression: *const c_char, lowered: *mut *const c_char
    );
}

/// `nvrtcGetErrorString`.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "NVRTC's name")]
extern "C" fn nvrtcGetErrorString(code: u32) -> *const c_char {
    let name = name_of_result!("NVRTC", code);
    if name.is_null() { c"NVRTC_ERROR unknown".as_ptr() } else { name }
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

fn ptx(program: &Program) -> &[u8] {
    code(program).map_or(&[], |code| &code.bytes)
}

fn cubin(program: &Program) -> Option<&[u8]> {
    code(program).filter(|code| code.is_real).map(|code| &*code.bytes)
}
