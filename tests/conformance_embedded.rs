//! The conformance suite on the embedded device.

mod conformance;

use conformance::lab::{self, Rig, Test};
use resident::{CudaSource, Device, Emulation};

struct Embedded;

impl Rig for Embedded {
    fn devices(&self, count: usize) -> Vec<Device> {
        (0..count).map(|_| Device::emulated(Emulation::new().memory(1 << 30))).collect()
    }

    fn code(&self, _kernel: &str) -> CudaSource {
        CudaSource::c(conformance::cuda::SOURCE)
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

fn run(test: Test) {
    lab::run(&Embedded, test);
}

/// For the rig of the stand-in driver, which is not used here.
#[cfg(all(target_os = "linux", feature = "cuda"))]
fn settings() -> resident_stand_in::Settings {
    resident_stand_in::Settings::new()
}

conformance::conformance!(crate::run);
