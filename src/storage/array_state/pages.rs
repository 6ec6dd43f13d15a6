//! Memory for parts of an array's copy on a device: addresses that are reserved for the whole, of
//! which pages have memory. Elements that are valid there, or in use, have memory, so that only a
//! call that overwrites has to look at the pages.

use std::ops::Range;

use super::{ArrayState, DeviceCopy, Reservation};
use resident_backend::Address;
use resident_backend::call_site::CallSite;
use resident_core::Access;
use resident_core::coherence::{Location, LossId, Region};
use resident_core::layout::{MemoryOrder, Selection};
use resident_core::ordering::{Mark, UseEnd};

impl DeviceCopy {
    /// The address of the copy, of which parts may have no memory.
    #[inline]
    pub(crate) fn base(&self) -> Option<Address> {
        self.address().or_else(|| self.reserved.as_ref().map(|reserved| reserved.address))
    }

    /// The address of the copy, if all these elements have memory.
    #[inline]
    pub(crate) fn address_of(
        &self,
        memory_order: &MemoryOrder,
        selection: &Selection,
    ) -> Option<Address> {
        self.address().or_else(|| {
            let reserved = self.reserved.as_ref()?;
            reserved.missing(memory_order, selection).is_empty().then_some(reserved.address)
        })
    }

    /// The addresses, if they are reserved for all elements and have memory page by page.
    pub(crate) fn reserved(&self) -> Option<&Reservation> {
        self.reserved.as_deref()
    }

    /// The bytes of memory that the copy has.
    pub(crate) fn memory_bytes(&self, memory_order: &MemoryOrder) -> u64 {
        match &self.reserved {
            Some(reserved) => reserved.table.committed_bytes(),
            None if self.address().is_some() => memory_order.len_bytes(),
            None => 0,
        }
    }

    /// Whether any element has memory.
    pub(crate) fn has_memory(&self) -> bool {
        match &self.reserved {
            Some(reserved) => reserved.table.committed_bytes() > 0,
            None => self.address().is_some(),
        }
    }

    /// The runs of pages with memory that were used last at the same time, each with the number of
    /// that use.
    pub(crate) fn page_runs(&self) -> impl Iterator<Item = (Range<usize>, u64)> {
        let runs = self.reserved.iter().flat_map(|reserved| reserved.table.runs());
        runs.map(|(pages, last_use)| (pages, last_use.max(self.last_use)))
    }
}

impl ArrayState {
    /// The copy at `location` gets reserved addresses, or gives up those that it has.
    pub(crate) fn set_reservation(&mut self, location: Location, reserved: Option<Reservation>) {
        let copy = self.device_copy_mut(location);
        copy.set_address(None);
        copy.reserved = reserved.map(Box::new);
    }

    /// These pages of the copy at `location` have memory from now on, which counts as used.
    pub(crate) fn commit_pages(&mut self, location: Location, pages: Range<usize>) {
        let copy = self.device_copy_mut(location);
        let number = copy.device.number_of_other_use();
        let Some(reserved) = &mut copy.reserved else { return };
        reserved.table.commit(pages, number);
        let address = reserved.table.is_full().then_some(reserved.address);
        copy.set_address(address);
    }

    /// These pages of the copy at `location`, which have these elements, have no memory any more:
    /// the call at `site` freed it behind all uses, at `freed`. Each of the elements is also valid
    /// elsewhere.
    pub(crate) fn forget_pages(
        &mut self,
        memory_order: &MemoryOrder,
        location: Location,
        pages: Range<usize>,
        regions: &[Region],
        freed: Mark,
        site: CallSite,
    ) {
        let extents = memory_order.extents();
        for region in regions {
            self.record_withdrawn(memory_order, location, region, site);
            // The number is never looked up, because no element is lost.
            self.coherence.invalidate(extents, location, region, LossId(u32::MAX));
            // Behind it the addresses are freed.
            self.record_use(location, extents, Some(region), Access::Overwrite, freed);
        }
        let copy = self.device_copy_mut(location);
        copy.set_address(None);
        if let Some(reserved) = &mut copy.reserved {
            reserved.table.decommit(pages);
        }
    }

