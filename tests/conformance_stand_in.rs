//! The conformance suite on the CUDA backend, over the stand-in driver.
#![cfg(all(target_os = "linux", feature = "cuda"))]

mod conformance;

use std::process::Command;
use std::sync::{Mutex, PoisonError};

use conformance::lab::{self, Test};
use conformance::stand_in::StandIn;
use resident_stand_in::Settings;

/// Tests of one process share its driver, which knows nothing of tests.
static ALONE: Mutex<()> = Mutex::new(());

/// What the machine is like: see `on_a_poorer_machine`.
const POORER: &str = "RESIDENT_TEST_POORER";

fn settings() -> Settings {
    let rich = Settings::new().devices(2);
    if std::env::var_os(POORER).is_none() {
        return rich;
    }
    rich.without_pools().peers(false).max_pitch(1000).driver_version(11_040).compute_capability(5, 0)
}

fn run(test: Test) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    lab::run(&StandIn, test);
}

conformance::conformance!(crate::run);

/// The suite again, without memory pools and peer access, with small pitches and the oldest driver. A process has one machine, so that it takes another.
#[test]
fn on_a_poorer_machine() {
    let program = std::env::current_exe().expect("a path");
    let output = Command::new(program).args(["--skip", "on_a_poorer_machine"]).env(POORER, "1").output().expect("it runs");
    assert!(output.status.success(), "{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("passed"), "tests were run");
}
