//! The audit of programs on GPUs, on the stand-in driver.

#![cfg(all(target_os = "linux", feature = "cuda"))]

mod body_on_gpu;
mod gpu_times;
mod gpus;
mod waits;

use support::audited::{document_of, ones, report_of};
use support::bodies::{double, one as grid};
