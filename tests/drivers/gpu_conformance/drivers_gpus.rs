//! The GPUs that a driver of the machine shows, as devices under test: one at a time.

use std::sync::{Mutex, PoisonError};

use crate::suite::lab::{self, Rig, Test};
use resident::{Device, Result};
use support::eventually;

/// Tests share the machine's devices, so they run one at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// GPUs, by the function that opens one.
pub(crate) struct DriversGpus(pub(crate) fn(usize) -> Result<Device>);

impl DriversGpus {
    /// Runs a test, alone.
    pub(crate) fn run(&self, test: Test) {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        lab::run(self, test);
    }
}

impl Rig for DriversGpus {
    fn devices(&self, count: usize) -> Vec<Device> {
        (0..count).map_while(|ordinal| (self.0)(ordinal).ok()).collect()
    }

    fn has_gates(&self) -> bool {
        false
    }

    fn assert_clean(&self, devices: &[Device]) {
        for device in devices {
            eventually(0, &format!("bytes that {device} keeps"), || {
                device.trim().unwrap_or_else(|error| panic!("{device}: {error}"));
                device.memory().pooled
            });
        }
    }
}
