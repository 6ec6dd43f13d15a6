//! The two stand-ins, as the suite uses them.

#[cfg(feature = "cuda")]
pub(crate) mod cuda;
#[cfg(feature = "hip")]
pub(crate) mod hip;

use crate::suite::one_memory;
use support::own_process;
pub(crate) use support::own_process::run_tests;

/// This variable is set in the process that `run_poorer` starts.
const POORER: &str = "RESIDENT_TEST_POORER";

pub(crate) fn is_poorer() -> bool {
    std::env::var_os(POORER).is_some()
}

/// This variable is set in the process that `run_on_one_memory` starts.
const REACHES: &str = "RESIDENT_TEST_REACHES";

/// Whether the devices reach the host's pageable memory.
pub(crate) fn reaches_pageable() -> bool {
    std::env::var_os(REACHES).is_some()
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

/// Runs tests on a machine whose devices reach the host's pageable memory.
pub(crate) fn run_on_one_memory(arguments: &[&str]) {
    run_tests(&one_memory::arguments(arguments), |command| {
        let command = command.env(own_process::VARIABLE, "1").env(REACHES, "1");
        command.env("RESIDENT_COHERENT", "1");
    });
}
