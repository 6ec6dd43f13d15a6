//! Boxes in a view's own axes, and the search for the boxes that contain a region.

use smallvec::SmallVec;

use super::strided::OwnView;
use super::{MemoryOrder, Strided};
use crate::coherence::{Region, Span};

/// A box of a view: the indices along each of the view's own axes, in the order of memory
/// addresses. Unlike a [`Region`], it may have any number of axes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ViewBox(pub(super) SmallVec<[Span; 4]>);

impl ViewBox {
    /// The box with these spans, one for each axis of the view.
    pub fn new(spans: impl Iterator<Item = Span>) -> Self {
        Self(spans.collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().any(Span::is_empty)
    }

    /// The common elements of two boxes of one view, or `None` if there are none.
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        let common = self.0.iter().zip(&other.0).map(|(own, other)| own.intersection(other));
        common.collect::<Option<_>>().map(Self)
    }

    /// Calls `emit` with disjoint boxes of the elements that are not in `part`, a non-empty part of
    /// this box, as [`Region::difference`] does.
    pub fn without(&self, part: &Self, mut emit: impl FnMut(Self)) {
        let mut rest = self.clone();
        for (axis, span) in part.0.iter().enumerate() {
            self.0[axis].without(span, |piece| {
                let mut part = rest.clone();
                part.0[axis] = piece;
                emit(part);
            });
            rest.0[axis] = *span;
        }
    }

    /// The box in elements, given the box of the same view in bytes.
    fn without_bytes(mut self) -> Self {
        self.0.pop();
        self
    }

    /// A part of this box, whose indices count from the start of the box.
    fn section(&self, inner: &Self) -> Self {
        Self(self.0.iter().zip(&inner.0).map(|(outer, inner)| outer.section(inner)).collect())
    }

    /// The parts before index `at` of an axis, counted from the start of the box, and from it on.
    fn cut(self, axis: usize, at: u64) -> [Self; 2] {
        let (mut first, mut rest) = (self.clone(), self);
        let span = rest.0[axis];
        first.0[axis] = span.first(at);
        rest.0[axis] = span.section(&Span::new(at, span.len(), 1));
        [first, rest]
    }
}

