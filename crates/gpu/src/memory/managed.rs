//! Managed memory (unified memory): the driver moves its pages between the host and GPUs.

use std::ffi::c_int;
use std::fmt;
use std::sync::Arc;

use crate::capture_mode::Relaxed;
use crate::context::Context;
use crate::driver::{DeviceAttribute, MemoryLocation, StreamHandle, status};
use resident_backend::{
    Address, AdviceChange, BackendError, BackendErrorKind, DeviceKind, HostMemory, ManagedRange,
    MemoryAdvice,
};

/// The number that stands for the host as a device (`CU_DEVICE_CPU`, `hipCpuDeviceId`).
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
    /// Allocates memory of at least one byte. `free` is the memory of the device that
    /// is free, for errors.
    pub(super) fn allocate(
        context: &Arc<Context>,
        len_bytes: usize,
        free: u64,
    ) -> Result<Self, BackendError> {
        const ATTACH_GLOBAL: u32 = 1;
        let mut address = 0;
        let allocate = &context.driver().allocate_managed;
        let outcome = {
            let _relaxed = Relaxed::enter(context.driver());
            // SAFETY: the context is current; the driver writes one address.
            unsafe { (allocate.function)(&raw mut address, len_bytes, ATTACH_GLOBAL) }
        };
        allocate.check(outcome).map_err(|error| match outcome {
            status::OUT_OF_MEMORY => {
                let kind = BackendErrorKind::OutOfMemory {
                    requested: len_bytes as u64,
                    free,
                    draining: 0,
                };
                BackendError { kind, ..error }
            }
            _ => error,
        })?;
        let context = Arc::clone(context);
        let process = std::process::id();
        Ok(Self { address, len_bytes, context, process })
    }

    pub(super) fn address(&self) -> Address {
        Address(self.address)
    }
}

/// Fails if the host must not access managed memory while kernels run on the device, as on Windows
/// and Jetson: guards of the host do not wait for kernels that use other arrays.
pub(super) fn expect_concurrent_access(context: &Context) -> Result<(), BackendError> {
    if context.attribute(DeviceAttribute::ConcurrentManagedAccess)? != 0 {
        return Ok(());
    }
    let refused = context.driver().allocate_managed.error(status::NOT_SUPPORTED);
    let detail = format!(
        "{}: on this system the host must not access managed memory while any kernel runs (the \
         attribute for concurrent managed access is 0): use a `SmartArray` or a `MappedArray`",
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
        kind == self.context.kind()
    }
}

impl Drop for ManagedMemory {
    fn drop(&mut self) {
        // The memory of a dead context is never freed, since its work may still use it.
        if self.process != std::process::id() || self.context.make_current().is_err() {
            return;
        }
        let driver = self.context.driver();
        let _relaxed = Relaxed::enter(driver);
        // SAFETY: `allocate` made the memory, and nothing uses it any more: the free was queued
        // after its last use. If the driver refuses, the memory leaks.
        let _leaked = unsafe { (driver.free.function)(self.address) };
    }
}

impl fmt::Debug for ManagedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ManagedMemory({} bytes)", self.len_bytes)
    }
}

/// A GPU, or the host (`None`).
fn location_of(device: Option<usize>) -> MemoryLocation {
    const DEVICE: c_int = 1;
    const HOST: c_int = 2;
    match device {
        Some(ordinal) => MemoryLocation { kind: DEVICE, id: ordinal as c_int },
        None => MemoryLocation { kind: HOST, id: 0 },
    }
}

/// Whether the functions with locations work, which CUDA 12.2 added. Older ones name the host by a
/// device number.
fn has_locations(context: &Context) -> bool {
    const LOCATIONS_SINCE: c_int = 12_020;
    context.driver().version() >= LOCATIONS_SINCE
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
    stream: StreamHandle,
) -> Result<(), BackendError> {
    let driver = context.driver();
    if let Some(prefetch) = driver.prefetch_to.as_ref().filter(|_| has_locations(context)) {
        let to = location_of(to);
        // SAFETY: the caller's promise is passed on.
        return prefetch.check(unsafe { (prefetch.function)(address, len_bytes, to, 0, stream) });
    }
    let Some(prefetch) = &driver.prefetch else {
        return Err(driver.lacks(["cuMemPrefetchAsync", "hipMemPrefetchAsync"]));
    };
    // SAFETY: as above.
    prefetch.check(unsafe { (prefetch.function)(address, len_bytes, device_number(to), stream) })
}

/// Gives advice on managed memory, or withdraws it; the context is current.
pub(crate) fn advise(
    context: &Context,
    ManagedRange { address: Address(address), len_bytes }: ManagedRange,
    advice: MemoryAdvice,
    change: AdviceChange,
) -> Result<(), BackendError> {
    let driver = context.driver();
    let (code, place) = code_of(advice, change);
    let _relaxed = Relaxed::enter(driver);
    if let Some(advise) = driver.advise_at.as_ref().filter(|_| has_locations(context)) {
        let place = location_of(place);
        // SAFETY: the driver checks the range, and accesses none of its bytes.
        return advise.check(unsafe { (advise.function)(address, len_bytes, code, place) });
    }
    let Some(advise) = &driver.advise else {
        return Err(driver.lacks(["cuMemAdvise", "hipMemAdvise"]));
    };
    // SAFETY: as above.
    advise.check(unsafe { (advise.function)(address, len_bytes, code, device_number(place)) })
}

/// The number of the advice (`CUmem_advise`, `hipMemoryAdvise`), and its place. The code that
/// withdraws advice follows the one that gives it.
fn code_of(advice: MemoryAdvice, change: AdviceChange) -> (c_int, Option<usize>) {
    let (code, place) = match advice {
        MemoryAdvice::ReadMostly => (1, None),
        MemoryAdvice::PreferredLocation(place) => (3, place),
        MemoryAdvice::AccessedBy(place) => (5, place),
    };
    match change {
        AdviceChange::Set => (code, place),
        AdviceChange::Unset => (code + 1, place),
    }
}
