//! Memory for an array on the host and on devices.

use std::sync::Arc;

use smallvec::SmallVec;

use super::evict::give_up_copy;
use super::in_use::{self, Unused};
use super::release;
use super::room::with_room;
use crate::audit::MemoryChange;
use crate::device::{Device, Stream};
use crate::error::{Error, Result};
use crate::storage::{
    ArrayState, HostBuffer, MemoryClaim, PageRuns, Reservation, StateGuard, wait_for_claim,
};
use crate::transfer::access::error::host_full;
use crate::transfer::access::request::Request;
use crate::transfer::copy::report::{record_memory, run_deferred};
use resident_backend::{Address, BackendError, BackendErrorKind, HostMemory, PageRange, scope};
use resident_core::Access;
use resident_core::coherence::Location;
use resident_core::layout::PageTable;
use resident_core::ordering::{Mark, UseEnd};

/// Allocates memory on `stream`'s device for those elements of the request that have none.
pub(crate) fn allocate(request: &Request<'_>, stream: &Stream) -> Result<()> {
    if request.is_empty() {
        return Ok(());
    }
    request.allocate_on_device(stream)?;
    run_deferred();
    Ok(())
}

impl<'a> Request<'a> {
    /// Allocates host memory for the array if it has none.
    pub(in crate::transfer) fn allocate_host(&self, state: &mut ArrayState) -> Result<()> {
        if !self.storage.allocate_host(state) {
            return Err(host_full(self.storage).at(self.site));
        }
        Ok(())
    }

    /// Allocates host memory for a write by the host, or for copies to it, if the array has none
    /// that may be written.
    pub(in crate::transfer) fn allocate_writable_host(&self, state: &mut ArrayState) -> Result<()> {
        if !self.storage.make_host_writable(state) {
            return Err(host_full(self.storage).at(self.site));
        }
        Ok(())
    }

    /// Allocates memory on `stream`'s device for those elements of the request that have none. If
    /// the device is full, evicts what was used least recently. The caller holds no lock.
    ///
    /// The first access of a copy decides whether it gets memory as a whole, or for the pages that
    /// are accessed (`by_pages`).
    pub(in crate::transfer) fn allocate_on_device(&self, stream: &Stream) -> Result<()> {
        let (device, order) = (stream.device_ref(), self.storage.memory_order());
        loop {
            let (state, location) = self.lock_at(device)?;
            let copy = state.device_copy(location);
            if copy.address_of(order, self.selection).is_some() {
                return Ok(());
            }
            if state.is_memory_claimed(location) {
                self.wait_for_claim(state)?;
                continue;
            }
            let is_reserved = copy.reserved().is_some();
            let table = if is_reserved { None } else { self.page_table(&state, device) };
            let _claim = MemoryClaim::new(self.storage, state, location);
            match table {
                Some(table) => self.reserve_at(device, location, table)?,
                None if is_reserved => {}
                None => return self.allocate_at(stream, location),
            }
            // Then looks again: a full device may have evicted other pages of these elements.
            self.commit_at(device, location)?;
        }
    }

    /// The state, with the device's location in it. Where all are taken, a device that the program
    /// has dropped gives way. The caller holds no lock.
    pub(in crate::transfer) fn lock_at(
        &self,
        device: &Device,
    ) -> Result<(StateGuard<'a>, Location)> {
        loop {
            let mut state = self.storage.lock();
            if let Some(location) = state.assign_location(device) {
                return Ok((state, location));
            }
            drop(state);
            if !give_up_copy(self)? {
                return Err(self.no_location(device));
            }
        }
    }

    /// Releases the lock, and waits until any claim is released. Returns an error inside a kernel
    /// body, where no call may wait.
    pub(in crate::transfer) fn wait_for_claim(&self, state: StateGuard<'_>) -> Result<()> {
        if scope::is_in_body() {
            let other = "another thread that is moving the same elements, or allocating their \
                         memory";
            return Err(self.inside_kernel(other));
        }
        wait_for_claim(state);
        Ok(())
    }

    /// The caller has claimed the memory at `location`.
    fn allocate_at(&self, stream: &Stream, location: Location) -> Result<()> {
        let device = stream.device_ref();
        device.retry_deferred_frees();
        device.reap_frees();
        let address = self.device_memory(stream)?;
        let mut state = self.storage.lock();
        // Other streams may use the memory only after its allocation.
        let allocated = UseEnd::at(stream.raw().tail());
        let mark = Mark::lossless(state.assign_key(stream), allocated);
        state.number_use(location);
        let copy = state.device_copy_mut(location);
        copy.set_address(Some(address));
        copy.uses.record(self.storage.memory_order().extents(), None, Access::Overwrite, mark);
        drop(state);
        self.record_allocation(device, self.storage.memory_order().len_bytes());
        Ok(())
    }