impl Strided<'_> {
    /// All elements.
    pub fn whole_box(&self) -> ViewBox {
        ViewBox(self.shape.iter().map(|len| Span::full(*len as u64)).collect())
    }

    /// A box of this view as a view with ascending strides.
    pub fn part(&self, part: &ViewBox) -> OwnView {
        let mut offset = self.lowest();
        let mut strides: SmallVec<[isize; 4]> = SmallVec::new();
        for (span, stride) in part.0.iter().zip(self.strides) {
            offset += span.start() * stride.unsigned_abs() as u64;
            strides.push(stride.abs() * span.step() as isize);
        }
        let shape = part.0.iter().map(|span| span.len() as usize).collect();
        OwnView { shape, strides, offset: offset as usize }
    }

    /// The boxes of this view that contain exactly the elements of `region`, which lies within the
    /// view. There is more than one box only where axes were combined in the memory order, or an
    /// axis of the view runs along several (see [`split_with`](Self::split_with)).
    ///
    /// If the memory order is divided and the view is not in bytes, the region has whole elements.
    pub fn boxes_of(
        &self,
        element_bytes: u32,
        memory_order: &MemoryOrder,
        region: &Region,
    ) -> SmallVec<[ViewBox; 1]> {
        if element_bytes != memory_order.unit_bytes() {
            let boxes = self.in_bytes(element_bytes).strided().unit_boxes(memory_order, region);
            return boxes.into_iter().map(ViewBox::without_bytes).collect();
        }
        self.unit_boxes(memory_order, region)
    }

    /// As [`boxes_of`](Self::boxes_of), for a view in units.
    fn unit_boxes(&self, memory_order: &MemoryOrder, region: &Region) -> SmallVec<[ViewBox; 1]> {
        self.one_box_of(memory_order, region).map_or_else(
            || self.several_boxes_of(memory_order, region),
            |one| SmallVec::from_iter([one]),
        )
    }

    /// The single box, if at most one axis of the view runs along each axis of the memory order,
    /// and within it.
    fn one_box_of(&self, memory_order: &MemoryOrder, region: &Region) -> Option<ViewBox> {
        let lowest = self.lowest();
        let start = memory_order.index_of(lowest);
        let mut taken: SmallVec<[bool; 6]> = SmallVec::from_elem(false, start.len());
        let mut spans = SmallVec::new();
        for (len, stride) in self.shape.iter().zip(self.strides) {
            if *len <= 1 {
                spans.push(Span::single(0));
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
            spans.push(span.divided(start[axis], step));
        }
        Some(ViewBox(spans))
    }

    /// Cuts the view until each part is one box in the memory order, or lies in `region`, or has
    /// nothing in common with it.
    fn several_boxes_of(
        &self,
        memory_order: &MemoryOrder,
        region: &Region,
    ) -> SmallVec<[ViewBox; 1]> {
        let mut boxes = SmallVec::new();
        let mut left = vec![self.whole_box()];
        while let Some(part) = left.pop() {
            let own = self.part(&part);
            match own.strided().share(memory_order, region) {
                Share::Nothing => {}
                Share::All => boxes.push(part),
                Share::Box(inner) => boxes.push(part.section(&inner)),
                Share::Several => {
                    let (axis, at) = memory_order.cut_of(&own.strided());
                    left.extend(part.cut(axis, at));
                }
            }
        }
        boxes
    }

    /// What this view, whose axes ascend, has in common with `region`.
    fn share(&self, memory_order: &MemoryOrder, region: &Region) -> Share {
        let last = |(len, stride): (&usize, &isize)| (len - 1) * stride.unsigned_abs();
        let first = self.offset as u64;
        let end = first + 1 + self.shape.iter().zip(self.strides).map(last).sum::<usize>() as u64;
        let bytes = memory_order.footprint(region);
        let offset_of = |bytes: u64| bytes / u64::from(memory_order.unit_bytes());
        let within =
            offset_of(bytes.offset_bytes)..offset_of(bytes.end_bytes().unwrap_or(u64::MAX));
        if end <= within.start || within.end <= first {
            return Share::Nothing;
        }
        if let Some(own) = memory_order.one_box(self, first) {
            return match region.intersection(&own) {
                None => Share::Nothing,
                Some(common) if common == own => Share::All,
                Some(common) => {
                    self.one_box_of(memory_order, &common).map_or(Share::Several, Share::Box)
                }
            };
        }
        // Finding all boxes takes time, so the ends are compared first.
        let may_lie_within = within.start <= first && end <= within.end;
        let lies_within = may_lie_within && memory_order.boxes(self).lies_in(region);
        if lies_within { Share::All } else { Share::Several }
    }
}

/// The elements that a part of a view has in common with a region.
enum Share {
    Nothing,
    All,
    /// Those in this box, which counts from the start of the part.
    Box(ViewBox),
    /// Some, or none: the part is several boxes in the memory order.
    Several,
}

#[cfg(test)]
mod tests {
    use super::{MemoryOrder, Strided};
    use crate::coherence::{Region, Span};

