//! Views as numbers, and the copies between two of them.

use smallvec::SmallVec;

use super::MemoryOrder;
use crate::backend::CopyBox;
use crate::coherence::Region;

/// A view of an array's memory: shape, strides and the offset of the first element, in elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strided<'a> {
    pub(crate) shape: &'a [usize],
    pub(crate) strides: &'a [isize],
    pub(crate) offset: usize,
}

/// Which indices of one axis of a view: `count` from `start` on in steps of `step`, counted upwards
/// in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Range {
    pub(crate) start: u64,
    pub(crate) step: u64,
    pub(crate) count: u64,
}

/// A box of a view, in the view's own axes.
pub(crate) type Ranges = SmallVec<[Range; 4]>;

/// One axis of a copy between two views, in elements; strides may be negative.
#[derive(Clone, Copy, Debug)]
struct Axis {
    count: u64,
    source: i64,
    destination: i64,
}

impl Strided<'_> {
    pub(crate) fn len(&self) -> u64 {
        self.shape.iter().map(|len| *len as u64).product()
    }

    /// All of it.
    #[cfg(test)]
    pub(crate) fn ranges(&self) -> Ranges {
        self.shape.iter().map(|len| Range { start: 0, step: 1, count: *len as u64 }).collect()
    }

    /// The offset of the element that lies lowest in memory; where there is none, that of the view.
    pub(crate) fn lowest(&self) -> u64 {
        let is_empty = self.shape.contains(&0);
        let reversed =
            self.shape.iter().zip(self.strides).filter(|(_, stride)| **stride < 0 && !is_empty);
        reversed.fold(self.offset as u64, |lowest, (len, stride)| {
            lowest - (*len as u64 - 1) * stride.unsigned_abs() as u64
        })
    }

    /// Elements fill their memory without gaps, in whatever order.
    pub(crate) fn is_unbroken(&self) -> bool {
        if self.len() <= 1 {
            return true;
        }
        let mut long: SmallVec<[(usize, usize); 6]> = self
            .shape
            .iter()
            .zip(self.strides)
            .filter(|(len, _)| **len != 1)
            .map(|(len, stride)| (stride.unsigned_abs(), *len))
            .collect();
        long.sort_unstable();
        let mut expected = 1;
        long.iter().all(|(stride, len)| {
            let fits = *stride == expected;
            expected *= len;
            fits
        })
    }

    /// The boxes of this view whose elements are those of `region`, which lies within the view.
    /// More than one only where the memory order was flattened.
    pub(crate) fn narrowed(
        &self,
        memory_order: &MemoryOrder,
        region: &Region,
    ) -> SmallVec<[Ranges; 1]> {
        self.narrowed_to_box(memory_order, region).map_or_else(
            || self.narrowed_to_elements(memory_order, region),
            |ranges| SmallVec::from_iter([ranges]),
        )
    }

    /// One box, where each axis of the space is run along by at most one axis of the view.
    fn narrowed_to_box(&self, memory_order: &MemoryOrder, region: &Region) -> Option<Ranges> {
        let lowest = self.lowest();
        let start = memory_order.index_of(lowest);
        let mut taken: SmallVec<[bool; 6]> = SmallVec::from_elem(false, start.len());
        let mut ranges = Ranges::new();
        for (len, stride) in self.shape.iter().zip(self.strides) {
            if *len <= 1 {
                ranges.push(Range { start: 0, step: 1, count: 1 });
                continue;
            }
            let next = memory_order.index_of(lowest + stride.unsigned_abs() as u64);
            let axis = (0..start.len()).find(|axis| next[*axis] != start[*axis])?;
            if std::mem::replace(&mut taken[axis], true) {
                return None;
            }
            let (span, step) = (region.span(axis), next[axis] - start[axis]);
            ranges.push(Range {
                start: (span.start() - start[axis]) / step,
                step: (span.step() / step).max(1),
                count: span.len(),
            });
        }
        Some(ranges)
    }

    /// Element by element: right for any view, and only ever needed beyond six axes.
    fn narrowed_to_elements(
        &self,
        memory_order: &MemoryOrder,
        region: &Region,
    ) -> SmallVec<[Ranges; 1]> {
        let mut boxes: SmallVec<[Ranges; 1]> = SmallVec::new();
        let lowest = self.lowest();
        for number in 0..self.len() {
            let mut rest = number;
            let mut offset = lowest;
            let mut ranges: Ranges = self
                .shape
                .iter()
                .zip(self.strides)
                .rev()
                .map(|(len, stride)| {
                    let index = rest % *len as u64;
                    rest /= *len as u64;
                    offset += index * stride.unsigned_abs() as u64;
                    Range { start: index, step: 1, count: 1 }
                })
                .collect();
            if region.contains_point(&memory_order.index_of(offset)) {
                ranges.reverse();
                boxes.push(ranges);
            }
        }
        boxes
    }

    /// The part of this view that `ranges` names, as shape, strides and offset.
    pub(crate) fn part(
        &self,
        ranges: &Ranges,
    ) -> (SmallVec<[usize; 4]>, SmallVec<[isize; 4]>, usize) {
        let mut offset = self.lowest();
        let mut strides: SmallVec<[isize; 4]> = SmallVec::new();
        for (range, stride) in ranges.iter().zip(self.strides) {
            offset += range.start * stride.unsigned_abs() as u64;
            let upwards = stride.unsigned_abs() as isize * range.step as isize;
            strides.push(upwards);
        }
        (ranges.iter().map(|range| range.count as usize).collect(), strides, offset as usize)
    }

    /// The same box of another view of the same shape: where the two run against each other along
    /// an axis, the range is counted from the other end.
    pub(crate) fn facing(
        &self,
        other: &Strided<'_>,
        ranges: &Ranges,
    ) -> (Ranges, SmallVec<[bool; 4]>) {
        let mut against: SmallVec<[bool; 4]> = SmallVec::new();
        let mut faced = Ranges::new();
        for (axis, range) in ranges.iter().enumerate() {
            let opposed =
                (self.strides[axis] < 0) != (other.strides[axis] < 0) && self.shape[axis] > 1;
            against.push(opposed);
            let last = range.start + (range.count.max(1) - 1) * range.step;
            let start = if opposed { self.shape[axis] as u64 - 1 - last } else { range.start };
            faced.push(Range { start, ..*range });
        }
        (faced, against)
    }
}

