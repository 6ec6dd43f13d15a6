//! GPUs: NVIDIA's through CUDA's driver, AMD's through HIP. Only this folder and `interop/cudarc`
//! name cudarc.
//!
//! The two drivers mirror each other, so there is one backend over a table of the functions that it
//! calls (`driver/`). On NVIDIA GPUs it takes contexts and streams from cudarc, so that other code
//! can use them too. It manages memory, ordering and lifetimes itself: cudarc tracks only one
//! reader per slice, and its tracking costs driver calls for each argument. A driver that does not
//! mirror CUDA's gets a crate of its own: see the list at the top of the crate `resident-backend`.
//!
//! | file | contents |
//! |---|---|
//! | `driver/` | the functions of CUDA's driver and of HIP, and where they differ |
//! | `context`, `cudarc_contexts` | a primary context; cudarc's objects of it |
//! | `owned_stream` | a stream of the driver and its owner |
//! | `capture_mode` | keeps calls from disturbing captures of other code |
//! | `device`, `backend` | one GPU: what its streams share; its [`Backend`](resident_backend::Backend) |
//! | `stream/` | one stream: its [`RawStream`](resident_backend::RawStream), completion, events |
//! | `copy/` | copies and fills: from boxes of bytes to driver calls |
//! | `launch` | kernel launches: from packed words to driver calls |
//! | `graph/` | graphs of explicit nodes, for chains |
//! | `memory/` | device memory, pinned staging memory, registered host memory, external slices |
//! | `code/` | from CUDA C to a loaded kernel |
//! | `promises` | a self-test of a driver, on request |
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
//! Lock order: a stream's completion lock, its state or a device's lock for mappings
//! (`memory/pages.rs`), then any one leaf lock (allocations, events, staging blocks, registrations,
//! programs).

// Without a vendor there is nothing to build.
#![cfg(any(feature = "cuda", feature = "hip"))]

mod backend;
mod capture_mode;
mod code;
mod context;
mod copy;
#[cfg(feature = "cuda")]
mod cudarc_contexts;
mod device;
mod driver;
mod graph;
mod launch;
mod memory;
mod owned_stream;
mod promises;
mod stream;

use std::sync::Arc;

pub use code::{CompiledProgram, compile_for, compiles_for};
#[cfg(feature = "cuda")]
pub use code::{kernel_names_by_nvrtc, ptx_by_nvrtc};
use context::Context;
use copy::cost::Costs;
pub use device::GpuDevice;
use driver::Installation;
use memory::staging_settings::StagingSettings;
pub use stream::GpuStreamHandle;

use resident_backend::{DeviceKind, environment, host_copy};

/// The environment variable that says whether chains are graphs of the driver: a switch.
const GRAPHS_VARIABLE: &str = "RESIDENT_GRAPHS";

/// The driver for GPUs of a kind. The error says that this build has none.
fn installation(kind: DeviceKind) -> Result<&'static Installation, String> {
    match kind {
        #[cfg(feature = "cuda")]
        DeviceKind::Cuda => Ok(&driver::cuda::INSTALLATION),
        #[cfg(feature = "hip")]
        DeviceKind::Hip => Ok(&driver::hip::INSTALLATION),
        _ => Err(kind.no_backend()),
    }
}

/// The number of GPUs that a vendor's driver reports. The error contains what was searched for,
/// what was found, and the next step.
pub fn count(kind: DeviceKind) -> Result<usize, String> {
    (installation(kind)?.count)()
}

/// Opens a GPU. The error says why the GPU cannot be opened.
pub fn open(kind: DeviceKind, ordinal: usize) -> Result<Arc<GpuDevice>, String> {
    let installation = installation(kind)?;
    let count = (installation.count)()?;
    if ordinal >= count {
        return Err((installation.beyond)(count));
    }
    let driver = (installation.driver)()?;
    driver.expect_version()?;
    let staging_settings = StagingSettings::read()?;
    let _costs = Costs::read()?;
    let coherent = environment::choice(environment::COHERENT_VARIABLE)?;
    let graphs = environment::choice(GRAPHS_VARIABLE)?;
    let _copy_threads = host_copy::threads_asked()?;
    let device = Context::open(driver, ordinal)
        .and_then(|context| GpuDevice::open(context, staging_settings, coherent, graphs))
        .map_err(|error| format!("the GPU exists, but does not open: {error}"))?;
    promises::check_if_asked(&device)?;
    Ok(device)
}
