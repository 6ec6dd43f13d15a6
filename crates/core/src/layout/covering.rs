//! Views whose elements are no whole units, as bytes of numbers are: the units that cover them.

use smallvec::SmallVec;

use super::crossing::ascending;
use super::selection::common_divisor;
use super::strided::OwnView;
use super::{MemoryOrder, Strided};
use crate::coherence::Region;

impl MemoryOrder {
    /// Whether a view has one element of this size, or none, in each element of the array, so that
    /// it is a field of some of them, or these elements themselves.
    pub fn has_fields(&self, view: &Strided<'_>, element_bytes: u32) -> bool {
        let (own, len_bytes) = (self.byte_axis().len(), u64::from(element_bytes));
        if len_bytes == own || view.is_empty() {
            return true;
        }
        let is_whole = |(len, stride): (&usize, &isize)| {
            *len <= 1 || (stride.unsigned_abs() as u64 * len_bytes).is_multiple_of(own)
        };
        self.is_divided()
            && view.lowest() * len_bytes % own + len_bytes <= own
            && view.shape.iter().zip(view.strides).all(is_whole)
    }

    /// The boxes of units of which a view has a part, each unit once. The view counts parts of a
    /// unit, of which there are `per_unit`.
    pub(super) fn covering(&self, view: &Strided<'_>, per_unit: usize) -> SmallVec<[Region; 1]> {
        let mut covering: SmallVec<[Region; 1]> = SmallVec::new();
        for view in covering_views(ascending(view), per_unit) {
            let boxes = self.boxes_of_crossing(&view.strided());
            boxes.into_iter().for_each(|region| add_rest(&mut covering, region));
        }
        covering
    }
}

/// Adds what the boxes do not have of another one.
fn add_rest(boxes: &mut SmallVec<[Region; 1]>, region: Region) {
    let mut rest: SmallVec<[Region; 1]> = SmallVec::from_iter([region]);
    for known in boxes.iter() {
        let mut left = SmallVec::new();
        rest.iter().for_each(|part| part.difference(known, |piece| left.push(*piece)));
        rest = left;
    }
    boxes.extend(rest);
}

/// The views of units that cover a view of parts of units, whose axes ascend. They may overlap.
fn covering_views(view: OwnView, per_unit: usize) -> Vec<OwnView> {
    let (mut left, mut views) = (vec![view], Vec::new());
    while let Some(mut view) = left.pop() {
        let long = (0..view.shape.len()).find_map(|axis| {
            let period = period(view.strides[axis] as usize, per_unit);
            (period > 1 && view.shape[axis] > period).then_some((axis, period))
        });
        match long {
            // Rows of this length start at the same part of a unit.
            Some((axis, period)) if view.shape[axis].is_multiple_of(period) => {
                view.split_rows(axis, period);
                left.push(view);
            }
            Some((axis, period)) => {
                let rows = view.shape[axis] / period * period;
                left.extend(view.cut(axis, rows));
            }
            None => views.extend(views_of_units(&view, per_unit)),
        }
    }
    views
}

/// After how many steps of this stride the same part of a unit follows.
fn period(stride: usize, per_unit: usize) -> usize {
    per_unit / common_divisor((stride % per_unit) as u32, per_unit as u32) as usize
}

