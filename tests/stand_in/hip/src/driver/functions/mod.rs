//! The `hip*` functions, by chapter of HIP's manual.

mod copies;
mod devices;
mod events;
mod fills;
mod managed;
mod memory;
mod modules;
mod pools;
mod properties;
mod streams;
mod unsupported;

/// Defines functions that are exported under HIP's names. Each initialises HIP, and keeps its
/// result as the thread's last error.
macro_rules! hip_functions {
    ($($name:ident($($argument:ident: $kind:ty),* $(,)?) $body:block)*) => {$(
        /// Implements the function of HIP's manual, as far as the stand-in supports it.
        ///
        /// # Safety
        ///
        /// As in HIP's manual: pointers are valid for the sizes that it requires.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "HIP's name")]
        unsafe extern "C" fn $name($($argument: $kind),*) -> u32 {
            let body = move || -> $crate::driver::code::Outcome {
                $crate::driver::interface::begin(stringify!($name))?;
                $body
            };
            let code = $crate::driver::call::run_recorded(stringify!($name), body);
            $crate::driver::interface::keep_last(code)
        }
    )*};
}

use hip_functions;
