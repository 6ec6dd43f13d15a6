//! The conformance suite on the embedded device.

use crate::suite::lab::{self, Rig, Test};
use crate::suite::{self};
use resident::{CudaSource, Device, Emulation};

struct Embedded;

impl Rig for Embedded {
    fn devices(&self, count: usize) -> Vec<Device> {
        (0..count).map(|_| Device::emulated(Emulation::new().memory(1 << 30))).collect()
    }

    fn code(&self, _kernel: &str) -> CudaSource {
        CudaSource::c(suite::cuda::SOURCE)
    }

    fn has_gates(&self) -> bool {
        true
    }

    fn assert_clean(&self, devices: &[Device]) {
        for device in devices {
            let hazards = device.emulation().expect("an emulated device").hazards();
            assert!(
                hazards.is_empty(),
                "{}",
                hazards.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
            );
        }
    }
}

fn run(_name: &str, test: Test) {
    lab::run(&Embedded, test);
}

suite::conformance!(crate::embedded::run);
