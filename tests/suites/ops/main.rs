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

use resident::{Device, Emulation, Error, Kernel, Out};

/// From this many elements on, bodies in Rust use all cores (`ops::parallel`).
const PARALLEL_LEN_MIN: usize = if cfg!(debug_assertions) { 1 << 17 } else { 1 << 20 };

/// A device that runs bodies in Rust.
fn rust() -> Device {
    Device::emulated(Emulation::new())
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
