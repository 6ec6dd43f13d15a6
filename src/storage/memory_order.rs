//! Index arithmetic between an array's logical shape and its memory.
//!
//! A *space* is memory order: the axes of the array sorted by stride, slowest first, reversed axes
//! turned round, axes of length 1 left out. Every copy of an array, wherever it is, has this order
//! without gaps, so that one region means the same bytes at every location. More than six axes are
//! flattened, the slowest together.

use smallvec::SmallVec;

use crate::backend::{CopyBox, Footprint};
use crate::coherence::{AXES_MAX, Region, Span};

/// The index memory order of an array's memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct MemoryOrder {
    extents: SmallVec<[u64; 3]>,
    /// Their product.
    len: u64,
    element_bytes: u32,
}

/// Which elements of a memory_order: all, or boxes (one, unless axes were flattened).
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Selection {
    Whole,
    Boxes(SmallVec<[Region; 1]>),
}

/// A progression along one axis of a memory_order: `count` steps of `step`.
#[derive(Clone, Copy, Debug)]
struct Progression {
    step: u64,
    count: u64,
}

impl MemoryOrder {
    /// The memory order of an array of that shape and those strides (in elements) and the offset of
    /// its first element from the start of memory, in elements; `None` if its memory has gaps or
    /// overlaps.
    pub(crate) fn of(
        shape: &[usize],
        strides: &[isize],
        element_bytes: u32,
    ) -> Option<(Self, usize)> {
        if let Some(memory_order) = Self::of_rows(shape, strides, element_bytes) {
            return Some((memory_order, 0));
        }
        let mut axes: SmallVec<[(usize, isize); 6]> = shape
            .iter()
            .copied()
            .zip(strides.iter().copied())
            .filter(|(len, _)| *len != 1)
            .collect();
        if axes.iter().any(|(len, _)| *len == 0) {
            return Some((Self { extents: SmallVec::from_slice(&[0]), len: 0, element_bytes }, 0));
        }
        axes.sort_by_key(|(_, stride)| std::cmp::Reverse(stride.unsigned_abs()));
        let mut expected = 1_usize;
        for (len, stride) in axes.iter().rev() {
            if stride.unsigned_abs() != expected {
                return None;
            }
            expected = expected.checked_mul(*len)?;
        }
        let offset = axes
            .iter()
            .filter(|(_, stride)| *stride < 0)
            .map(|(len, stride)| (len - 1) * stride.unsigned_abs())
            .sum();
        let extents = axes.iter().map(|(len, _)| *len as u64).collect();
        Some((Self::flattened(extents, element_bytes), offset))
    }

    /// The same for rows first without gaps and lone axes, as most arrays are: nothing is to be
    /// sorted or left out.
    fn of_rows(shape: &[usize], strides: &[isize], element_bytes: u32) -> Option<Self> {
        let mut expected = 1_isize;
        for (len, stride) in shape.iter().zip(strides).rev() {
            if *len <= 1 || *stride != expected {
                return None;
            }
            expected = expected.checked_mul(isize::try_from(*len).ok()?)?;
        }
        if shape.len() > AXES_MAX {
            return None;
        }
        let mut extents = SmallVec::new();
        shape.iter().for_each(|len| extents.push(*len as u64));
        Some(Self { extents, len: expected as u64, element_bytes })
    }

    fn flattened(mut extents: SmallVec<[u64; 3]>, element_bytes: u32) -> Self {
        while extents.len() > AXES_MAX {
            let slowest = extents.remove(0);
            extents[0] *= slowest;
        }
        let len = extents.iter().product();
        Self { extents, len, element_bytes }
    }

    pub(crate) fn extents(&self) -> &[u64] {
        &self.extents
    }

    pub(crate) fn element_bytes(&self) -> usize {
        self.element_bytes as usize
    }

    /// Elements.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    #[inline]
    pub(crate) fn len_bytes(&self) -> u64 {
        self.len * u64::from(self.element_bytes)
    }

