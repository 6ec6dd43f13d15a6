//! What must be current on a thread: a context of CUDA's driver, or a device of HIP.

use std::ffi::{c_int, c_void};

use super::Driver;
use super::status::{self, Status};
use resident_backend::BackendError;

/// The primary context of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// The device's number for the driver's calls.
    pub device: c_int,
    /// What the driver's function `current` writes: the context's handle, or in HIP, which has no
    /// other contexts, the device's number.
    pub token: u64,
}

impl Place {
    /// The handle of the context.
    pub(crate) fn context(self) -> *mut c_void {
        std::ptr::with_exposed_provenance_mut(self.token as usize)
    }
}

impl Driver {
    /// Makes a place current on this thread.
    pub(crate) fn set_current(&self, place: Place) -> Result<(), BackendError> {
        if let Some(set) = &self.set_context {
            // SAFETY: the place is that of a context that its owner retains.
            return set.check(unsafe { (set.function)(place.context()) });
        }
        let Some(set) = &self.set_device else {
            return Err(self.lacks(["cuCtxSetCurrent", "hipSetDevice"]));
        };
        // SAFETY: the function takes any number.
        set.check(unsafe { (set.function)(place.device) })
    }

    /// Lets the current device access the memory of another.
    pub(crate) fn enable_peer_access(&self, peer: Place) -> Result<(), BackendError> {
        if let Some(enable) = &self.enable_peer_context {
            // SAFETY: the other device's owner retains its context.
            let outcome = unsafe { (enable.function)(peer.context(), 0) };
            return enable.check(unless_enabled(outcome));
        }
        let Some(enable) = &self.enable_peer_device else {
            return Err(self.lacks(["cuCtxEnablePeerAccess", "hipDeviceEnablePeerAccess"]));
        };
        // SAFETY: the function takes any number.
        let outcome = unsafe { (enable.function)(peer.device, 0) };
        enable.check(unless_enabled(outcome))
    }
}

/// Access that other code of the process enabled before is as good.
fn unless_enabled(outcome: Status) -> Status {
    const PEER_ACCESS_ALREADY_ENABLED: Status = 704;
    if outcome == PEER_ACCESS_ALREADY_ENABLED { status::SUCCESS } else { outcome }
}
