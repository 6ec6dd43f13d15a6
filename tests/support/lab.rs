//! A device of a test's own, so that totals and calls are the test's alone.

use resident::{Device, Emulation};

/// A fresh embedded device that nobody else uses.
pub fn lab() -> Device {
    Device::emulated(Emulation::new())
}
