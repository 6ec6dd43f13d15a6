//! What is HIP's in the machine beside its functions: the current device and the last error of each
//! thread, names of calls, and limits.

use std::cell::Cell;
use std::sync::{Arc, Once};

use super::code::{Code, Outcome};
use super::context::Context;
use super::kernel::Shape;
use super::machine;
use super::module::Function;
use resident_embedded::{EmbeddedDevice, Emulation};

/// Calls whose failure a caller cannot handle: a thread's mode, and questions for its last error.
pub(super) const UNFAILING: [&str; 3] =
    ["hipThreadExchangeStreamCaptureMode", "hipGetLastError", "hipPeekAtLastError"];

/// See [`capture`](super::capture).
pub(super) const POTENTIALLY_UNSAFE: [&str; 21] = [
    "hipEventQuery",
    "hipEventSynchronize",
    "hipFree",
    "hipHostFree",
    "hipHostMalloc",
    "hipHostRegister",
    "hipHostUnregister",
    "hipMalloc",
    "hipMallocManaged",
    "hipMemGetInfo",
    "hipMemPoolCreate",
    "hipMemPoolDestroy",
    "hipMemPoolSetAccess",
    "hipMemPoolSetAttribute",
    "hipMemPoolTrimTo",
    "hipModuleLoadData",
    "hipModuleLoadDataEx",
    "hipModuleUnload",
    "hipStreamCreateWithPriority",
    "hipStreamQuery",
    "hipStreamSynchronize",
];

/// Whether the host sees all that copies wrote before an event with these flags. Otherwise it may
/// see old bytes of memory that is not coherent.
pub(super) fn releases_to_host(event_flags: u32) -> bool {
    const RELEASE_TO_SYSTEM: u32 = 0x8000_0000;
    event_flags & RELEASE_TO_SYSTEM != 0
}

/// Whether memory that was allocated with these flags is not coherent: it is if it has no flag, is
/// mapped, or is said to be coherent (`hipHostMalloc` of ROCm's clr).
pub(super) fn needs_release(host_flags: u32) -> bool {
    const NON_COHERENT: u32 = 0x8000_0000;
    const MAPPED_OR_COHERENT: u32 = 0x4000_0002;
    host_flags & NON_COHERENT != 0 || (host_flags != 0 && host_flags & MAPPED_OR_COHERENT == 0)
}

/// Shared memory (LDS) of a block in bytes. All of it may be dynamic.
pub(super) const SHARED_BYTES: i32 = 64 << 10;
/// The maximum number of threads per block.
pub(super) const THREADS_MAX: u32 = 1024;
/// Compute units of each device.
pub(super) const MULTIPROCESSORS: i32 = 104;
/// The largest numbers of blocks.
pub(super) const GRID_MAX: [u32; 3] = [0x7FFF_FFFF, 0x1_0000, 0x1_0000];

thread_local! {
    static DEVICE: Cell<i32> = const { Cell::new(0) };
    static LAST_ERROR: Cell<u32> = const { Cell::new(0) };
}

/// Functions that work without any device.
const WITHOUT_DEVICE: [&str; 4] =
    ["hipInit", "hipGetDeviceCount", "hipDriverGetVersion", "hipRuntimeGetVersion"];

/// Initialises HIP with the first call of any function.
pub(super) fn begin(name: &str) -> Outcome {
    if WITHOUT_DEVICE.contains(&name) {
        return Ok(());
    }
    machine::initialise().map_err(|code| match code {
        Code::NO_DEVICE => Code::INVALID_DEVICE,
        other => other,
    })
}

/// Keeps the result of a call for `hipGetLastError`, also if it is success.
pub(super) fn keep_last(code: u32) -> u32 {
    LAST_ERROR.set(code);
    code
}

/// The result of this thread's last call.
pub(super) fn last_error() -> u32 {
    LAST_ERROR.get()
}

/// The ordinal of this thread's current device.
pub(super) fn current_device() -> i32 {
    DEVICE.get()
}

/// Sets this thread's current device, which exists.
pub(super) fn set_current_device(ordinal: i32) {
    DEVICE.set(ordinal);
}

/// Ends the contexts that have neither streams nor memory.
pub(super) fn before_configure() {
    machine::end_unused();
}

/// Keeps the addresses of devices apart from those of the stand-in for CUDA's driver in the same
/// process, so that neither takes an address of the other for its own.
pub(super) fn before_devices() {
    const DEVICES_OF_OTHERS: usize = 256;
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for _ in 0..DEVICES_OF_OTHERS {
            EmbeddedDevice::emulated(Emulation::new());
        }
    });
}

/// The primary context of this thread's current device.
pub(super) fn current_context() -> Outcome<Arc<Context>> {
    machine::primary(DEVICE.get())
}

/// Rejects launches that do not fit the device or the kernel's launch bounds.
pub(super) fn check_shape(
    function: &Function,
    Shape { grid, block, shared_bytes }: Shape,
) -> Outcome {
    let threads = block.iter().map(|extent| u64::from(*extent)).product::<u64>();
    let is_within = grid.iter().zip(GRID_MAX).all(|(extent, limit)| (1..=limit).contains(extent));
    if !is_within || threads == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let threads_along =
        grid.iter().zip(block).map(|(grid, block)| u64::from(*grid) * u64::from(block));
    if threads_along.max() > Some(u64::from(u32::MAX)) {
        return Err(Code::INVALID_CONFIGURATION);
    }
    if i64::from(shared_bytes) > i64::from(SHARED_BYTES) || threads > u64::from(THREADS_MAX) {
        return Err(Code::INVALID_VALUE);
    }
    if threads > u64::from(function.max_threads()) { Err(Code::LAUNCH_FAILED) } else { Ok(()) }
}

/// The threads of a wavefront: 64 before gfx10.
pub(super) fn wave_size() -> i32 {
    if machine::settings().architecture_name().starts_with("gfx9") { 64 } else { 32 }
}

/// The number of blocks of this size that can be resident on one compute unit.
pub(super) fn blocks_per_multiprocessor(threads: u32, shared_bytes: u64) -> u32 {
    const THREADS: u32 = 2048;
    const BLOCKS: u32 = 32;
    let by_threads = THREADS / threads.max(1).next_multiple_of(wave_size().cast_unsigned());
    let by_memory = (SHARED_BYTES as u64).checked_div(shared_bytes).unwrap_or(u64::MAX);
    BLOCKS.min(by_threads).min(u32::try_from(by_memory).unwrap_or(u32::MAX))
}
