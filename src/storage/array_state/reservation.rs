//! Addresses that are reserved for all elements of a copy, of which pages have memory.

use std::ops::Range;

use smallvec::SmallVec;

use resident_backend::{Address, PageRange};
use resident_core::coherence::Region;
use resident_core::layout::{Footprint, MemoryOrder, PageTable, Selection};

/// Runs of pages.
pub(crate) type PageRuns = SmallVec<[Range<usize>; 4]>;

/// Addresses for all elements of a copy, and the pages of them that have memory.
#[derive(Debug)]
pub(crate) struct Reservation {
    pub(super) address: Address,
    pub(super) table: PageTable,
}

impl Reservation {
    /// Addresses without memory.
    pub(crate) fn new(address: Address, table: PageTable) -> Self {
        Self { address, table }
    }

    /// These pages, as backends name them.
    pub(crate) fn range(&self, pages: &Range<usize>) -> PageRange {
        PageRange { reservation: self.address, bytes: self.bytes_of(pages) }
    }

    pub(crate) fn bytes_of(&self, pages: &Range<usize>) -> Range<u64> {
        self.table.bytes_of(pages)
    }

    /// The elements of which any byte is in these pages.
    pub(crate) fn elements_of(
        &self,
        memory_order: &MemoryOrder,
        runs: &[Range<usize>],
    ) -> SmallVec<[Region; 1]> {
        memory_order.regions_of_runs(runs.iter().map(|pages| self.bytes_of(pages)))
    }

    pub(crate) fn len_bytes_of(&self, runs: &[Range<usize>]) -> u64 {
        let len_bytes = |bytes: Range<u64>| bytes.end - bytes.start;
        runs.iter().map(|pages| len_bytes(self.bytes_of(pages))).sum()
    }

    pub(crate) fn page_count(&self) -> usize {
        self.table.page_count()
    }

    /// So many pages have this number of bytes, or more.
    pub(crate) fn pages_for(&self, len_bytes: u64) -> usize {
        usize::try_from(len_bytes.div_ceil(self.table.page_bytes())).unwrap_or(usize::MAX)
    }

    /// The pages of these elements that have no memory.
    pub(crate) fn missing(&self, memory_order: &MemoryOrder, selection: &Selection) -> PageRuns {
        self.table.uncommitted(&self.pages_of(memory_order, selection))
    }

    /// Whether any of these elements have memory.
    pub(super) fn has_memory_of(&self, memory_order: &MemoryOrder, selection: &Selection) -> bool {
        let pages = self.pages_of(memory_order, selection);
        let missing = self.table.uncommitted(&pages);
        pages.iter().map(Range::len).sum::<usize>() > missing.iter().map(Range::len).sum()
    }

    pub(crate) fn pages_of(&self, memory_order: &MemoryOrder, selection: &Selection) -> PageRuns {
        pages_of(&self.table, memory_order, selection)
    }

    pub(super) fn use_regions(
        &mut self,
        memory_order: &MemoryOrder,
        regions: &[Region],
        number: u64,
    ) {
        let pages = self.table.pages_of(footprints(memory_order, regions));
        self.table.use_pages(&pages, number);
    }
}

/// The pages of these elements.
pub(crate) fn pages_of(
    table: &PageTable,
    memory_order: &MemoryOrder,
    selection: &Selection,
) -> PageRuns {
    match selection {
        Selection::Whole => std::iter::once(0..table.page_count()).collect(),
        Selection::Boxes(boxes) => table.pages_of(footprints(memory_order, boxes)),
    }
}

fn footprints(memory_order: &MemoryOrder, regions: &[Region]) -> impl Iterator<Item = Footprint> {
    regions.iter().map(|region| memory_order.footprint(region))
}
