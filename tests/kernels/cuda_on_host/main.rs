//! CUDA C bodies on the embedded device, compiled for the host: what the language has, what is
//! refused, and which body a device runs.

support::record_launches!();

mod bad_input;
mod bodies;
mod comparing;
mod endings;
mod endless;
mod environment;
mod events;
mod for_amd;
mod groups;
mod half_numbers;
mod language;
mod limits;
mod mistakes;
mod modules;
mod names;
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

/// A kernel with a body in CUDA C, which compiles.
fn kernel<S: Signature>(name: &str, source: impl Into<CudaSource>) -> Kernel<S> {
    // SAFETY: the sources of this suite access only elements of their arguments.
    let kernel = unsafe { Kernel::<S>::new(name).cuda(source) };
    kernel.prepare(&Device::cpu()).unwrap_or_else(|error| panic!("{error}"));
    kernel
}

/// Why a device refuses a kernel.
fn refused<S: Signature>(device: &Device, name: &str, source: impl Into<CudaSource>) -> String {
    // SAFETY: it does not run.
    let kernel = unsafe { Kernel::<S>::new(name).cuda(source) };
    match kernel.prepare(device) {
        Err(Error::Compile { log, .. }) => log,
        other => panic!("{other:?}"),
    }
}

/// A device that checks kernels.
fn checking() -> Device {
    Device::emulated(Emulation::new().sanitize(true))
}

/// A kernel of a source that several tests share. Its code is made once for all of them, since they
/// call the kernel by the same name, which messages have.
fn one_of<S: Signature>(source: &str, entry: &str) -> Kernel<S> {
    kernel("kernel", CudaSource::c(source).entry(entry))
}
