//! What must be current on a thread: a context of CUDA's driver, or a device of HIP.

use std::ffi::{c_int, c_void};

use super::Driver;
use crate::backend::BackendError;

/// The primary context of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// The device's number for the driver's calls.
    pub(crate) device: c_int,
    /// What the driver's function `current` writes: the context's handle, or in HIP, which has no
    /// other contexts, the device's number.
    pub(crate) token: u64,
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

    /// Lets the current device access the memory of another. A failure only makes copies slower.
    pub(crate) fn enable_peer_access(&self, peer: Place) -> Result<(), BackendError> {
        if let Some(enable) = &self.enable_peer_context {
            // SAFETY: the other device's owner retains its context.
            return enable.check(unsafe { (enable.function)(peer.context(), 0) });
        }
        let Some(enable) = &self.enable_peer_device else {
            return Err(self.lacks(["cuCtxEnablePeerAccess", "hipDeviceEnablePeerAccess"]));
        };
        // SAFETY: the function takes any number.
        enable.check(unsafe { (enable.function)(peer.device, 0) })
    }
}
