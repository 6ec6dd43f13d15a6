//! The bytes of a box of elements, as runs (ranges of bytes) of one length, repeated along axes.

use std::cmp::Reverse;

use smallvec::SmallVec;

use super::strided::below_first;

/// Bytes of one allocation: `run_bytes` bytes at `offset_bytes`, repeated along `axes` (count,
/// stride in bytes), slowest first. No two repetitions overlap. Strides are positive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Footprint {
    pub(crate) offset_bytes: u64,
    pub(crate) run_bytes: u64,
    pub(crate) axes: SmallVec<[(u64, u64); 3]>,
}

impl Footprint {
    /// One run.
    pub(crate) fn run(offset_bytes: u64, run_bytes: u64) -> Self {
        Self { offset_bytes, run_bytes, axes: SmallVec::new() }
    }

    /// No bytes.
    pub(crate) fn empty() -> Self {
        Self::run(0, 0)
    }

    /// The bytes of a view whose element with index 0, 0, ... lies at `first_bytes`. Strides are in
    /// elements; each is an `i64` stored in a `u64`. Numbers above 64 bits saturate.
    pub(crate) fn of_view(
        first_bytes: u64,
        element_bytes: u64,
        shape: &[u64],
        strides: &[u64],
    ) -> Self {
        if shape.contains(&0) {
            return Self::empty();
        }
        let view = || shape.iter().zip(strides).map(|(count, stride)| (*count, *stride as i64));
        let mut axes: SmallVec<[(u64, u64); 3]> = view()
            .filter(|(count, _)| *count > 1)
            .map(|(count, stride)| (count, stride.unsigned_abs().saturating_mul(element_bytes)))
            .collect();
        axes.sort_by_key(|(_, stride_bytes)| Reverse(*stride_bytes));
        let below_bytes = below_first(view()).saturating_mul(element_bytes);
        let offset_bytes = first_bytes.saturating_sub(below_bytes);
        Self { offset_bytes, run_bytes: element_bytes, axes }.merged()
    }

    /// The same bytes, after merging those of the fastest axes that have no gaps into the run.
    pub(crate) fn merged(mut self) -> Self {
        while self.axes.last().is_some_and(|(_, stride)| *stride == self.run_bytes) {
            let (count, _) = self.axes.pop().unwrap_or((1, 0));
            self.run_bytes = self.run_bytes.saturating_mul(count);
        }
        self
    }

    /// The number of bytes, saturating.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.axes.iter().fold(self.run_bytes, |bytes, (count, _)| bytes.saturating_mul(*count))
    }

    /// The offset one past the last byte; 0 if there is no byte; `None` if the offset exceeds 64
    /// bits.
    pub(crate) fn end_bytes(&self) -> Option<u64> {
        end_bytes(self.offset_bytes, self.run_bytes, self.axes.iter().copied())
    }
}

/// The offset one past the last byte of runs that start at `offset_bytes`; 0 if there is no byte;
/// `None` if the offset exceeds 64 bits.
pub(super) fn end_bytes(
    offset_bytes: u64,
    run_bytes: u64,
    axes: impl Iterator<Item = (u64, u64)>,
) -> Option<u64> {
    let mut end = offset_bytes.checked_add(run_bytes)?;
    let mut is_empty = run_bytes == 0;
    for (count, stride) in axes {
        match count.checked_sub(1) {
            Some(steps) => end = end.checked_add(steps.checked_mul(stride)?)?,
            None => is_empty = true,
        }
    }
    Some(if is_empty { 0 } else { end })
}
