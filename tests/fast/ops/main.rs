//! `resident::ops` beside ndarray: random shapes, strides and parts, every type of element, arrays
//! of both kinds, by bodies in Rust.

mod bad_input;
mod compaction;
mod complex;
mod devices;
mod elementwise;
mod half_floats;
mod indexed;
mod joining;
mod linear;
mod masks;
mod numbers;
mod operators;
mod part;
mod random;
mod reductions;
mod residency;
mod sequences;
mod sorting;
mod sparse;
mod split_work;

use devices::{LARGE_SIDE, PARALLEL_LEN_MIN, devices, rust, sample};
use resident::Device;

/// No device runs CUDA C in this program. The package `kernels` has these tests too, with one.
fn cuda() -> Option<Device> {
    None
}
