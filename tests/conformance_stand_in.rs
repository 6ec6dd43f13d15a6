//! The conformance suite on the CUDA backend, over the stand-in driver.
#![cfg(all(target_os = "linux", feature = "cuda"))]

mod conformance;

use std::sync::{Mutex, PoisonError};

use conformance::lab::{self, Test};
use conformance::stand_in::StandIn;
use resident_stand_in::Settings;

/// Tests of one process share its driver, which knows nothing of tests.
static ALONE: Mutex<()> = Mutex::new(());

fn settings() -> Settings {
    Settings::new().devices(2)
}

fn run(test: Test) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    lab::run(&StandIn, test);
}

conformance::conformance!(crate::run);