    fn record_allocation(&self, device: &Device, bytes: u64) {
        // This first: it may begin the report that is to know of the memory.
        record_memory(self.storage, device, MemoryChange::Allocation, bytes, self.site);
        self.storage.count_memory(device, bytes, self.site);
    }

    /// Reserves addresses for a copy. The caller has claimed the memory at `location`.
    fn reserve_at(&self, device: &Device, location: Location, table: PageTable) -> Result<()> {
        let label = self.storage.label("addresses for", self.site);
        let reserved = device.backend().reserve(self.storage.memory_order().len_bytes(), &label);
        let address = reserved.map_err(|error| self.allocation_error(device, &error))?;
        let reserved = Some(Reservation::new(address, table));
        self.storage.lock().set_reservation(location, reserved);
        Ok(())
    }

    /// Commits memory to the pages that have none. The caller has claimed the memory at `location`.
    fn commit_at(&self, device: &Device, location: Location) -> Result<()> {
        device.retry_deferred_frees();
        device.reap_frees();
        let (missing, ranges): (PageRuns, SmallVec<[PageRange; 4]>) = {
            let state = self.storage.lock();
            let Some(reserved) = state.device_copy(location).reserved() else { return Ok(()) };
            let missing = reserved.missing(self.storage.memory_order(), self.selection);
            missing.into_iter().map(|pages| (pages.clone(), reserved.range(&pages))).unzip()
        };
        let (count, outcome) = self.commit_runs(device, &ranges);
        if count > 0 {
            self.storage.lock().commit_pages(location, &missing[..count]);
            self.record_allocation(device, ranges[..count].iter().map(len_bytes).sum());
        }
        outcome.map_err(|error| {
            self.give_up_addresses(location);
            self.allocation_error(device, &error)
        })
    }

    /// Commits memory to these runs of pages, and returns the number of those that have some.
    fn commit_runs(
        &self,
        device: &Device,
        runs: &[PageRange],
    ) -> (usize, std::result::Result<(), BackendError>) {
        let label = self.storage.label("memory for", self.site);
        let mut beyond_bytes: u64 = runs.iter().map(len_bytes).sum();
        for (index, run) in runs.iter().enumerate() {
            beyond_bytes -= len_bytes(run);
            let commit = || device.backend().commit(run, &label);
            if let Err(mut error) = with_room(device, self, beyond_bytes, commit) {
                if let BackendErrorKind::OutOfMemory { requested, .. } = &mut error.kind {
                    *requested += beyond_bytes;
                }
                return (index, Err(error));
            }
        }
        (runs.len(), Ok(()))
    }

    /// Frees the addresses of a copy without memory.
    fn give_up_addresses(&self, location: Location) {
        let mut state = self.storage.lock();
        if !state.device_copy(location).has_memory() {
            release::free(self.storage, &state, state.device_copy(location));
            state.set_reservation(location, None);
        }
    }

    fn device_memory(&self, stream: &Stream) -> Result<Address> {
        let device = stream.device_ref();
        let label = self.storage.label("memory for", self.site);
        let len_bytes = self.storage.memory_order().len_bytes();
        let address = with_room(device, self, 0, || stream.raw().allocate(len_bytes, &label));
        address.map_err(|error| self.allocation_error(device, &error))
    }

    /// The error of an allocation on a device, which may be full.
    pub(super) fn allocation_error(&self, device: &Device, error: &BackendError) -> Error {
        if let BackendErrorKind::OutOfMemory { requested, .. } = error.kind {
            device.array_memory().note_refused(requested);
        }
        let mut error = self.call_error(device, "allocating", error);
        if let Error::OutOfMemory { in_use_by, shortage, .. } = &mut error {
            let unused = if shortage.requested <= shortage.free + shortage.in_use {
                Unused::CouldNotGiveWay
            } else {
                Unused::WouldNotHelp
            };
            *in_use_by = in_use::in_use_by(device, unused);
        }
        error
    }

    /// Memory into which an upload is packed: the device's pinned staging memory, or pageable
    /// memory.
    pub(in crate::transfer) fn staging(
        &self,
        stream: &Stream,
        len_bytes: u64,
    ) -> Result<Arc<dyn HostMemory>> {
        let backend = stream.device_ref().backend();
        if let Some(staging) = backend.allocate_staging(stream.raw(), len_bytes) {
            return Ok(Arc::new(staging));
        }
        let pageable = usize::try_from(len_bytes).ok().and_then(HostBuffer::zeroed::<u8>);
        pageable
            .map(|buffer| Arc::new(buffer) as Arc<dyn HostMemory>)
            .ok_or_else(|| host_full(self.storage).at(self.site))
    }
}

/// The bytes of a run of pages.
fn len_bytes(run: &PageRange) -> u64 {
    run.bytes.end - run.bytes.start
}
