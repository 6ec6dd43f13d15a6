//! Memory for the parts of an array that a device uses: reserved addresses, to which memory is
//! mapped page by page.
//!
//! A page is as long as the smallest piece of memory that the driver maps, usually 2 MiB. The
//! memory of decommitted pages is unmapped and kept for the next commit, so that a program that
//! uses one part after the other maps and unmaps memory, but creates and releases none. It counts
//! as pooled, and `trim` releases it. A commit for which the driver has no memory, or the limit no
//! room beside it, first waits for that of other pages whose decommit is queued.
//!
//! The driver unmaps memory at once, whatever work uses it. So the host does it, once the work
//! before a decommit or a free is complete, as it frees memory on devices without pools: the
//! stream has a completion action for it (`CompletionAction::Unmap`). A commit of such a page waits
//! for that.
//!
//! One thread at a time changes mappings (`mapping`). It calls the driver without the lock of the
//! tables, so that others queue frees and decommits meanwhile.

use resident_backend::{Address, BackendError, PageRange};

use super::allocator::{DeviceMemory, is_out_of_memory};
use super::page_driver::{MemoryHandle, Pages};
use super::reservations::QueuedAt;
use crate::driver::invalid;

/// The context is current in all of these calls.
impl DeviceMemory {
    /// The length of a page; `None` if the device has none.
    pub(crate) fn page_bytes(&self) -> Option<u64> {
        self.pages.as_ref().map(Pages::page_bytes)
    }

    fn pages(&self, call: &'static str) -> Result<&Pages, BackendError> {
        self.pages.as_ref().ok_or_else(|| invalid(call, "the device has no pages".to_owned()))
    }

    /// Reserves addresses.
    pub(crate) fn reserve_addresses(&self, len_bytes: u64) -> Result<Address, BackendError> {
        let pages = self.pages("reserve")?;
        let whole_bytes = self.allocations().reservations.whole_pages(len_bytes);
        let Some(whole_bytes) = whole_bytes.filter(|_| len_bytes > 0) else {
            return Err(invalid("reserve", format!("{len_bytes} bytes have no pages")));
        };
        let _relaxed = pages.driver.relaxed();
        let address = pages.driver.reserve(whole_bytes).map_err(|error| match &error {
            full if is_out_of_memory(full) => self.out_of_memory(len_bytes, error.call),
            _ => error,
        })?;
        self.allocations().reservations.insert(address, len_bytes);
        Ok(Address(address))
    }

    /// Whether the address is that of a reservation.
    pub(crate) fn is_reserved(&self, Address(address): Address) -> bool {
        self.allocations().reservations.contains(address)
    }

    /// Commits memory to pages. If the decommit of any is queued, or if under the limit the memory
    /// of others has to be used again, returns where that is queued: the caller waits, and calls
    /// this again.
    pub(crate) fn commit(&self, range: &PageRange) -> Result<Option<QueuedAt>, BackendError> {
        let pages = self.pages("commit")?;
        let peers = pages.mapping.lock();
        let _relaxed = pages.driver.relaxed();
        let unmapped = self.unmap_drained(pages);
        let len_bytes = self.committed_bytes(range);
        let addresses = {
            let mut allocations = self.allocations();
            let refused = |detail| invalid("commit", detail);
            if let Some(at) = allocations.reservations.leaving(range).map_err(refused)? {
                return Ok(Some(at));
            }
            allocations.expect_below_limit(len_bytes)?;
            if let Some(at) = allocations.leaving_to_reuse(len_bytes) {
                return Ok(Some(at));
            }
            let begun = allocations.reservations.begin_commit(range);
            // A page that the driver refused to unmap still has memory.
            begun.map_err(|detail| unmapped.err().unwrap_or_else(|| refused(detail)))?
        };
        let mut mapped = Vec::new();
        let devices = [pages.driver.device()].into_iter().chain(peers.iter().copied());
        let outcome = self.map_all(pages, &addresses, devices, &mut mapped);
        if let Err(error) = outcome {
            self.cancel_commit(pages, range, &addresses, &mapped);
            let is_full = is_out_of_memory(&error);
            return Err(if is_full { self.out_of_memory(len_bytes, error.call) } else { error });
        }
        self.allocations().reservations.end_commit(range.reservation.0, &mapped);
        Ok(None)
    }

    /// The bytes of memory that a commit of these pages needs.
    pub(crate) fn committed_bytes(&self, range: &PageRange) -> u64 {
        let len_bytes = range.bytes.end.saturating_sub(range.bytes.start);
        self.allocations().reservations.whole_pages(len_bytes).unwrap_or(len_bytes)
    }

    /// Maps memory to pages that have none, and lets devices access it. `mapped` are those that
    /// have memory, also if a call failed.
    fn map_all(
        &self,
        pages: &Pages,
        addresses: &[u64],
        mut devices: impl Iterator<Item = i32>,
        mapped: &mut Vec<(u64, MemoryHandle)>,
    ) -> Result<(), BackendError> {
        let memory = self.take_memory(pages, addresses.len())?;
        for (index, (address, handle)) in addresses.iter().zip(&memory).enumerate() {
            // SAFETY: `begin_commit` found no memory at the page, and this thread holds `mapping`.
            // The memory is new, or was unmapped before it was kept.
            if let Err(error) = unsafe { pages.driver.map(*address, *handle) } {
                memory[index..].iter().for_each(|handle| self.release(pages, *handle));
                return Err(error);
            }
            mapped.push((*address, *handle));
        }
        let Some(first) = addresses.first() else { return Ok(()) };
        let len_bytes = addresses.len() as u64 * pages.page_bytes();
        // SAFETY: the loop mapped memory to these pages, which lie side by side.
        devices.try_for_each(|device| unsafe { pages.driver.allow(*first, len_bytes, device) })
    }

