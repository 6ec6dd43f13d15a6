//! NVRTC's functions.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::compiler::{self, Fault, Program, architectures};

/// An nvrtcResult other than success.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Code(u32);

impl Code {
    const INVALID_INPUT: Self = Self(3);
    const INVALID_PROGRAM: Self = Self(4);
    const INVALID_OPTION: Self = Self(5);
    const COMPILATION: Self = Self(6);
    const NO_NAME_EXPRESSIONS_AFTER_COMPILATION: Self = Self(8);
    const NO_LOWERED_NAMES_BEFORE_COMPILATION: Self = Self(9);
    const NAME_EXPRESSION_NOT_VALID: Self = Self(10);
    const INTERNAL_ERROR: Self = Self(11);
}

type Outcome<T = ()> = Result<T, Code>;

/// The programs by handle; a handle is a number that is never used as a pointer.
static PROGRAMS: Mutex<Option<HashMap<u64, Program>>> = Mutex::new(None);

/// Defines functions that are exported under NVRTC's names and never unwind.
macro_rules! compiler_functions {
    ($($name:ident($($argument:ident: $kind:ty),* $(,)?) $body:block)*) => {$(
        /// Implements the function of NVRTC's manual, as far as the stand-in supports it.
        ///
        /// # Safety
        ///
        /// As in NVRTC's manual: pointers are valid for the sizes that it requires.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "NVRTC's name")]
        unsafe extern "C" fn $name($($argument: $kind),*) -> u32 {
            let outcome = catch_unwind(AssertUnwindSafe(move || -> Outcome { $body }));
            outcome.unwrap_or(Err(Code::INTERNAL_ERROR)).err().map_or(0, |code| code.0)
        }
    )*};
}

compiler_functions! {
    nvrtcVersion(major: *mut c_int, minor: *mut c_int) {
        let [known_major, known_minor] = compiler::version();
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
        static NEXT: AtomicU64 = AtomicU64::new(0xC0DB_0000_0000_0010);
        // Headers are read from files only.
        if count != 0 || !headers.is_null() || !names.is_null() {
            return Err(Code::INVALID_INPUT);
        }
        let name = if name.is_null() { "default_program".to_owned() } else { text(name)? };
        let made =
            Program { name, text: text(source)?, expressions: Vec::new(), outcome: None };
        let handle = NEXT.fetch_add(0x10, Ordering::Relaxed);
        set(program, handle)?;
        PROGRAMS
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert_default()
            .insert(handle, made);
        Ok(())
    }

    nvrtcDestroyProgram(program: *mut u64) {
        let handle = nth(program, 0)?;
        let removed = PROGRAMS
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_mut()
            .and_then(|programs| programs.remove(&handle));
        removed.ok_or(Code::INVALID_PROGRAM)?;
        // NVRTC clears the caller's handle. cudarc passes a pointer derived from a shared
        // reference, which is written as well.
        set(program, 0)
    }

    nvrtcCompileProgram(program: u64, count: c_int, options: *const *const c_char) {
        let count = usize::try_from(count).map_err(|_| Code::INVALID_INPUT)?;
        let options =
            (0..count).map(|index| text(nth(options, index)?)).collect::<Outcome<Vec<String>>>()?;
        with(program, |program| {
            program.compile(&options).map_err(|fault| match fault {
                Fault::InvalidOption => Code::INVALID_OPTION,
                Fault::Compilation => Code::COMPILATION,
            })
        })
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
        let expression = text(expression)?;
        with(program, |program| {
            if program.outcome.is_some() {
                return Err(Code::NO_NAME_EXPRESSIONS_AFTER_COMPILATION);
            }
            program.expressions.push(expression);
            Ok(())
        })
    }

    nvrtcGetLoweredName(program: u64, expression: *const c_char, lowered: *mut *const c_char) {
        let expression = text(expression)?;
        with(program, |program| {
            let product =
                program.outcome.as_ref().ok_or(Code::NO_LOWERED_NAMES_BEFORE_COMPILATION)?;
            // The text is live until the program is destroyed, as with NVRTC.
            set(
                lowered,
                product.lowered.get(&expression).ok_or(Code::NAME_EXPRESSION_NOT_VALID)?.as_ptr(),
            )
        })
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
    compiler::set_version([major, minor]);
}

fn with<T>(handle: u64, use_program: impl FnOnce(&mut Program) -> Outcome<T>) -> Outcome<T> {
    let mut programs = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
    use_program(
        programs
            .as_mut()
            .and_then(|programs| programs.get_mut(&handle))
            .ok_or(Code::INVALID_PROGRAM)?,
    )
}

fn log(program: &Program) -> &str {
    program.outcome.as_ref().map_or("", |product| &product.log)
}

fn ptx(program: &Program) -> &str {
    program.outcome.as_ref().and_then(|product| product.ptx.as_deref()).unwrap_or_default()
}

fn cubin(program: &Program) -> Option<&str> {
    program.outcome.as_ref().filter(|product| product.has_cubin)?.ptx.as_deref()
}

/// Reads a C string; a null pointer is NVRTC_ERROR_INVALID_INPUT.
fn text(place: *const c_char) -> Outcome<String> {
    if place.is_null() {
        return Err(Code::INVALID_INPUT);
    }
    // SAFETY: the caller of the function guarantees a text that ends with a zero.
    let text = unsafe { CStr::from_ptr(place) };
    text.to_str().map(str::to_owned).map_err(|_| Code::INVALID_INPUT)
}

/// An element of a C array.
fn nth<T: Copy>(list: *const T, index: usize) -> Outcome<T> {
    if list.is_null() {
        return Err(Code::INVALID_INPUT);
    }
    // SAFETY: the caller of the function guarantees an array with this many values.
    Ok(unsafe { list.wrapping_add(index).read() })
}

/// Writes a result.
fn set<T>(place: *mut T, value: T) -> Outcome {
    if place.is_null() {
        return Err(Code::INVALID_INPUT);
    }
    // SAFETY: the caller of the function guarantees a pointer that is valid for the value.
    unsafe { place.write(value) };
    Ok(())
}

/// Writes a text with its final zero; the caller has queried the size.
fn write(place: *mut c_char, text: &str) -> Outcome {
    if place.is_null() {
        return Err(Code::INVALID_INPUT);
    }
    // SAFETY: the caller of the function guarantees room for the text and a final zero.
    unsafe { place.copy_from_nonoverlapping(text.as_ptr().cast(), text.len()) };
    set(place.wrapping_add(text.len()), 0)
}
