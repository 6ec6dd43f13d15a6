//! What differs between the vendors in names and numbers.

use std::ffi::c_int;

use super::attribute::Attribute;
use super::status::Status;
use resident_backend::{BackendError, BackendErrorKind, DeviceKind};

/// The names and numbers of one vendor's driver.
#[derive(Debug)]
pub(crate) struct Vendor {
    pub kind: DeviceKind,
    /// Of its devices: `cuda` in `cuda:0`.
    pub prefix: &'static str,
    /// `CUDA`, `HIP`.
    pub name: &'static str,
    /// How to choose the compiler.
    pub compiler_hint: &'static str,
    /// A version in its usual form: 12.4 for 12040.
    pub version_text: fn(c_int) -> String,
    /// The driver's name for a result code, and advice for common codes.
    pub(super) describe: fn(Status) -> String,
    /// Whether after this result every later call in the context fails too.
    pub(super) is_sticky: fn(Status) -> bool,
    /// Whether the driver refuses to register host memory that is registered already.
    pub refuses_registered_memory: bool,
    /// Whether the driver copies between devices that cannot access each other's memory.
    pub copies_without_peer_access: bool,
    /// Whether calls in a forked child fail, rather than wait for threads that it does not have.
    pub refuses_forked_children: bool,
    /// The flag of pinned host memory that is not mapped, beside those that the user asks for.
    pub unmapped_flags: u32,
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
    /// The number of an attribute of devices.
    pub(super) attribute: fn(Attribute) -> c_int,
    /// The number of host memory among types of memory, by the driver's version.
    pub(super) host_memory_type: fn(c_int) -> u64,
}

impl Vendor {
    /// The error of a call that failed.
    #[cold]
    pub(crate) fn refusal(&self, failed: Status, call: &'static str) -> BackendError {
        let kind = if (self.is_sticky)(failed) {
            BackendErrorKind::DeviceLost
        } else {
            BackendErrorKind::Driver { code: i64::from(failed) }
        };
        BackendError { kind, call, detail: (self.describe)(failed) }
    }

    /// The number of host memory among types of memory (`CUmemorytype`, `hipMemoryType`).
    pub(crate) fn host_memory_type(&self, version: c_int) -> u64 {
        (self.host_memory_type)(version)
    }
}
