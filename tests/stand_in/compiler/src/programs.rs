//! The programs by handle, and arguments that come from C. NVRTC and hiprtc have the same functions
//! for them, under other names.

#![expect(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "the callers are functions of C, whose callers guarantee what the manual requires"
)]

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::compiler::{Fault, Program};
use crate::options::{Code as Compiled, Options};

/// An nvrtcResult, or a hiprtcResult, other than success. Their numbers are the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Code(pub u32);

impl Code {
    pub const INVALID_INPUT: Self = Self(3);
    pub const INVALID_PROGRAM: Self = Self(4);
    pub const INVALID_OPTION: Self = Self(5);
    pub const COMPILATION: Self = Self(6);
    pub const NO_NAME_EXPRESSIONS_AFTER_COMPILATION: Self = Self(8);
    pub const NO_LOWERED_NAMES_BEFORE_COMPILATION: Self = Self(9);
    pub const NAME_EXPRESSION_NOT_VALID: Self = Self(10);
    pub const INTERNAL_ERROR: Self = Self(11);
}

pub type Outcome<T = ()> = Result<T, Code>;

/// The programs by handle; a handle is a number that is never used as a pointer.
static PROGRAMS: Mutex<Option<HashMap<u64, Program>>> = Mutex::new(None);

/// Defines functions that are exported under the compiler's names and never unwind. Each has a
/// body, or is `=` another function, which gets its arguments.
#[macro_export]
macro_rules! compiler_functions {
    () => {};
    ($name:ident = $function:ident($($argument:ident: $kind:ty),* $(,)?); $($rest:tt)*) => {
        $crate::compiler_functions! {
            $name($($argument: $kind),*) { $function($($argument),*) }
            $($rest)*
        }
    };
    ($name:ident($($argument:ident: $kind:ty),* $(,)?) $body:block $($rest:tt)*) => {
        /// Implements the function of the compiler's manual, as far as the stand-in supports it.
        ///
        /// # Safety
        ///
        /// As in the compiler's manual: pointers are valid for the sizes that it requires.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the compiler's name")]
        unsafe extern "C" fn $name($($argument: $kind),*) -> u32 {
            $crate::programs::run(move || -> $crate::programs::Outcome { $body })
        }

        $crate::compiler_functions! { $($rest)* }
    };
}

/// Runs the body of a function. It never unwinds.
pub fn run(body: impl FnOnce() -> Outcome) -> u32 {
    let outcome = catch_unwind(AssertUnwindSafe(body));
    outcome.unwrap_or(Err(Code::INTERNAL_ERROR)).err().map_or(0, |code| code.0)
}

/// Creates a program.
pub fn create(program: *mut u64, source: *const c_char, name: *const c_char) -> Outcome {
    static NEXT: AtomicU64 = AtomicU64::new(0xC0DB_0000_0000_0010);
    let name = if name.is_null() { "default_program".to_owned() } else { text(name)? };
    let made = Program { name, text: text(source)?, expressions: Vec::new(), outcome: None };
    let handle = NEXT.fetch_add(0x10, Ordering::Relaxed);
    set(program, handle)?;
    PROGRAMS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get_or_insert_default()
        .insert(handle, made);
    Ok(())
}

/// Destroys a program.
pub fn destroy(program: *const u64) -> Outcome {
    let handle = nth(program, 0)?;
    let removed = PROGRAMS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .as_mut()
        .and_then(|programs| programs.remove(&handle));
    removed.map(drop).ok_or(Code::INVALID_PROGRAM)
}

/// Compiles a program.
pub fn compile<O: Options>(program: u64, count: c_int, options: *const *const c_char) -> Outcome {
    let count = usize::try_from(count).map_err(|_| Code::INVALID_INPUT)?;
    let options =
        (0..count).map(|index| text(nth(options, index)?)).collect::<Outcome<Vec<String>>>()?;
    with(program, |program| {
        program.compile::<O>(&options).map_err(|fault| match fault {
            Fault::InvalidOption => Code::INVALID_OPTION,
            Fault::Compilation => Code::COMPILATION,
        })
    })
}

/// Adds a name expression, before the compilation.
pub fn add_expression(program: u64, expression: *const c_char) -> Outcome {
    let expression = text(expression)?;
    with(program, |program| {
        if program.outcome.is_some() {
            return Err(Code::NO_NAME_EXPRESSIONS_AFTER_COMPILATION);
        }
        program.expressions.push(expression);
        Ok(())
    })
}

