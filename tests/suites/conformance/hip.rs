//! The conformance suite on the GPU backend, over the stand-in for AMD's HIP. Its kernels need a
//! C++ compiler.

use std::process::Command;
use std::sync::{Mutex, PoisonError};

use resident_stand_in_hip::Settings;
use support::own_process::{self, has_run};

use crate::faces::hip::rig::StandIn;
use crate::suite;
use crate::suite::lab::{self, Test};

/// All tests of the process share one driver, so they run one at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// This variable is set in the process that `on_a_poorer_machine` starts.
const POORER: &str = "RESIDENT_TEST_POORER";

pub(crate) fn settings() -> Settings {
    let rich = Settings::new().devices(2);
    if std::env::var_os(POORER).is_none() {
        return rich;
    }
    rich.without_pools().max_pitch(1000).version(50_221_153)
}

fn run(name: &str, test: Test) {
    if has_run(name) || !resident_stand_in_hiprtc::compiles() {
        return;
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    lab::run(&StandIn, test);
}

suite::conformance!(crate::hip::run);

/// Runs the suite again, without memory pools, with small pitches, on HIP 5.2, which has no host
/// functions behind work. A process has only one simulated machine, so this runs in another
/// process. Without peer access, copies go by way of the host: see the suite `hip`.
#[test]
fn on_a_poorer_machine() {
    let program = std::env::current_exe().expect("a path");
    let output = Command::new(program)
        .args(["hip::", "--skip", "on_a_poorer_machine"])
        .env(own_process::VARIABLE, "1")
        .env(POORER, "1")
        .output()
        .expect("it runs");
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(String::from_utf8_lossy(&output.stdout).contains("passed"), "tests were run");
}
