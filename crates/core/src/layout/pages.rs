//! The pages of memory that is reserved as a whole and committed by parts; and the elements that
//! lie in a range of bytes.

use std::ops::Range;

use smallvec::SmallVec;

use super::{Footprint, MemoryOrder, for_each_start};
use crate::coherence::{Region, Span};

/// The most pages of a table: few enough to walk all of them, and enough for a tile of columns of
/// 256 MiB in pages of 4 KiB.
const PAGES_MAX: u64 = 1 << 16;

/// Runs of pages.
type PageRuns = SmallVec<[Range<usize>; 4]>;

/// The pages of a copy's reserved memory: which have memory, and the number of the last use of
/// each.
#[derive(Debug)]
pub struct PageTable {
    len_bytes: u64,
    page_bytes: u64,
    /// `None` for a page without memory.
    last_uses: Box<[Option<u64>]>,
    committed_pages: usize,
}

impl PageTable {
    /// A table in which no page has memory, for `len_bytes` on a device with pages of `unit_bytes`:
    /// at most 65,536 pages, each of one or more whole units.
    pub fn new(len_bytes: u64, unit_bytes: u64) -> Self {
        let unit_bytes = unit_bytes.max(1);
        let units_per_page = len_bytes.div_ceil(unit_bytes).div_ceil(PAGES_MAX).max(1);
        let page_bytes = unit_bytes.saturating_mul(units_per_page);
        let page_count = len_bytes.div_ceil(page_bytes) as usize;
        let last_uses = vec![None; page_count].into();
        Self { len_bytes, page_bytes, last_uses, committed_pages: 0 }
    }

    /// The length of each page but the last, which may be shorter.
    pub fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    pub fn page_count(&self) -> usize {
        self.last_uses.len()
    }

    /// The runs of pages that these footprints touch: ascending, disjoint, and with a gap between
    /// any two. Bytes beyond the memory have no page.
    ///
    /// A footprint takes at most a few steps for each page.
    pub fn pages_of(&self, footprints: impl Iterator<Item = Footprint>) -> PageRuns {
        let mut runs = PageRuns::new();
        for footprint in footprints {
            footprint.for_each_extent(self.page_bytes, &mut |bytes| {
                self.add_pages(&mut runs, &bytes);
            });
        }
        merged(runs)
    }

    /// Adds the pages of these bytes to the last run if they continue it, else as a run.
    fn add_pages(&self, runs: &mut PageRuns, bytes: &Range<u64>) {
        let end_bytes = bytes.end.min(self.len_bytes);
        if bytes.start >= end_bytes {
            return;
        }
        let first = (bytes.start / self.page_bytes) as usize;
        let end = end_bytes.div_ceil(self.page_bytes) as usize;
        match runs.last_mut() {
            Some(last) if (last.start..=last.end).contains(&first) => last.end = last.end.max(end),
            _ => runs.push(first..end),
        }
    }

    /// The bytes of a run of pages. The last page ends where the memory ends.
    pub fn bytes_of(&self, pages: &Range<usize>) -> Range<u64> {
        let offset_bytes =
            |page: usize| (page as u64).saturating_mul(self.page_bytes).min(self.len_bytes);
        offset_bytes(pages.start)..offset_bytes(pages.end)
    }

    /// The runs among these pages that have no memory.
    pub fn uncommitted(&self, pages: &[Range<usize>]) -> PageRuns {
        let mut runs = PageRuns::new();
        for pages in pages {
            let mut first = pages.start;
            for same in self.last_uses[pages.clone()].chunk_by(|a, b| a.is_some() == b.is_some()) {
                let run = first..first + same.len();
                first = run.end;
                if same[0].is_none() {
                    runs.push(run);
                }
            }
        }
        runs
    }

    /// These pages have memory from now on, last used at `number`.
    pub fn commit(&mut self, pages: Range<usize>, number: u64) {
        for last_use in &mut self.last_uses[pages] {
            self.committed_pages += usize::from(last_use.is_none());
            *last_use = Some(number);
        }
    }

    /// These pages have no memory any more.
    pub fn decommit(&mut self, pages: Range<usize>) {
        for last_use in &mut self.last_uses[pages] {
            self.committed_pages -= usize::from(last_use.is_some());
            *last_use = None;
        }
    }

    /// Raises the last use of those of these pages that have memory to `number`.
    pub fn use_pages(&mut self, pages: &[Range<usize>], number: u64) {
        for pages in pages {
            for last_use in self.last_uses[pages.clone()].iter_mut().flatten() {
                *last_use = number.max(*last_use);
            }
        }
    }

    /// Whether all pages have memory.
    pub fn is_full(&self) -> bool {
        self.committed_pages == self.last_uses.len()
    }

    /// The bytes of the pages that have memory.
    pub fn committed_bytes(&self) -> u64 {
        let all_bytes = self.page_count() as u64 * self.page_bytes;
        let has_last = self.last_uses.last().is_some_and(Option::is_some);
        let beyond_bytes = if has_last { all_bytes - self.len_bytes } else { 0 };
        self.committed_pages as u64 * self.page_bytes - beyond_bytes
    }

