//! The conformance suite on a GPU, if there is one. Without a GPU each test prints that there is
//! none and passes; with `RESIDENT_REQUIRE_GPU=1` it fails.

use crate::drivers_gpus::DriversGpus;
use crate::suite;
use crate::suite::lab::Test;
use support::prelude::*;

fn run(_name: &str, test: Test) {
    match Device::cuda(0) {
        Ok(_) => DriversGpus(Device::cuda).run(test),
        Err(reason) if std::env::var_os("RESIDENT_REQUIRE_GPU").is_some() => {
            panic!("RESIDENT_REQUIRE_GPU is set, and {reason}")
        }
        Err(reason) => println!("nothing was done: {reason}"),
    }
}

suite::conformance!(crate::gpu::run);
