//! The conformance suite on a GPU, where there is one. Without, nothing is done, and said so;
//! `RESIDENT_REQUIRE_GPU=1` makes that a failure.
#![cfg(feature = "cuda")]

mod conformance;

use std::sync::{Mutex, PoisonError};

use conformance::lab::{self, Rig, Test};
use resident::{CudaSource, Device};

/// Tests share the machine's devices.
static ALONE: Mutex<()> = Mutex::new(());

struct Gpu;

impl Rig for Gpu {
    fn devices(&self, count: usize) -> Vec<Device> {
        (0..count).map_while(|ordinal| Device::cuda(ordinal).ok()).collect()
    }

    fn code(&self, _kernel: &str) -> CudaSource {
        CudaSource::c(conformance::cuda::SOURCE)
    }

    fn has_gates(&self) -> bool {
        false
    }

    fn assert_clean(&self, devices: &[Device]) {
        for device in devices {
            device.trim().unwrap_or_else(|error| panic!("{device}: {error}"));
            assert_eq!(device.memory().pooled, 0, "{device}");
        }
    }
}

fn run(test: Test) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    match Device::cuda(0) {
        Ok(_) => lab::run(&Gpu, test),
        Err(reason) if std::env::var_os("RESIDENT_REQUIRE_GPU").is_some() => {
            panic!("RESIDENT_REQUIRE_GPU is set, and {reason}")
        }
        Err(reason) => println!("nothing was done: {reason}"),
    }
}

/// For the rig of the stand-in driver, which is not used here.
#[cfg(target_os = "linux")]
fn settings() -> resident_stand_in::Settings {
    resident_stand_in::Settings::new()
}

conformance::conformance!(crate::run);
