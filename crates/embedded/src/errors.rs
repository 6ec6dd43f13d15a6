//! Errors of the embedded device. The codes below are used only by this device.

use resident_backend::{BackendError, BackendErrorKind};

/// No live memory starts at the address.
pub(super) const CODE_UNKNOWN_ADDRESS: i64 = 1;

/// A wait for work that can never run.
pub(super) const CODE_STUCK: i64 = 2;

/// A thread could not be started.
pub(super) const CODE_NO_THREAD: i64 = 3;

/// The machine does not report its memory.
pub(super) const CODE_UNKNOWN_CAPACITY: i64 = 4;

/// Invalid arguments.
pub(super) const CODE_INVALID: i64 = 5;

/// An error with a driver code.
pub(super) fn driver_error(
    code: i64,
    call: &'static str,
    detail: impl Into<String>,
) -> BackendError {
    BackendError { kind: BackendErrorKind::Driver { code }, call, detail: detail.into() }
}

/// The refusal of a call that would wait on a thread that runs queued work.
pub(super) fn inside_kernel(call: &'static str) -> BackendError {
    BackendError { kind: BackendErrorKind::InsideKernel, call, detail: String::new() }
}
