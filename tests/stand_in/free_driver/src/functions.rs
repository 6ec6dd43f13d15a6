//! The driver's functions. Those that only have to succeed ignore their arguments, because in the C
//! calling convention the caller cleans them up.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

const SUCCESS: u32 = 0;
const OUT_OF_MEMORY: u32 = 2;
const NOT_SUPPORTED: u32 = 801;

/// The version that `cuDriverGetVersion` returns: CUDA 13.0.
const VERSION: i32 = 13_000;

/// The handle of the only context, which is current on every thread.
const CONTEXT: u64 = 1;

/// The bytes that the device reports, and that are free.
const MEMORY_BYTES: usize = 1 << 37;

/// Allocations of device memory and of pinned memory start at multiples of this.
const ALIGNMENT_BYTES: usize = 4096;

/// Functions that succeed without doing anything.
macro_rules! successes {
    ($($name:ident)*) => {$(
        /// Succeeds.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "CUDA's name")]
        extern "C" fn $name() -> u32 {
            SUCCESS
        }
    )*};
}

successes! {
    cuInit
    cuCtxSetCurrent cuCtxSynchronize cuCtxEnablePeerAccess
    cuDevicePrimaryCtxRelease_v2
    cuStreamDestroy_v2 cuStreamSynchronize cuStreamQuery cuStreamWaitEvent
    cuEventDestroy_v2 cuEventRecord cuEventQuery cuEventSynchronize
    cuMemPoolSetAttribute cuMemPoolSetAccess cuMemPoolTrimTo cuMemPoolDestroy
    cuMemFree_v2 cuMemFreeAsync cuMemHostRegister_v2 cuMemHostUnregister
    cuMemcpyHtoD_v2 cuMemcpyDtoH_v2
    cuMemcpyHtoDAsync_v2 cuMemcpyDtoHAsync_v2 cuMemcpyDtoDAsync_v2 cuMemcpyPeerAsync
    cuMemcpy2DAsync_v2 cuMemcpy3DAsync_v2 cuMemcpy3DPeerAsync cuMemcpyBatchAsync
    cuMemcpyBatchAsync_v2
    cuMemsetD8Async cuMemsetD16Async cuMemsetD32Async
    cuMemsetD2D8Async cuMemsetD2D16Async cuMemsetD2D32Async
    cuModuleUnload cuFuncSetAttribute cuLaunchKernel
    cuStreamBeginCapture_v2 cuGraphDestroy cuGraphExecDestroy cuGraphLaunch
    cuGraphExecKernelNodeSetParams cuGraphExecMemcpyNodeSetParams cuGraphExecMemsetNodeSetParams
    cuThreadExchangeStreamCaptureMode
}

/// Defines functions that write a value of the given type to their first argument.
macro_rules! answers {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $answer:ty $value:block)*) => {$(
        /// Writes its answer.
        ///
        /// # Safety
        ///
        /// `answer` is valid for a write.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "CUDA's name")]
        unsafe extern "C" fn $name(answer: *mut $answer, $($argument: $kind),*) -> u32 {
            let value: $answer = $value;
            // SAFETY: the caller's promise, as in CUDA's manual.
            unsafe { answer.write(value) };
            SUCCESS
        }
    )*};
}

answers! {
    cuDriverGetVersion() -> c_int { VERSION }
    cuDeviceGetCount() -> c_int { 1 }
    cuDeviceGet(ordinal: c_int) -> c_int { ordinal }
    cuDeviceGetAttribute(attribute: u32) -> c_int { device_attribute(attribute) }
    cuDeviceTotalMem_v2() -> usize { MEMORY_BYTES }
    cuDeviceCanAccessPeer() -> c_int { 0 }
    cuDevicePrimaryCtxRetain() -> u64 { CONTEXT }
    cuCtxGetCurrent() -> u64 { CONTEXT }
    cuCtxGetDevice() -> c_int { 0 }
    cuStreamCreate() -> u64 { new_handle() }
    cuStreamCreateWithPriority() -> u64 { new_handle() }
    cuEventCreate() -> u64 { new_handle() }
    cuMemPoolCreate() -> u64 { new_handle() }
    cuModuleLoadData() -> u64 { new_handle() }
    cuModuleLoadDataEx() -> u64 { new_handle() }
    cuModuleGetFunction() -> u64 { new_handle() }
    cuGraphCreate() -> u64 { new_handle() }
    cuGraphAddKernelNode() -> u64 { new_handle() }
    cuGraphAddMemcpyNode() -> u64 { new_handle() }
    cuGraphAddMemsetNode() -> u64 { new_handle() }
    cuGraphInstantiateWithFlags() -> u64 { new_handle() }
    cuFuncGetAttribute(attribute: u32) -> c_int { function_attribute(attribute) }
    cuMemAlloc_v2(len_bytes: usize) -> u64 { new_address(len_bytes) }
    cuMemAllocAsync(len_bytes: usize) -> u64 { new_address(len_bytes) }
    cuMemAllocFromPoolAsync(len_bytes: usize) -> u64 { new_address(len_bytes) }
}