    /// Memory for some pages: what is kept, and new memory. If the driver has no more, what was
    /// kept is kept again.
    fn take_memory(&self, pages: &Pages, count: usize) -> Result<Vec<MemoryHandle>, BackendError> {
        let take = || self.allocations().reservations.take_kept();
        let mut memory: Vec<MemoryHandle> = std::iter::from_fn(take).take(count).collect();
        let kept = memory.len();
        while memory.len() < count {
            match pages.driver.create() {
                Ok(new) => memory.push(new),
                Err(error) => {
                    let new = memory.split_off(kept);
                    new.into_iter().for_each(|handle| self.release(pages, handle));
                    let mut allocations = self.allocations();
                    memory.into_iter().for_each(|it| allocations.reservations.keep_again(it));
                    return Err(error);
                }
            }
        }
        Ok(memory)
    }

    /// Unmaps and releases what a commit that failed has mapped.
    fn cancel_commit(
        &self,
        pages: &Pages,
        range: &PageRange,
        addresses: &[u64],
        mapped: &[(u64, MemoryHandle)],
    ) {
        let mut still_mapped = Vec::new();
        for (address, handle) in mapped {
            // SAFETY: `map_all` mapped the memory, which no work uses: the commit has not returned.
            match unsafe { pages.driver.unmap(*address) } {
                Ok(()) => self.release(pages, *handle),
                Err(_) => still_mapped.push((*address, *handle)),
            }
        }
        let reservation = range.reservation.0;
        self.allocations().reservations.cancel_commit(reservation, addresses, &still_mapped);
    }

    /// Releases memory that is mapped nowhere. What the driver refuses is kept.
    fn release(&self, pages: &Pages, handle: MemoryHandle) {
        // SAFETY: the caller has the only handle, and its memory is mapped nowhere.
        if unsafe { pages.driver.release(handle) }.is_err() {
            self.allocations().reservations.keep_again(handle);
        }
    }

    /// Where the work before a decommit ends, if any is queued.
    pub(crate) fn leaving(&self) -> Option<QueuedAt> {
        self.allocations().reservations.any_leaving()
    }

    /// Ends the use of committed pages, after work that ends at a position. Makes no driver call.
    pub(crate) fn decommit(&self, range: &PageRange, at: QueuedAt) -> Result<(), BackendError> {
        self.pages("decommit")?;
        let decommitted = self.allocations().reservations.decommit(range, at);
        decommitted.map_err(|detail| invalid("decommit", detail))
    }

    /// Ends the use of a reservation, as `decommit`.
    pub(crate) fn free_reservation(
        &self,
        Address(address): Address,
        at: QueuedAt,
    ) -> Result<(), BackendError> {
        let freed = self.allocations().reservations.free(address, at);
        freed.map_err(|detail| invalid("free", detail))
    }

    /// The work before a decommit, or a free, is complete.
    pub(crate) fn mark_unused(&self, Address(address): Address, at: QueuedAt) {
        self.allocations().reservations.mark_drained(address, at);
    }

    /// Unmaps the memory of pages that no work uses any more, and frees addresses of which no page
    /// has memory. What the driver refuses, a later call does.
    pub(crate) fn unmap_unused(&self) {
        let Some(pages) = &self.pages else { return };
        let _mapping = pages.mapping.lock();
        let _relaxed = pages.driver.relaxed();
        let _refused = self.unmap_drained(pages);
    }

    /// As `unmap_unused`, for a thread that holds `mapping`. Returns the first refusal.
    fn unmap_drained(&self, pages: &Pages) -> Result<(), BackendError> {
        let mut outcome = Ok(());
        let drained = self.allocations().reservations.take_drained();
        for page in drained {
            // SAFETY: memory is mapped to the page, all work before its decommit is complete, and
            // only this thread has it now.
            let unmapped = unsafe { pages.driver.unmap(page.address) };
            let mut allocations = self.allocations();
            match unmapped {
                Ok(()) => allocations.reservations.keep(page.handle),
                Err(error) => {
                    allocations.reservations.put_back(page);
                    outcome = outcome.and(Err(error));
                }
            }
        }
        let freed = self.allocations().reservations.take_freed();
        for (address, len_bytes) in freed {
            let whole_bytes = len_bytes.next_multiple_of(pages.page_bytes());
            // SAFETY: `reserve` returned the address for so many bytes, it was freed once, and no
            // page has memory (`take_freed`).
            if unsafe { pages.driver.free(address, whole_bytes) }.is_err() {
                self.allocations().reservations.put_back_freed(address, len_bytes);
            }
        }
        outcome
    }

    /// Releases the memory that is kept for the next commit.
    pub(super) fn trim_pages(&self) {
        let Some(pages) = &self.pages else { return };
        let _mapping = pages.mapping.lock();
        let _relaxed = pages.driver.relaxed();
        let _refused = self.unmap_drained(pages);
        let take = || self.allocations().reservations.take_kept();
        let kept: Vec<MemoryHandle> = std::iter::from_fn(take).collect();
        kept.into_iter().for_each(|handle| self.release(pages, handle));
    }

    /// Lets another device access the memory of all pages, those committed later too.
    pub(super) fn share_pages_with(&self, peer: i32) -> Result<(), BackendError> {
        let Some(pages) = &self.pages else { return Ok(()) };
        let mut peers = pages.mapping.lock();
        let _relaxed = pages.driver.relaxed();
        let runs = self.allocations().reservations.committed_runs();
        for run in runs {
            // SAFETY: memory is mapped to the pages, and only a thread that holds `mapping` unmaps.
            unsafe { pages.driver.allow(run.start, run.end - run.start, peer) }?;
        }
        peers.push(peer);
        Ok(())
    }
}
