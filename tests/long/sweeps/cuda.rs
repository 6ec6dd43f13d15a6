//! The sweeps on the CUDA backend, over the stand-in driver.

use support::cuda::{driver as kernels, face};

// Included for each of the two stand-ins: its tests have names of their own, by which processes
// run them again.
#[path = "driver/mod.rs"]
mod driver;
