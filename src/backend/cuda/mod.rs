//! NVIDIA GPUs, through cudarc. Only this folder and the interop module name cudarc.
//!
//! The backend takes contexts, streams, modules, NVRTC and the driver's functions from cudarc. It
//! manages memory, ordering and lifetimes itself: cudarc tracks only one reader per slice, and its
//! tracking costs driver calls for each argument.
//!
//! | file | contents |
//! |---|---|
//! | `library`, `call`, `context` | the driver's libraries, its result codes, a primary context |
//! | `capture_mode` | keeps calls from disturbing captures of other code |
//! | `device`, `backend` | one GPU: the state that its streams share; its [`Backend`](super::Backend) |
//! | `stream/` | one stream: its [`Queue`](super::Queue), completion, events |
//! | `copy/` | copies and fills: from boxes of bytes to driver calls |
//! | `launch` | kernel launches: from packed words to driver calls |
//! | `memory/` | device memory, pinned staging memory, registered host memory, external slices |
//! | `code/` | from CUDA C to a loaded kernel |
//!
//! The stream lock covers both the driver call and the position that it gets. A chain of launches
//! makes no driver calls for completion, which is detected when a thread waits or polls. Queued
//! work fails only if its context dies; then all work in flight fails.
//!
//! The last step of a download to pageable memory runs on the host: a waiting or polling thread
//! unpacks the bytes from staging memory. The device does not know of that step, so the host also
//! keeps the order between streams: a stream that waits for an event records the other stream's
//! pending host actions and completes them first (`CompletionAction::CompleteFirst`).
//!
//! Lock order: a stream's completion lock, its state, then any one leaf lock (allocations, events,
//! staging blocks, registrations, programs).

mod backend;
mod call;
mod capture_mode;
mod code;
mod context;
mod copy;
mod device;
mod launch;
mod library;
mod memory;
mod stream;

use std::sync::Arc;

use cudarc::driver::{CudaContext, DriverError};

pub(crate) use device::CudaDevice;
pub(crate) use memory::staging::StagingBlock;
use memory::staging_settings::StagingSettings;
pub(crate) use stream::CudaQueue;

const NO_DEVICE: i64 = 100;

/// The oldest driver whose functions this backend needs: CUDA 11.4, the oldest that cudarc knows.
const DRIVER_VERSION_MIN: i32 = 11040;

/// The number of GPUs that the driver reports. The error contains what was searched for, what was
/// found, and the next step.
pub(crate) fn count() -> Result<usize, String> {
    if !library::DRIVER.is_present() {
        let files = library::DRIVER.files();
        return Err(format!(
            "no NVIDIA driver library was found (looked for {} and {} more names in the system's \
             library folders and LD_LIBRARY_PATH); install an NVIDIA driver, or use Device::cpu()",
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
            "the NVIDIA driver was found, but does not start: {}",
            call::describe(refusal)
        )),
    }
}

fn no_gpu(found: &str) -> String {
    format!(
        "the NVIDIA driver shows no GPU ({found}); look at nvidia-smi and CUDA_VISIBLE_DEVICES, \
         and at the permissions of /dev/nvidia* in a container, or use Device::cpu()"
    )
}

/// Opens a GPU. The error says why the GPU cannot be opened.
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
            "the driver supports CUDA {has}, but {wants} or later is needed: update the NVIDIA \
             driver"
        ));
    }
    let staging_settings = StagingSettings::read()?;
    CudaDevice::open(ordinal, staging_settings)
        .map_err(|refusal| format!("the GPU exists, but does not open: {refusal}"))
}
