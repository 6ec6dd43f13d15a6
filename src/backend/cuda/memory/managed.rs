//! Managed memory (unified memory): the driver moves its pages between the host and GPUs.

use std::ffi::c_int;
use std::fmt;
use std::sync::{Arc, OnceLock};

use cudarc::driver::sys::{self, CUdevice_attribute, CUresult};

use crate::backend::cuda::call::{check, refusal};
use crate::backend::cuda::capture_mode::Relaxed;
use crate::backend::cuda::context::Context;
use crate::backend::cuda::library::DRIVER;
use crate::backend::{
    Address, BackendError, BackendErrorKind, DeviceKind, HostMemory, ManagedRange, MemoryAdvice,
};

const ALLOCATE: &str = "cuMemAllocManaged";

/// The number that stands for the host as a device (`CU_DEVICE_CPU`).
const HOST_DEVICE: c_int = -1;

/// Managed memory of an array, freed on drop.
pub(crate) struct ManagedMemory {
    address: u64,
    len_bytes: usize,
    context: Arc<Context>,
    /// A forked child does not have the memory.
    process: u32,
}

impl ManagedMemory {
    /// Allocates memory of at least one byte.
    pub(super) fn allocate(context: &Arc<Context>, len_bytes: usize) -> Result<Self, BackendError> {
        const ATTACH_GLOBAL: u32 = 1;
        let mut address = 0;
        let outcome = {
            let _relaxed = Relaxed::enter();
            // SAFETY: the context is current; the driver writes one address.
            unsafe { sys::cuMemAllocManaged(&raw mut address, len_bytes, ATTACH_GLOBAL) }
        };
        check(outcome, ALLOCATE).map_err(|refusal| match outcome {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => BackendError {
                kind: BackendErrorKind::OutOfMemory { requested: len_bytes as u64, free: 0 },
                ..refusal
            },
            _ => refusal,
        })?;
        let (context, process) = (Arc::clone(context), std::process::id());
        Ok(Self { address, len_bytes, context, process })
    }

    pub(super) fn address(&self) -> Address {
        Address(self.address)
    }
}

/// Fails if the host must not access managed memory while kernels run on the device, as on Windows
/// and Jetson: guards of the host do not wait for kernels that use other arrays.
pub(super) fn expect_concurrent_access(context: &Context) -> Result<(), BackendError> {
    let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS;
    if context.attribute(attribute)? != 0 {
        return Ok(());
    }
    let refused = refusal(CUresult::CUDA_ERROR_NOT_SUPPORTED, ALLOCATE);
    let detail = format!(
        "{}: on this system the host must not access managed memory while any kernel runs \
         (CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS is 0): use a `SmartArray` or a \
         `MappedArray`",
        refused.detail
    );
    Err(BackendError { detail, ..refused })
}

// SAFETY: the value owns memory that is not bound to a thread.
unsafe impl Send for ManagedMemory {}
// SAFETY: the value only returns a pointer, whose users order their accesses (contract of
// `HostMemory`).
unsafe impl Sync for ManagedMemory {}

// SAFETY: `address` is that of `len_bytes` bytes, which only `drop` frees, and is the same number
// on the host. The driver's fresh pages have bytes, as all pages of the system.
unsafe impl HostMemory for ManagedMemory {
    fn base(&self) -> *mut u8 {
        std::ptr::with_exposed_provenance_mut(self.address as usize)
    }

    fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    fn is_pinned_for(&self, kind: DeviceKind) -> bool {
        // GPUs access it themselves.
        kind == DeviceKind::Cuda
    }
}

impl Drop for ManagedMemory {
    fn drop(&mut self) {
        // The memory of a dead context is never freed, since its work may still use it.
        if self.process != std::process::id() || self.context.make_current().is_err() {
            return;
        }
        let _relaxed = Relaxed::enter();
        // SAFETY: `allocate` made the memory, and nothing uses it any more: the free was queued
        // after its last use. If the driver refuses, the memory leaks.
        let _leaked = unsafe { sys::cuMemFree_v2(self.address) };
    }
}

impl fmt::Debug for ManagedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ManagedMemory({} bytes)", self.len_bytes)
    }
}

/// `CUmemLocation`, with the layout of the driver's ABI.
#[repr(C)]
#[derive(Clone, Copy)]
struct MemLocation {
    kind: c_int,
    id: c_int,
}

impl MemLocation {
    /// A GPU, or the host (`None`).
    fn of(device: Option<usize>) -> Self {
        const DEVICE: c_int = 1;
        const HOST: c_int = 2;
        match device {
            Some(ordinal) => Self { kind: DEVICE, id: ordinal as c_int },
            None => Self { kind: HOST, id: 0 },
        }
    }
}

