//! hiprtc's functions.

use std::ffi::{c_char, c_int};

use crate::compiler::{self, Program};
use crate::programs::{
    Code, Outcome, add_expression, compile, compiler_functions, create, destroy, log, lowered_name,
    nth, set, text, with,
};

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
    hiprtcDestroyProgram(program: *mut u64) {
        destroy(program)
    }

    hiprtcCompileProgram(program: u64, count: c_int, options: *const *const c_char) {
        compile(program, count, options)
    }

    // The log has no final zero, and its size does not count one.
    hiprtcGetProgramLogSize(program: u64, len_bytes: *mut usize) {
        with(program, |program| set(len_bytes, log(program).len()))
    }

    hiprtcGetProgramLog(program: u64, place: *mut c_char) {
        with(program, |program| put(place, log(program).as_bytes()))
    }

    // After a failed compilation there is no code.
    hiprtcGetCodeSize(program: u64, len_bytes: *mut usize) {
        with(program, |program| set(len_bytes, code(program).len()))
    }

    hiprtcGetCode(program: u64, place: *mut c_char) {
        with(program, |program| put(place, code(program)))
    }

    hiprtcAddNameExpression(program: u64, expression: *const c_char) {
        add_expression(program, expression)
    }

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
    let text = match code {
        0 => c"HIPRTC_SUCCESS",
        1 => c"HIPRTC_ERROR_OUT_OF_MEMORY",
        2 => c"HIPRTC_ERROR_PROGRAM_CREATION_FAILURE",
        3 => c"HIPRTC_ERROR_INVALID_INPUT",
        4 => c"HIPRTC_ERROR_INVALID_PROGRAM",
        5 => c"HIPRTC_ERROR_INVALID_OPTION",
        6 => c"HIPRTC_ERROR_COMPILATION",
        7 => c"HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE",
        8 => c"HIPRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
        9 => c"HIPRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
        10 => c"HIPRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
        11 => c"HIPRTC_ERROR_INTERNAL_ERROR",
        _ => return std::ptr::null(),
    };
    text.as_ptr()
}

/// Called by the client.
#[unsafe(no_mangle)]
extern "C" fn resident_stand_in_hiprtc_compilations() -> u64 {
    compiler::compilations()
}

fn code(program: &Program) -> &[u8] {
    program.outcome.as_ref().and_then(|product| product.code.as_deref()).unwrap_or_default()
}

/// Writes bytes without a final zero; the caller has queried the size.
fn put(place: *mut c_char, bytes: &[u8]) -> Outcome {
    if place.is_null() {
        return Err(Code::INVALID_INPUT);
    }
    // SAFETY: the caller of the function guarantees room for as many bytes as there are.
    unsafe { place.copy_from_nonoverlapping(bytes.as_ptr().cast(), bytes.len()) };
    Ok(())
}
