//! NCCL's results.

use std::ffi::CStr;

use serde::{Deserialize, Serialize};

/// An ncclResult_t other than success.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Status(pub(crate) u32);

pub(crate) type Outcome<T = ()> = Result<T, Status>;

impl Status {
    pub(crate) const UNHANDLED_CUDA_ERROR: Self = Self(1);
    pub(crate) const SYSTEM_ERROR: Self = Self(2);
    pub(crate) const INTERNAL_ERROR: Self = Self(3);
    pub(crate) const INVALID_ARGUMENT: Self = Self(4);
    pub(crate) const INVALID_USAGE: Self = Self(5);
    pub(crate) const REMOTE_ERROR: Self = Self(6);

    /// What `ncclGetErrorString` says.
    pub(crate) fn text(code: u32) -> &'static CStr {
        match code {
            0 => c"no error",
            1 => c"unhandled cuda error",
            2 => c"unhandled system error",
            3 => c"internal error",
            4 => c"invalid argument",
            5 => c"invalid usage",
            6 => c"remote process exited or there was a network error",
            7 => c"NCCL operation in progress",
            _ => c"unknown result code",
        }
    }
}