type Prefetch = unsafe extern "C" fn(u64, usize, MemLocation, u32, sys::CUstream) -> CUresult;
type PrefetchV1 = unsafe extern "C" fn(u64, usize, c_int, sys::CUstream) -> CUresult;
type Advise = unsafe extern "C" fn(u64, usize, c_int, MemLocation) -> CUresult;
type AdviseV1 = unsafe extern "C" fn(u64, usize, c_int, c_int) -> CUresult;

/// The functions of the driver. CUDA 12.2 added those with locations; older ones name the host by a
/// device number. The bindings have one or the other, by the version that they were made for.
#[derive(Clone, Copy)]
struct Functions {
    prefetch: Option<Prefetch>,
    prefetch_v1: Option<PrefetchV1>,
    advise: Option<Advise>,
    advise_v1: Option<AdviseV1>,
}

/// The functions that a driver of this version has.
fn functions(context: &Context) -> Functions {
    const LOCATIONS_SINCE: i32 = 12_020;
    static FUNCTIONS: OnceLock<Functions> = OnceLock::new();
    let functions = *FUNCTIONS.get_or_init(|| Functions {
        // SAFETY: `Prefetch` is the type of this driver function.
        prefetch: unsafe { DRIVER.function("cuMemPrefetchAsync_v2") },
        // SAFETY: `PrefetchV1` is the type of this driver function.
        prefetch_v1: unsafe { DRIVER.function("cuMemPrefetchAsync") },
        // SAFETY: `Advise` is the type of this driver function.
        advise: unsafe { DRIVER.function("cuMemAdvise_v2") },
        // SAFETY: `AdviseV1` is the type of this driver function.
        advise_v1: unsafe { DRIVER.function("cuMemAdvise") },
    });
    match context.driver_version() >= LOCATIONS_SINCE {
        true => functions,
        false => Functions { prefetch: None, advise: None, ..functions },
    }
}

fn device_number(device: Option<usize>) -> c_int {
    device.map_or(HOST_DEVICE, |ordinal| ordinal as c_int)
}

/// Queues a prefetch to a GPU, or to the host (`None`).
///
/// # Safety
///
/// `context` is the stream's and is current. The range is live managed memory until the stream has
/// passed the prefetch.
pub(crate) unsafe fn prefetch(
    context: &Context,
    ManagedRange { address: Address(address), len_bytes }: ManagedRange,
    to: Option<usize>,
    stream: sys::CUstream,
) -> Result<(), BackendError> {
    const CALL: &str = "cuMemPrefetchAsync";
    let outcome = match functions(context) {
        Functions { prefetch: Some(prefetch), .. } => {
            // SAFETY: the caller's promise is passed on.
            unsafe { prefetch(address, len_bytes, MemLocation::of(to), 0, stream) }
        }
        Functions { prefetch_v1: Some(prefetch), .. } => {
            // SAFETY: the caller's promise is passed on.
            unsafe { prefetch(address, len_bytes, device_number(to), stream) }
        }
        _ => CUresult::CUDA_ERROR_NOT_SUPPORTED,
    };
    check(outcome, CALL)
}

/// Gives advice on managed memory, or withdraws it; the context is current.
pub(crate) fn advise(
    context: &Context,
    ManagedRange { address: Address(address), len_bytes }: ManagedRange,
    advice: MemoryAdvice,
    is_set: bool,
) -> Result<(), BackendError> {
    const CALL: &str = "cuMemAdvise";
    let (code, place) = code_of(advice, is_set);
    let _relaxed = Relaxed::enter();
    let outcome = match functions(context) {
        Functions { advise: Some(advise), .. } => {
            // SAFETY: the driver checks the range, and accesses none of its bytes.
            unsafe { advise(address, len_bytes, code, MemLocation::of(place)) }
        }
        Functions { advise_v1: Some(advise), .. } => {
            // SAFETY: as above.
            unsafe { advise(address, len_bytes, code, device_number(place)) }
        }
        _ => CUresult::CUDA_ERROR_NOT_SUPPORTED,
    };
    check(outcome, CALL)
}

/// The number of the advice (`CUmem_advise`), and its place. The code that withdraws advice follows
/// the one that gives it.
fn code_of(advice: MemoryAdvice, is_set: bool) -> (c_int, Option<usize>) {
    let (code, place) = match advice {
        MemoryAdvice::ReadMostly => (1, None),
        MemoryAdvice::PreferredLocation(place) => (3, place),
        MemoryAdvice::AccessedBy(place) => (5, place),
    };
    (if is_set { code } else { code + 1 }, place)
}
