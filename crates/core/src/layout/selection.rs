//! The elements of a view as boxes in memory order.

use smallvec::SmallVec;

use super::{MemoryOrder, Strided};
use crate::coherence::{AXES_MAX, Region, Span};

/// Elements of an array: all, or boxes. There is one box, unless axes of the array were combined
/// into one axis.
#[derive(Clone, PartialEq, Debug)]
pub enum Selection {
    Whole,
    Boxes(SmallVec<[Region; 1]>),
}

/// `count` indices along one axis of a memory order, `step` apart.
#[derive(Clone, Copy, Debug)]
struct Progression {
    step: u64,
    count: u64,
}

impl Selection {
    /// Visits the boxes, or `None` for the whole array: fast paths do not build a region of the
    /// whole array.
    #[inline]
    pub fn visit_boxes_or_whole(&self, mut visit: impl FnMut(Option<&Region>)) {
        match self {
            Self::Whole => visit(None),
            Self::Boxes(boxes) => boxes.iter().for_each(|region| visit(Some(region))),
        }
    }

    /// Visits the boxes. The whole array is a box too.
    pub fn for_each_region(&self, memory_order: &MemoryOrder, mut visit: impl FnMut(&Region)) {
        match self {
            Self::Whole => visit(&memory_order.whole()),
            Self::Boxes(boxes) => boxes.iter().for_each(visit),
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Boxes(boxes) if boxes.is_empty())
    }

    #[inline]
    pub fn len_bytes(&self, memory_order: &MemoryOrder) -> u64 {
        match self {
            Self::Whole => memory_order.len_bytes(),
            Self::Boxes(boxes) => {
                boxes.iter().map(|region| memory_order.region_bytes(region)).sum()
            }
        }
    }

    /// Whether all these elements are in `region`. False for the whole array.
    pub(super) fn lies_in(&self, region: &Region) -> bool {
        let is_inside = |part: &Region| region.intersection(part).as_ref() == Some(part);
        matches!(self, Self::Boxes(boxes) if boxes.iter().all(is_inside))
    }

    /// Whether the two selections have an element in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Boxes(one), Self::Boxes(another)) => one
                .iter()
                .any(|region| another.iter().any(|other| region.intersection(other).is_some())),
            (Self::Whole, other) | (other, Self::Whole) => !other.is_empty(),
        }
    }
}

impl MemoryOrder {
    /// The elements of a view, which have this size. If they are no whole units, the units that
    /// cover them.
    pub fn select(&self, view: &Strided<'_>, element_bytes: u32) -> Selection {
        let len = view.distinct_len();
        if len * u64::from(element_bytes) == self.len_bytes() {
            return Selection::Whole;
        }
        if len == 0 {
            return Selection::Boxes(SmallVec::new());
        }
        if element_bytes != self.unit_bytes() {
            return self.select_other(view, element_bytes);
        }
        self.boxes(view)
    }

    /// As [`select`](Self::select), for elements that are no units.
    fn select_other(&self, view: &Strided<'_>, element_bytes: u32) -> Selection {
        let part_bytes = common_divisor(element_bytes, self.unit_bytes());
        let parts = view.in_bytes(element_bytes / part_bytes);
        match self.unit_bytes() / part_bytes {
            1 => self.boxes(&parts.strided()),
            per_unit => Selection::Boxes(self.covering(&parts.strided(), per_unit as usize)),
        }
    }

    /// The bytes of an element of which a view has `value`, which is repeated around it.
    pub fn widened(&self, selection: &Selection, value: &[u8]) -> SmallVec<[u8; 16]> {
        let mut element = SmallVec::from_elem(0, self.byte_axis().len() as usize);
        let start = match selection {
            Selection::Boxes(boxes) => {
                boxes.first().map_or(0, |region| self.element_range(region).start)
            }
            Selection::Whole => 0,
        };
        let (before, after) = element.split_at_mut(start);
        let places = after.iter_mut().chain(before);
        places.zip(value.iter().cycle()).for_each(|(place, byte)| *place = *byte);
        element
    }

    /// The boxes of a view in units.
    pub(super) fn boxes(&self, view: &Strided<'_>) -> Selection {
        if let Some(region) = self.one_box(view, view.lowest()) {
            return Selection::Boxes(SmallVec::from_buf([region]));
        }
        let boxes = self.boxes_within(view).unwrap_or_else(|| self.boxes_of_crossing(view));
        Selection::Boxes(boxes)
    }