/// The copies from a box of one view to the same box of another: `source` and `destination` as
/// [`Strided::part`] gave them, `against` where the destination runs the other way.
pub(crate) fn copies_between(
    shape: &[usize],
    source: (&[isize], usize),
    destination: (&[isize], usize),
    against: &[bool],
    element_bytes: u64,
) -> SmallVec<[CopyBox; 1]> {
    let mut axes: SmallVec<[Axis; 6]> = SmallVec::new();
    let (mut split, mut destination_start) = (None, destination.1 as u64);
    for axis in (0..shape.len()).filter(|axis| shape[*axis] > 1) {
        let (count, from, to) =
            (shape[axis] as u64, source.0[axis] as i64, destination.0[axis] as i64);
        if against[axis] {
            destination_start += (count - 1) * to.unsigned_abs();
            axes.push(Axis { count, source: from, destination: -to });
            split = Some(axes.len() - 1);
        } else {
            axes.push(Axis { count, source: from, destination: to });
        }
    }
    let Some(split) = split else {
        return SmallVec::from_iter([upwards(
            axes,
            source.1 as u64,
            destination_start,
            element_bytes,
        )]);
    };
    // A copy's strides go upwards at both ends: along an axis where they cannot, each index is a
    // copy of its own.
    let mut parts: SmallVec<[CopyBox; 1]> = SmallVec::new();
    let opposed: SmallVec<[Axis; 6]> =
        axes.iter().copied().filter(|axis| axis.destination < 0).collect();
    axes.retain(|axis| axis.destination > 0);
    debug_assert!(split < shape.len() && !opposed.is_empty());
    let turns: u64 = opposed.iter().map(|axis| axis.count).product();
    for turn in 0..turns {
        let (mut rest, mut from, mut to) = (turn, source.1 as i64, destination_start as i64);
        for axis in &opposed {
            let index = (rest % axis.count) as i64;
            rest /= axis.count;
            from += index * axis.source;
            to += index * axis.destination;
        }
        parts.push(upwards(axes.clone(), from as u64, to as u64, element_bytes));
    }
    parts
}

