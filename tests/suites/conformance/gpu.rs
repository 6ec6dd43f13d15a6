//! The conformance suite on a GPU, if there is one. Without a GPU each test prints that there is
//! none and passes; with `RESIDENT_REQUIRE_GPU=1` it fails.
use std::sync::{Mutex, PoisonError};

use crate::suite::lab::{self, Rig, Test};
use crate::suite::{self};
use resident::{CudaSource, Device};

/// Tests share the machine's devices, so they run one at a time.
static ALONE: Mutex<()> = Mutex::new(());

struct Gpu;

impl Rig for Gpu {
    fn devices(&self, count: usize) -> Vec<Device> {
        (0..count).map_while(|ordinal| Device::cuda(ordinal).ok()).collect()
    }

    fn code(&self, _kernel: &str) -> CudaSource {
        CudaSource::c(suite::cuda::SOURCE)
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

fn run(_name: &str, test: Test) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    match Device::cuda(0) {
        Ok(_) => lab::run(&Gpu, test),
        Err(reason) if std::env::var_os("RESIDENT_REQUIRE_GPU").is_some() => {
            panic!("RESIDENT_REQUIRE_GPU is set, and {reason}")
        }
        Err(reason) => println!("nothing was done: {reason}"),
    }
}

suite::conformance!(crate::gpu::run);