    /// The single box of a view, if at most one axis of the view runs along each axis of this
    /// memory order, and within it. More than one can run along an axis only if axes were combined.
    pub(super) fn one_box(&self, view: &Strided<'_>, lowest: u64) -> Option<Region> {
        let axes = self.extents().len();
        let (mut spans, mut steps) = ([Span::EMPTY; AXES_MAX], [1_u64; AXES_MAX]);
        let (mut rest, mut step) = (lowest, 1);
        for (axis, extent) in self.extents().iter().enumerate().rev() {
            // Most parts start at or near the start of an axis, and a comparison is cheaper than a
            // division.
            let index = if rest < *extent { rest } else { rest % extent };
            rest = if rest < *extent { 0 } else { rest / extent };
            (spans[axis], steps[axis]) = (Span::single(index), step);
            step *= extent;
        }
        let mut taken = 0_u8;
        for (at, (len, stride)) in moving_axes(view).enumerate() {
            let stride = stride.unsigned_abs() as u64;
            // Usually each axis of a view runs along the same axis of the array, without gaps.
            let is_same = steps[..axes].get(at).is_some_and(|step| *step == stride);
            let axis =
                if is_same { at } else { steps[..axes].iter().position(|step| *step <= stride)? };
            if taken & 1 << axis != 0 {
                return None;
            }
            taken |= 1 << axis;
            let start = spans[axis].start();
            let step = if is_same { 1 } else { stride / steps[axis] };
            let last = start + (len as u64 - 1) * step;
            if last >= self.extents()[axis] || step * steps[axis] != stride {
                return None;
            }
            spans[axis] = Span::new(start, last + 1, step);
        }
        Some(Region::of_spans(axes, spans))
    }

    /// The boxes of a view of which several axes may run along one axis of this memory order.
    /// `None` if an axis runs along several, or several together.
    pub(super) fn boxes_within(&self, view: &Strided<'_>) -> Option<SmallVec<[Region; 1]>> {
        let lowest = view.lowest();
        let start = self.index_of(lowest);
        let mut along: SmallVec<[SmallVec<[Progression; 1]>; AXES_MAX]> =
            self.extents().iter().map(|_| SmallVec::new()).collect();
        for (len, stride) in moving_axes(view) {
            let next = self.index_of(lowest + stride.unsigned_abs() as u64);
            let mut changed = (0..start.len()).filter(|axis| next[*axis] != start[*axis]);
            let (axis, None) = (changed.next()?, changed.next()) else { return None };
            let step = next[axis].checked_sub(start[axis])?;
            along[axis].push(Progression { step, count: len as u64 });
        }
        let spans = along
            .iter_mut()
            .zip(start.iter().zip(self.extents()))
            .map(|(progressions, (start, extent))| {
                let last = |sum, axis: &Progression| sum + (axis.count - 1) * axis.step;
                let is_within = progressions.iter().fold(*start, last) < *extent;
                is_within.then(|| spans_of(*start, progressions))
            })
            .collect::<Option<_>>()?;
        Some(product_of(spans))
    }
}

/// The largest number that divides both, of which none is 0.
pub(super) fn common_divisor(mut one: u32, mut other: u32) -> u32 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// Lengths and strides of the axes along which a view has several elements in memory.
#[inline]
fn moving_axes(view: &Strided<'_>) -> impl Iterator<Item = (usize, isize)> {
    let axes = view.shape.iter().copied().zip(view.strides.iter().copied());
    axes.filter(|(len, stride)| *len > 1 && *stride != 0)
}

/// The spans, starting at `start`, of the progressions along one axis. There is one span, unless
/// several axes of the view were combined into this axis.
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
            .flat_map(|start| (0..count).map(move |index| start + index * step))
            .collect();
    }
    starts
        .into_iter()
        .map(|start| Span::new(start, start + (merged.count - 1) * merged.step + 1, merged.step))
        .collect()
}

