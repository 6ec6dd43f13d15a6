//! `resident::ops` beside ndarray: random shapes, strides and parts, every type of element, arrays
//! of both kinds, by bodies in Rust and by CUDA C compiled for the host, and some by the CUDA
//! backend on the stand-in driver.

support::record_launches!();

mod bad_input;
mod compaction;
mod elementwise;
mod elementwise_texts;
mod half_floats;
mod indexed;
mod linear;
mod masks;
mod numbers;
mod part;
mod random;
mod random_texts;
mod reduction_texts;
mod reductions;
mod residency;
mod sorting;
mod sparse;
mod split_work;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod stand_in;

use resident::{Device, Emulation, Entered, Error, Kernel, Out};

/// From this many elements on, bodies in Rust use all cores (`ops::parallel`).
const PARALLEL_LEN_MIN: usize = if cfg!(debug_assertions) { 1 << 17 } else { 1 << 20 };

/// A table of which all cores work on a half, and which few elements are beyond.
const LARGE_SIDE: usize = if cfg!(debug_assertions) { 365 } else { 1031 };

/// What the tests usually take, a sample, since a C++ compiler compiles each kernel of CUDA C;
/// or all, with `RESIDENT_SWEEP_ALL=1`.
fn sample<T>(few: T, all: T) -> T {
    if std::env::var("RESIDENT_SWEEP_ALL").is_ok_and(|value| value == "1") { all } else { few }
}

/// A device that runs bodies in Rust.
fn rust() -> Device {
    Device::emulated(Emulation::new())
}

/// A device that runs bodies in Rust, and one that runs CUDA C, if there is a C++ compiler: each is
/// the current one while its guard lives.
fn devices() -> impl Iterator<Item = (Device, Entered)> {
    let both = [Some(rust()), cuda()].into_iter().flatten();
    both.map(|device| {
        let entered = device.enter();
        (device, entered)
    })
}

/// A device that runs CUDA C. `None`, with a message, if there is no C++ compiler.
fn cuda() -> Option<Device> {
    let device = Device::emulated(Emulation::new().prefer_cuda(true));
    let source = "extern \"C\" __global__ void probe(int *x) { *x = 1; }";
    // SAFETY: the kernel is never launched.
    let probe = unsafe { Kernel::<(Out<i32>,)>::new("probe").cuda(source) };
    match probe.prepare(&device) {
        Err(Error::Compile { log, .. }) if log.contains("there is no C++ compiler") => {
            eprintln!("skipped: {log}");
            None
        }
        outcome => {
            outcome.unwrap_or_else(|error| panic!("{error}"));
            Some(device)
        }
    }
}
