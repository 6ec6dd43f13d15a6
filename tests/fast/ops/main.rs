//! `resident::ops` beside ndarray: random shapes, strides and parts, every type of element, arrays
//! of both kinds, by bodies in Rust.

mod bad_input;
mod compaction;
mod elementwise;
mod half_floats;
mod indexed;
mod linear;
mod masks;
mod numbers;
mod part;
mod random;
mod reductions;
mod residency;
mod sorting;
mod sparse;
mod split_work;

use resident::{Device, Emulation};

/// From this many elements on, bodies in Rust use all cores (`ops::parallel`).
const PARALLEL_LEN_MIN: usize = if cfg!(debug_assertions) { 1 << 17 } else { 1 << 20 };

/// A device that runs bodies in Rust.
fn rust() -> Device {
    Device::emulated(Emulation::new())
}

/// No device runs CUDA C in this program. The package `kernels` has these tests too, with one.
fn cuda() -> Option<Device> {
    None
}
