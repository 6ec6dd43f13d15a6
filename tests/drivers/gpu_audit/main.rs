//! The audit of programs on GPUs, on the stand-in driver.

#![cfg(all(target_os = "linux", feature = "cuda"))]

mod gpu_times;
mod gpus;
mod waits;

use support::bodies::{double, one as grid};
