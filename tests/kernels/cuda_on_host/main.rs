//! CUDA C bodies on the embedded device, compiled for the host: what the language has, what is
//! refused, and which body a device runs. Without a C++ compiler these tests say so and do nothing.

support::record_launches!();

mod bad_input;
mod bodies;
mod endless;
mod environment;
mod events;
mod for_amd;
mod groups;
mod half_numbers;
mod language;
mod limits;
mod modules;
mod progress;
mod progress_of_blocks;
mod refusals;
mod same_results;
mod slices;
mod stack_overflow;
mod threads;

use resident::{CudaSource, Device, Emulation, Error, Kernel, Signature};

/// A device with a log and a race check.
fn device() -> Device {
    Device::emulated(Emulation::new())
}

/// A kernel with a body in CUDA C. `None`, with a message, if there is no C++ compiler.
fn kernel<S: Signature>(name: &str, source: impl Into<CudaSource>) -> Option<Kernel<S>> {
    // SAFETY: the sources of this suite access only elements of their arguments.
    let kernel = unsafe { Kernel::<S>::new(name).cuda(source) };
    match kernel.prepare(&Device::cpu()) {
        Err(Error::Compile { log, .. }) if log.contains("there is no C++ compiler") => {
            eprintln!("skipped: {log}");
            None
        }
        outcome => {
            outcome.unwrap_or_else(|error| panic!("{error}"));
            Some(kernel)
        }
    }
}