/// Writes the free and the total memory.
///
/// # Safety
///
/// Both pointers are valid for a write.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "CUDA's name")]
unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> u32 {
    // SAFETY: the caller's promise, as in CUDA's manual.
    unsafe { free.write(MEMORY_BYTES) };
    // SAFETY: as above.
    unsafe { total.write(MEMORY_BYTES) };
    SUCCESS
}

/// Writes that no capture is active.
///
/// # Safety
///
/// `status` is valid for a write.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "CUDA's name")]
unsafe extern "C" fn cuStreamIsCapturing(_stream: u64, status: *mut u32) -> u32 {
    // SAFETY: the caller's promise, as in CUDA's manual.
    unsafe { status.write(0) };
    SUCCESS
}

/// Writes a new handle as the captured graph.
///
/// # Safety
///
/// `graph` is valid for a write.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "CUDA's name")]
unsafe extern "C" fn cuStreamEndCapture(_stream: u64, graph: *mut u64) -> u32 {
    // SAFETY: the caller's promise, as in CUDA's manual.
    unsafe { graph.write(new_handle()) };
    SUCCESS
}

/// Writes an empty name.
///
/// # Safety
///
/// `name` is valid for a write of one byte.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "CUDA's name")]
unsafe extern "C" fn cuDeviceGetName(name: *mut c_char) -> u32 {
    // SAFETY: the caller's promise, as in CUDA's manual.
    unsafe { name.write(0) };
    SUCCESS
}

/// Functions that are there, and are not supported.
macro_rules! unsupported {
    ($($name:ident)*) => {$(
        /// Is not supported.
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "CUDA's name")]
        extern "C" fn $name() -> u32 {
            NOT_SUPPORTED
        }
    )*};
}

// The driver does not read the code that it is given, so it knows no parameters.
unsupported! {
    cuFuncGetParamInfo
    cuStreamGetPriority cuCtxGetStreamPriorityRange cuEventElapsedTime
    cuMemHostGetDevicePointer_v2 cuMemAllocManaged
}

// These functions are in the C library, which std links.
unsafe extern "C" {
    fn posix_memalign(start: *mut *mut c_void, alignment: usize, len_bytes: usize) -> c_int;
    fn free(start: *mut c_void);
}

/// Allocates host memory.
///
/// # Safety
///
/// `start` is valid for a write.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "CUDA's name")]
unsafe extern "C" fn cuMemHostAlloc(start: *mut *mut c_void, len_bytes: usize) -> u32 {
    // SAFETY: the caller's promise, as in CUDA's manual; the alignment is a power of two.
    match unsafe { posix_memalign(start, ALIGNMENT_BYTES, len_bytes) } {
        0 => SUCCESS,
        _ => OUT_OF_MEMORY,
    }
}

/// Frees host memory.
///
/// # Safety
///
/// `start` came from `cuMemHostAlloc`, and is not used any more.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "CUDA's name")]
unsafe extern "C" fn cuMemFreeHost(start: *mut c_void) -> u32 {
    // SAFETY: the caller's promise, as in CUDA's manual.
    unsafe { free(start) };
    SUCCESS
}

/// A handle that no other object has.
fn new_handle() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(CONTEXT + 1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The start of device memory that no other allocation has.
fn new_address(len_bytes: usize) -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1 << 40);
    NEXT.fetch_add(len_bytes.next_multiple_of(ALIGNMENT_BYTES) as u64, Ordering::Relaxed)
}

/// The attributes that programs need: the limits of a current GPU, and that it has memory pools.
fn device_attribute(attribute: u32) -> c_int {
    match attribute {
        1..=3 => 1024,
        4 => 64,
        5 => c_int::MAX,
        6 | 7 => 0xFFFF,
        8 => 48 << 10,
        11 => c_int::MAX,
        16 => 132,
        75 => 9,
        97 => 227 << 10,
        115 => 1,
        _ => 0,
    }
}

/// The largest block, and the dynamic shared memory that needs no permission.
fn function_attribute(attribute: u32) -> c_int {
    match attribute {
        0 => 1024,
        8 => 48 << 10,
        _ => 0,
    }
}
