//! The bytes of a block that were ever written: a set of ranges.
//!
//! Footprints with more than [`RUNS_MAX`] runs are approximated, so that the check never costs more
//! than the checked work. When such a footprint is written, all bytes between its first and last
//! byte count as written. Poison fills and reads of such a footprint are ignored.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::ops::Range;

use super::overlap;
use resident_backend::Footprint;

/// Footprints with more runs are approximated.
const RUNS_MAX: u64 = 1 << 16;

/// Disjoint ranges that do not touch: start to end.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByteSet(BTreeMap<u64, u64>);

impl ByteSet {
    /// Adds the bytes of a normalised footprint.
    pub(crate) fn insert(&mut self, footprint: &Footprint) {
        if overlap::run_count(footprint) > RUNS_MAX {
            self.insert_range(overlap::bounds(footprint));
        } else {
            for_each_run(footprint, |run| self.insert_range(run));
        }
    }

    /// Removes the bytes of a normalised footprint.
    pub(crate) fn remove(&mut self, footprint: &Footprint) {
        if overlap::run_count(footprint) <= RUNS_MAX {
            for_each_run(footprint, |run| self.remove_range(run));
        }
    }

    /// The first run of bytes of a normalised footprint that is not in the set.
    pub(crate) fn first_missing(&self, footprint: &Footprint) -> Option<Range<u64>> {
        if overlap::run_count(footprint) > RUNS_MAX {
            return None;
        }
        let limits = overlap::bounds(footprint);
        overlap::find_run(footprint, &limits, &mut |run| self.first_missing_in(run))
    }

    /// The first bytes of a range that are not in the set.
    pub(crate) fn first_missing_in(&self, run: Range<u64>) -> Option<Range<u64>> {
        let covered = self.0.range(..=run.start).next_back().map_or(0, |(_, end)| *end);
        let start = covered.max(run.start);
        let end = self.0.range(start..).next().map_or(run.end, |(next, _)| run.end.min(*next));
        (start < run.end).then_some(start..end)
    }

    /// Whether all bytes of a range are in the set.
    pub(crate) fn contains(&self, run: Range<u64>) -> bool {
        self.first_missing_in(run).is_none()
    }

    /// Whether any byte of a range is in the set.
    pub(crate) fn overlaps(&self, run: &Range<u64>) -> bool {
        self.0.range(..run.end).next_back().is_some_and(|(_, end)| *end > run.start)
    }

    pub(crate) fn insert_range(&mut self, run: Range<u64>) {
        let (mut start, mut end) = (run.start, run.end);
        // Ranges that overlap or touch the new one are merged into it, from the last to the first.
        while let Some((&known_start, &known_end)) = self.0.range(..=end).next_back() {
            if known_end < start {
                break;
            }
            self.0.remove(&known_start);
            (start, end) = (start.min(known_start), end.max(known_end));
        }
        self.0.insert(start, end);
    }

    pub(crate) fn remove_range(&mut self, run: Range<u64>) {
        while let Some((&known_start, &known_end)) = self.0.range(..run.end).next_back() {
            if known_end <= run.start {
                break;
            }
            self.0.remove(&known_start);
            if known_end > run.end {
                self.0.insert(run.end, known_end);
            }
            if known_start < run.start {
                self.0.insert(known_start, run.start);
            }
        }
    }
}

fn for_each_run(footprint: &Footprint, mut visit: impl FnMut(Range<u64>)) {
    footprint.for_each_run(&mut |start, len_bytes| visit(start..start + len_bytes));
}
