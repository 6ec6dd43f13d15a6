//! The copies between two views of one shape.

use smallvec::SmallVec;

use super::strided::{OwnView, packed_strides};
use super::{CopyBox, MemoryOrder, Strided};
use crate::coherence::Region;

/// Indices along one axis of a view, in the order of memory addresses: `count` indices that start
/// at `start`, `step` apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Range {
    start: u64,
    step: u64,
    count: u64,
}

/// A box of a view, in the view's own axes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ViewBox(SmallVec<[Range; 4]>);

/// One axis of a copy between two views, in elements. Strides may be negative.
#[derive(Clone, Copy, Debug)]
struct Axis {
    count: u64,
    source: i64,
    destination: i64,
}

type Axes = SmallVec<[Axis; 6]>;

impl Strided<'_> {
    /// The boxes of this view that contain exactly the elements of `region`, which lies within the
    /// view. There is more than one box only where axes were combined in the memory order, or an
    /// axis of the view runs along several (see [`split_with`](Self::split_with)).
    pub(crate) fn boxes_of(
        &self,
        memory_order: &MemoryOrder,
        region: &Region,
    ) -> SmallVec<[ViewBox; 1]> {
        self.one_box_of(memory_order, region).map_or_else(
            || self.elements_of(memory_order, region),
            |one| SmallVec::from_iter([one]),
        )
    }

    /// The single box, if at most one axis of the view runs along each axis of the memory order,
    /// and within it.
    fn one_box_of(&self, memory_order: &MemoryOrder, region: &Region) -> Option<ViewBox> {
        let lowest = self.lowest();
        let start = memory_order.index_of(lowest);
        let mut taken: SmallVec<[bool; 6]> = SmallVec::from_elem(false, start.len());
        let mut ranges = SmallVec::new();
        for (len, stride) in self.shape.iter().zip(self.strides) {
            if *len <= 1 {
                ranges.push(Range { start: 0, step: 1, count: 1 });
                continue;
            }
            let next = memory_order.index_of(lowest + stride.unsigned_abs() as u64);
            let mut changed = (0..start.len()).filter(|axis| next[*axis] != start[*axis]);
            let (axis, None) = (changed.next()?, changed.next()) else { return None };
            let step = next[axis].checked_sub(start[axis])?;
            let last = start[axis] + (*len as u64 - 1) * step;
            if std::mem::replace(&mut taken[axis], true) || last >= memory_order.extents()[axis] {
                return None;
            }
            let span = region.span(axis);
            ranges.push(Range {
                start: (span.start() - start[axis]) / step,
                step: (span.step() / step).max(1),
                count: span.len(),
            });
        }
        Some(ViewBox(ranges))
    }

    /// One box for each element of `region`: correct for any view, but used only where axes were
    /// combined in the memory order.
    fn elements_of(&self, memory_order: &MemoryOrder, region: &Region) -> SmallVec<[ViewBox; 1]> {
        let mut boxes: SmallVec<[ViewBox; 1]> = SmallVec::new();
        let lowest = self.lowest();
        for number in 0..self.len() {
            let (mut rest, mut offset) = (number, lowest);
            let mut ranges: SmallVec<[Range; 4]> = SmallVec::new();
            for (len, stride) in self.shape.iter().zip(self.strides).rev() {
                let index = rest % *len as u64;
                rest /= *len as u64;
                offset += index * stride.unsigned_abs() as u64;
                ranges.push(Range { start: index, step: 1, count: 1 });
            }
            if region.contains_point(&memory_order.index_of(offset)) {
                ranges.reverse();
                boxes.push(ViewBox(ranges));
            }
        }
        boxes
    }

    /// A box of this view as a view with ascending strides.
    fn part(&self, part: &ViewBox) -> OwnView {
        let mut offset = self.lowest();
        let mut strides: SmallVec<[isize; 4]> = SmallVec::new();
        for (range, stride) in part.0.iter().zip(self.strides) {
            offset += range.start * stride.unsigned_abs() as u64;
            strides.push(stride.abs() * range.step as isize);
        }
        let shape = part.0.iter().map(|range| range.count as usize).collect();
        OwnView { shape, strides, offset: offset as usize }
    }

    /// Whether two views of one shape run in opposite directions along an axis.
    fn is_opposed(&self, other: &Strided<'_>, axis: usize) -> bool {
        (self.strides[axis] < 0) != (other.strides[axis] < 0) && self.shape[axis] > 1
    }

    /// The box of `other` that has the same indices as `part` of this view. Along opposed axes
    /// indices are counted from the other end.
    fn same_box_of(&self, other: &Strided<'_>, part: &ViewBox) -> ViewBox {
        let same = |(axis, range): (usize, &Range)| {
            let last = range.start + (range.count.max(1) - 1) * range.step;
            match self.is_opposed(other, axis) {
                true => Range { start: self.shape[axis] as u64 - 1 - last, ..*range },
                false => *range,
            }
        };
        ViewBox(part.0.iter().enumerate().map(same).collect())
    }

    /// The copies of a box of this view to the same box of another view of the same shape. Also
    /// returns the part of each view that the copies read or write.
    pub(crate) fn copies_to(
        &self,
        other: &Strided<'_>,
        part: &ViewBox,
        element_bytes: u64,
    ) -> (OwnView, OwnView, SmallVec<[CopyBox; 1]>) {
        let (source, destination) = (self.part(part), other.part(&self.same_box_of(other, part)));
        let is_opposed = |axis| self.is_opposed(other, axis);
        let copies = copies_between(&source, &destination, is_opposed, element_bytes);
        (source, destination, copies)
    }

    /// The copies of all elements of this view to another view of the same shape.
    pub(crate) fn copies_of_all(
        &self,
        other: &Strided<'_>,
        element_bytes: u64,
    ) -> SmallVec<[CopyBox; 1]> {
        let all = |len: &usize| Range { start: 0, step: 1, count: *len as u64 };
        let all = ViewBox(self.shape.iter().map(all).collect());
        self.copies_to(other, &all, element_bytes).2
    }

    /// The copies of a box of this view to a packed array of the view's shape, whose axes all run
    /// upwards in memory.
    pub(crate) fn copies_to_packed(
        &self,
        part: &ViewBox,
        element_bytes: u64,
    ) -> SmallVec<[CopyBox; 1]> {
        let strides = packed_strides(self.shape.iter().map(|len| *len as u64), 1);
        let strides: SmallVec<[isize; 4]> = strides.iter().map(|stride| *stride as isize).collect();
        let packed = Strided { shape: self.shape, strides: &strides, offset: 0 };
        copies_between(&self.part(part), &packed.part(part), |_| false, element_bytes)
    }
}

