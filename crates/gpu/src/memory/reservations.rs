//! The reserved addresses of a device, and which of their pages have memory. Only data: it makes
//! no driver call.

use std::collections::BTreeMap;
use std::ops::Range;

use super::page_driver::MemoryHandle;
use resident_backend::imports::{AddressRange, InUse};
use resident_backend::{PageRange, Position, StreamId};

/// Where the work before a free or a decommit ends: a stream, and a position in it.
pub(super) type QueuedAt = (StreamId, Position);

/// All reservations of a device.
#[derive(Debug)]
pub(super) struct Reservations {
    page_bytes: u64,
    by_address: BTreeMap<u64, Reservation>,
    /// Memory that is mapped nowhere, kept for the next commit.
    kept: Vec<MemoryHandle>,
    /// The bytes of pages that are committed.
    committed_bytes: u64,
    /// The bytes of other memory: kept, or mapped to pages that work before a decommit uses.
    pooled_bytes: u64,
}

#[derive(Debug)]
struct Reservation {
    /// As requested.
    len_bytes: u64,
    /// The pages with memory, by address.
    pages: BTreeMap<u64, Page>,
    /// Whether other code was handed the memory, so that it may come back.
    is_lent: bool,
    /// How far a free has come.
    freed: Freed,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Freed {
    No,
    Queued(QueuedAt),
    /// The work before the free is complete.
    Drained,
}

/// A page with memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Page {
    /// A thread is mapping its memory.
    Mapping,
    Committed(MemoryHandle),
    /// Its decommit is queued.
    Leaving(MemoryHandle, QueuedAt),
    /// The work before its decommit is complete.
    Drained(MemoryHandle),
}

/// A page whose memory can be unmapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct DrainedPage {
    pub(super) reservation: u64,
    pub(super) address: u64,
    pub(super) handle: MemoryHandle,
}

impl Reservations {
    pub(super) fn new(page_bytes: u64) -> Self {
        let (by_address, kept) = (BTreeMap::new(), Vec::new());
        Self { page_bytes, by_address, kept, committed_bytes: 0, pooled_bytes: 0 }
    }

    pub(super) fn committed_bytes(&self) -> u64 {
        self.committed_bytes
    }

    pub(super) fn pooled_bytes(&self) -> u64 {
        self.pooled_bytes
    }

    /// The bytes of memory that is mapped nowhere.
    pub(super) fn kept_bytes(&self) -> u64 {
        self.page_bytes * self.kept.len() as u64
    }

    /// The number of bytes for which addresses are reserved.
    pub(super) fn whole_pages(&self, len_bytes: u64) -> Option<u64> {
        len_bytes.checked_next_multiple_of(self.page_bytes)
    }

    pub(super) fn insert(&mut self, address: u64, len_bytes: u64) {
        let (pages, is_lent, freed) = (BTreeMap::new(), false, Freed::No);
        self.by_address.insert(address, Reservation { len_bytes, pages, is_lent, freed });
    }

    /// Whether a reservation that is not freed starts at an address.
    pub(super) fn contains(&self, address: u64) -> bool {
        self.by_address.get(&address).is_some_and(|known| known.freed == Freed::No)
    }

    /// Other code has been handed the memory. Returns whether a reservation starts at the address.
    pub(super) fn mark_lent(&mut self, address: u64) -> bool {
        let found = self.by_address.get_mut(&address);
        found.map(|reservation| reservation.is_lent = true).is_some()
    }

    /// What arrays use: the addresses, whether they have memory or not.
    pub(super) fn in_use(&self) -> impl Iterator<Item = InUse> {
        let live = self.by_address.iter().filter(|(_, known)| known.freed == Freed::No);
        live.map(|(start, reservation)| InUse {
            range: AddressRange::new(*start, reservation.len_bytes),
            is_lent: reservation.is_lent,
        })
    }

    /// Where the work before the decommit of one of these pages ends, if any is queued.
    pub(super) fn leaving(&self, pages: &PageRange) -> Result<Option<QueuedAt>, String> {
        let (reservation, addresses) = self.find(pages)?;
        let leaving = reservation.pages.range(addresses).filter_map(|(_, page)| match page {
            Page::Leaving(_, at) => Some(*at),
            _ => None,
        });
        Ok(leaving.max_by_key(|(_, position)| *position))
    }

