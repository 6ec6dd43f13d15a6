//! The devices on which the tests run, and how much they take.

use resident::{Device, Emulation, Entered};

/// From this many elements on, bodies in Rust use all cores (`ops::parallel`).
pub(crate) const PARALLEL_LEN_MIN: usize = if cfg!(debug_assertions) { 1 << 17 } else { 1 << 20 };

/// A table of which all cores work on a half, and which few elements are beyond.
pub(crate) const LARGE_SIDE: usize = if cfg!(debug_assertions) { 365 } else { 1031 };

/// What the tests usually take, a sample, since a C++ compiler compiles each kernel of CUDA C;
/// or all, with `RESIDENT_SWEEP_ALL=1`.
pub(crate) fn sample<T>(few: T, all: T) -> T {
    if std::env::var("RESIDENT_SWEEP_ALL").is_ok_and(|value| value == "1") { all } else { few }
}

/// A device that runs bodies in Rust.
pub(crate) fn rust() -> Device {
    Device::emulated(Emulation::new())
}

/// A device that runs bodies in Rust, and in the package `kernels` one that runs CUDA C: each is
/// the current one while its guard lives.
pub(crate) fn devices() -> impl Iterator<Item = (Device, Entered)> {
    let both = [Some(rust()), crate::cuda()].into_iter().flatten();
    both.map(|device| {
        let entered = device.enter();
        (device, entered)
    })
}
