//! The conformance suite on the embedded device.

use crate::suite::lab::{self, Rig, Test};
use crate::suite::{self, one_memory};
use resident::{Device, Emulation};

struct Embedded;

impl Rig for Embedded {
    fn devices(&self, count: usize) -> Vec<Device> {
        (0..count).map(|_| Device::emulated(Emulation::new().memory(1 << 28))).collect()
    }

    fn assert_clean(&self, devices: &[Device]) {
        support::watched::assert_no_hazard(devices);
    }
}

fn run(_name: &str, test: Test) {
    lab::run(&Embedded, test);
}

suite::conformance!(crate::embedded::run);

/// Runs the suite again on devices that reach the host's memory.
#[test]
fn on_one_memory() {
    support::own_process::run_tests(&one_memory::arguments(&["embedded::"]), |command| {
        command.env("RESIDENT_COHERENT", "1");
    });
}
