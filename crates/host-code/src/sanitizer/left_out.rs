//! The elements of an `Out` that an earlier launch did not write, until something writes them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A launch that leaves out more runs of one argument records none of them.
const RUNS_MAX: usize = 1 << 14;

/// The kernel whose launch left out these bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct LeftOutBytes {
    pub(super) range: Range<usize>,
    pub(super) kernel: Arc<str>,
}

/// The bytes of one device's memory that launches left out, by the addresses of the host. Whoever
/// writes, frees or lends the memory without the checker says so: [`forget`](Self::forget).
#[derive(Debug, Default)]
pub struct LeftOut {
    /// Disjoint ranges, by their start: the end, and the kernel.
    ranges: Mutex<BTreeMap<usize, (usize, Arc<str>)>>,
}

impl LeftOut {
    /// Something else has written these bytes, or may write them.
    pub fn forget(&self, range: Range<usize>) {
        remove(&mut self.lock(), &range);
    }

    /// Whether a launch left out any of these bytes.
    #[must_use]
    pub fn is_any_in(&self, range: &Range<usize>) -> bool {
        let ranges = self.lock();
        let last = ranges.range(..range.end).next_back();
        last.is_some_and(|(_, (end, _))| *end > range.start)
    }

    /// A launch of a kernel has left out these bytes.
    pub(super) fn add(&self, runs: &[Range<usize>], kernel: &Arc<str>) {
        if runs.len() > RUNS_MAX {
            return;
        }
        let mut ranges = self.lock();
        for run in runs {
            remove(&mut ranges, run);
            ranges.insert(run.start, (run.end, Arc::clone(kernel)));
        }
    }

    /// The bytes of a range that launches left out, in the order of their addresses.
    pub(super) fn within(&self, range: &Range<usize>) -> Vec<LeftOutBytes> {
        let ranges = self.lock();
        let before = ranges.range(..range.end).rev().take_while(|(_, (end, _))| *end > range.start);
        let mut found: Vec<LeftOutBytes> = before
            .map(|(start, (end, kernel))| LeftOutBytes {
                range: range.start.max(*start)..range.end.min(*end),
                kernel: Arc::clone(kernel),
            })
            .collect();
        found.reverse();
        found
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, (usize, Arc<str>)>> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn remove(ranges: &mut BTreeMap<usize, (usize, Arc<str>)>, range: &Range<usize>) {
    while let Some((&start, (end, _))) = ranges.range(..range.end).next_back() {
        if *end <= range.start {
            return;
        }
        let Some((end, kernel)) = ranges.remove(&start) else { return };
        if end > range.end {
            ranges.insert(range.end, (end, Arc::clone(&kernel)));
        }
        if start < range.start {
            ranges.insert(start, (range.start, kernel));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LeftOut;

    #[test]
    fn bytes_are_left_out_until_they_are_written() {
        let left_out = LeftOut::default();
        left_out.add(&[10..20, 30..40], &"fill".into());
        left_out.forget(14..16);
        left_out.forget(35..99);
        let found: Vec<_> = left_out.within(&(12..50)).into_iter().map(|one| one.range).collect();
        assert_eq!(found, [12..14, 16..20, 30..35]);
        assert!(left_out.is_any_in(&(0..11)) && !left_out.is_any_in(&(14..16)));
        left_out.forget(0..100);
        assert_eq!(left_out.within(&(0..100)), []);
    }
}
