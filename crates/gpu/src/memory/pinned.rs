//! Pinned host memory that the driver allocates for one array.

use std::ffi::c_void;
use std::fmt;
use std::sync::Arc;

use super::pinned_ranges::PinnedRange;
use crate::capture_mode::Relaxed;
use crate::context::Context;
use crate::driver::{Driver, Status, status};
use resident_backend::host_allocation::{ByteCount, CountedBytes};
use resident_backend::sync;
use resident_backend::{
    Address, BackendError, BackendErrorKind, DeviceKind, HostMemory, PinnedOptions,
};

/// Pinned memory of an array, freed on drop.
pub(crate) struct PinnedMemory {
    start: *mut u8,
    len_bytes: usize,
    context: Arc<Context>,
    /// A forked child does not have the memory.
    process: u32,
    _range: PinnedRange,
    _counted: CountedBytes,
}

impl PinnedMemory {
    /// Allocates zeroed memory of at least one byte.
    pub(crate) fn allocate(
        context: &Arc<Context>,
        len_bytes: usize,
        options: PinnedOptions,
        mapping: HostMapping,
        pinned: &ByteCount,
    ) -> Result<Self, BackendError> {
        // The driver may wait for running kernels before it pins.
        sync::assert_none_held();
        context.make_current()?;
        let mut start: *mut c_void = std::ptr::null_mut();
        let outcome = {
            let _relaxed = Relaxed::enter(context.driver());
            let allocate = &context.driver().allocate_host;
            let more = match mapping {
                HostMapping::Unmapped => context.driver().vendor.unmapped_flags,
                HostMapping::Mapped => mapping.flag(),
            };
            let flags = flags(options) | more;
            // SAFETY: the driver writes one pointer.
            let outcome = unsafe { (allocate.function)(&raw mut start, len_bytes, flags) };
            allocate.check(outcome).map_err(|error| refused(error, outcome, len_bytes))
        };
        context.record_death(outcome)?;
        // SAFETY: the driver just allocated this many bytes, and no other code can access them.
        unsafe { start.cast::<u8>().write_bytes(0, len_bytes) };
        Ok(Self {
            start: start.cast(),
            len_bytes,
            context: Arc::clone(context),
            process: std::process::id(),
            _range: PinnedRange::new(context.kind(), start.cast(), len_bytes),
            _counted: pinned.count(len_bytes),
        })
    }
}

/// The address of pinned host memory on the current context's GPU. The driver refuses memory that
/// is not mapped.
pub(crate) fn device_address(driver: &Driver, start: *mut u8) -> Result<Address, BackendError> {
    let mut address = 0;
    let ask = &driver.device_pointer_of_host;
    // SAFETY: the driver writes one address, and does not dereference the pointer.
    let outcome = unsafe { (ask.function)(&raw mut address, start.cast(), 0) };
    ask.check(outcome).map(|()| Address(address))
}

/// Whether GPUs access pinned host memory themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HostMapping {
    Unmapped,
    Mapped,
}

impl HostMapping {
    /// The flag of `cuMemHostAlloc` and `hipHostMalloc`, of `cuMemHostRegister` and
    /// `hipHostRegister`.
    pub(super) fn flag(self) -> u32 {
        const DEVICE_MAP: u32 = 2;
        match self {
            Self::Unmapped => 0,
            Self::Mapped => DEVICE_MAP,
        }
    }
}

/// The flags of `cuMemHostAlloc` and `hipHostMalloc` beside that of the mapping.
fn flags(options: PinnedOptions) -> u32 {
    const PORTABLE: u32 = 1;
    const WRITE_COMBINED: u32 = 4;
    let flag = |is_set, flag| if is_set { flag } else { 0 };
    flag(options.is_portable, PORTABLE) | flag(options.is_write_combined, WRITE_COMBINED)
}

/// Says what to do if the host has no memory left to pin.
fn refused(error: BackendError, outcome: Status, requested: usize) -> BackendError {
    if outcome != status::OUT_OF_MEMORY {
        return error;
    }
    BackendError {
        kind: BackendErrorKind::OutOfHostMemory { requested: requested as u64 },
        detail: String::from(
            "the host has no more memory to pin: drop or unpin other arrays, or use an ordinary \
             array",
        ),
        ..error
    }
}

// SAFETY: the value owns memory that is not bound to a thread.
unsafe impl Send for PinnedMemory {}
// SAFETY: the value only returns a pointer, whose users order their accesses (contract of
// `HostMemory`).
unsafe impl Sync for PinnedMemory {}

// SAFETY: `start` points to `len_bytes` bytes, which `allocate` zeroed and only `drop` frees.
unsafe impl HostMemory for PinnedMemory {
    fn base(&self) -> *mut u8 {
        self.start
    }

    fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    fn is_pinned_for(&self, kind: DeviceKind) -> bool {
        kind == self.context.kind()
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        // The memory of a dead context is never freed, since its work may still use it.
        if self.process != std::process::id() || self.context.make_current().is_err() {
            return;
        }
        let driver = self.context.driver();
        let _relaxed = Relaxed::enter(driver);
        // SAFETY: `allocate` made the memory, and nothing uses it any more: work in flight keeps
        // this value. If the driver refuses, the memory leaks.
        let _leaked = unsafe { (driver.free_host.function)(self.start.cast()) };
    }
}

impl fmt::Debug for PinnedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinnedMemory({} bytes)", self.len_bytes)
    }
}