    fn row_major(shape: &[usize]) -> MemoryOrder {
        let mut strides = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis] as isize;
        }
        MemoryOrder::of(shape, &strides, 4).expect("contiguous").0
    }

    /// The offsets of the elements of a view with ascending axes, repeated ones several times.
    fn offsets(view: &Strided<'_>) -> Vec<u64> {
        let mut offsets = vec![view.offset as u64];
        for (len, stride) in view.shape.iter().zip(view.strides) {
            let along = |from: u64| (0..*len as u64).map(move |at| from + at * *stride as u64);
            offsets = offsets.into_iter().flat_map(along).collect();
        }
        offsets.sort_unstable();
        offsets
    }

    /// Checks the boxes of every selected region, and of every part of it that leaves out the first
    /// index of some axes. Returns the largest number of boxes.
    fn assert_exact(memory_order: &MemoryOrder, view: &Strided<'_>) -> usize {
        let mut most = 0;
        let selection = memory_order.select(view, memory_order.unit_bytes());
        selection.for_each_region(memory_order, |selected| {
            for axes in 0..1_u32 << selected.axes() {
                let mut region = *selected;
                for axis in (0..selected.axes()).filter(|axis| axes >> axis & 1 == 1) {
                    let span = region.span(axis);
                    if span.len() > 1 {
                        let start = span.start() + span.step();
                        region = region.with_span(axis, Span::new(start, span.end(), span.step()));
                    }
                }
                most = most.max(assert_is_region(memory_order, view, &region));
            }
        });
        most
    }

    fn assert_is_region(memory_order: &MemoryOrder, view: &Strided<'_>, region: &Region) -> usize {
        let boxes = view.boxes_of(memory_order.unit_bytes(), memory_order, region);
        let mut found: Vec<u64> =
            boxes.iter().flat_map(|part| offsets(&view.part(part).strided())).collect();
        found.sort_unstable();
        let ascending: Vec<isize> = view.strides.iter().map(|stride| stride.abs()).collect();
        let lowest = view.lowest() as usize;
        let mut expected =
            offsets(&Strided { shape: view.shape, strides: &ascending, offset: lowest });
        expected.retain(|offset| region.contains_point(&memory_order.index_of(*offset)));
        assert_eq!(found, expected, "{view:?} in {memory_order:?}: {region:?} is {boxes:?}");
        boxes.len()
    }

    #[test]
    fn a_region_is_found_in_a_view_of_the_view() {
        let memory_order = row_major(&[6, 8]);
        let view = Strided { shape: &[3, 4], strides: &[16, -2], offset: 8 + 7 };
        let region = Region::new(&[Span::new(3, 4, 1), Span::new(3, 6, 2)]);
        let part = view.part(&view.boxes_of(4, &memory_order, &region)[0]);
        assert_eq!(
            (part.shape.as_slice(), part.strides.as_slice(), part.offset),
            (&[1, 2][..], &[16, 2][..], 3 * 8 + 3)
        );
    }

    #[test]
    fn every_part_of_a_line_over_a_table_is_found() {
        for extents in [&[4, 6][..], &[3, 5], &[2, 3, 4]] {
            let (memory_order, all) = (row_major(extents), extents.iter().product::<usize>());
            for (step, start) in (1..=all).flat_map(|step| (0..all).map(move |at| (step, at))) {
                for len in 1..=(all - start).div_ceil(step) {
                    let stride = step as isize;
                    assert_exact(
                        &memory_order,
                        &Strided { shape: &[len], strides: &[stride], offset: start },
                    );
                    let last = start + (len - 1) * step;
                    assert_exact(
                        &memory_order,
                        &Strided { shape: &[len], strides: &[-stride], offset: last },
                    );
                }
            }
        }
    }

    #[test]
    fn parts_of_several_axes_are_found() {
        for (shape, strides, offset) in [
            (&[2, 6][..], &[12, 1][..], 0),
            (&[4, 3], &[6, 2], 0),
            (&[2, 5], &[10, 1], 1),
            (&[3, 3], &[7, 2], 1),
            (&[2, 12], &[12, -1], 11),
            (&[6, 2], &[0, 5], 3),
            (&[3, 2, 4], &[0, 8, 1], 2),
            (&[2, 3, 2], &[9, 3, 2], 1),
        ] {
            let view = Strided { shape, strides, offset };
            for extents in [&[4, 6][..], &[2, 3, 4], &[12, 2], &[24]] {
                assert_exact(&row_major(extents), &view);
            }
        }
    }

    #[test]
    fn a_long_line_takes_few_boxes() {
        let memory_order = row_major(&[1_000, 1_000]);
        let boxes_of = |view: &Strided<'_>| {
            let mut count = 0;
            let selection = memory_order.select(view, memory_order.unit_bytes());
            selection.for_each_region(&memory_order, |region| {
                count += view.boxes_of(4, &memory_order, region).len();
            });
            count
        };
        let rest = Strided { shape: &[999_999], strides: &[1], offset: 1 };
        assert_eq!(boxes_of(&rest), 2);
        let back = Strided { shape: &[999_990], strides: &[-1], offset: 999_998 };
        assert_eq!(boxes_of(&back), 3);
        let every_other = Strided { shape: &[499_999], strides: &[2], offset: 2 };
        assert_eq!(boxes_of(&every_other), 2);
    }

    #[test]
    fn beyond_six_axes_a_region_is_found_by_cutting() {
        let shape = [2, 3, 2, 2, 2, 2, 2];
        let strides = [96, 32, 16, 8, 4, 2, 1];
        let (memory_order, _) = MemoryOrder::of(&shape, &strides, 1).expect("contiguous");
        let view = Strided { shape: &[2, 2, 2, 2, 2, 2, 2], strides: &strides, offset: 0 };
        let mut spans: Vec<Span> =
            memory_order.extents().iter().map(|extent| Span::full(*extent)).collect();
        spans[0] = Span::single(3);
        assert_eq!(assert_is_region(&memory_order, &view, &Region::new(&spans)), 1);
    }
}