    /// The runs among these pages that have memory and one last use, with its number, in the order
    /// of the pages.
    pub fn runs(&self, pages: Range<usize>) -> impl Iterator<Item = (Range<usize>, u64)> {
        let mut end = pages.start;
        self.last_uses[pages].chunk_by(|a, b| a == b).filter_map(move |same| {
            let first = end;
            end += same.len();
            same[0].map(|number| (first..first + same.len(), number))
        })
    }
}

impl Footprint {
    /// Calls `visit` with ranges of bytes that touch the same pages of `page_bytes`. Runs with less
    /// than a page between them touch the pages of the range from the first to the last of them. If
    /// axes interleave, as those of no box of an array do, the ranges also contain what lies
    /// between their runs.
    pub fn for_each_extent(&self, page_bytes: u64, visit: &mut impl FnMut(Range<u64>)) {
        let is_empty = self.run_bytes == 0 || self.axes.iter().any(|(count, _)| *count == 0);
        if is_empty {
            return;
        }
        let extent = |count: u64, stride: u64, inner: u64| {
            (count - 1).saturating_mul(stride).saturating_add(inner)
        };
        // The bytes from the start to the end of one repetition, and of what is taken as one run.
        let (mut extent_bytes, mut run_bytes) = (self.run_bytes, self.run_bytes);
        let mut kept = SmallVec::<[(u64, u64, u64); 3]>::new();
        // The axes of a copy need not be in the order of their strides.
        let mut axes = self.axes.clone();
        axes.sort_by_key(|(_, stride)| *stride);
        for (count, stride) in axes.into_iter().filter(|(count, _)| *count > 1) {
            let gap_bytes_min = if kept.is_empty() { page_bytes } else { 0 };
            let is_kept = stride >= extent_bytes.saturating_add(gap_bytes_min);
            extent_bytes = extent(count, stride, extent_bytes);
            if is_kept {
                kept.push((count, stride, 0));
            } else {
                kept.clear();
                run_bytes = extent_bytes;
            }
        }
        kept.reverse();
        for_each_start(&kept, self.offset_bytes, 0, &mut |offset_bytes, _| {
            visit(offset_bytes..offset_bytes.saturating_add(run_bytes));
        });
    }
}

/// The same pages in ascending order, as few runs.
fn merged(mut runs: PageRuns) -> PageRuns {
    runs.sort_unstable_by_key(|run| run.start);
    runs.dedup_by(|next, run| {
        let touches = next.start <= run.end;
        if touches {
            run.end = run.end.max(next.end);
        }
        touches
    });
    runs
}

/// Adds a box. Merges it with those before it if the union is a box.
fn add_merged(regions: &mut SmallVec<[Region; 1]>, mut region: Region) {
    while let Some(union) = regions.last().and_then(|last| last.merged(&region)) {
        regions.pop();
        region = union;
    }
    regions.push(region);
}

impl MemoryOrder {
    /// The elements of which any byte lies in this range, as disjoint boxes in the order of memory:
    /// at most two for each axis.
    pub fn regions_of_bytes(&self, bytes: Range<u64>) -> SmallVec<[Region; 1]> {
        self.regions_of_runs(std::iter::once(bytes))
    }

    /// The elements of which any byte lies in these ranges, which ascend, as disjoint boxes: one if
    /// the ranges are the rows of a box.
    pub fn regions_of_runs(
        &self,
        runs: impl IntoIterator<Item = Range<u64>>,
    ) -> SmallVec<[Region; 1]> {
        let element_bytes = self.byte_axis().len().max(1);
        let (mut regions, mut first, mut of_run) = (SmallVec::new(), 0, SmallVec::new());
        for bytes in runs.into_iter().filter(|bytes| bytes.start < bytes.end) {
            let end = bytes.end.min(self.len_bytes()).div_ceil(element_bytes);
            let elements = first.max(bytes.start / element_bytes)..end;
            first = first.max(end);
            if elements.start < elements.end {
                self.add_regions(&mut of_run, self.whole(), 0, elements);
                of_run.drain(..).for_each(|region| add_merged(&mut regions, region));
            }
        }
        regions
    }

    /// Adds the boxes of these elements, which are counted from the first of `within`: a box of one
    /// index on the axes before `axis` and all indices on the others.
    fn add_regions(
        &self,
        regions: &mut SmallVec<[Region; 1]>,
        within: Region,
        axis: usize,
        elements: Range<u64>,
    ) {
        let Some(faster) = self.element_extents().get(axis + 1..) else {
            return regions.push(within);
        };
        let slice: u64 = faster.iter().product();
        let mut slices = elements.start / slice..elements.end / slice;
        let (skipped, left) = (elements.start % slice, elements.end % slice);
        let single = |index| within.with_span(axis, Span::single(index));
        if slices.is_empty() && slice > 1 {
            return self.add_regions(regions, single(slices.start), axis + 1, skipped..left);
        }
        if skipped > 0 {
            self.add_regions(regions, single(slices.start), axis + 1, skipped..slice);
            slices.start += 1;
        }
        if !slices.is_empty() {
            regions.push(within.with_span(axis, Span::new(slices.start, slices.end, 1)));
        }
        if left > 0 {
            self.add_regions(regions, single(slices.end), axis + 1, 0..left);
        }
    }
}

#[cfg(test)]
mod tests;