/// The copies from one part to another of the same shape. Along opposed axes the indices descend in
/// the destination.
fn copies_between(
    source: &OwnView,
    destination: &OwnView,
    is_opposed: impl Fn(usize) -> bool,
    element_bytes: u64,
) -> SmallVec<[CopyBox; 1]> {
    let (mut aligned, mut opposed) = (Axes::new(), Axes::new());
    let mut destination_start = destination.offset as i64;
    for (axis, len) in source.shape.iter().enumerate().filter(|(_, len)| **len > 1) {
        let (count, to) = (*len as u64, destination.strides[axis] as i64);
        let source = source.strides[axis] as i64;
        if is_opposed(axis) {
            destination_start += (count as i64 - 1) * to;
            opposed.push(Axis { count, source, destination: -to });
        } else {
            aligned.push(Axis { count, source, destination: to });
        }
    }
    // A copy's strides are positive in source and destination, so each index along opposed axes
    // takes a separate copy.
    let indices: u64 = opposed.iter().map(|axis| axis.count).product();
    let copy = |number: u64| {
        let (mut rest, mut from, mut to) = (number, source.offset as i64, destination_start);
        for axis in &opposed {
            let index = (rest % axis.count) as i64;
            rest /= axis.count;
            from += index * axis.source;
            to += index * axis.destination;
        }
        ascending_copy(aligned.clone(), from as u64, to as u64, element_bytes)
    };
    (0..indices).map(copy).collect()
}

/// One copy whose strides are all positive. The fastest axes are merged into the run if they have
/// no gaps in the source and in the destination.
fn ascending_copy(mut axes: Axes, source: u64, destination: u64, element_bytes: u64) -> CopyBox {
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
    use super::{MemoryOrder, Range, Strided, ViewBox};
    use crate::coherence::{Region, Span};

    fn all_of(view: &Strided<'_>) -> ViewBox {
        let all = |len: &usize| Range { start: 0, step: 1, count: *len as u64 };
        ViewBox(view.shape.iter().map(all).collect())
    }

    /// Copies between two views whose elements are their own positions in memory.
    fn copied(source: &Strided<'_>, destination: &Strided<'_>) -> Vec<Option<usize>> {
        let mut memory = vec![None; source.len() as usize];
        for copy in source.copies_to(destination, &all_of(source), 1).2 {
            copy.for_each_run(&mut |from, to, len| {
                (0..len).for_each(|at| memory[(to + at) as usize] = Some((from + at) as usize));
            });
        }
        memory
    }

    #[test]
    fn reversed_axes_meet_index_by_index() {
        let source = Strided { shape: &[2, 3], strides: &[3, 1], offset: 0 };
        let mirrored = Strided { shape: &[2, 3], strides: &[3, -1], offset: 2 };
        assert_eq!(copied(&source, &mirrored), [2, 1, 0, 5, 4, 3].map(Some));
        assert_eq!(copied(&mirrored, &mirrored), [0, 1, 2, 3, 4, 5].map(Some));
        assert_eq!(copied(&mirrored, &source), [2, 1, 0, 5, 4, 3].map(Some));
    }

    #[test]
    fn transposed_views_meet_index_by_index() {
        let source = Strided { shape: &[2, 3], strides: &[3, 1], offset: 0 };
        let columns = Strided { shape: &[2, 3], strides: &[1, 2], offset: 0 };
        assert_eq!(copied(&source, &columns), [0, 3, 1, 4, 2, 5].map(Some));
    }

    #[test]
    fn a_region_is_found_in_a_view_of_the_view() {
        let (memory_order, _) = MemoryOrder::of(&[6, 8], &[8, 1], 1).expect("contiguous");
        let view = Strided { shape: &[3, 4], strides: &[16, -2], offset: 8 + 7 };
        let region = Region::new(&[Span::new(3, 4, 1), Span::new(3, 6, 2)]);
        let part = view.part(&view.boxes_of(&memory_order, &region)[0]);
        assert_eq!(
            (part.shape.as_slice(), part.strides.as_slice(), part.offset),
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
        assert_eq!(view.boxes_of(&memory_order, &Region::new(&spans)).len(), 32);
    }
}