/// As [`covering_views`], for a view of which each axis either keeps to one part of the units or is
/// short.
fn views_of_units(view: &OwnView, per_unit: usize) -> impl Iterator<Item = OwnView> {
    let mut starts = vec![view.offset];
    let mut whole = OwnView { shape: SmallVec::new(), strides: SmallVec::new(), offset: 0 };
    for (len, stride) in view.shape.iter().zip(&view.strides) {
        if stride.unsigned_abs().is_multiple_of(per_unit) {
            whole.shape.push(*len);
            whole.strides.push(stride / per_unit as isize);
        } else {
            let along = |start: &usize| (0..*len).map(|at| start + at * *stride as usize).collect();
            starts = starts.iter().flat_map(|start| -> Vec<usize> { along(start) }).collect();
        }
    }
    let mut units: Vec<usize> = starts.into_iter().map(|start| start / per_unit).collect();
    units.sort_unstable();
    units.dedup();
    units.into_iter().map(move |offset| OwnView { offset, ..whole.clone() })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{MemoryOrder, Strided};

    /// The bytes of a view, which are distinct.
    fn bytes_of(view: &Strided<'_>, element_bytes: usize) -> Vec<usize> {
        let mut offsets = vec![view.offset as isize];
        for (len, stride) in view.shape.iter().zip(view.strides) {
            let along = |from: isize| (0..*len as isize).map(move |at| from + at * stride);
            offsets = offsets.into_iter().flat_map(along).collect();
        }
        let bytes = |offset: isize| (0..element_bytes).map(move |at| (offset as usize, at));
        let bytes = offsets.into_iter().flat_map(bytes);
        bytes.map(|(offset, at)| offset * element_bytes + at).collect()
    }

    /// Checks that the boxes of a view have each unit of its bytes once, and no other.
    fn assert_covers(memory_order: &MemoryOrder, view: &Strided<'_>, element_bytes: usize) {
        let unit_bytes = memory_order.unit_bytes() as usize;
        let bytes = bytes_of(view, element_bytes);
        let expected: BTreeSet<usize> = bytes.iter().map(|byte| byte / unit_bytes).collect();
        let mut found = Vec::new();
        let selection = memory_order.select(view, element_bytes as u32);
        selection.for_each_region(memory_order, |region| {
            memory_order.footprint(region).copy_to_same_offsets().for_each_run(
                &mut |from, _, len| {
                    found.extend((from..from + len).step_by(unit_bytes));
                },
            );
        });
        let mut units: Vec<usize> = found.iter().map(|byte| *byte as usize / unit_bytes).collect();
        units.sort_unstable();
        let expected: Vec<usize> = expected.into_iter().collect();
        assert_eq!(units, expected, "{view:?} of {element_bytes} bytes in {memory_order:?}");
    }

    #[test]
    fn parts_of_units_are_covered_once() {
        for (shape, strides) in
            [(&[12][..], &[1][..]), (&[3, 4], &[4, 1]), (&[2, 3, 2], &[6, 2, 1])]
        {
            let (memory_order, _) = MemoryOrder::of(shape, strides, 4).expect("contiguous");
            for element_bytes in [1, 2, 3, 4, 6, 8, 12, 16] {
                let all: usize = 48 / element_bytes;
                for (start, step) in (0..all).flat_map(|at| (1..10).map(move |step| (at, step))) {
                    for len in 1..=(all - start).div_ceil(step) {
                        let view =
                            Strided { shape: &[len], strides: &[step as isize], offset: start };
                        assert_covers(&memory_order, &view, element_bytes);
                    }
                }
            }
        }
    }

    #[test]
    fn parts_with_several_axes_are_covered_once() {
        let (memory_order, _) = MemoryOrder::of(&[6, 5], &[5, 1], 4).expect("contiguous");
        for (shape, strides, offset) in [
            (&[6, 8][..], &[20, 1][..], 4),
            (&[6, 7], &[20, 1], 3),
            (&[3, 7], &[40, 2], 1),
            (&[5, 6], &[-4, 20], 16),
            (&[4, 3], &[9, 3], 2),
            (&[3, 4, 5], &[-40, 1, 4], 80),
            (&[2, 3, 2], &[50, 7, -3], 9),
        ] {
            assert_covers(&memory_order, &Strided { shape, strides, offset }, 1);
        }
    }

    #[test]
    fn whole_units_of_rows_are_one_box() {
        let (memory_order, _) = MemoryOrder::of(&[100, 50], &[50, 1], 8).expect("contiguous");
        let tile = Strided { shape: &[10, 160], strides: &[400, 1], offset: 4_016 };
        let mut regions = Vec::new();
        let selection = memory_order.select(&tile, 1);
        selection.for_each_region(&memory_order, |region| regions.push(*region));
        assert_eq!(regions.len(), 1);
        assert_eq!(selection.len_bytes(&memory_order), 1_600);
    }

    #[test]
    fn fields_are_one_in_each_element() {
        let (memory_order, _) = MemoryOrder::of(&[10], &[1], 12).expect("contiguous");
        let records = memory_order.clone().divided();
        let view = |strides, offset| Strided { shape: &[3], strides, offset };
        assert!(records.has_fields(&view(&[3], 2), 4) && records.has_fields(&view(&[2], 1), 12));
        assert!(records.has_fields(&Strided { shape: &[], strides: &[], offset: 5 }, 4));
        assert!(!records.has_fields(&view(&[1], 0), 4) && !records.has_fields(&view(&[3], 1), 8));
        assert!(!memory_order.has_fields(&view(&[3], 0), 4), "a number has no fields");
        assert!(
            !memory_order.has_fields(&view(&[1], 0), 24)
                && memory_order.has_fields(&view(&[1], 0), 12)
        );
    }
}
