//! The functions of NVRTC. This module opens the library itself, because cudarc tries other file
//! names, in another order.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;

use libloading::Library;

use crate::backend::cuda::library::find_nvrtc;

/// `nvrtcResult`, as a number, because newer libraries have more values.
pub(super) type Outcome = c_int;

/// `nvrtcProgram`, an opaque pointer.
pub(super) type Handle = *mut c_void;

/// A function that writes the size of a program's text or image, in bytes.
pub(super) type Size = unsafe extern "C" fn(Handle, *mut usize) -> Outcome;

/// A function that writes as many bytes as the corresponding `Size` function returned.
pub(super) type Content = unsafe extern "C" fn(Handle, *mut c_char) -> Outcome;

/// Defines a struct of function pointers with their names in the library.
macro_rules! library {
    ($(#[$about:meta])* $name:ident { $($field:ident = $symbol:literal: $kind:ty,)* }) => {
        $(#[$about])*
        #[derive(Debug)]
        pub(super) struct $name {
            $(pub(super) $field: $kind,)*
            /// Keeps the library open.
            _library: Library,
        }

        impl $name {
            /// Looks up all functions. The error names the first missing function.
            fn of(library: Library) -> Result<Self, String> {
                $(
                    // SAFETY: the field's type is the function's type in `nvrtc.h` since version
                    // 11.2.
                    let $field = unsafe { library.get::<$kind>($symbol.as_bytes()) };
                    let $field = *$field.map_err(|_| {
                        format!("it has no function {}, as NVRTC 11.2 and later have", $symbol)
                    })?;
                )*
                Ok(Self { $($field,)* _library: library })
            }
        }
    };
}

library! {
    /// The functions of NVRTC.
    Nvrtc {
        version = "nvrtcVersion": unsafe extern "C" fn(*mut c_int, *mut c_int) -> Outcome,
        error_text = "nvrtcGetErrorString": unsafe extern "C" fn(Outcome) -> *const c_char,
        architecture_count = "nvrtcGetNumSupportedArchs":
            unsafe extern "C" fn(*mut c_int) -> Outcome,
        architectures = "nvrtcGetSupportedArchs": unsafe extern "C" fn(*mut c_int) -> Outcome,
        create = "nvrtcCreateProgram": unsafe extern "C" fn(
            *mut Handle,
            *const c_char,
            *const c_char,
            c_int,
            *const *const c_char,
            *const *const c_char,
        ) -> Outcome,
        destroy = "nvrtcDestroyProgram": unsafe extern "C" fn(*mut Handle) -> Outcome,
        add_expression = "nvrtcAddNameExpression":
            unsafe extern "C" fn(Handle, *const c_char) -> Outcome,
        compile = "nvrtcCompileProgram":
            unsafe extern "C" fn(Handle, c_int, *const *const c_char) -> Outcome,
        lowered_name = "nvrtcGetLoweredName":
            unsafe extern "C" fn(Handle, *const c_char, *mut *const c_char) -> Outcome,
        log_size = "nvrtcGetProgramLogSize": Size,
        log = "nvrtcGetProgramLog": Content,
        ptx_size = "nvrtcGetPTXSize": Size,
        ptx = "nvrtcGetPTX": Content,
        cubin_size = "nvrtcGetCUBINSize": Size,
        cubin = "nvrtcGetCUBIN": Content,
    }
}

impl Nvrtc {
    /// The NVRTC of this process. The first call looks for an NVRTC whose code a driver of this
    /// version accepts.
    pub(super) fn find(driver_version: i32) -> Result<&'static Self, String> {
        static FOUND: OnceLock<Result<Nvrtc, String>> = OnceLock::new();
        FOUND.get_or_init(|| find_nvrtc(driver_version, Self::of)).as_ref().map_err(Clone::clone)
    }

    /// Turns the outcome of a call into a result.
    pub(super) fn check(&self, outcome: Outcome) -> Result<(), String> {
        const SUCCESS: Outcome = 0;
        if outcome == SUCCESS {
            return Ok(());
        }
        // SAFETY: the function takes any number.
        let text = unsafe { (self.error_text)(outcome) };
        if text.is_null() {
            return Err(format!("NVRTC failed with {outcome}"));
        }
        // SAFETY: the pointer leads to a static text of the library, which ends with a zero.
        let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
        Err(format!("NVRTC failed with {outcome}: {text}"))
    }
}
