//! What is HIP's own beside its functions: the current device and the last error of each thread,
//! names of calls, and limits.

use std::cell::Cell;
use std::sync::{Arc, Once};

use crate::code::INVALID_CONFIGURATION;
use crate::{Settings, image};
use resident_embedded::{EmbeddedDevice, Emulation};
use resident_stand_in_client::settings::Values;
use resident_stand_in_gpu::call::run_recorded;
use resident_stand_in_gpu::code::{Code, Outcome};
use resident_stand_in_gpu::context::Context;
use resident_stand_in_gpu::entry::Image;
use resident_stand_in_gpu::handle::Handle;
use resident_stand_in_gpu::interface::{Interface, Rules, THREADS_MAX};
use resident_stand_in_gpu::kernel::Shape;
use resident_stand_in_gpu::machine;
use resident_stand_in_gpu::module::Function;

/// HIP's runtime.
pub(crate) struct Hip;

/// Shared memory (LDS) of a block in bytes. All of it may be dynamic.
pub(crate) const SHARED_BYTES: i32 = 64 << 10;
/// Compute units of each device.
pub(crate) const MULTIPROCESSORS: i32 = 104;
/// The largest numbers of blocks.
pub(crate) const GRID_MAX: [u32; 3] = [0x7FFF_FFFF, 0x1_0000, 0x1_0000];

static RULES: Rules = Rules {
    unfailing: &["hipThreadExchangeStreamCaptureMode", "hipGetLastError", "hipPeekAtLastError"],
    potentially_unsafe: "
        hipEventQuery hipEventSynchronize hipFree hipHostFree hipHostMalloc hipHostRegister
        hipHostUnregister hipMalloc hipMallocManaged hipMemAddressFree hipMemAddressReserve
        hipMemCreate hipMemGetAllocationGranularity hipMemGetInfo hipMemMap hipMemPoolCreate
        hipMemPoolDestroy hipMemPoolSetAccess hipMemPoolSetAttribute hipMemPoolTrimTo
        hipMemRelease hipMemSetAccess hipMemUnmap
        hipModuleLoadData hipModuleLoadDataEx hipModuleUnload hipStreamCreateWithPriority
        hipStreamQuery hipStreamSynchronize
    ",
    sticky: &[
        Code::ECC_UNCORRECTABLE,
        Code::ILLEGAL_ADDRESS,
        Code::LAUNCH_TIMEOUT,
        Code::ASSERT,
        Code::LAUNCH_FAILED,
    ],
    // HIP has no code of its own for it.
    not_permitted: Code::NOT_SUPPORTED,
    has_empty_allocations: true,
    needs_current_context: false,
    // HIP's manual does not say so.
    keeps_running_graphs: false,
    multiprocessors: MULTIPROCESSORS,
    shared_bytes: SHARED_BYTES,
};

impl Interface for Hip {
    fn default_settings(&self) -> Values {
        *Settings::new().values()
    }

