//! One function of a driver: its pointer, its name, and the errors of its result codes.

use super::cuda_like_vendor::CudaLikeVendor;
use super::status::{self, Status};
use resident_backend::{BackendError, BackendErrorKind};

/// A function of a driver, of type `F`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DriverFunction<F> {
    /// The function. Its result is a [`Status`].
    pub function: F,
    /// Its name in messages: that of the driver's manual.
    pub name: &'static str,
    pub(super) vendor: &'static CudaLikeVendor,
}

impl<F> DriverFunction<F> {
    /// Converts a result. The error names the call. For a failed allocation use the error that also
    /// contains the number of bytes.
    #[inline]
    pub(crate) fn check(&self, outcome: Status) -> Result<(), BackendError> {
        match outcome {
            status::SUCCESS => Ok(()),
            failed => Err(self.error(failed)),
        }
    }

    /// As [`check`](Self::check), for a call that uses two contexts. The driver may report the
    /// death of either context, so the error is not attributed to the stream's own context; the
    /// next call on that context detects its death.
    pub(crate) fn check_between(&self, outcome: Status) -> Result<(), BackendError> {
        self.check(outcome).map_err(|error| BackendError {
            kind: BackendErrorKind::Driver { code: i64::from(outcome) },
            ..error
        })
    }

    /// The error of a call that failed.
    #[cold]
    pub(crate) fn error(&self, failed: Status) -> BackendError {
        self.vendor.error(failed, self.name)
    }
}
