//! What is CUDA's in the driver beside its functions: names of calls, limits, and how a thread's
//! current context is found. The stand-in for HIP has another file in its place.

use std::sync::Arc;

use super::code::{Code, Outcome};
use super::context::{self, Context};
use super::kernel::Shape;
use super::module::Function;
use super::{handle, machine};

/// Calls whose failure a caller cannot handle: a thread's mode.
pub(super) const UNFAILING: [&str; 1] = ["cuThreadExchangeStreamCaptureMode"];

/// See [`capture`](super::capture).
pub(super) const POTENTIALLY_UNSAFE: [&str; 35] = [
    "cuEventQuery",
    "cuEventSynchronize",
    "cuMemAlloc_v2",
    "cuMemAllocHost_v2",
    "cuMemAllocManaged",
    "cuMemAllocPitch_v2",
    "cuMemFree_v2",
    "cuMemFreeHost",
    "cuMemGetInfo_v2",
    "cuMemHostAlloc",
    "cuMemHostRegister_v2",
    "cuMemHostUnregister",
    "cuMemPoolCreate",
    "cuMemPoolDestroy",
    "cuMemPoolGetAttribute",
    "cuMemPoolSetAccess",
    "cuMemPoolSetAttribute",
    "cuMemPoolTrimTo",
    "cuMemcpy",
    "cuMemcpy2D_v2",
    "cuMemcpy3D_v2",
    "cuMemcpyDtoD_v2",
    "cuMemcpyDtoH_v2",
    "cuMemcpyHtoD_v2",
    "cuMemcpyPeer",
    "cuMemsetD16_v2",
    "cuMemsetD32_v2",
    "cuMemsetD8_v2",
    "cuModuleLoadData",
    "cuModuleLoadDataEx",
    "cuModuleUnload",
    "cuStreamCreate",
    "cuStreamCreateWithPriority",
    "cuStreamQuery",
    "cuStreamSynchronize",
];

/// Whether the host sees all that copies wrote before an event with these flags.
pub(super) fn releases_to_host(_event_flags: u32) -> bool {
    true
}

/// Whether the host may see old bytes of memory that was allocated with these flags, until an event
/// releases the new ones to it.
pub(super) fn needs_release(_host_flags: u32) -> bool {
    false
}

/// The default limit of dynamic shared memory in bytes.
pub(super) const SHARED_BYTES: i32 = 48 << 10;
/// The opt-in limit in bytes, as on devices with compute capability 9.0.
pub(super) const SHARED_BYTES_MAX: i32 = 227 << 10;
/// The maximum number of threads per block.
pub(super) const THREADS_MAX: u32 = 1024;

/// Multiprocessors of each device.
pub(super) const MULTIPROCESSORS: i32 = 132;

/// Contexts end with their last release, and not when the settings change.
pub(super) fn before_configure() {}

/// Addresses need not differ from those of another driver.
pub(super) fn before_devices() {}

/// The top of this thread's stack of contexts.
pub(super) fn current_context() -> Outcome<Arc<Context>> {
    let handle = context::current_handle().ok_or(Code::INVALID_CONTEXT)?;
    handle::context(handle).map_err(|_| Code::CONTEXT_IS_DESTROYED)
}

/// Rejects launches that do not fit the device or the kernel's launch bounds.
pub(super) fn check_shape(
    function: &Function,
    Shape { grid, block, shared_bytes }: Shape,
) -> Outcome {
    let is_within = |extents: [u32; 3], limits: [u32; 3]| {
        extents.iter().zip(limits).all(|(extent, limit)| (1..=limit).contains(extent))
    };
    let threads = block.iter().map(|extent| u64::from(*extent)).product::<u64>();
    if !is_within(grid, [0x7FFF_FFFF, 0xFFFF, 0xFFFF])
        || !is_within(block, [1024, 1024, 64])
        || threads > 1024
    {
        return Err(Code::INVALID_VALUE);
    }
    if threads > u64::from(function.max_threads()) {
        return Err(Code::LAUNCH_OUT_OF_RESOURCES);
    }
    if i64::from(shared_bytes) > i64::from(function.max_dynamic_shared_bytes()) {
        Err(Code::INVALID_VALUE)
    } else {
        Ok(())
    }
}

/// The number of blocks of this size that can be resident on one multiprocessor.
pub(super) fn blocks_per_multiprocessor(threads: u32, shared_bytes: u64) -> u32 {
    const THREADS: u32 = 2048;
    const BLOCKS: u32 = 32;
    let by_threads = THREADS / threads.max(1).next_multiple_of(32);
    let by_memory = (228_u64 << 10) / (shared_bytes + 1024);
    BLOCKS.min(by_threads).min(u32::try_from(by_memory).unwrap_or(u32::MAX))
}

/// Returns an error unless the machine's driver has at least this version.
pub(super) fn driver_has(version: i32) -> Outcome {
    if machine::settings().driver_version >= version { Ok(()) } else { Err(Code::NOT_SUPPORTED) }
}
