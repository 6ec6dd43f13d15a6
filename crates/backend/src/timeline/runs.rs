//! When devices ran operations.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

/// One operation that a device has run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// The stream's number in the process.
    pub stream_id: u64,
    pub position: u64,
    pub started_ns: u64,
    pub finished_ns: u64,
}

/// Runs, which are found by stream and position. A stream runs its operations in order, so they are
/// added in the order of their positions, but for few.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    by_stream: BTreeMap<u64, VecDeque<Run>>,
}

impl Runs {
    pub(super) const fn new() -> Self {
        Self { by_stream: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, run: Run) {
        let runs = self.by_stream.entry(run.stream_id).or_default();
        match runs.back() {
            Some(last) if last.position >= run.position => {
                let index = runs.partition_point(|known| known.position < run.position);
                runs.insert(index, run);
            }
            _ => runs.push_back(run),
        }
    }

    /// Removes the run of a stream that has the least position.
    pub(super) fn remove_first(&mut self, stream_id: u64) {
        if let Some(runs) = self.by_stream.get_mut(&stream_id) {
            runs.pop_front();
            if runs.is_empty() {
                self.by_stream.remove(&stream_id);
            }
        }
    }

    /// Those from the first on that finished at this time or later.
    pub(super) fn since(&self, time_ns: u64) -> Self {
        let later = |runs: &VecDeque<Run>| -> VecDeque<Run> {
            let first = runs.partition_point(|run| run.finished_ns < time_ns);
            runs.range(first..).copied().collect()
        };
        let by_stream = self.by_stream.iter().map(|(stream_id, runs)| (*stream_id, later(runs)));
        Self { by_stream: by_stream.collect() }
    }

    /// Those of a stream whose positions are in a range.
    pub(super) fn copy_range(&self, stream_id: u64, positions: RangeInclusive<u64>, to: &mut Self) {
        let Some(runs) = self.by_stream.get(&stream_id) else { return };
        let begin = runs.partition_point(|run| run.position < *positions.start());
        let end = runs.partition_point(|run| run.position <= *positions.end());
        to.by_stream.insert(stream_id, runs.range(begin..end).copied().collect());
    }

    /// When the device began an operation and finished it, if that is known.
    #[must_use]
    pub fn get(&self, stream_id: u64, position: u64) -> Option<(u64, u64)> {
        let runs = self.by_stream.get(&stream_id)?;
        // Most streams have a run at every position.
        let distance = position.checked_sub(runs.front()?.position)?;
        let guess = runs.get(usize::try_from(distance).ok()?);
        let run = match guess {
            Some(run) if run.position == position => run,
            _ => {
                let index = runs.partition_point(|run| run.position < position);
                runs.get(index).filter(|run| run.position == position)?
            }
        };
        Some((run.started_ns, run.finished_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::{Run, Runs};

    fn runs(positions: impl IntoIterator<Item = u64>) -> Runs {
        let mut runs = Runs::new();
        for position in positions {
            let (started_ns, finished_ns) = (10 * position, 10 * position + 5);
            runs.add(Run { stream_id: 1, position, started_ns, finished_ns });
        }
        runs
    }

    #[test]
    fn runs_are_found_whatever_positions_are_missing_or_late() {
        let all = runs([3, 4, 7, 8, 6, 20, 19]);
        for position in 0..30 {
            let expected = [3, 4, 6, 7, 8, 19, 20].contains(&position);
            let found = all.get(1, position);
            assert_eq!(found, expected.then_some((10 * position, 10 * position + 5)));
            assert_eq!(all.get(2, position), None);
        }
    }

    #[test]
    fn parts_have_what_was_asked_for() {
        let all = runs(1..=100);
        let later = all.since(505);
        assert_eq!((later.get(1, 49), later.get(1, 50)), (None, Some((500, 505))));
        let mut part = Runs::new();
        all.copy_range(1, 20..=30, &mut part);
        let has = |position| part.get(1, position).is_some();
        assert_eq!([19, 20, 30, 31].map(has), [false, true, true, false]);
        let mut fewer = all;
        (0..100).for_each(|_| fewer.remove_first(1));
        assert!(fewer.by_stream.is_empty());
    }
}
