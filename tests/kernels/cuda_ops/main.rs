//! `resident::ops` by CUDA C compiled for the host, and some by the CUDA backend on the stand-in
//! driver: the tests of the package `fast`, and those of texts.

support::record_launches!();

#[path = "../../fast/ops/compaction.rs"]
mod compaction;
#[path = "../../fast/ops/elementwise.rs"]
mod elementwise;
mod elementwise_texts;
#[path = "../../fast/ops/half_floats.rs"]
mod half_floats;
#[path = "../../fast/ops/indexed.rs"]
mod indexed;
#[path = "../../fast/ops/linear.rs"]
mod linear;
#[path = "../../fast/ops/masks.rs"]
mod masks;
#[path = "../../fast/ops/numbers.rs"]
mod numbers;
#[path = "../../fast/ops/part.rs"]
mod part;
#[path = "../../fast/ops/random.rs"]
mod random;
mod random_texts;
mod reduction_texts;
#[path = "../../fast/ops/reductions.rs"]
mod reductions;
#[path = "../../fast/ops/sorting.rs"]
mod sorting;
#[path = "../../fast/ops/sparse.rs"]
mod sparse;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod stand_in;

use resident::{Device, Emulation};

/// From this many elements on, bodies in Rust use all cores (`ops::parallel`).
const PARALLEL_LEN_MIN: usize = if cfg!(debug_assertions) { 1 << 17 } else { 1 << 20 };

/// A device that runs bodies in Rust.
fn rust() -> Device {
    Device::emulated(Emulation::new())
}

/// A device that runs CUDA C.
fn cuda() -> Option<Device> {
    Some(Device::emulated(Emulation::new().prefer_cuda(true)))
}