    fn rules(&self) -> &'static Rules {
        &RULES
    }

    /// The number 1 is no stream before HIP 6.2.
    fn is_stream(&self, handle: Handle) -> bool {
        handle != 1
    }

    fn releases_to_host(&self, event_flags: u32) -> bool {
        const RELEASE_TO_SYSTEM: u32 = 0x8000_0000;
        event_flags & RELEASE_TO_SYSTEM != 0
    }

    /// Whether memory that was allocated with these flags is not coherent: it is if it has no flag,
    /// is mapped, or is said to be coherent (`hipHostMalloc` of ROCm's clr).
    fn needs_release(&self, host_flags: u32) -> bool {
        const NON_COHERENT: u32 = 0x8000_0000;
        const MAPPED_OR_COHERENT: u32 = 0x4000_0002;
        host_flags & NON_COHERENT != 0 || (host_flags != 0 && host_flags & MAPPED_OR_COHERENT == 0)
    }

    /// Ends the contexts that have neither streams nor memory.
    fn before_configure(&self) {
        machine::end_unused();
    }

    /// Keeps the addresses of devices apart from those of the stand-in for CUDA's driver in the
    /// same process, so that neither takes an address of the other for its own.
    fn before_devices(&self) {
        const DEVICES_OF_OTHERS: usize = 256;
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            for _ in 0..DEVICES_OF_OTHERS {
                EmbeddedDevice::emulated(Emulation::new());
            }
        });
    }

    /// The primary context of this thread's current device.
    fn current_context(&self) -> Outcome<Arc<Context>> {
        machine::primary(DEVICE.get())
    }

    fn read_image(&self, image: &[u8]) -> Outcome<Image> {
        image::read(image)
    }

    fn check_shape(&self, function: &Function, shape: Shape) -> Outcome {
        let Shape { grid, block, shared_bytes } = shape;
        let threads = block.iter().map(|extent| u64::from(*extent)).product::<u64>();
        let is_within =
            grid.iter().zip(GRID_MAX).all(|(extent, limit)| (1..=limit).contains(extent));
        if !is_within || threads == 0 {
            return Err(Code::INVALID_VALUE);
        }
        let threads_along =
            grid.iter().zip(block).map(|(grid, block)| u64::from(*grid) * u64::from(block));
        if threads_along.max() > Some(u64::from(u32::MAX)) {
            return Err(INVALID_CONFIGURATION);
        }
        if i64::from(shared_bytes) > i64::from(SHARED_BYTES) || threads > u64::from(THREADS_MAX) {
            return Err(Code::INVALID_VALUE);
        }
        if threads > u64::from(function.max_threads()) { Err(Code::LAUNCH_FAILED) } else { Ok(()) }
    }

    fn blocks_per_multiprocessor(&self, threads: u32, shared_bytes: u64) -> u32 {
        const THREADS: u32 = 2048;
        const BLOCKS: u32 = 32;
        let by_threads = THREADS / threads.max(1).next_multiple_of(wave_size().cast_unsigned());
        let by_memory = (SHARED_BYTES as u64).checked_div(shared_bytes).unwrap_or(u64::MAX);
        BLOCKS.min(by_threads).min(u32::try_from(by_memory).unwrap_or(u32::MAX))
    }
}

/// Runs the body of a function, and records the call. Each call initialises HIP, and keeps its
/// result as the thread's last error, also if it is success.
pub(crate) fn run(name: &'static str, body: impl FnOnce() -> Outcome) -> u32 {
    let code = run_recorded(&Hip, name, || begin(name).and_then(|()| body()));
    LAST_ERROR.set(code);
    code
}

/// The result of this thread's last call, as that of this call.
pub(crate) fn peek(name: &'static str) -> u32 {
    run_recorded(&Hip, name, || match LAST_ERROR.get() {
        0 => Ok(()),
        code => Err(Code(code)),
    })
}

/// Like `peek`, and forgets it.
pub(crate) fn take_last(name: &'static str) -> u32 {
    let code = peek(name);
    LAST_ERROR.set(0);
    code
}

thread_local! {
    static DEVICE: Cell<i32> = const { Cell::new(0) };
    static LAST_ERROR: Cell<u32> = const { Cell::new(0) };
}

/// Functions that work without any device.
const WITHOUT_DEVICE: [&str; 4] =
    ["hipInit", "hipGetDeviceCount", "hipDriverGetVersion", "hipRuntimeGetVersion"];

/// Initialises HIP with the first call of any function.
fn begin(name: &str) -> Outcome {
    if WITHOUT_DEVICE.contains(&name) {
        return Ok(());
    }
    machine::initialise().map_err(|code| match code {
        Code::NO_DEVICE => Code::INVALID_DEVICE,
        other => other,
    })
}

/// The ordinal of this thread's current device.
pub(crate) fn current_device() -> i32 {
    DEVICE.get()
}

/// Sets this thread's current device, which exists.
pub(crate) fn set_current_device(ordinal: i32) {
    DEVICE.set(ordinal);
}

/// The threads of a wavefront: 64 before gfx10.
pub(crate) fn wave_size() -> i32 {
    if machine::settings().architecture_name().starts_with("gfx9") { 64 } else { 32 }
}
