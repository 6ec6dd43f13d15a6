//! hiprtc's functions.

use std::ffi::{c_char, c_int};

use crate::options::HiprtcOptions;
use resident_stand_in_compiler::compiler::{self, Program};
use resident_stand_in_compiler::programs::{
    Code, add_expression, code, compile, create, destroy, log, lowered_name, nth, set, text, with,
    write,
};
use resident_stand_in_compiler::{compiler_functions, name_of_result};

/// Headers of which the compiler for the host has its own.
const HEADERS: [&str; 2] = ["cuda_fp16.h", "cuda_bf16.h"];

compiler_functions! {
    // The numbers of every version of hiprtc.
    hiprtcVersion(major: *mut c_int, minor: *mut c_int) {
        set(major, 9)?;
        set(minor, 0)
    }

    hiprtcCreateProgram(
        program: *mut u64,
        source: *const c_char,
        name: *const c_char,
        count: c_int,
        headers: *const *const c_char,
        names: *const *const c_char,
    ) {
        let count = usize::try_from(count).map_err(|_| Code::INVALID_INPUT)?;
        for index in 0..count {
            let is_empty = text(nth(headers, index)?)?.is_empty();
            if is_empty || !HEADERS.contains(&text(nth(names, index)?)?.as_str()) {
                return Err(Code::INVALID_INPUT);
            }
        }
        create(program, source, name)
    }

    // The caller's handle stays as it is.
    hiprtcDestroyProgram = destroy(program: *const u64);

    hiprtcCompileProgram(program: u64, count: c_int, options: *const *const c_char) {
        compile::<HiprtcOptions>(program, count, options)
    }

    // The log has no final zero, and its size does not count one.
    hiprtcGetProgramLogSize(program: u64, len_bytes: *mut usize) {
        with(program, |program| set(len_bytes, log(program).len()))
    }

    hiprtcGetProgramLog(program: u64, place: *mut c_char) {
        with(program, |program| write(place, log(program).as_bytes()))
    }

    // After a failed compilation there is no code.
    hiprtcGetCodeSize(program: u64, len_bytes: *mut usize) {
        with(program, |program| set(len_bytes, bytes(program).len()))
    }

    hiprtcGetCode(program: u64, place: *mut c_char) {
        with(program, |program| write(place, bytes(program)))
    }

    hiprtcAddNameExpression = add_expression(program: u64, expression: *const c_char);

    hiprtcGetLoweredName(program: u64, expression: *const c_char, lowered: *mut *const c_char) {
        // Also before the compilation.
        lowered_name(program, expression, lowered).map_err(|code| match code {
            Code::NO_LOWERED_NAMES_BEFORE_COMPILATION => Code::NAME_EXPRESSION_NOT_VALID,
            other => other,
        })
    }
}

/// `hiprtcGetErrorString`.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "hiprtc's name")]
extern "C" fn hiprtcGetErrorString(code: u32) -> *const c_char {
    name_of_result!("HIPRTC", code)
}

/// Called by the client.
#[unsafe(no_mangle)]
extern "C" fn resident_stand_in_hiprtc_compilations() -> u64 {
    compiler::compilations()
}

fn bytes(program: &Program) -> &[u8] {
    code(program).map_or(&[], |code| &code.bytes)
}
