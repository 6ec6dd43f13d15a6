//! When devices ran operations.

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

/// One operation that a device has run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// The number of the stream's queue.
    pub queue: u64,
    pub position: u64,
    pub started_ns: u64,
    pub finished_ns: u64,
}

/// Runs, which are found by queue and position. A queue runs its operations in order, so they are
/// added in the order of their positions, but for few.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    by_queue: BTreeMap<u64, VecDeque<Run>>,
}

impl Runs {
    pub(super) const fn new() -> Self {
        Self { by_queue: BTreeMap::new() }
    }

    pub(super) fn add(&mut self, run: Run) {
        let runs = self.by_queue.entry(run.queue).or_default();
        match runs.back() {
            Some(last) if last.position >= run.position => {
                let index = runs.partition_point(|known| known.position < run.position);
                runs.insert(index, run);
            }
            _ => runs.push_back(run),
        }
    }

    /// Removes the run of a queue that has the least position.
    pub(super) fn remove_first(&mut self, queue: u64) {
        if let Some(runs) = self.by_queue.get_mut(&queue) {
            runs.pop_front();
            if runs.is_empty() {
                self.by_queue.remove(&queue);
            }
        }
    }

    /// Those from the first on that finished at this time or later.
    pub(super) fn since(&self, time_ns: u64) -> Self {
        let later = |runs: &VecDeque<Run>| -> VecDeque<Run> {
            let first = runs.partition_point(|run| run.finished_ns < time_ns);
            runs.range(first..).copied().collect()
        };
        let by_queue = self.by_queue.iter().map(|(queue, runs)| (*queue, later(runs)));
        Self { by_queue: by_queue.collect() }
    }

    /// Those of a queue whose positions are in a range.
    pub(super) fn copy_range(&self, queue: u64, positions: RangeInclusive<u64>, to: &mut Self) {
        let Some(runs) = self.by_queue.get(&queue) else { return };
        let begin = runs.partition_point(|run| run.position < *positions.start());
        let end = runs.partition_point(|run| run.position <= *positions.end());
        to.by_queue.insert(queue, runs.range(begin..end).copied().collect());
    }

    /// When the device began an operation and finished it, if that is known.
    #[must_use]
    pub fn get(&self, queue: u64, position: u64) -> Option<(u64, u64)> {
        let runs = self.by_queue.get(&queue)?;
        // Most queues have a run at every position.
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
            runs.add(Run { queue: 1, position, started_ns, finished_ns });
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
        assert!(fewer.by_queue.is_empty());
    }
}