/// One copy whose strides are all above zero, its fastest axes run together where memory is
/// unbroken at both ends.
fn upwards(
    mut axes: SmallVec<[Axis; 6]>,
    source: u64,
    destination: u64,
    element_bytes: u64,
) -> CopyBox {
    axes.sort_by_key(|axis| std::cmp::Reverse(axis.destination));
    let mut run = 1;
    while axes.last().is_some_and(|axis| axis.source == run && axis.destination == run) {
        run *= axes.pop().map_or(1, |axis| axis.count as i64);
    }
    let bytes = |elements: i64| elements as u64 * element_bytes;
    CopyBox {
        run_bytes: bytes(run),
        source_offset_bytes: source * element_bytes,
        destination_offset_bytes: destination * element_bytes,
        axes: axes
            .iter()
            .map(|axis| (axis.count, bytes(axis.source), bytes(axis.destination)))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Strided, copies_between};
    use crate::coherence::{Region, Span};
    use crate::storage::MemoryOrder;

    /// Runs a copy on element numbers.
    fn run(
        shape: &[usize],
        source: &Strided<'_>,
        destination: &Strided<'_>,
        len: usize,
    ) -> Vec<Option<usize>> {
        let (ranges, against) = source.facing(destination, &source.ranges());
        let from = source.part(&source.ranges());
        let to = destination.part(&ranges);
        let mut memory = vec![None; len];
        for part in copies_between(shape, (&from.1, from.2), (&to.1, to.2), &against, 1) {
            let mut starts = vec![(part.source_offset_bytes, part.destination_offset_bytes)];
            for (count, step, stride) in &part.axes {
                starts = starts
                    .iter()
                    .flat_map(|(from, to)| {
                        (0..*count).map(move |turn| (from + turn * step, to + turn * stride))
                    })
                    .collect();
            }
            for (from, to) in starts {
                for byte in 0..part.run_bytes {
                    memory[(to + byte) as usize] = Some((from + byte) as usize);
                }
            }
        }
        memory
    }

    #[test]
    fn reversed_axes_meet_index_by_index() {
        let source = Strided { shape: &[2, 3], strides: &[3, 1], offset: 0 };
        let mirrored = Strided { shape: &[2, 3], strides: &[3, -1], offset: 2 };
        assert_eq!(run(&[2, 3], &source, &mirrored, 6), [2, 1, 0, 5, 4, 3].map(Some));
        assert_eq!(run(&[2, 3], &mirrored, &mirrored, 6), [0, 1, 2, 3, 4, 5].map(Some));
        assert_eq!(run(&[2, 3], &mirrored, &source, 6), [2, 1, 0, 5, 4, 3].map(Some));
    }

    #[test]
    fn transposed_views_meet_index_by_index() {
        let source = Strided { shape: &[2, 3], strides: &[3, 1], offset: 0 };
        let columns = Strided { shape: &[2, 3], strides: &[1, 2], offset: 0 };
        assert_eq!(run(&[2, 3], &source, &columns, 6), [0, 3, 1, 4, 2, 5].map(Some));
    }

    #[test]
    fn a_region_is_found_in_a_view_of_the_view() {
        let (memory_order, _) = MemoryOrder::of(&[6, 8], &[8, 1], 1).expect("contiguous");
        let view = Strided { shape: &[3, 4], strides: &[16, -2], offset: 8 + 7 };
        let region = Region::new(&[Span::new(3, 4, 1), Span::new(3, 6, 2)]);
        let boxes = view.narrowed(&memory_order, &region);
        let (shape, strides, offset) = view.part(&boxes[0]);
        assert_eq!(
            (shape.as_slice(), strides.as_slice(), offset),
            (&[1, 2][..], &[16, 2][..], 3 * 8 + 3)
        );
    }

    #[test]
    fn beyond_six_axes_regions_are_found_element_by_element() {
        let shape = [2, 3, 2, 2, 2, 2, 2];
        let strides = [96, 32, 16, 8, 4, 2, 1];
        let (memory_order, _) = MemoryOrder::of(&shape, &strides, 1).expect("contiguous");
        let view = Strided { shape: &[2, 2, 2, 2, 2, 2, 2], strides: &strides, offset: 0 };
        let mut spans: Vec<Span> =
            memory_order.extents().iter().map(|extent| Span::full(*extent)).collect();
        spans[0] = Span::single(3);
        assert_eq!(view.narrowed(&memory_order, &Region::new(&spans)).len(), 32);
    }
}
