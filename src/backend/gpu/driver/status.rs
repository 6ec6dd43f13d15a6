//! The result codes of driver functions. HIP has CUDA's numbers for the same errors.

use std::ffi::c_int;

use crate::backend::{BackendError, BackendErrorKind};

/// A result code: `CUresult` or `hipError_t`, as a number, because newer drivers have more values.
pub(crate) type Status = c_int;

pub(crate) const SUCCESS: Status = 0;
pub(crate) const INVALID_VALUE: Status = 1;
pub(crate) const OUT_OF_MEMORY: Status = 2;
pub(crate) const NOT_INITIALIZED: Status = 3;
pub(crate) const NO_DEVICE: Status = 100;
pub(crate) const INVALID_DEVICE: Status = 101;
pub(crate) const NOT_FOUND: Status = 500;
pub(crate) const NOT_READY: Status = 600;
pub(crate) const HOST_MEMORY_ALREADY_REGISTERED: Status = 712;
pub(crate) const HOST_MEMORY_NOT_REGISTERED: Status = 713;
pub(crate) const NOT_SUPPORTED: Status = 801;
pub(crate) const STREAM_CAPTURE_UNSUPPORTED: Status = 900;

/// The error of a call that failed.
pub(crate) fn refusal(failed: Status, call: &'static str, detail: String) -> BackendError {
    let kind = if is_sticky(failed) {
        BackendErrorKind::DeviceLost
    } else {
        BackendErrorKind::Driver { code: i64::from(failed) }
    };
    BackendError { kind, call, detail }
}

/// The error for arguments that the library must not pass to the driver.
#[cold]
pub(crate) fn invalid(call: &'static str, detail: String) -> BackendError {
    let kind = BackendErrorKind::Driver { code: i64::from(INVALID_VALUE) };
    BackendError { kind, call, detail }
}

/// Whether every later call in the context fails too. The driver's documentation says of these
/// errors that the process must be restarted.
fn is_sticky(failed: Status) -> bool {
    const ECC_UNCORRECTABLE: Status = 214;
    const NVLINK_UNCORRECTABLE: Status = 220;
    const CONTAINED: Status = 226;
    const ILLEGAL_ADDRESS: Status = 700;
    const LAUNCH_TIMEOUT: Status = 702;
    const CONTEXT_IS_DESTROYED: Status = 709;
    const ASSERT: Status = 710;
    const HARDWARE_STACK_ERROR: Status = 714;
    const LAUNCH_FAILED: Status = 719;
    const TENSOR_MEMORY_LEAK: Status = 721;
    const MPS_CLIENT_TERMINATED: Status = 810;
    const EXTERNAL_DEVICE: Status = 911;
    matches!(
        failed,
        ECC_UNCORRECTABLE
            | NVLINK_UNCORRECTABLE
            | CONTAINED
            | ILLEGAL_ADDRESS
            | LAUNCH_TIMEOUT
            | CONTEXT_IS_DESTROYED
            | ASSERT
            | HARDWARE_STACK_ERROR
            ..=LAUNCH_FAILED | TENSOR_MEMORY_LEAK | MPS_CLIENT_TERMINATED | EXTERNAL_DEVICE
    )
}
