//! The bytes of a box of elements, as runs (ranges of bytes) of one length, repeated along axes.

use std::cmp::Reverse;

use smallvec::SmallVec;

use super::MemoryOrder;
use super::strided::below_first;
use crate::coherence::Region;

/// Bytes of one allocation: `run_bytes` bytes at `offset_bytes`, repeated along `axes` (count,
/// stride in bytes), slowest first. No two repetitions overlap. Strides are positive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Footprint {
    pub offset_bytes: u64,
    pub run_bytes: u64,
    pub axes: SmallVec<[(u64, u64); 3]>,
}

impl Footprint {
    /// One run.
    #[inline]
    pub fn run(offset_bytes: u64, run_bytes: u64) -> Self {
        Self { offset_bytes, run_bytes, axes: SmallVec::new() }
    }

    /// No bytes.
    #[inline]
    pub fn empty() -> Self {
        Self::run(0, 0)
    }

    /// The bytes of a view whose element with index 0, 0, ... lies at `first_bytes`. Strides are in
    /// elements; each is an `i64` stored in a `u64`. Numbers above 64 bits saturate.
    pub fn of_view(first_bytes: u64, element_bytes: u64, shape: &[u64], strides: &[u64]) -> Self {
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
    pub fn merged(mut self) -> Self {
        while self.axes.last().is_some_and(|(_, stride)| *stride == self.run_bytes) {
            let (count, _) = self.axes.pop().unwrap_or((1, 0));
            self.run_bytes = self.run_bytes.saturating_mul(count);
        }
        self
    }

    /// The number of bytes, saturating.
    pub fn len_bytes(&self) -> u64 {
        self.axes.iter().fold(self.run_bytes, |bytes, (count, _)| bytes.saturating_mul(*count))
    }

    /// The offset one past the last byte; 0 if there is no byte; `None` if the offset exceeds 64
    /// bits.
    pub fn end_bytes(&self) -> Option<u64> {
        end_bytes(self.offset_bytes, self.run_bytes, self.axes.iter().copied())
    }
}

impl MemoryOrder {
    /// The bytes of a region, in runs as long as memory allows.
    pub fn footprint(&self, region: &Region) -> Footprint {
        let mut stride = u64::from(self.unit_bytes());
        let mut footprint = Footprint::run(0, stride);
        for (axis, extent) in self.extents().iter().enumerate().rev() {
            let span = region.span(axis);
            footprint.offset_bytes += span.start() * stride;
            let has_no_gap = footprint.run_bytes == stride && span.step() == 1;
            if footprint.axes.is_empty() && has_no_gap {
                footprint.run_bytes *= span.len();
            } else if span.len() > 1 {
                footprint.axes.push((span.len(), span.step() * stride));
            }
            stride *= extent;
        }
        footprint.axes.reverse();
        footprint
    }
}

/// One past the last byte of runs at `offset_bytes`; 0 if there is no byte; `None` if that is above
/// 64 bits.
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

#[cfg(test)]
mod tests {
    use super::MemoryOrder;
    use crate::coherence::Span;

    #[test]
    fn a_footprint_has_runs_as_long_as_memory_has_no_gaps() {
        let (memory_order, _) = MemoryOrder::of(&[4, 5, 6], &[30, 6, 1], 8).expect("contiguous");
        let whole = memory_order.footprint(&memory_order.whole());
        assert_eq!((whole.offset_bytes, whole.run_bytes, whole.axes.len()), (0, 960, 0));
        let planes = memory_order.whole().with_span(0, Span::new(1, 3, 1));
        let planes = memory_order.footprint(&planes);
        assert_eq!((planes.offset_bytes, planes.run_bytes, planes.axes.len()), (240, 480, 0));
        let column = memory_order.whole().with_span(2, Span::single(3));
        let column = memory_order.footprint(&column);
        assert_eq!((column.offset_bytes, column.run_bytes), (24, 8));
        assert_eq!(column.axes.as_slice(), [(4, 240), (5, 48)]);
    }
}
