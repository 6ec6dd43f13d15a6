//! The result codes of driver functions. HIP has CUDA's numbers for the same errors.

use std::ffi::c_int;

use resident_backend::{BackendError, BackendErrorKind};

/// A result code: `CUresult` or `hipError_t`, as a number, because newer drivers have more values.
pub(crate) type Status = c_int;

pub(crate) const SUCCESS: Status = 0;
pub(crate) const INVALID_VALUE: Status = 1;
pub(crate) const OUT_OF_MEMORY: Status = 2;
pub(crate) const NOT_INITIALIZED: Status = 3;
pub(crate) const NO_DEVICE: Status = 100;
pub(crate) const NOT_FOUND: Status = 500;
pub(crate) const NOT_READY: Status = 600;
pub(crate) const HOST_MEMORY_ALREADY_REGISTERED: Status = 712;
pub(crate) const HOST_MEMORY_NOT_REGISTERED: Status = 713;
pub(crate) const NOT_SUPPORTED: Status = 801;
pub(crate) const STREAM_CAPTURE_UNSUPPORTED: Status = 900;

/// The error for arguments that the library must not pass to the driver.
#[cold]
pub(crate) fn invalid(call: &'static str, detail: String) -> BackendError {
    let kind = BackendErrorKind::Driver { code: i64::from(INVALID_VALUE) };
    BackendError { kind, call, detail }
}
