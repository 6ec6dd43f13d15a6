//! The elements of an `Out` that an earlier launch did not write, until something writes them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::argument::ArrayOfLaunch;
use resident_backend::Address;
use resident_backend::failure::{LeftOut as LeftOutElement, LeftOutBy};

/// A launch that leaves out more runs of one argument records none of them.
const RUNS_MAX: usize = 1 << 14;

/// An `Out` of which a launch left out elements.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Output {
    pub(super) launch: LeftOutBy,
    /// The array's name; empty if it is unknown.
    array_name: String,
    array: ArrayOfLaunch,
}

/// Bytes that a launch left out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct LeftOutBytes {
    pub(super) range: Range<usize>,
    pub(super) output: Arc<Output>,
}

/// A run of bytes that a launch left out, or a copy of it.
#[derive(Clone, Debug)]
struct Run {
    end: usize,
    /// What the run's addresses are above those of the launch, if it is a copy.
    moved_by: usize,
    output: Arc<Output>,
}

/// The bytes of one device's memory that launches left out, by the addresses of the host. Whoever
/// writes, frees or lends the memory without the checker says so: [`forget`](Self::forget).
#[derive(Debug, Default)]
pub struct LeftOut {
    /// Disjoint runs, by their start.
    runs: Mutex<BTreeMap<usize, Run>>,
}

impl LeftOut {
    /// Something else has written these bytes, or may write them.
    pub fn forget(&self, range: Range<usize>) {
        remove(&mut self.lock(), &range);
    }

    /// Whether a launch left out any of these bytes.
    #[must_use]
    pub fn is_any_in(&self, range: &Range<usize>) -> bool {
        let runs = self.lock();
        let last = runs.range(..range.end).next_back();
        last.is_some_and(|(_, run)| run.end > range.start)
    }

    /// The first element of which all bytes were left out, and some are in the range; and the
    /// address of the first of these. Other bytes may be padding.
    #[must_use]
    pub fn first_in(&self, range: &Range<usize>) -> Option<(usize, LeftOutElement)> {
        self.over(range).into_iter().find_map(|(start, Run { end, moved_by, output })| {
            let of_launch = |range: &Range<usize>| {
                range.start.wrapping_sub(moved_by)..range.end.wrapping_sub(moved_by)
            };
            let Output { launch, array_name, array } = &*output;
            let first = array.first_of_element(&of_launch(range), &of_launch(&(start..end)))?;
            let element = LeftOutElement {
                address: Address(0),
                index: format!("{:?}", array.index_of(first).unwrap_or_default()),
                array: array_name.clone(),
                launch: launch.clone(),
            };
            Some((first.wrapping_add(moved_by), element))
        })
    }

    /// A copy passes on what was left out. The destination is disjoint from the source.
    pub fn copy(&self, source: &Range<usize>, destination: usize) {
        let moved = destination.wrapping_sub(source.start);
        for (start, run) in self.over(source) {
            let (start, end) = (start.max(source.start), run.end.min(source.end));
            let moved_by = run.moved_by.wrapping_add(moved);
            let copy = Run { end: end.wrapping_add(moved), moved_by, output: run.output };
            self.lock().insert(start.wrapping_add(moved), copy);
        }
    }

    /// A launch has left out these bytes of an array.
    pub(super) fn add(
        &self,
        runs: &[Range<usize>],
        launch: LeftOutBy,
        array_name: String,
        array: &ArrayOfLaunch,
    ) {
        if runs.len() > RUNS_MAX || runs.is_empty() {
            return;
        }
        let output = Arc::new(Output { launch, array_name, array: array.clone() });
        let mut known = self.lock();
        for run in runs {
            remove(&mut known, run);
            let left_out = Run { end: run.end, moved_by: 0, output: Arc::clone(&output) };
            known.insert(run.start, left_out);
        }
    }

    /// The bytes of a range that launches left out, in the order of their addresses.
    pub(super) fn within(&self, range: &Range<usize>) -> Vec<LeftOutBytes> {
        let clipped = |(start, run): (usize, Run)| LeftOutBytes {
            range: range.start.max(start)..range.end.min(run.end),
            output: run.output,
        };
        self.over(range).into_iter().map(clipped).collect()
    }

    /// The runs that reach into a range, in the order of their addresses.
    fn over(&self, range: &Range<usize>) -> Vec<(usize, Run)> {
        let runs = self.lock();
        let before = runs.range(..range.end).rev().take_while(|(_, run)| run.end > range.start);
        let mut found: Vec<(usize, Run)> =
            before.map(|(start, run)| (*start, run.clone())).collect();
        found.reverse();
        found
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, Run>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn remove(runs: &mut BTreeMap<usize, Run>, range: &Range<usize>) {
    while let Some((&start, run)) = runs.range(..range.end).next_back() {
        if run.end <= range.start {
            return;
        }
        let Some(run) = runs.remove(&start) else { return };
        if run.end > range.end {
            runs.insert(range.end, run.clone());
        }
        if start < range.start {
            runs.insert(start, Run { end: range.start, ..run });
        }
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "lists of one range")]
mod tests {
    use std::ops::Range;

    use super::{ArrayOfLaunch, LeftOut, LeftOutBy};
    use resident_core::Access;

    /// An array of elements of 4 bytes from address 8 to 96 was left out at these.
    fn left_out(runs: &[Range<usize>]) -> LeftOut {
        let left_out = LeftOut::default();
        let array = ArrayOfLaunch::new(0, Access::Overwrite, 4, 8, vec![22], vec![1]);
        let launch = LeftOutBy { kernel: "fill".into(), site: None };
        left_out.add(runs, launch, "x".to_owned(), &array);
        left_out
    }

    fn ranges(left_out: &LeftOut, range: Range<usize>) -> Vec<Range<usize>> {
        left_out.within(&range).into_iter().map(|one| one.range).collect()
    }

    #[test]
    fn bytes_are_left_out_until_they_are_written() {
        let left_out = left_out(&[10..20, 30..40]);
        left_out.forget(14..16);
        left_out.forget(35..99);
        assert_eq!(ranges(&left_out, 12..50), [12..14, 16..20, 30..35]);
        assert!(left_out.is_any_in(&(0..11)) && !left_out.is_any_in(&(14..16)));
        left_out.forget(0..100);
        assert_eq!(left_out.within(&(0..100)), []);
    }

    #[test]
    fn a_read_finds_the_first_element_that_was_left_out_as_a_whole() {
        let left_out = left_out(&[14..22, 29..40]);
        let first = |range: Range<usize>| {
            left_out.first_in(&range).map(|(address, element)| (address, element.index))
        };
        assert_eq!(first(8..96), Some((16, "[2]".to_owned())));
        assert_eq!(first(18..96), Some((18, "[2]".to_owned())));
        assert_eq!(first(20..96), Some((32, "[6]".to_owned())));
        assert_eq!(first(20..32), None, "the rest of an element may be padding");
        assert_eq!(first(40..96), None);
    }

    #[test]
    fn a_copy_passes_on_what_was_left_out() {
        let left_out = left_out(&[16..24]);
        left_out.copy(&(20..28), 201);
        assert_eq!(ranges(&left_out, 100..300), [201..205]);
        let (address, element) = left_out.first_in(&(200..300)).expect("it was left out");
        assert_eq!((address, &*element.index, &*element.array), (201, "[3]", "x"));
        left_out.copy(&(200..210), 20);
        assert_eq!(left_out.first_in(&(21..22)).map(|found| found.1.index).as_deref(), Some("[3]"));
    }
}
