//! The copies between two views of one shape.

use smallvec::SmallVec;

use super::strided::OwnView;
use super::view_box::ViewBox;
use super::{CopyBox, Strided};
use crate::coherence::Span;

/// One axis of a copy between two views, in elements. Strides may be negative.
#[derive(Clone, Copy, Debug)]
struct Axis {
    count: u64,
    source: i64,
    destination: i64,
}

type Axes = SmallVec<[Axis; 6]>;

impl Strided<'_> {
    /// Whether two views of one shape run in opposite directions along an axis.
    fn is_opposed(&self, other: &Strided<'_>, axis: usize) -> bool {
        (self.strides[axis] < 0) != (other.strides[axis] < 0) && self.shape[axis] > 1
    }

    /// The box of `other` that has the same indices as `part` of this view. Along opposed axes
    /// indices are counted from the other end.
    fn same_box_of(&self, other: &Strided<'_>, part: &ViewBox) -> ViewBox {
        let same = |(axis, span): (usize, &Span)| {
            let len = self.shape[axis] as u64;
            if self.is_opposed(other, axis) { span.mirrored(len) } else { *span }
        };
        ViewBox(part.0.iter().enumerate().map(same).collect())
    }

    /// The copies of a box of this view to the same box of another view of the same shape. Also
    /// returns the part of each view that the copies read or write.
    pub fn copies_to(
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

    /// The copies from all elements of this view to another view of the same shape.
    pub fn copies_of_all_to(
        &self,
        other: &Strided<'_>,
        element_bytes: u64,
    ) -> SmallVec<[CopyBox; 1]> {
        self.copies_to(other, &self.whole_box(), element_bytes).2
    }

    /// The copies to a box of this view from the same box of another view of the same shape.
    pub fn copies_from(
        &self,
        other: &Strided<'_>,
        part: &ViewBox,
        element_bytes: u64,
    ) -> SmallVec<[CopyBox; 1]> {
        other.copies_to(self, &self.same_box_of(other, part), element_bytes).2
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
    // A copy's strides are positive in source and destination, so each index along these axes takes
    // a separate copy.
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
    use super::Strided;

    /// Copies between two views whose elements are their own positions in memory.
    fn copied(source: &Strided<'_>, destination: &Strided<'_>) -> Vec<Option<usize>> {
        let mut memory = vec![None; source.len() as usize];
        for copy in source.copies_to(destination, &source.whole_box(), 1).2 {
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
}
