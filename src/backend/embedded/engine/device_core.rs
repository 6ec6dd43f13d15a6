//! The part of a device that its queued operations need.

use crate::backend::embedded::memory::AddressSpace;
use crate::backend::embedded::simulation::{Instruments, Link};

/// A device without its handles. It lives as long as the device, a stream of it, or an operation
/// that copies from it.
#[derive(Debug)]
pub(crate) struct DeviceCore {
    pub(crate) ordinal: usize,
    pub(crate) memory: AddressSpace,
    pub(crate) link: Option<Link>,
    /// `Some` only for emulated devices.
    pub(crate) instruments: Option<Instruments>,
}
