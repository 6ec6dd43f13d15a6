//! The part of an embedded device that its queued operations need.

use crate::backend::embedded::memory::AddressSpace;
use crate::backend::embedded::simulation::{Instruments, Link};

/// The device's memory and log. It lives as long as the device, any of its streams, or an operation
/// that copies from the device.
#[derive(Debug)]
pub(crate) struct DeviceCore {
    pub(crate) ordinal: usize,
    pub(crate) memory: AddressSpace,
    pub(crate) link: Option<Link>,
    /// `Some` only for emulated devices.
    pub(crate) instruments: Option<Instruments>,
}