    /// No bytes at all: such arrays never reach a device.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.element_bytes == 0 || self.len == 0
    }

    pub(crate) fn whole(&self) -> Region {
        Region::whole(&self.extents)
    }

    /// Bytes of a region.
    pub(crate) fn region_bytes(&self, region: &Region) -> u64 {
        region.len() * u64::from(self.element_bytes)
    }

    /// The elements that a view of that shape, those strides and that offset (of its first element)
    /// looks at.
    pub(crate) fn select(&self, shape: &[usize], strides: &[isize], offset: usize) -> Selection {
        let len: u64 = shape.iter().map(|len| *len as u64).product();
        if len == self.len() {
            return Selection::Whole;
        }
        if len == 0 {
            return Selection::Boxes(SmallVec::new());
        }
        let lowest = shape
            .iter()
            .zip(strides)
            .filter(|(_, stride)| **stride < 0)
            .fold(offset as u64, |lowest, (len, stride)| {
                lowest - (*len as u64 - 1) * stride.unsigned_abs() as u64
            });
        match self.one_box(shape, strides, lowest) {
            Some(region) => Selection::Boxes(SmallVec::from_buf([region])),
            None => Selection::Boxes(self.boxes(shape, strides, lowest)),
        }
    }

    /// The box of a view that runs along each axis of this memory order with at most one of its
    /// own, as views do unless axes were flattened.
    fn one_box(&self, shape: &[usize], strides: &[isize], lowest: u64) -> Option<Region> {
        let axes = self.extents.len();
        let (mut spans, mut steps) = ([Span::EMPTY; AXES_MAX], [1_u64; AXES_MAX]);
        let (mut rest, mut step) = (lowest, 1);
        for (axis, extent) in self.extents.iter().enumerate().rev() {
            // Parts mostly start at or near the start of an axis, and a comparison is cheaper than
            // a division.
            let index = if rest < *extent { rest } else { rest % extent };
            rest = if rest < *extent { 0 } else { rest / extent };
            (spans[axis], steps[axis]) = (Span::single(index), step);
            step *= extent;
        }
        let mut taken = [false; AXES_MAX];
        for (len, stride) in shape.iter().zip(strides).filter(|(len, _)| **len > 1) {
            let stride = stride.unsigned_abs() as u64;
            let axis = steps[..axes].iter().position(|step| *step <= stride)?;
            if std::mem::replace(&mut taken[axis], true) {
                return None;
            }
            let (start, step) = (spans[axis].start(), stride / steps[axis]);
            spans[axis] = Span::new(start, start + (*len as u64 - 1) * step + 1, step);
        }
        Some(Region::new(&spans[..axes]))
    }

    /// The boxes of progressions that start at memory offset `lowest` and run along each axis of
    /// the view.
    fn boxes(&self, shape: &[usize], strides: &[isize], lowest: u64) -> SmallVec<[Region; 1]> {
        let start = self.index_of(lowest);
        let mut along: SmallVec<[SmallVec<[Progression; 1]>; AXES_MAX]> =
            self.extents.iter().map(|_| SmallVec::new()).collect();
        for (len, stride) in shape.iter().zip(strides).filter(|(len, _)| **len > 1) {
            let next = self.index_of(lowest + stride.unsigned_abs() as u64);
            if let Some(axis) = (0..start.len()).find(|axis| next[*axis] != start[*axis]) {
                along[axis]
                    .push(Progression { step: next[axis] - start[axis], count: *len as u64 });
            }
        }
        let spans = along
            .iter_mut()
            .zip(&start)
            .map(|(progressions, start)| spans_of(*start, progressions))
            .collect();
        product_of(spans)
    }

    /// The index of the element at a memory offset, counted in elements.
    pub(super) fn index_of(&self, mut offset: u64) -> SmallVec<[u64; AXES_MAX]> {
        let mut index: SmallVec<[u64; AXES_MAX]> = SmallVec::new();
        for extent in self.extents.iter().rev() {
            index.push(offset % extent);
            offset /= extent;
        }
        index.reverse();
        index
    }

    /// The bytes of a region, as runs.
    pub(crate) fn footprint(&self, region: &Region) -> Footprint {
        let element = u64::from(self.element_bytes);
        let (mut run, mut stride, mut offset) = (element, element, 0);
        let mut axes: SmallVec<[(u64, u64); 3]> = SmallVec::new();
        for (axis, extent) in self.extents.iter().enumerate().rev() {
            let span = region.span(axis);
            offset += span.start() * stride;
            if axes.is_empty() && run == stride && span.step() == 1 {
                run *= span.len();
            } else if span.len() > 1 {
                axes.push((span.len(), span.step() * stride));
            }
            stride *= extent;
        }
        axes.reverse();
        Footprint { offset_bytes: offset, run_bytes: run, axes }
    }

    /// Copies a region to the same location in another copy of the array.
    pub(crate) fn in_both(&self, region: &Region) -> CopyBox {
        let Footprint { offset_bytes, run_bytes, axes } = self.footprint(region);
        let axes = axes.into_iter().map(|(count, stride)| (count, stride, stride)).collect();
        CopyBox {
            run_bytes,
            source_offset_bytes: offset_bytes,
            destination_offset_bytes: offset_bytes,
            axes,
        }
    }

    /// Copies a region from memory where it lies packed, `packed_offset_bytes` from its start.
    pub(crate) fn out_of_packed(&self, region: &Region, packed_offset_bytes: u64) -> CopyBox {
        let Footprint { offset_bytes, run_bytes, axes } = self.footprint(region);
        let mut packed_stride = run_bytes;
        let mut axes: SmallVec<[(u64, u64, u64); 3]> = axes
            .into_iter()
            .rev()
            .map(|(count, stride)| {
                let axis = (count, packed_stride, stride);
                packed_stride *= count;
                axis
            })
            .collect();
        axes.reverse();
        CopyBox {
            run_bytes,
            source_offset_bytes: packed_offset_bytes,
            destination_offset_bytes: offset_bytes,
            axes,
        }
    }
}

