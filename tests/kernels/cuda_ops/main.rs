//! `resident::ops` by CUDA C compiled for the host, and some by the CUDA backend on the stand-in
//! driver: the tests of the package `fast`, and those of texts.

support::record_launches!();

#[path = "../../fast/ops/compaction.rs"]
mod compaction;
#[path = "../../fast/ops/complex.rs"]
mod complex;
mod complex_texts;
#[path = "../../fast/ops/devices.rs"]
mod devices;
#[path = "../../fast/ops/elementwise.rs"]
mod elementwise;
mod elementwise_texts;
#[path = "../../fast/ops/half_floats.rs"]
mod half_floats;
#[path = "../../fast/ops/indexed.rs"]
mod indexed;
#[path = "../../fast/ops/joining.rs"]
mod joining;
#[path = "../../fast/ops/linear.rs"]
mod linear;
#[path = "../../fast/ops/masks.rs"]
mod masks;
#[path = "../../fast/ops/numbers.rs"]
mod numbers;
#[path = "../../fast/ops/operators.rs"]
mod operators;
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

use devices::{LARGE_SIDE, PARALLEL_LEN_MIN, devices, rust, sample};
use resident::{Device, Emulation};

/// A device that runs CUDA C.
fn compiling() -> Device {
    Device::emulated(Emulation::new().prefer_cuda(true))
}

/// That device, which the shared tests lack in the package `fast`.
fn cuda() -> Option<Device> {
    Some(compiling())
}
