//! Pinning an array's host memory, and the end of a loan of memory.

use std::sync::Arc;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::memory_use::Owner;
use crate::storage::{HostBuffer, HostHome, Storage};
use crate::transfer::access::request::{Queued, Request, ends_of};
use crate::transfer::copy::missing::acquire_host;
use crate::transfer::copy::report::report_after;
use resident_backend::call_site::CallSite;
use resident_backend::unwinding::abort_on_unwind;
use resident_backend::{BackendError, BackendErrorKind, HostMemory, PinnedOptions, scope};
use resident_core::Access;
use resident_core::coherence::Content;
use resident_core::layout::Selection;

/// How often the copy of the newest contents to lent memory is tried: afterwards the memory belongs
/// to the caller, and what is newer elsewhere is gone.
const ATTEMPTS_MAX: u32 = 3;

/// Pins the host memory for devices of this device's kind, for as long as the memory belongs to the
/// array. Allocates the memory if there is none. Does nothing if the memory is already pinned for
/// that kind, or if a device accesses it itself.
pub(crate) fn page_lock(request: &Request<'_>, device: &Device) -> Result<()> {
    if request.is_empty() {
        return Ok(());
    }
    let host = {
        let mut state = request.storage.lock();
        if state.is_host_mapped() {
            return Ok(());
        }
        request.allocate_host(&mut state)?;
        state.host.clone()
    };
    let Some(host) = host else { return Ok(()) };
    let access = if host.is_read_only() { Access::Read } else { Access::ReadWrite };
    let register = || device.backend().pin_host_memory(host.base(), host.len_bytes(), access);
    let lock = || request.storage.lock();
    let pinned = host.register(device.kind(), register, lock, || request.owner());
    pinned.map_err(|error| request.call_error(device, "page-locking", &error))
}

/// Allocates the host memory of a new array, pinned for devices of this device's kind. If the
/// system pins no more, first gives back memory that is kept for reuse.
pub(crate) fn allocate_pinned(
    request: &Request<'_>,
    device: &Device,
    options: PinnedOptions,
) -> Result<()> {
    if request.is_empty() {
        return Ok(());
    }
    let len_bytes = request.len_bytes();
    let memory =
        request.retrying(device, || device.backend().allocate_pinned(len_bytes, options))?;
    let host = HostBuffer::from_driver(memory, HostHome::Pinned, || request.owner());
    request.storage.set_host(&mut request.storage.lock(), host);
    Ok(())
}

impl Request<'_> {
    /// Whose the memory is that the call allocates.
    pub(in crate::transfer) fn owner(&self) -> Owner {
        self.storage.owner(self.site)
    }

    /// The array's length. It fits, since the array's shape was checked.
    pub(in crate::transfer) fn len_bytes(&self) -> usize {
        self.storage.memory_order().len_bytes() as usize
    }

    /// Allocates pinned memory. If the system pins no more, first gives back what is kept for
    /// reuse.
    pub(super) fn retrying<T>(
        &self,
        device: &Device,
        allocate: impl Fn() -> std::result::Result<T, BackendError>,
    ) -> Result<T> {
        trimming(device, allocate).map_err(|error| self.call_error(device, "allocating", &error))
    }
}

/// Calls `allocate`. If there is no memory, returns what is kept for reuse and calls it again.
pub(super) fn trimming<T>(
    device: &Device,
    allocate: impl Fn() -> std::result::Result<T, BackendError>,
) -> std::result::Result<T, BackendError> {
    allocate().or_else(|error| {
        let is_full = matches!(
            error.kind,
            BackendErrorKind::OutOfMemory { .. } | BackendErrorKind::OutOfHostMemory { .. }
        );
        if !is_full || scope::is_in_body() || device.backend().trim().is_err() {
            return Err(error);
        }
        allocate()
    })
}

/// The error of an operation that waits for queued work, if this thread runs a kernel body.
pub(crate) fn expect_outside_kernels(operation: &str, site: CallSite) -> Result<()> {
    if !scope::is_in_body() {
        return Ok(());
    }
    Err(Error::InsideKernel {
        call: site.into(),
        operation: String::from(operation),
        waits_for: String::from("all work that uses the array"),
    })
}

/// Ends a loan of host memory: copies the newest contents to it, waits for all work that uses it,
/// and unpins or unmaps it. The error says which contents are lost or could not be copied; the loan
/// has ended all the same.
pub(crate) fn end_loan(request: &Request<'_>) -> Result<()> {
    if request.is_empty() {
        return Ok(());
    }
    report_after(|| abort_on_unwind("the end of a loan of memory", || take_back(request)))
}

/// As [`end_loan`], for an array with elements. Calls no user code.
fn take_back(request: &Request<'_>) -> Result<()> {
    let mut brought = bring_to_host(request);
    for _ in 1..ATTEMPTS_MAX {
        if brought.is_ok() {
            break;
        }
        brought = bring_to_host(request);
    }
    let outcome = brought.and_then(|()| acquire_host(request));
    wait_for_host_uses(request);
    request.unmap_lent();
    let host = request.storage.lock().host.take();
    if let Some(host) = host {
        // The drop unpins the memory.
        drop(unshare(request.storage, host));
    }
    outcome
}

/// Copies everything that is newer elsewhere to the host, whatever else is lost.
fn bring_to_host(request: &Request<'_>) -> Result<()> {
    let newer = {
        let mut state = request.storage.lock();
        state.reconcile(request.storage.memory_order());
        let host = state.host_location();
        state.regions_where(request.storage.memory_order(), request.selection, |content| {
            !matches!(content, Content::Undefined(_)) && !content.is_valid(host)
        })
    };
    if newer.is_empty() {
        return Ok(());
    }
    acquire_host(&request.of(&Selection::Boxes(newer)).reading())
}

/// Waits until no queued work uses the host memory. A refused wait is repeated: only the work's end
/// counts. The work of a lost device has ended, and in a forked child none of the parent's runs.
fn wait_for_host_uses(request: &Request<'_>) {
    loop {
        let pending = {
            let mut state = request.storage.lock();
            state.reconcile(request.storage.memory_order());
            let marks = request.uses_to_end(&mut state);
            ends_of(&state, &marks)
        };
        if !is_any_left(&pending, request.site) {
            return;
        }
        std::thread::yield_now();
    }
}

/// Waits for each of these uses. Returns whether some of them may not have ended.
fn is_any_left(pending: &Queued, site: CallSite) -> bool {
    pending.iter().fold(false, |is_left, (stream, position)| {
        let waited = stream.wait_until(*position, site);
        let has_ended = |error: &BackendError| {
            matches!(error.kind, BackendErrorKind::DeviceLost | BackendErrorKind::Forked)
        };
        is_left || waited.is_err_and(|error| !has_ended(&error))
    })
}

/// The buffer, once queued work has dropped its handles, which it does right after it counts as
/// complete. `None` if a lost device keeps one forever.
fn unshare(storage: &Storage, mut host: Arc<HostBuffer>) -> Option<HostBuffer> {
    loop {
        match Arc::try_unwrap(host) {
            Ok(buffer) => return Some(buffer),
            Err(shared) if shared.is_leaked() => return None,
            Err(shared) => host = shared,
        }
        let devices: Vec<Device> = {
            let state = storage.lock();
            state.devices().map(|(_, device)| device.clone()).collect()
        };
        devices.iter().for_each(|device| device.backend().reap());
        std::thread::yield_now();
    }
}
