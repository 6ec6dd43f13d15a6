//! What is CUDA's own beside its functions: names of calls, limits, and how a thread's current
//! context is found.

use std::sync::Arc;

use crate::code::{
    CONTAINED, HARDWARE_STACK_ERROR, ILLEGAL_INSTRUCTION, INVALID_ADDRESS_SPACE, INVALID_PC,
    MISALIGNED_ADDRESS, NOT_PERMITTED,
};
use crate::{Settings, image};
use resident_stand_in_client::settings::Values;
use resident_stand_in_gpu::call::run_recorded;
use resident_stand_in_gpu::code::{Code, Outcome};
use resident_stand_in_gpu::context::{self, Context};
use resident_stand_in_gpu::entry::Image;
use resident_stand_in_gpu::interface::{Interface, Rules};
use resident_stand_in_gpu::kernel::Shape;
use resident_stand_in_gpu::module::Function;
use resident_stand_in_gpu::{handle, machine};

/// CUDA's driver.
pub(crate) struct Cuda;

/// The opt-in limit in bytes, as on devices with compute capability 9.0.
pub(crate) const SHARED_BYTES_MAX: i32 = 227 << 10;

pub(crate) static RULES: Rules = Rules {
    unfailing: &["cuThreadExchangeStreamCaptureMode"],
    potentially_unsafe: "
        cuEventQuery cuEventSynchronize cuMemAddressFree cuMemAddressReserve cuMemAlloc_v2
        cuMemAllocHost_v2 cuMemAllocManaged cuMemAllocPitch_v2 cuMemCreate cuMemFree_v2
        cuMemFreeHost cuMemGetAllocationGranularity cuMemGetInfo_v2 cuMemHostAlloc cuMemMap
        cuMemRelease cuMemSetAccess cuMemUnmap
        cuMemHostRegister_v2 cuMemHostUnregister cuMemPoolCreate cuMemPoolDestroy
        cuMemPoolGetAttribute cuMemPoolSetAccess cuMemPoolSetAttribute cuMemPoolTrimTo cuMemcpy
        cuMemcpy2D_v2 cuMemcpy3D_v2 cuMemcpyDtoD_v2 cuMemcpyDtoH_v2 cuMemcpyHtoD_v2 cuMemcpyPeer
        cuMemsetD16_v2 cuMemsetD32_v2 cuMemsetD8_v2 cuModuleLoadData cuModuleLoadDataEx
        cuModuleUnload cuStreamCreate cuStreamCreateWithPriority cuStreamQuery cuStreamSynchronize
    ",
    sticky: &[
        Code::ECC_UNCORRECTABLE,
        CONTAINED,
        Code::ILLEGAL_ADDRESS,
        Code::LAUNCH_TIMEOUT,
        Code::ASSERT,
        HARDWARE_STACK_ERROR,
        ILLEGAL_INSTRUCTION,
        MISALIGNED_ADDRESS,
        INVALID_ADDRESS_SPACE,
        INVALID_PC,
        Code::LAUNCH_FAILED,
    ],
    not_permitted: NOT_PERMITTED,
    has_empty_allocations: false,
    needs_current_context: true,
    keeps_running_graphs: true,
    multiprocessors: 132,
    shared_bytes: 48 << 10,
};

impl Interface for Cuda {
    fn default_settings(&self) -> Values {
        *Settings::new().values()
    }

    fn rules(&self) -> &'static Rules {
        &RULES
    }

    /// The top of this thread's stack of contexts.
    fn current_context(&self) -> Outcome<Arc<Context>> {
        let handle = context::current_handle().ok_or(Code::INVALID_CONTEXT)?;
        handle::context(handle).map_err(|_| Code::CONTEXT_IS_DESTROYED)
    }

    fn read_image(&self, image: &[u8]) -> Outcome<Image> {
        image::read(image)
    }

    fn check_shape(&self, function: &Function, shape: Shape) -> Outcome {
        let Shape { grid, block, shared_bytes } = shape;
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

    fn blocks_per_multiprocessor(&self, threads: u32, shared_bytes: u64) -> u32 {
        const THREADS: u32 = 2048;
        const BLOCKS: u32 = 32;
        let by_threads = THREADS / threads.max(1).next_multiple_of(32);
        let by_memory = (228_u64 << 10) / (shared_bytes + 1024);
        BLOCKS.min(by_threads).min(u32::try_from(by_memory).unwrap_or(u32::MAX))
    }
}

/// Runs the body of a function, and records the call.
pub(crate) fn run(name: &'static str, body: impl FnOnce() -> Outcome) -> u32 {
    run_recorded(&Cuda, name, body)
}

/// Returns an error unless the machine's driver has at least this version.
pub(crate) fn driver_has(version: i32) -> Outcome {
    if machine::settings().version >= version { Ok(()) } else { Err(Code::NOT_SUPPORTED) }
}
