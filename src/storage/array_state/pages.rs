//! Memory for parts of an array's copy on a device: addresses that are reserved for the whole, of
//! which pages have memory. Elements that are valid there, or in use, have memory, so that only a
//! call that overwrites has to look at the pages.

use std::ops::Range;
use std::slice;

use smallvec::{SmallVec, smallvec};

use super::{ArrayState, DeviceCopy, PageRuns, Reservation};
use resident_backend::Address;
use resident_backend::call_site::CallSite;
use resident_core::Access;
use resident_core::coherence::{Location, LossId, Region};
use resident_core::layout::{MemoryOrder, Selection};
use resident_core::ordering::{Mark, UseEnd};

/// Pages of which either something uses all or nothing uses any, and those that come after them.
#[derive(Default)]
pub(crate) struct FirstPages {
    pub(crate) pages: PageRuns,
    pub(crate) is_used: bool,
    pub(crate) rest: PageRuns,
}

/// What uses pages of a copy.
struct PagesInUse<'s> {
    /// The elements that are pinned, being copied, or needed; `None` if these are all.
    kept: Option<SmallVec<[&'s Selection; 4]>>,
    has_guards: bool,
}

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
        let all = |reserved: &Reservation| 0..reserved.page_count();
        self.reserved.iter().flat_map(move |it| self.page_runs_in(it, all(it)))
    }

    /// As [`page_runs`](Self::page_runs), of these pages.
    fn page_runs_in(
        &self,
        reserved: &Reservation,
        pages: Range<usize>,
    ) -> impl Iterator<Item = (Range<usize>, u64)> {
        reserved.table.runs(pages).map(|(run, last_use)| (run, last_use.max(self.last_use)))
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
    pub(crate) fn commit_pages(&mut self, location: Location, runs: &[Range<usize>]) {
        let copy = self.device_copy_mut(location);
        let number = copy.device.number_of_other_use();
        let Some(reserved) = &mut copy.reserved else { return };
        runs.iter().for_each(|pages| reserved.table.commit(pages.clone(), number));
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
        runs: &[Range<usize>],
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
            runs.iter().for_each(|pages| reserved.table.decommit(pages.clone()));
        }
    }

    /// The first of these runs of pages of the copy at `location` that were still used last at
    /// `last_use`: all that something uses (a guard, a pin, a claim, or the call that needs
    /// `except`) up to one that nothing uses, or `pages_max` that nothing uses up to one in use.
    /// They are more if the whole array was last used at one time.
    pub(crate) fn first_pages(
        &mut self,
        memory_order: &MemoryOrder,
        location: Location,
        runs: &[Range<usize>],
        last_use: u64,
        except: Option<&Selection>,
        pages_max: usize,
    ) -> Option<FirstPages> {
        self.close_dropped_reads();
        let copy = self.device_copy(location);
        let reserved = copy.reserved()?;
        let kept = self.kept_parts().map(|kept| kept.chain(except).collect());
        let in_use = PagesInUse { kept, has_guards: copy.uses.has_open() };
        let (mut first, mut left) = (FirstPages::default(), pages_max);
        for (index, run) in runs.iter().enumerate() {
            let same = copy.page_runs_in(reserved, run.clone());
            for (same, _) in same.filter(|(_, number)| *number == last_use) {
                for (mut pages, is_used) in self.by_usage(memory_order, location, same, &in_use) {
                    let is_other = !first.pages.is_empty() && first.is_used != is_used;
                    let takes_all = is_used || pages.len() == reserved.page_count();
                    let pages_max = if takes_all { pages.len() } else { left };
                    let count = if is_other { 0 } else { pages.len().min(pages_max) };
                    if count > 0 {
                        first.pages.push(pages.start..pages.start + count);
                        (first.is_used, left) = (is_used, left.saturating_sub(count));
                    }
                    pages.start += count;
                    if !pages.is_empty() {
                        first.rest.push(pages.start..run.end);
                        first.rest.extend(runs[index + 1..].iter().cloned());
                        return Some(first);
                    }
                }
            }
        }
        (!first.pages.is_empty()).then_some(first)
    }

    /// A run of pages, divided into those that something uses and others.
    fn by_usage(
        &self,
        memory_order: &MemoryOrder,
        location: Location,
        run: Range<usize>,
        in_use: &PagesInUse<'_>,
    ) -> SmallVec<[(Range<usize>, bool); 2]> {
        let (Some(kept), Some(reserved)) = (&in_use.kept, self.device_copy(location).reserved())
        else {
            return smallvec![(run, true)];
        };
        let elements = Selection::Boxes(reserved.elements_of(memory_order, slice::from_ref(&run)));
        let of_run: SmallVec<[&Selection; 4]> =
            kept.iter().copied().filter(|selection| selection.overlaps(&elements)).collect();
        if of_run.is_empty() && !in_use.has_guards {
            return smallvec![(run, false)];
        }
        let mut is_used = vec![false; run.len()];
        for used in of_run.iter().flat_map(|selection| reserved.pages_of(memory_order, selection)) {
            let used = used.start.max(run.start)..used.end.min(run.end);
            used.for_each(|page| is_used[page - run.start] = true);
        }
        if in_use.has_guards {
            for (is_used, page) in is_used.iter_mut().zip(run.clone()) {
                let bytes = reserved.bytes_of(&(page..page + 1));
                *is_used |= self.has_guard_of(location, &memory_order.regions_of_bytes(bytes));
            }
        }
        let mut end = run.start;
        let same = is_used.chunk_by(|one, other| one == other).map(|same| {
            let start = end;
            end += same.len();
            (start..end, same[0])
        });
        same.collect()
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