impl Selection {
    /// Visits the boxes, or `None` for the whole, which the fast paths never make a box of.
    #[inline]
    pub(crate) fn each(&self, mut visit: impl FnMut(Option<&Region>)) {
        match self {
            Self::Whole => visit(None),
            Self::Boxes(boxes) => boxes.iter().for_each(|region| visit(Some(region))),
        }
    }

    pub(crate) fn for_each(&self, memory_order: &MemoryOrder, mut visit: impl FnMut(&Region)) {
        match self {
            Self::Whole => visit(&memory_order.whole()),
            Self::Boxes(boxes) => boxes.iter().for_each(visit),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Boxes(boxes) if boxes.is_empty())
    }

    #[inline]
    pub(crate) fn len_bytes(&self, memory_order: &MemoryOrder) -> u64 {
        match self {
            Self::Whole => memory_order.len_bytes(),
            Self::Boxes(boxes) => {
                boxes.iter().map(|region| memory_order.region_bytes(region)).sum()
            }
        }
    }

    /// Whether an element belongs to both.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Boxes(one), Self::Boxes(another)) => one
                .iter()
                .any(|region| another.iter().any(|other| region.intersection(other).is_some())),
            (Self::Whole, other) | (other, Self::Whole) => !other.is_empty(),
        }
    }
}

impl CopyBox {
    /// The same copy, back.
    pub(crate) fn reversed(self) -> Self {
        let axes = self
            .axes
            .into_iter()
            .map(|(count, source, destination)| (count, destination, source))
            .collect();
        Self {
            run_bytes: self.run_bytes,
            source_offset_bytes: self.destination_offset_bytes,
            destination_offset_bytes: self.source_offset_bytes,
            axes,
        }
    }
}

/// The spans along one axis that a view's progressions make: one, unless several axes of the view
/// were flattened into it.
fn spans_of(start: u64, progressions: &mut SmallVec<[Progression; 1]>) -> SmallVec<[Span; 1]> {
    progressions.sort_by_key(|progression| progression.step);
    let mut merged = Progression { step: 1, count: 1 };
    let mut outer: SmallVec<[Progression; 1]> = SmallVec::new();
    for next in progressions.iter() {
        if merged.count == 1 {
            merged = *next;
        } else if outer.is_empty() && next.step == merged.step * merged.count {
            merged.count *= next.count;
        } else {
            outer.push(*next);
        }
    }
    let mut starts: SmallVec<[u64; 1]> = SmallVec::from_slice(&[start]);
    for Progression { step, count } in outer {
        starts = starts
            .iter()
            .flat_map(|start| (0..count).map(move |turn| start + turn * step))
            .collect();
    }
    starts
        .into_iter()
        .map(|start| Span::new(start, start + (merged.count - 1) * merged.step + 1, merged.step))
        .collect()
}

