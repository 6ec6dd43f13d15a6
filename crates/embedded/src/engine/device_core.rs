//! The part of an embedded device that its queued operations need.

use crate::memory::AddressSpace;
use crate::simulation::{Instruments, Link};

/// The device's memory and log. It lives as long as the device, any of its streams, or an operation
/// that copies from the device.
#[derive(Debug)]
pub(crate) struct DeviceCore {
    pub ordinal: usize,
    pub memory: AddressSpace,
    pub link: Option<Link>,
    /// The byte that fills the elements of an `Out` argument before the body runs, if any.
    pub output_poison: Option<u8>,
    /// `Some` only for emulated devices.
    pub instruments: Option<Instruments>,
}
