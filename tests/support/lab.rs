//! A device used by one test only, so that its totals and call log show nothing from other tests.

use resident::{Device, Emulation};

/// A new embedded device.
pub fn lab() -> Device {
    Device::emulated(Emulation::new())
}
