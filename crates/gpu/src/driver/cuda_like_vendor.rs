//! What differs in names and numbers between the vendors whose drivers mirror CUDA's. A GPU with
//! another kind of driver has a crate of its own: see the list at the top of the crate
//! `resident-backend`.

use std::ffi::c_int;

use super::status::Status;
use resident_backend::{BackendError, BackendErrorKind, DeviceKind};

/// The names and numbers of one vendor's driver, which mirrors CUDA's.
#[derive(Debug)]
pub(crate) struct CudaLikeVendor {
    pub kind: DeviceKind,
    /// Of its devices: `cuda` in `cuda:0`.
    pub prefix: &'static str,
    /// `CUDA`, `HIP`.
    pub name: &'static str,
    /// How to choose the compiler.
    pub compiler_hint: &'static str,
    /// A version in its usual form: 12.4 for 12040.
    pub version_text: fn(c_int) -> String,
    /// The driver's name for a result code.
    pub(super) status_name: fn(Status) -> String,
    /// Advice for common result codes.
    pub(super) advice: fn(Status) -> Option<&'static str>,
    /// Whether after this result every later call in the context fails too.
    pub(super) is_sticky: fn(Status) -> bool,
    /// Whether the driver refuses to register host memory that is registered already.
    pub refuses_registered_memory: bool,
    /// The attribute of devices that register host memory which the process may only read.
    pub read_only_registration: Option<c_int>,
    /// Whether the driver copies between devices that cannot access each other's memory.
    pub copies_without_peer_access: bool,
    /// Whether the driver copies and fills ordinary host memory that a device reaches as it does
    /// device memory.
    pub copies_reached_memory: bool,
    /// Whether one call sets the access of memory that several calls have mapped.
    pub sets_access_of_several: bool,
    /// The flag of pinned host memory that is not mapped, beside those that the user asks for.
    pub unmapped_flags: u32,
    /// The variable that asks for a self-test of the driver.
    pub check_variable: Option<&'static str>,
    /// The flags of all events.
    pub event_flags: u32,
    /// The most threads of a grid along an axis.
    pub axis_threads_max: u64,
    /// Whether a module uses its image after it was loaded, and tells the sizes of parameters by
    /// it.
    pub keeps_images: bool,
    /// The oldest version whose functions this backend needs.
    pub(super) version_min: c_int,
    /// What to do if it is older.
    pub(super) update: &'static str,
    /// The number of host memory among types of memory, by the driver's version.
    pub(super) host_memory_type: fn(c_int) -> u64,
}

impl CudaLikeVendor {
    /// The one of two values, for CUDA and for HIP, that is this vendor's.
    pub(super) fn own<T>(&self, [cuda, hip]: [T; 2]) -> T {
        if self.kind == DeviceKind::Hip { hip } else { cuda }
    }

    /// The driver's name for a result code, and advice for common codes.
    pub(super) fn describe(&self, failed: Status) -> String {
        let name = (self.status_name)(failed);
        match (self.advice)(failed) {
            Some(advice) => format!("{name}: {advice}"),
            None => name,
        }
    }

    /// The error of a call that failed.
    #[cold]
    pub(crate) fn error(&self, failed: Status, call: &'static str) -> BackendError {
        let kind = if (self.is_sticky)(failed) {
            BackendErrorKind::DeviceLost
        } else {
            BackendErrorKind::Driver { code: i64::from(failed) }
        };
        BackendError { kind, call, detail: self.describe(failed) }
    }

    /// The number of host memory among types of memory (`CUmemorytype`, `hipMemoryType`).
    pub(crate) fn host_memory_type(&self, version: c_int) -> u64 {
        (self.host_memory_type)(version)
    }
}