    /// The first of these pages of the copy at `location` that were still used last at `last_use`,
    /// and whether something uses them: a guard, a pin, a claim, or the call that needs `except`.
    pub(crate) fn first_pages(
        &mut self,
        memory_order: &MemoryOrder,
        location: Location,
        pages: &Range<usize>,
        last_use: u64,
        except: Option<&Selection>,
    ) -> Option<(Range<usize>, bool)> {
        self.close_dropped_reads();
        let copy = self.device_copy(location);
        let reserved = copy.reserved()?;
        let common = |run: Range<usize>| run.start.max(pages.start)..run.end.min(pages.end);
        let same = copy.page_runs().filter(|(_, number)| *number == last_use);
        let run = same.map(|(run, _)| common(run)).find(|run| !run.is_empty())?;
        let Some(kept) = self.kept_parts() else { return Some((run, true)) };
        let mut is_used = vec![false; run.len()];
        for used in kept.chain(except).flat_map(|it| reserved.pages_of(memory_order, it)) {
            let used = used.start.max(run.start)..used.end.min(run.end);
            used.for_each(|page| is_used[page - run.start] = true);
        }
        if copy.uses.has_open() {
            for (is_used, page) in is_used.iter_mut().zip(run.clone()) {
                let bytes = reserved.bytes_of(&(page..page + 1));
                *is_used |= self.has_guard_of(location, &memory_order.regions_of_bytes(bytes));
            }
        }
        let same = is_used.chunk_by(|one, other| one == other).next()?;
        Some((run.start..run.start + same.len(), same[0]))
    }

    /// Notes that these elements of the copy at a location were used, with this number of the use.
    pub(crate) fn set_last_use(
        &mut self,
        memory_order: &MemoryOrder,
        location: Location,
        selection: &Selection,
        number: u64,
    ) {
        let copy = self.device_copy_mut(location);
        match (&mut copy.reserved, selection) {
            (Some(reserved), Selection::Boxes(boxes)) => {
                reserved.use_regions(memory_order, boxes, number);
            }
            _ => copy.last_use = number,
        }
    }

    /// Notes a use of these elements of the copy at a location that is no launch. Those of the
    /// host's copy have no number.
    pub(crate) fn number_use_of(
        &mut self,
        memory_order: &MemoryOrder,
        location: Location,
        regions: &[Region],
    ) {
        if location == Location::HOST {
            return;
        }
        let copy = self.device_copy_mut(location);
        let number = copy.device.number_of_other_use();
        match &mut copy.reserved {
            Some(reserved) => reserved.use_regions(memory_order, regions, number),
            None => copy.last_use = number,
        }
    }

    /// Pins all copies, as [`pin`](Self::pin), for a use of these elements only: of copies whose
    /// memory is committed by pages, other pages may be evicted.
    #[inline]
    pub(crate) fn pin_elements(&mut self, selection: &Selection) {
        self.pin();
        if let Selection::Boxes(_) = selection
            && self.device_copies.iter().any(|copy| copy.reserved.is_some())
        {
            self.cold().pinned_parts.push(selection.clone());
        }
    }

    /// Ends a pin of [`pin_elements`](Self::pin_elements). If the same elements are pinned several
    /// times, it does not matter which of these pins ends.
    #[inline]
    pub(crate) fn unpin_elements(&mut self, selection: &Selection) {
        self.unpin();
        let Some(cold) = &mut self.cold else { return };
        if let Some(index) = cold.pinned_parts.iter().position(|pinned| pinned == selection) {
            cold.pinned_parts.swap_remove(index);
        }
    }

    /// The elements that are pinned or being copied; `None` if these are all.
    fn kept_parts(&self) -> Option<impl Iterator<Item = &Selection>> {
        let pinned = self.cold.iter().flat_map(|cold| &cold.pinned_parts);
        let is_part = self.pins as usize == pinned.clone().count();
        is_part.then(|| pinned.chain(self.claims().map(|(_, selection)| selection)))
    }

    /// Whether a guard uses any of these elements of the copy at `location`.
    fn has_guard_of(&self, location: Location, regions: &[Region]) -> bool {
        let is_open = |mark: Mark| mark.end == UseEnd::OPEN;
        let mut has_open = false;
        for region in regions {
            let visit = |mark| has_open |= is_open(mark);
            self.uses(location).visit_conflicts(Some(region), Access::Overwrite, is_open, visit);
        }
        has_open
    }
}