/// All boxes made of one span from each axis.
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
    use super::{MemoryOrder, Selection, Strided};

    fn boxes(selection: Selection) -> Vec<crate::coherence::Region> {
        match selection {
            Selection::Whole => panic!("not the whole"),
            Selection::Boxes(boxes) => boxes.to_vec(),
        }
    }

    #[test]
    fn parts_of_flattened_axes_become_several_boxes() {
        let shape = [2, 3, 2, 2, 2, 2, 2];
        let strides = [96, 32, 16, 8, 4, 2, 1];
        let (memory_order, _) = MemoryOrder::of(&shape, &strides, 1).expect("contiguous");
        assert_eq!(memory_order.extents(), [6, 2, 2, 2, 2, 2]);
        let part = Strided { shape: &[2; 7], strides: &strides, offset: 0 };
        let boxes = boxes(memory_order.select(&part, 1));
        assert_eq!(boxes.iter().map(|region| region.len()).sum::<u64>(), 128);
        assert_eq!(boxes.len(), 2, "rows 0, 1 and 3, 4 of the flattened axis");
    }

    #[test]
    fn a_strided_part_is_one_box() {
        let (memory_order, _) = MemoryOrder::of(&[10, 12], &[12, 1], 4).expect("contiguous");
        let part = Strided { shape: &[3, 4], strides: &[24, -3], offset: 12 + 11 };
        let boxes = boxes(memory_order.select(&part, 4));
        assert_eq!(boxes.len(), 1);
        let (rows, columns) = (boxes[0].span(0), boxes[0].span(1));
        assert_eq!((rows.start(), rows.step(), rows.len()), (1, 2, 3));
        assert_eq!((columns.start(), columns.step(), columns.len()), (2, 3, 4));
    }

    #[test]
    fn repeated_axes_select_their_elements_once() {
        let (memory_order, _) = MemoryOrder::of(&[4, 5], &[5, 1], 4).expect("contiguous");
        let column = Strided { shape: &[4, 9], strides: &[5, 0], offset: 2 };
        let boxes = boxes(memory_order.select(&column, 4));
        assert_eq!((boxes.len(), boxes[0].len()), (1, 4));
        // As many elements as the array has, but not the array.
        let one = Strided { shape: &[20], strides: &[0], offset: 2 };
        assert!(
            matches!(memory_order.select(&one, 4), Selection::Boxes(boxes) if boxes[0].len() == 1)
        );
        let all = Strided { shape: &[2, 4, 5], strides: &[0, 5, 1], offset: 0 };
        assert!(matches!(memory_order.select(&all, 4), Selection::Whole));
    }

    #[test]
    fn a_part_that_leaves_out_an_axis_is_one_box() {
        let (memory_order, _) = MemoryOrder::of(&[4, 5, 6], &[30, 6, 1], 8).expect("contiguous");
        let column = Strided { shape: &[4, 5], strides: &[30, 6], offset: 3 };
        let boxes = boxes(memory_order.select(&column, 8));
        assert_eq!((boxes.len(), boxes[0].span(2).start(), boxes[0].len()), (1, 3, 20));
    }

    /// Fields of 1, 2, 3 and 6 bytes of records of 6 bytes, in every part of an array.
    #[test]
    fn every_part_of_every_field_is_selected_exactly() {
        let (memory_order, _) = MemoryOrder::of(&[2, 4], &[4, 1], 6).expect("contiguous");
        let memory_order = memory_order.divided();
        for (field_bytes, field) in
            [1, 2, 3, 6].into_iter().flat_map(|bytes| (0..6 / bytes).map(move |at| (bytes, at)))
        {
            let slots = 6 / field_bytes;
            for (start, len, step) in (0..8).flat_map(|start| {
                (1..=8).flat_map(move |len| (1..=4).map(move |step| (start, len, step)))
            }) {
                if start + (len - 1) * step >= 8 {
                    continue;
                }
                let view = Strided {
                    shape: &[len],
                    strides: &[(step * slots) as isize],
                    offset: start * slots + field,
                };
                let mut found: Vec<u64> = Vec::new();
                let selected = memory_order.select(&view, field_bytes as u32);
                selected.for_each_region(&memory_order, |region| {
                    let copy = memory_order.footprint(region).copy_to_same_offsets();
                    copy.for_each_run(&mut |from, _, bytes| found.extend(from..from + bytes));
                });
                found.sort_unstable();
                let bytes_of = |index| {
                    let first = 6 * (start + index * step) + field * field_bytes;
                    first as u64..(first + field_bytes) as u64
                };
                let expected: Vec<u64> = (0..len).flat_map(bytes_of).collect();
                assert_eq!(found, expected, "{field_bytes} bytes, {view:?}");
            }
        }
    }
}
