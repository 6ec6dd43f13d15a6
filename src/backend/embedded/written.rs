//! Which bytes of a block were ever written: a set of ranges. Pure.
//!
//! Footprints of more runs than [`RUNS_MAX`] are taken leniently, so that the check never costs
//! more than the work: what they write counts as written from first byte to last, what they poison
//! as not poisoned, what they read is not looked at.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::ops::Range;

use super::overlap;
use crate::backend::Footprint;

/// Runs of a footprint that are looked at one by one.
const RUNS_MAX: u64 = 1 << 16;

/// Disjoint ranges, none touching the next: start to end.
#[derive(Clone, Debug, Default)]
pub(super) struct ByteSet(BTreeMap<u64, u64>);

impl ByteSet {
    /// Adds the bytes of a normalised footprint.
    pub(super) fn insert(&mut self, footprint: &Footprint) {
        if overlap::run_count(footprint) > RUNS_MAX {
            self.insert_range(overlap::bounds(footprint));
        } else {
            for_each_run(footprint, |run| self.insert_range(run));
        }
    }

    /// Takes the bytes of a normalised footprint out.
    pub(super) fn remove(&mut self, footprint: &Footprint) {
        if overlap::run_count(footprint) <= RUNS_MAX {
            for_each_run(footprint, |run| self.remove_range(run));
        }
    }

    /// The first run of bytes of a normalised footprint that is not in the set.
    pub(super) fn first_missing(&self, footprint: &Footprint) -> Option<Range<u64>> {
        if overlap::run_count(footprint) > RUNS_MAX {
            return None;
        }
        let limits = overlap::bounds(footprint);
        overlap::find_run(
            &footprint.axes,
            footprint.offset_bytes,
            footprint.run_bytes,
            &limits,
            &mut |run| self.missing(run),
        )
    }

    fn missing(&self, run: Range<u64>) -> Option<Range<u64>> {
        let covered = self.0.range(..=run.start).next_back().map_or(0, |(_, end)| *end);
        let start = covered.max(run.start);
        let end = self.0.range(start..).next().map_or(run.end, |(next, _)| run.end.min(*next));
        (start < run.end).then_some(start..end)
    }

    fn insert_range(&mut self, run: Range<u64>) {
        let (mut start, mut end) = (run.start, run.end);
        // Ranges that overlap or touch the new one, from the last to the first.
        while let Some((&known_start, &known_end)) = self.0.range(..=end).next_back() {
            if known_end < start {
                break;
            }
            self.0.remove(&known_start);
            (start, end) = (start.min(known_start), end.max(known_end));
        }
        self.0.insert(start, end);
    }

    fn remove_range(&mut self, run: Range<u64>) {
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
    let limits = overlap::bounds(footprint);
    let nothing: Option<()> = overlap::find_run(
        &footprint.axes,
        footprint.offset_bytes,
        footprint.run_bytes,
        &limits,
        &mut |run| {
            visit(run);
            None
        },
    );
    debug_assert!(nothing.is_none(), "the visit finds nothing");
}