/// The lowered name of a name expression. The text is live until the program is destroyed.
pub fn lowered_name(
    program: u64,
    expression: *const c_char,
    lowered: *mut *const c_char,
) -> Outcome {
    let expression = text(expression)?;
    with(program, |program| {
        let product = program.outcome.as_ref().ok_or(Code::NO_LOWERED_NAMES_BEFORE_COMPILATION)?;
        let name = product.lowered.get(&expression).ok_or(Code::NAME_EXPRESSION_NOT_VALID)?;
        set(lowered, name.as_ptr())
    })
}

/// Uses a program.
pub fn with<T>(handle: u64, use_program: impl FnOnce(&mut Program) -> Outcome<T>) -> Outcome<T> {
    let mut programs = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
    use_program(
        programs
            .as_mut()
            .and_then(|programs| programs.get_mut(&handle))
            .ok_or(Code::INVALID_PROGRAM)?,
    )
}

/// The log of a program.
pub fn log(program: &Program) -> &str {
    program.outcome.as_ref().map_or("", |product| &product.log)
}

/// The code of a program, if it was compiled.
pub fn code(program: &Program) -> Option<&Compiled> {
    program.outcome.as_ref()?.code.as_ref()
}

/// Reads a C string; a null pointer is an invalid input.
pub fn text(place: *const c_char) -> Outcome<String> {
    if place.is_null() {
        return Err(Code::INVALID_INPUT);
    }
    // SAFETY: the caller of the function guarantees a text that ends with a zero.
    let text = unsafe { CStr::from_ptr(place) };
    text.to_str().map(str::to_owned).map_err(|_| Code::INVALID_INPUT)
}

/// An element of a C array.
pub fn nth<T: Copy>(list: *const T, index: usize) -> Outcome<T> {
    if list.is_null() {
        return Err(Code::INVALID_INPUT);
    }
    // SAFETY: the caller of the function guarantees an array with this many values.
    Ok(unsafe { list.wrapping_add(index).read() })
}

/// Writes a result.
pub fn set<T>(place: *mut T, value: T) -> Outcome {
    if place.is_null() {
        return Err(Code::INVALID_INPUT);
    }
    // SAFETY: the caller of the function guarantees a pointer that is valid for the value.
    unsafe { place.write(value) };
    Ok(())
}

/// Writes bytes without a final zero; the caller has queried the size.
pub fn write(place: *mut c_char, bytes: &[u8]) -> Outcome {
    if place.is_null() {
        return Err(Code::INVALID_INPUT);
    }
    // SAFETY: the caller of the function guarantees room for as many bytes as there are.
    unsafe { place.copy_from_nonoverlapping(bytes.as_ptr().cast(), bytes.len()) };
    Ok(())
}

/// Writes a text with its final zero; the caller has queried the size.
pub fn write_text(place: *mut c_char, text: &[u8]) -> Outcome {
    write(place, text)?;
    set(place.wrapping_add(text.len()), 0)
}

/// The name of a result, or null for an unknown one. The results of NVRTC begin with `NVRTC`, those
/// of hiprtc with `HIPRTC`.
#[macro_export]
macro_rules! name_of_result {
    ($prefix:literal, $code:expr) => {{
        const NAMES: [&str; 12] = [
            concat!($prefix, "_SUCCESS\0"),
            concat!($prefix, "_ERROR_OUT_OF_MEMORY\0"),
            concat!($prefix, "_ERROR_PROGRAM_CREATION_FAILURE\0"),
            concat!($prefix, "_ERROR_INVALID_INPUT\0"),
            concat!($prefix, "_ERROR_INVALID_PROGRAM\0"),
            concat!($prefix, "_ERROR_INVALID_OPTION\0"),
            concat!($prefix, "_ERROR_COMPILATION\0"),
            concat!($prefix, "_ERROR_BUILTIN_OPERATION_FAILURE\0"),
            concat!($prefix, "_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION\0"),
            concat!($prefix, "_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION\0"),
            concat!($prefix, "_ERROR_NAME_EXPRESSION_NOT_VALID\0"),
            concat!($prefix, "_ERROR_INTERNAL_ERROR\0"),
        ];
        NAMES.get($code as usize).map_or(std::ptr::null(), |name| name.as_ptr().cast::<c_char>())
    }};
}
