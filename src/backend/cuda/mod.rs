//! NVIDIA GPUs, through cudarc. Nothing outside this folder names cudarc, the interop module aside.
//!
//! cudarc gives contexts, streams, modules, NVRTC and the driver's functions; memory, order and
//! lifetimes are this library's, since cudarc's own tracking keeps one reader of many and costs
//! calls for each argument.
//!
//! | file | what it is |
//! |---|---|
//! | `library`, `call`, `context` | the driver's libraries, its results, one GPU's primary context |
//! | `device`, `queue`, `event` | the three traits of [`super`] |
//! | `stream`, `clearing` | what a stream's handles share: positions and what is in flight; what of it is over |
//! | `submit` | work as it reaches a stream: checked, queued, entered |
//! | `flight` | what is remembered of work in flight; plain data |
//! | `shape`, `copy`, `fill`, `launch` | boxes as the driver takes them, and its calls |
//! | `near` | which processors are near a GPU |
//! | `memory`, `pinned`, `registered` | the GPU's memory, from a pool of our own; page-locked memory that ordinary memory goes through; the user's memory, page-locked |
//! | `lent` | slices of cudarc's in which arrays live |
//! | `watch` | wakes tasks that wait for a stream |
//! | `code` | from CUDA C to a kernel that can be launched: see there |
//!
//! A position is drawn under the stream's lock together with the driver's calls. A chain of
//! launches asks nothing of the driver but the launches: what is over is found out when somebody
//! waits or looks. Failures of queued work are the context's death, which takes all with it that is
//! in flight.
//!
//! Downloads to ordinary memory are put in their place by the host, when somebody looks. The device
//! does not see that, so order between streams is kept by the host as well: a stream that waits for
//! an event remembers what is left to be done on the other (`flight::After::Behind`), and that is
//! done first.
//!
//! Locks, taken in this order: a stream's turn at clearing up, its line, then any one of the leaves
//! (memory, events, page-locked memory, registrations, programs).

mod batch;
mod call;
mod clearing;
mod code;
mod context;
mod copy;
mod device;
mod event;
mod fill;
mod flight;
mod launch;
mod lent;
mod library;
mod memory;
mod near;
mod pinned;
mod queue;
mod registered;
mod shape;
mod stream;
mod submit;
mod watch;

use std::sync::Arc;

use cudarc::driver::{CudaContext, DriverError};

pub(crate) use device::CudaDevice;
pub(crate) use queue::CudaQueue;

/// How many GPUs the driver shows, or why there is none to be had: what was looked for, what was
/// found, what to do.
pub(crate) fn count() -> Result<usize, String> {
    if !library::DRIVER.is_present() {
        let files = library::DRIVER.files();
        return Err(format!(
            "no NVIDIA driver library was found (looked for {} and {} more names in the system's library folders and LD_LIBRARY_PATH); \
             install an NVIDIA driver, or use Device::cpu()",
            files[0],
            files.len() - 1
        ));
    }
    match CudaContext::device_count() {
        Ok(0) => Err(no_gpu("cuDeviceGetCount found 0")),
        Ok(count) => Ok(count.unsigned_abs() as usize),
        Err(DriverError(refusal)) if refusal as i64 == NO_DEVICE => {
            Err(no_gpu("CUDA_ERROR_NO_DEVICE"))
        }
        Err(DriverError(refusal)) => Err(format!(
            "the NVIDIA driver was found and does not start: {}",
            call::describe(refusal)
        )),
    }
}

const NO_DEVICE: i64 = 100;

/// The oldest driver whose functions this backend needs: CUDA 11.4, the oldest that cudarc knows.
const DRIVER_VERSION_MIN: i32 = 11040;

fn no_gpu(found: &str) -> String {
    format!(
        "the NVIDIA driver shows no GPU ({found}); look at nvidia-smi and CUDA_VISIBLE_DEVICES, and at the permissions of /dev/nvidia* in a \
         container, or use Device::cpu()"
    )
}

/// Opens a GPU, or says why that cannot be.
pub(crate) fn open(ordinal: usize) -> Result<Arc<CudaDevice>, String> {
    let count = count()?;
    if ordinal >= count {
        return Err(format!(
            "the driver shows {count} GPU(s), numbered from 0; look at CUDA_VISIBLE_DEVICES"
        ));
    }
    let version = call::driver_version().map_err(|refusal| refusal.to_string())?;
    if version < DRIVER_VERSION_MIN {
        let (has, wants) = (call::version_text(version), call::version_text(DRIVER_VERSION_MIN));
        return Err(format!(
            "the driver speaks CUDA {has}, and {wants} or later is needed: update the NVIDIA driver"
        ));
    }
    CudaDevice::open(ordinal)
        .map_err(|refusal| format!("the GPU is there and does not open: {refusal}"))
}
