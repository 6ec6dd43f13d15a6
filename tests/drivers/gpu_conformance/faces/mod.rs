//! The two stand-ins, as the suite uses them.

#[cfg(feature = "cuda")]
pub(crate) mod cuda;
#[cfg(feature = "hip")]
pub(crate) mod hip;

use std::process::{Command, Output};

use support::own_process;

/// This variable is set in the process that `run_poorer` starts.
const POORER: &str = "RESIDENT_TEST_POORER";

pub(crate) fn is_poorer() -> bool {
    std::env::var_os(POORER).is_some()
}

/// Runs tests of this program in another process, in which all of them pass.
pub(crate) fn run_tests(arguments: &[&str], configure: impl FnOnce(&mut Command)) -> Output {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    configure(command.args(arguments));
    let output = command.output().expect("it runs");
    let [out, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success() && out.contains("passed"), "{out}\n{errors}");
    output
}

/// Runs tests on a machine that lacks much. A process has only one simulated machine.
pub(crate) fn run_poorer(arguments: &[&str]) {
    run_tests(&[arguments, &["--skip", "with_short_rows_packed"]].concat(), |command| {
        command.env(own_process::VARIABLE, "1").env(POORER, "1");
    });
}

/// Runs the suite's tests of copies with costs at which short rows are packed on the device.
pub(crate) fn run_packed(face: &str) {
    let modules = ["accesses", "assigning", "copies", "device_arrays", "fields", "uses", "views"];
    let names = modules.map(|module| format!("{face}::{module}::"));
    run_tests(&names.each_ref().map(String::as_str), |command| {
        command.env(own_process::VARIABLE, "1").env("RESIDENT_COPY_CALL_BYTES", "0");
    });
}