    /// Where the work before a queued decommit or free ends, if there is one.
    pub(super) fn any_leaving(&self) -> Option<QueuedAt> {
        let mut pages = self.by_address.values().flat_map(|known| known.pages.values());
        pages.find_map(|page| match page {
            Page::Leaving(_, at) => Some(*at),
            _ => None,
        })
    }

    /// The addresses of pages that get memory now, which none of them has. The caller maps it, and
    /// ends with `end_commit` or `cancel_commit`.
    pub(super) fn begin_commit(&mut self, pages: &PageRange) -> Result<Vec<u64>, String> {
        let page_bytes = self.page_bytes;
        let (reservation, addresses) = self.find_mut(pages)?;
        if let Some((address, _)) = reservation.pages.range(addresses.clone()).next() {
            return Err(format!("the page at {address:#x} has memory already"));
        }
        let addresses: Vec<u64> = addresses.step_by(page_bytes as usize).collect();
        reservation.pages.extend(addresses.iter().map(|address| (*address, Page::Mapping)));
        self.committed_bytes += page_bytes * addresses.len() as u64;
        Ok(addresses)
    }

    /// The pages have this memory.
    pub(super) fn end_commit(&mut self, reservation: u64, mapped: &[(u64, MemoryHandle)]) {
        self.change(reservation, mapped, Page::Committed);
    }

    /// The pages have no memory, except those of which the driver refused to unmap it.
    pub(super) fn cancel_commit(
        &mut self,
        reservation: u64,
        addresses: &[u64],
        still_mapped: &[(u64, MemoryHandle)],
    ) {
        if let Some(found) = self.by_address.get_mut(&reservation) {
            found.pages.retain(|address, _| !addresses.contains(address));
        }
        self.committed_bytes -= self.page_bytes * addresses.len() as u64;
        self.pooled_bytes += self.page_bytes * still_mapped.len() as u64;
        self.change(reservation, still_mapped, Page::Drained);
    }

    fn change(
        &mut self,
        reservation: u64,
        pages: &[(u64, MemoryHandle)],
        state: fn(MemoryHandle) -> Page,
    ) {
        if let Some(found) = self.by_address.get_mut(&reservation) {
            found.pages.extend(pages.iter().map(|(address, handle)| (*address, state(*handle))));
        }
    }

    /// Ends the use of pages that are all committed, after work that ends at a position.
    pub(super) fn decommit(&mut self, pages: &PageRange, at: QueuedAt) -> Result<(), String> {
        let page_bytes = self.page_bytes;
        let (reservation, addresses) = self.find_mut(pages)?;
        for address in addresses.clone().step_by(page_bytes as usize) {
            if !matches!(reservation.pages.get(&address), Some(Page::Committed(_))) {
                return Err(format!("the page at {address:#x} is not committed"));
            }
        }
        let len_bytes = leave(reservation.pages.range_mut(addresses), at) * page_bytes;
        self.count_leaving(len_bytes);
        Ok(())
    }

    /// Ends the use of a reservation and of its pages, after work that ends at a position.
    pub(super) fn free(&mut self, address: u64, at: QueuedAt) -> Result<(), String> {
        let live = self.by_address.get_mut(&address).filter(|known| known.freed == Freed::No);
        let reservation = live.ok_or_else(|| unknown(address))?;
        if reservation.pages.values().any(|page| *page == Page::Mapping) {
            return Err(format!("memory is being committed to the reservation at {address:#x}"));
        }
        reservation.freed = Freed::Queued(at);
        let len_bytes = leave(reservation.pages.range_mut(..), at) * self.page_bytes;
        self.count_leaving(len_bytes);
        Ok(())
    }

    fn count_leaving(&mut self, len_bytes: u64) {
        self.committed_bytes -= len_bytes;
        self.pooled_bytes += len_bytes;
    }

    /// The work before a free or a decommit that was queued there is complete.
    pub(super) fn mark_drained(&mut self, address: u64, at: QueuedAt) {
        let Some(reservation) = self.by_address.get_mut(&address) else { return };
        if reservation.freed == Freed::Queued(at) {
            reservation.freed = Freed::Drained;
        }
        for page in reservation.pages.values_mut() {
            if let Page::Leaving(handle, after) = *page
                && after == at
            {
                *page = Page::Drained(handle);
            }
        }
    }

