//! Mapped and managed memory: one memory that the host and a device access. It is the device's copy
//! of an array, and its location is that of the host memory too. So plans never copy between the
//! two, and the order of uses of this location is all that remains.

use std::sync::Arc;

use super::page_lock::trimming;
use super::room::with_room;
use crate::device::{Device, Stream};
use crate::error::Result;
use crate::storage::{HostBuffer, HostHome};
use crate::transfer::access::acquire::acquire_on;
use crate::transfer::access::mark::mark;
use crate::transfer::access::request::Request;
use crate::transfer::copy::report::run_deferred;
use resident_backend::{
    Address, AdviceChange, BackendError, Dependencies, HostMemory, ManagedRange, MemoryAdvice,
    PinnedOptions, PrefetchTarget,
};
use resident_core::ordering::{UseEnd, Uses};

/// Allocates mapped memory, all zeros, for a new array. It stays until the array drops.
pub(crate) fn allocate_mapped(
    request: &Request<'_>,
    device: &Device,
    options: PinnedOptions,
) -> Result<()> {
    if request.is_empty() {
        return Ok(());
    }
    let len_bytes = request.len_bytes();
    let allocate = || device.backend().allocate_mapped(len_bytes, options);
    let (address, memory) = request.retrying(device, allocate)?;
    let host = HostBuffer::from_driver(memory, HostHome::Pinned, || request.owner());
    request.map_host(device, address, Arc::new(host))?;
    let mut state = request.storage.lock();
    let host = state.host_location();
    request.record_write(&mut state, host);
    Ok(())
}

/// Allocates managed memory for a new array, which has no contents yet. It stays until the array
/// drops. If the device is full, evicts copies of other arrays.
pub(crate) fn allocate_managed(request: &Request<'_>, device: &Device) -> Result<()> {
    if request.is_empty() {
        return Ok(());
    }
    let len_bytes = request.len_bytes();
    let allocate = || device.backend().allocate_managed(len_bytes);
    // What was evicted is free for the driver once the pool has been trimmed.
    let outcome = with_room(device, request, 0, || trimming(device, allocate));
    let (address, memory) = outcome.map_err(|error| request.allocation_error(device, &error))?;
    // Of the arrays that were evicted.
    run_deferred();
    let host = HostBuffer::from_driver(memory, HostHome::Managed(device), || request.owner());
    request.map_host(device, address, Arc::new(host))
}

/// Queues a prefetch of managed memory, as a read of the array.
pub(crate) fn prefetch_managed(
    request: &Request<'_>,
    stream: &Stream,
    to: PrefetchTarget,
) -> Result<()> {
    if request.is_empty() {
        return Ok(());
    }
    let acquired = acquire_on(request, stream, &mut Dependencies::new())?;
    let managed = ManagedRange { address: acquired.address, len_bytes: request.len_bytes() };
    let position = stream.raw().prefetch(managed, to);
    let position =
        position.map_err(|error| request.call_error(stream.device_ref(), "prefetching", &error))?;
    mark(request, stream, acquired, UseEnd::at(position));
    Ok(())
}

/// Gives advice on managed memory of `device`, or withdraws it.
pub(crate) fn advise(
    request: &Request<'_>,
    device: &Device,
    advice: MemoryAdvice,
    change: AdviceChange,
) -> Result<()> {
    let address = {
        let state = request.storage.lock();
        state.find_location(device).and_then(|location| state.device_copy(location).address())
    };
    let Some(address) = address else { return Ok(()) };
    let managed = ManagedRange { address, len_bytes: request.len_bytes() };
    let advised = device.backend().advise(managed, advice, change);
    advised.map_err(|error| request.call_error(device, "advising on", &error))
}

/// Maps the lent memory of a new array to `device`, until the loan ends.
pub(crate) fn map_lent(request: &Request<'_>, device: &Device) -> Result<()> {
    let host = request.storage.lock().host.clone();
    let Some(host) = host.filter(|_| !request.is_empty()) else { return Ok(()) };
    let mut address = Address(0);
    let register = || -> std::result::Result<_, BackendError> {
        // SAFETY: the buffer has this many initialised bytes (`HostMemory`), and drops the
        // registration before it gives the memory back, after `end_loan` has waited for all work.
        let (mapped, registration) =
            unsafe { device.backend().map_host_memory(host.base(), host.len_bytes()) }?;
        address = mapped;
        Ok(registration)
    };
    let mapped = host.register(device.kind(), register, || (), || request.owner());
    mapped.map_err(|error| request.call_error(device, "mapping", &error))?;
    request.map_host(device, address, Arc::clone(&host))?;
    let mut state = request.storage.lock();
    let location = state.host_location();
    request.record_write(&mut state, location);
    Ok(())
}

impl Request<'_> {
    /// Makes memory the host memory of a new array, and its copy on `device`.
    fn map_host(&self, device: &Device, address: Address, host: Arc<HostBuffer>) -> Result<()> {
        let mut state = self.storage.lock();
        let location = state.assign_location(device).ok_or_else(|| self.no_location(device))?;
        state.device_copy_mut(location).set_address(Some(address));
        self.storage.set_mapped_host(&mut state, location, host);
        Ok(())
    }

    /// Takes the address of lent memory from the array, once no work uses it.
    pub(super) fn unmap_lent(&self) {
        let mut state = self.storage.lock();
        if state.is_host_mapped() {
            let location = state.host_location();
            let copy = state.device_copy_mut(location);
            copy.set_address(None);
            copy.uses = Uses::default();
        }
    }
}
