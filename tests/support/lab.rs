//! A device for one test, so that totals and calls are only the test's.

use resident::{Device, Emulation};

/// A new embedded device.
pub fn lab() -> Device {
    Device::emulated(Emulation::new())
}
