//! The conformance suite on the GPU backend, over the stand-in for AMD's HIP. Its kernels need a
//! C++ compiler.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output};
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
    rich.without_pools().max_pitch(1000).version(50_221_153).sparse()
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
        .args(["hip::", "--skip", "on_a_poorer_machine", "--skip", "on_a_runtime"])
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

/// Runs the suite on a runtime that lacks functions, which `RESIDENT_HIP` names, in a process that
/// knows nothing else of the runtime.
fn on_a_runtime_without(missing: &[&'static str]) -> Output {
    let name = format!("{}-without-{}", std::process::id(), missing[0]);
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let image = resident_stand_in_hip::file_without(missing).unwrap_or_else(|it| panic!("{it}"));
    std::fs::write(&file, image).expect("it is written");
    let compiler = resident_stand_in_hiprtc::file().unwrap_or_else(|fault| panic!("{fault}"));
    let program = std::env::current_exe().expect("a path");
    let output = Command::new(program)
        .args(["runtime::", "--nocapture", "--test-threads", "1"])
        .env("RESIDENT_HIP", &file)
        .env("RESIDENT_HIPRTC", compiler)
        .env("RESIDENT_CACHE", "off")
        .env_remove("RESIDENT_REQUIRE_GPU")
        .output()
        .expect("it runs");
    std::fs::remove_file(file).expect("it is there");
    assert!(
        output.status.success(),
        "{}\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// The names of the calls for which tests were skipped, and the number of these tests.
fn skipped(output: &Output) -> (BTreeSet<String>, usize) {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let calls = text.lines().filter_map(|line| line.split_once("skipped: ")?.1.split_once(": "));
    let calls: Vec<String> = calls.map(|(call, _)| call.to_owned()).collect();
    (calls.iter().cloned().collect(), calls.len())
}

#[test]
fn on_a_runtime_that_lacks_calls_the_others_are_tested() {
    if !resident_stand_in_hiprtc::compiles() {
        return;
    }
    let missing = [
        "hipMemcpy2DAsync",
        "hipMemAdvise",
        "hipMallocFromPoolAsync",
        "hipLaunchHostFunc",
        "hipPointerGetAttribute",
        "hipThreadExchangeStreamCaptureMode",
    ];
    let output = on_a_runtime_without(&missing);
    let (calls, count) = skipped(&output);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("has no function hipMemAdvise, which HIP 5.0 and later have"), "{text}");
    // What has another way is no reason to skip a test.
    assert_eq!(calls, ["hipMemAdvise", "hipMemcpy2DAsync"].map(str::to_owned).into());
    assert!((3..60).contains(&count), "{count} tests were skipped");
}

#[test]
fn on_a_runtime_that_lacks_a_needed_call_nothing_is_tested() {
    let output = on_a_runtime_without(&["hipStreamQuery"]);
    let (calls, count) = skipped(&output);
    assert_eq!(calls, ["hipStreamQuery".to_owned()].into());
    assert!(count > 150, "{count} tests were skipped");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("which HIP 5.0 and later have"), "{text}");
}
