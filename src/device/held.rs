//! The handles of devices that arrays have, which are counted: a device that has no others was
//! dropped by the program.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Device, Stream};

/// A handle of a device, or of a stream, which keeps its device open.
pub(crate) trait DeviceHandle {
    fn device(&self) -> &Device;
}

impl DeviceHandle for Device {
    fn device(&self) -> &Device {
        self
    }
}

impl DeviceHandle for Stream {
    fn device(&self) -> &Device {
        self.device_ref()
    }
}

/// A handle that the state of an array has, because the array has a copy on the device or work on
/// the stream.
#[derive(Debug)]
pub(crate) struct Held<H: DeviceHandle>(H);

impl<H: DeviceHandle> Held<H> {
    pub(crate) fn new(handle: H) -> Self {
        handle.device().0.held_by_arrays.fetch_add(1, Ordering::Relaxed);
        Self(handle)
    }
}

impl<H: DeviceHandle> Deref for Held<H> {
    type Target = H;

    #[inline]
    fn deref(&self) -> &H {
        &self.0
    }
}

impl<H: DeviceHandle> Drop for Held<H> {
    fn drop(&mut self) {
        self.0.device().0.held_by_arrays.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Device {
    /// Whether only states of arrays have handles: no stream, guard, event or work of the program
    /// has one. Nothing may rely on the answer, which is old if another thread takes a handle of
    /// an array's.
    pub(crate) fn is_abandoned(&self) -> bool {
        Arc::strong_count(&self.0) == self.0.held_by_arrays.load(Ordering::Relaxed)
    }
}