/// All boxes with one span from each axis.
fn product_of(spans: SmallVec<[SmallVec<[Span; 1]>; AXES_MAX]>) -> SmallVec<[Region; 1]> {
    let mut boxes: SmallVec<[Region; 1]> =
        SmallVec::from_slice(&[Region::new(&[Span::single(0); AXES_MAX][..spans.len()])]);
    for (axis, choices) in spans.iter().enumerate() {
        boxes = boxes
            .iter()
            .flat_map(|region| choices.iter().map(move |span| region.with_span(axis, *span)))
            .collect();
    }
    boxes
}

#[cfg(test)]
mod tests {
    use super::{MemoryOrder, Selection};
    use crate::coherence::Region;

    fn points(region: &Region) -> u64 {
        region.len()
    }

    #[test]
    fn memory_order_is_found_in_any_axis_order_and_direction() {
        let (memory_order, offset) =
            MemoryOrder::of(&[2, 3, 4], &[1, -8, 2], 4).expect("contiguous");
        assert_eq!(memory_order.extents(), [3, 4, 2]);
        assert_eq!(offset, 16);
        assert!(MemoryOrder::of(&[2, 3], &[4, 1], 4).is_none(), "gaps");
        assert!(MemoryOrder::of(&[2, 3], &[0, 1], 4).is_none(), "overlaps");
    }

    #[test]
    fn lone_axes_have_any_stride() {
        let (memory_order, offset) =
            MemoryOrder::of(&[1, 5, 1], &[77, 1, -3], 1).expect("contiguous");
        assert_eq!((memory_order.extents(), offset), (&[5][..], 0));
    }

    #[test]
    fn seven_axes_are_flattened_and_parts_of_them_become_several_boxes() {
        let shape = [2, 3, 2, 2, 2, 2, 2];
        let strides = [96, 32, 16, 8, 4, 2, 1];
        let (memory_order, _) = MemoryOrder::of(&shape, &strides, 1).expect("contiguous");
        assert_eq!(memory_order.extents(), [6, 2, 2, 2, 2, 2]);
        let Selection::Boxes(boxes) = memory_order.select(&[2, 2, 2, 2, 2, 2, 2], &strides, 0)
        else {
            panic!("not the whole")
        };
        assert_eq!(boxes.iter().map(points).sum::<u64>(), 128);
        assert_eq!(boxes.len(), 2, "rows 0, 1 and 3, 4 of the flattened axis");
    }

    #[test]
    fn a_strided_part_is_one_box() {
        let (memory_order, _) = MemoryOrder::of(&[10, 12], &[12, 1], 4).expect("contiguous");
        let Selection::Boxes(boxes) = memory_order.select(&[3, 4], &[24, -3], 12 + 11) else {
            panic!("not the whole")
        };
        assert_eq!(boxes.len(), 1);
        let (rows, columns) = (boxes[0].span(0), boxes[0].span(1));
        assert_eq!((rows.start(), rows.step(), rows.len()), (1, 2, 3));
        assert_eq!((columns.start(), columns.step(), columns.len()), (2, 3, 4));
    }

    #[test]
    fn a_footprint_runs_as_long_as_memory_is_unbroken() {
        let (memory_order, _) = MemoryOrder::of(&[4, 5, 6], &[30, 6, 1], 8).expect("contiguous");
        let whole = memory_order.footprint(&memory_order.whole());
        assert_eq!((whole.offset_bytes, whole.run_bytes, whole.axes.len()), (0, 960, 0));
        let Selection::Boxes(planes) = memory_order.select(&[2, 5, 6], &[30, 6, 1], 30) else {
            panic!("not the whole")
        };
        let plane = memory_order.footprint(&planes[0]);
        assert_eq!((plane.offset_bytes, plane.run_bytes, plane.axes.len()), (240, 480, 0));
        let Selection::Boxes(columns) = memory_order.select(&[4, 5], &[30, 6], 3) else {
            panic!("not the whole")
        };
        let column = memory_order.footprint(&columns[0]);
        assert_eq!((column.offset_bytes, column.run_bytes), (24, 8));
        assert_eq!(column.axes.as_slice(), [(4, 240), (5, 48)]);
    }
}