    /// Removes the pages whose memory can be unmapped, for the caller to unmap it.
    pub(super) fn take_drained(&mut self) -> Vec<DrainedPage> {
        let mut drained = Vec::new();
        for (&reservation, found) in &mut self.by_address {
            found.pages.retain(|&address, page| {
                let Page::Drained(handle) = *page else { return true };
                drained.push(DrainedPage { reservation, address, handle });
                false
            });
        }
        drained
    }

    /// The driver refused to unmap the memory of a page.
    pub(super) fn put_back(&mut self, page: DrainedPage) {
        self.change(page.reservation, &[(page.address, page.handle)], Page::Drained);
    }

    /// Keeps memory for the next commit. It counts as pooled already.
    pub(super) fn keep(&mut self, handle: MemoryHandle) {
        self.kept.push(handle);
    }

    /// Memory that is kept, for a page that counts as committed.
    pub(super) fn take_kept(&mut self) -> Option<MemoryHandle> {
        let handle = self.kept.pop()?;
        self.pooled_bytes -= self.page_bytes;
        Some(handle)
    }

    /// Keeps memory that did not count as pooled, or of which the driver refused the release.
    pub(super) fn keep_again(&mut self, handle: MemoryHandle) {
        self.kept.push(handle);
        self.pooled_bytes += self.page_bytes;
    }

    /// Removes the freed reservations without memory: addresses and lengths.
    pub(super) fn take_freed(&mut self) -> Vec<(u64, u64)> {
        let mut freed = Vec::new();
        self.by_address.retain(|address, known| {
            let is_over = known.freed == Freed::Drained && known.pages.is_empty();
            if is_over {
                freed.push((*address, known.len_bytes));
            }
            !is_over
        });
        freed
    }

    /// The driver refused to free the addresses of a reservation.
    pub(super) fn put_back_freed(&mut self, address: u64, len_bytes: u64) {
        self.insert(address, len_bytes);
        if let Some(reservation) = self.by_address.get_mut(&address) {
            reservation.freed = Freed::Drained;
        }
    }

    /// The address ranges of pages side by side that are committed.
    pub(super) fn committed_runs(&self) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for reservation in self.by_address.values() {
            let pages = reservation.pages.iter();
            let committed = pages.filter(|(_, page)| matches!(page, Page::Committed(_)));
            for (index, (&address, _)) in committed.enumerate() {
                let end = address + self.page_bytes;
                match runs.last_mut().filter(|last| index > 0 && last.end == address) {
                    Some(last) => last.end = end,
                    None => runs.push(address..end),
                }
            }
        }
        runs
    }

    fn find(&self, pages: &PageRange) -> Result<(&Reservation, Range<u64>), String> {
        let address = pages.reservation.0;
        let live = self.by_address.get(&address).filter(|known| known.freed == Freed::No);
        let reservation = live.ok_or_else(|| unknown(address))?;
        Ok((reservation, self.addresses(pages, reservation.len_bytes)?))
    }

    fn find_mut(&mut self, pages: &PageRange) -> Result<(&mut Reservation, Range<u64>), String> {
        let addresses = self.find(pages)?.1;
        let reservation = self.by_address.get_mut(&pages.reservation.0);
        reservation.map(|found| (found, addresses)).ok_or_else(|| unknown(pages.reservation.0))
    }

    /// The addresses of pages: from a page's start to the end of a page.
    fn addresses(&self, pages: &PageRange, len_bytes: u64) -> Result<Range<u64>, String> {
        let Range { start, end } = pages.bytes;
        let is_end = end == len_bytes || end.is_multiple_of(self.page_bytes);
        if start >= end || end > len_bytes || !start.is_multiple_of(self.page_bytes) || !is_end {
            return Err(format!(
                "bytes {start}..{end} of a reservation of {len_bytes} bytes are not pages of {} \
                 bytes",
                self.page_bytes
            ));
        }
        let first = pages.reservation.0;
        Ok(first + start..first + end.next_multiple_of(self.page_bytes))
    }
}

/// The committed pages are leaving. Returns their number.
fn leave<'a>(pages: impl Iterator<Item = (&'a u64, &'a mut Page)>, at: QueuedAt) -> u64 {
    let mut count = 0;
    for (_, page) in pages {
        if let Page::Committed(handle) = *page {
            *page = Page::Leaving(handle, at);
            count += 1;
        }
    }
    count
}

fn unknown(address: u64) -> String {
    format!("no reservation starts at device address {address:#x}, or it was freed")
}
