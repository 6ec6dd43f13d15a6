//! A device used by one test only, so that its totals and call log contain nothing from other
//! tests.

use resident::{Device, Emulation};

/// A new embedded device.
pub fn lab() -> Device {
    Device::emulated(Emulation::new())
}
