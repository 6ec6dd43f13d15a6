//! The conformance suite on the HIP runtime that `RESIDENT_HIP` names, whoever wrote it: AMD's, or
//! one that runs HIP on OpenCL or on processors. A test that needs what the runtime lacks is
//! skipped, with the name of the call.
//!
//! Without the variable each test prints that nothing was done; with `RESIDENT_REQUIRE_GPU=1` it
//! fails, as it does if the runtime shows no device.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use resident::Device;
use support::panics::text_of;

use crate::drivers_gpus::DriversGpus;
use crate::suite;
use crate::suite::lab::Test;

fn run(name: &str, test: Test) {
    let is_required = std::env::var_os("RESIDENT_REQUIRE_GPU").is_some();
    let is_named = std::env::var_os("RESIDENT_HIP").is_some_and(|file| !file.is_empty());
    // The bundle for GPUs takes the machine's own.
    let device = if is_named || is_required {
        Device::hip(0).map_err(|reason| reason.to_string())
    } else {
        Err("RESIDENT_HIP names no runtime".to_owned())
    };
    match device {
        Ok(_) => run_or_skip(name, test),
        Err(reason) if is_required => panic!("RESIDENT_REQUIRE_GPU is set, and {reason}"),
        Err(reason) => println!("skipped: {}: {name}: {reason}", lacking(&reason).unwrap_or("-")),
    }
}

fn run_or_skip(name: &str, test: Test) {
    let outcome = catch_unwind(AssertUnwindSafe(|| DriversGpus(Device::hip).run(test)));
    let Err(panic) = outcome else { return };
    let text = text_of(&*panic).unwrap_or_default().to_owned();
    match lacking(&text) {
        Some(call) => println!("skipped: {call}: {name}: {text}"),
        None => resume_unwind(panic),
    }
}

/// The call that a runtime lacks, if an error says so: there is no such function, or it returns
/// `hipErrorNotSupported`.
fn lacking(error: &str) -> Option<&str> {
    if error.contains("compiled by hiprtc, which was not found") {
        return Some("hiprtc");
    }
    let word = |text: &'static str| error.split_once(text);
    if let Some((_, rest)) = word("has no function ") {
        return rest.split(|letter: char| !letter.is_alphanumeric()).next();
    }
    let (before, _) = word("hipErrorNotSupported")?;
    before
        .split(|letter: char| !letter.is_alphanumeric())
        .rfind(|word| word.starts_with("hip") && word.len() > 4)
}

#[test]
fn what_is_lacking_is_read_from_errors() {
    for (error, call) in [
        ("HIP 5.2 has no function hipMemcpy2DAsync: update it", Some("hipMemcpy2DAsync")),
        ("it has no function hipInit, which HIP 5.0 and later have", Some("hipInit")),
        ("hip:0 refused: hipMemAdvise failed: hipErrorNotSupported", Some("hipMemAdvise")),
        ("hip:0 refused: hipMemAdvise failed: hipErrorInvalidValue", None),
    ] {
        assert_eq!(lacking(error), call, "{error}");
    }
}

suite::conformance!(crate::runtime::run);
