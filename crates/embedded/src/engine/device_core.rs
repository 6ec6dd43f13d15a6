//! The part of an embedded device that its queued operations need.

use crate::errors::{CODE_INVALID, driver_error};
use crate::memory::AddressSpace;
use crate::simulation::{Instruments, Link};
use resident_backend::BackendError;
use resident_backend::fork::{self, ForkMark};

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
    pub usable: Usable,
}

/// Whether, and where, a device can be used.
#[derive(Debug)]
pub(crate) struct Usable {
    /// Of the process that opened the device, whose threads run its streams; of none if the device
    /// cannot be used at all.
    process: ForkMark,
    /// Why not: a variable of the environment.
    refusal: Option<String>,
}

impl Usable {
    /// In this process, unless the environment is wrong.
    pub(crate) fn here(refusal: Option<String>) -> Self {
        let process = if refusal.is_none() { ForkMark::new() } else { ForkMark::NONE };
        Self { process, refusal }
    }
}

impl DeviceCore {
    /// Whether the device can be used in this process.
    #[inline]
    pub(crate) fn is_usable(&self) -> bool {
        self.usable.process.is_own()
    }

    /// Refuses a call if the device cannot be used, or if this process is a forked child of the one
    /// that opened it. Called before any lock is taken: a thread that the child lacks may hold it.
    #[inline]
    pub(crate) fn check_usable(&self, call: &'static str) -> Result<(), BackendError> {
        if self.is_usable() { Ok(()) } else { self.refuse(call) }
    }

    #[cold]
    fn refuse(&self, call: &'static str) -> Result<(), BackendError> {
        match &self.usable.refusal {
            Some(refusal) => Err(driver_error(CODE_INVALID, call, refusal.as_str())),
            None => Err(fork::refusal(call, &format!("device cpu:{}", self.ordinal))),
        }
    }
}
