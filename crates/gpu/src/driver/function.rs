//! One function of a driver: its pointer, its name, and the errors of its result codes.

use super::cuda_like_vendor::CudaLikeVendor;
use super::status::{self, Status};
use resident_backend::{BackendError, BackendErrorKind};

/// A function of a driver, of type `F`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Function<F> {
    /// The function. Its result is a [`Status`].
    pub function: F,
    /// Its name in messages: that of the driver's manual.
    pub name: &'static str,
    pub(super) vendor: &'static CudaLikeVendor,
}

impl<F> Function<F> {
    /// Converts a result. The error names the call. For a failed allocation use the error that also
    /// contains the number of bytes.
    #[inline]
    pub(crate) fn check(&self, outcome: Status) -> Result<(), BackendError> {
        match outcome {
            status::SUCCESS => Ok(()),
            failed => Err(self.refusal(failed)),
        }
    }

    /// As [`check`](Self::check), for a call that uses two contexts. The driver may report the
    /// death of either context, so the error is not attributed to the stream's own context; the
    /// next call on that context detects its death.
    pub(crate) fn check_between(&self, outcome: Status) -> Result<(), BackendError> {
        self.check(outcome).map_err(|refusal| BackendError {
            kind: BackendErrorKind::Driver { code: i64::from(outcome) },
            ..refusal
        })
    }

    /// The error of a call that failed.
    #[cold]
    pub(crate) fn refusal(&self, failed: Status) -> BackendError {
        self.vendor.refusal(failed, self.name)
    }
}
