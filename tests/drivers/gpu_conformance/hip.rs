//! The conformance suite on the GPU backend, over the stand-in for AMD's HIP. Its kernels need a
//! C++ compiler.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Output;

use resident_stand_in_hip::Settings;

use crate::faces::{
    is_poorer, reaches_pageable, run_on_one_memory, run_packed, run_poorer, run_tests,
};
use crate::suite;

pub(crate) fn settings() -> Settings {
    let rich = Settings::new().devices(2).page_bytes(4096);
    if reaches_pageable() {
        return rich.reaches_pageable();
    }
    if !is_poorer() {
        return rich;
    }
    rich.without_pools().page_bytes(0).max_pitch(1000).version(50_221_153).sparse()
}

suite::conformance!(crate::faces::hip::rig::run);

/// Runs the suite again, without memory pools, with small pitches, on HIP 5.2, which has no host
/// functions behind work. Without peer access, copies go by way of the host: see the suite `hip`.
#[test]
fn on_a_poorer_machine() {
    let others = ["on_a_poorer_machine", "on_a_runtime", "on_one_memory"];
    let skips = others.into_iter().flat_map(|other| ["--skip", other]);
    run_poorer(&std::iter::once("hip::").chain(skips).collect::<Vec<_>>());
}

/// Runs the suite again on devices that reach the host's memory.
#[test]
fn on_one_memory() {
    run_on_one_memory(&["hip::", "--skip", "on_a_runtime"]);
}

#[test]
fn with_short_rows_packed() {
    run_packed("hip");
}

/// Runs the suite on a runtime that lacks functions, which `RESIDENT_HIP` names, in a process that
/// knows nothing else of the runtime.
fn on_a_runtime_without(missing: &[&'static str]) -> Output {
    let name = format!("{}-without-{}", std::process::id(), missing[0]);
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let image = resident_stand_in_hip::file_without(missing).unwrap_or_else(|it| panic!("{it}"));
    std::fs::write(&file, image).expect("it is written");
    let compiler = resident_stand_in_hiprtc::file().unwrap_or_else(|fault| panic!("{fault}"));
    let output = run_tests(&["runtime::", "--nocapture", "--test-threads", "1"], |command| {
        command.env("RESIDENT_HIP", &file).env("RESIDENT_HIPRTC", compiler);
        command.env("RESIDENT_CACHE", "off").env_remove("RESIDENT_REQUIRE_GPU");
    });
    std::fs::remove_file(file).expect("it is there");
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
    let missing = [
        "hipMemcpy2DAsync",
        "hipMemAdvise",
        "hipMallocFromPoolAsync",
        "hipMemAddressReserve",
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
