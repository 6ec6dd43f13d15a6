//! Views of which one axis runs along several axes of the memory order, as a reshaped view has:
//! a table's elements as one line. Such an axis is split where it passes from one row to the next.

use smallvec::SmallVec;

use super::strided::OwnView;
use super::{MemoryOrder, Strided};
use crate::coherence::Region;

/// Where an axis of a view passes from one row of the memory order to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Crossing {
    /// Nowhere: it runs along one axis of the memory order.
    Never,
    /// After each row of this many elements.
    Rows(usize),
    /// Only the elements before this one are in the first row, or in whole rows.
    Cut(usize),
}

/// An index along an axis of the memory order, whose neighbours are `step` units apart.
#[derive(Clone, Copy)]
struct MemoryIndex {
    index: u64,
    extent: u64,
    step: u64,
}

impl OwnView {
    /// With an axis split into rows of `inner` elements.
    pub(super) fn split_rows(&mut self, axis: usize, inner: usize) {
        let stride = self.strides[axis];
        self.shape[axis] /= inner;
        self.strides[axis] = stride * inner as isize;
        self.shape.insert(axis + 1, inner);
        self.strides.insert(axis + 1, stride);
    }

    /// The elements before index `at` of an axis, and those from it on. The axis ascends.
    pub(super) fn cut(mut self, axis: usize, at: usize) -> [Self; 2] {
        let mut rest = self.clone();
        rest.offset += at * self.strides[axis] as usize;
        rest.shape[axis] -= at;
        self.shape[axis] = at;
        [self, rest]
    }
}

impl Strided<'_> {
    /// This view and another of its shape, with axes split so that each axis of this view runs
    /// along one axis of the memory order. `None` if that is so already, or cannot be reached by
    /// splitting axes into whole rows.
    pub fn split_with(
        &self,
        other: &Strided<'_>,
        element_bytes: u32,
        memory_order: &MemoryOrder,
    ) -> Option<(OwnView, OwnView)> {
        let (mut own, mut other) = (self.to_own(), other.to_own());
        let units = element_bytes / memory_order.unit_bytes().max(1);
        let lowest = self.lowest() * u64::from(units);
        let mut axis = 0;
        while axis < own.shape.len() {
            let stride = own.strides[axis].unsigned_abs() * units as usize;
            match memory_order.crossing_of(lowest, own.shape[axis], stride) {
                Crossing::Never => axis += 1,
                // The rows come before their elements, and may again run along several axes.
                Crossing::Rows(inner) => {
                    own.split_rows(axis, inner);
                    other.split_rows(axis, inner);
                }
                Crossing::Cut(_) => return None,
            }
        }
        (own.shape.len() > self.shape.len()).then_some((own, other))
    }
}

impl MemoryOrder {
    /// Where an axis with this length and stride crosses rows, from the element at `lowest` on.
    fn crossing_of(&self, lowest: u64, len: usize, stride: usize) -> Crossing {
        let (len, stride) = (len as u64, stride as u64);
        if len <= 1 || stride == 0 {
            return Crossing::Never;
        }
        let (mut rest, mut step) = (lowest, 1);
        for extent in self.extents().iter().rev() {
            let (index, next_step) = (rest % extent, step * extent);
            rest /= extent;
            if stride < next_step {
                return MemoryIndex { index, extent: *extent, step }.crossing(len, stride);
            }
            step = next_step;
        }
        Crossing::Never
    }

    /// The axis, and the index along it, at which to cut a view that ascends and is several boxes:
    /// where an axis passes to the next row, else in the middle.
    pub(super) fn cut_of(&self, view: &Strided<'_>) -> (usize, u64) {
        let lowest = view.offset as u64;
        let mut middle = None;
        for (axis, (len, stride)) in view.shape.iter().zip(view.strides).enumerate() {
            match self.crossing_of(lowest, *len, stride.unsigned_abs()) {
                Crossing::Cut(at) => return (axis, at as u64),
                Crossing::Rows(inner) => middle = Some((axis, (len / inner / 2 * inner) as u64)),
                Crossing::Never => {}
            }
        }
        let slowest = || {
            let can_be_cut = |axis: &usize| view.shape[*axis] > 1;
            let axes = (0..view.shape.len()).filter(can_be_cut);
            axes.max_by_key(|axis| view.strides[*axis]).unwrap_or(0)
        };
        middle.unwrap_or_else(|| {
            let axis = slowest();
            (axis, view.shape[axis] as u64 / 2)
        })
    }

    /// The boxes of a view of which some axis runs along several axes of this memory order.
    pub(super) fn boxes_of_crossing(&self, view: &Strided<'_>) -> SmallVec<[Region; 1]> {
        let mut boxes = SmallVec::new();
        let mut left: Vec<OwnView> = vec![ascending(view)];
        while let Some(mut view) = left.pop() {
            let lowest = view.offset as u64;
            let crossing_of = |axis: usize| {
                self.crossing_of(lowest, view.shape[axis], view.strides[axis].unsigned_abs())
            };
            let crossing = (0..view.shape.len())
                .map(|axis| (axis, crossing_of(axis)))
                .find(|(_, crossing)| *crossing != Crossing::Never);
            match crossing {
                Some((axis, Crossing::Rows(inner))) => {
                    view.split_rows(axis, inner);
                    left.push(view);
                }
                Some((axis, Crossing::Cut(at))) => left.extend(view.cut(axis, at)),
                _ => match self.boxes_within(&view.strided()) {
                    Some(found) => boxes.extend(found),
                    // Axes cross only together: their elements are taken one by one.
                    None => left.extend(halves(view)),
                },
            }
        }
        boxes
    }
}

impl MemoryIndex {
    /// Where an axis with this length and stride, which begins here, crosses rows.
    fn crossing(self, len: u64, stride: u64) -> Crossing {
        let Self { index, extent, step } = self;
        let per_element = stride / step;
        if !stride.is_multiple_of(step) {
            return Crossing::Cut(1);
        }
        let in_first_row = (extent - index).div_ceil(per_element);
        if len <= in_first_row {
            return Crossing::Never;
        }
        let per_row = extent / per_element;
        if !extent.is_multiple_of(per_element) || index >= per_element {
            return Crossing::Cut(in_first_row as usize);
        }
        match len % per_row {
            0 => Crossing::Rows(per_row as usize),
            rest => Crossing::Cut((len - rest) as usize),
        }
    }
}

/// The same elements with all axes ascending, and without repeated axes.
pub(super) fn ascending(view: &Strided<'_>) -> OwnView {
    let mut own = OwnView {
        shape: SmallVec::new(),
        strides: SmallVec::new(),
        offset: view.lowest() as usize,
    };
    for (len, stride) in view.shape.iter().zip(view.strides) {
        if *len > 1 && *stride != 0 {
            own.shape.push(*len);
            own.strides.push(stride.abs());
        }
    }
    own
}

/// The two halves of the longest axis.
fn halves(view: OwnView) -> [OwnView; 2] {
    let longest = (0..view.shape.len()).max_by_key(|axis| view.shape[*axis]).unwrap_or(0);
    let middle = view.shape[longest] / 2;
    view.cut(longest, middle)
}

#[cfg(test)]
mod tests {
    use super::{MemoryOrder, Strided};
    use crate::layout::Selection;

    /// The offsets of a view's elements.
    fn offsets(view: &Strided<'_>) -> Vec<u64> {
        let mut offsets = vec![view.lowest()];
        for (len, stride) in view.shape.iter().zip(view.strides) {
            let along = |from: u64| {
                (0..*len as u64).map(move |index| from + index * stride.unsigned_abs() as u64)
            };
            offsets = offsets.into_iter().flat_map(along).collect();
        }
        offsets.sort_unstable();
        offsets.dedup();
        offsets
    }

    fn assert_exact(extents: &[usize], view: &Strided<'_>) -> usize {
        let mut strides = vec![1; extents.len()];
        for axis in (1..extents.len()).rev() {
            strides[axis - 1] = strides[axis] * extents[axis] as isize;
        }
        let (memory_order, _) = MemoryOrder::of(extents, &strides, 4).expect("contiguous");
        let Selection::Boxes(boxes) = memory_order.select(view, 4) else { return 1 };
        let len: u64 = boxes.iter().map(|region| region.len()).sum();
        let expected = offsets(view);
        assert_eq!(len, expected.len() as u64, "{view:?} in {extents:?}: {boxes:?}");
        for offset in expected {
            let index = memory_order.index_of(offset);
            let found = boxes.iter().filter(|region| region.contains_point(&index)).count();
            assert_eq!(found, 1, "{view:?} in {extents:?}: {offset} in {boxes:?}");
        }
        boxes.len()
    }

    #[test]
    fn every_part_of_a_line_over_a_table_is_selected_exactly() {
        let mut most = 0;
        for extents in [&[4, 6][..], &[3, 5], &[2, 3, 4], &[5, 1, 3]] {
            let all: usize = extents.iter().product();
            for step in 1..=all {
                for start in 0..all {
                    for len in 1..=(all - start).div_ceil(step) {
                        for stride in [step as isize, -(step as isize)] {
                            let first = if stride > 0 { start } else { start + (len - 1) * step };
                            let view = Strided { shape: &[len], strides: &[stride], offset: first };
                            most = most.max(assert_exact(extents, &view));
                        }
                    }
                }
            }
        }
        assert!(most < 12, "{most} boxes");
    }

    #[test]
    fn pairs_of_axes_that_cross_are_selected_exactly() {
        for (shape, strides, offset) in [
            ([2, 6], [12, 1], 0),
            ([4, 3], [6, 2], 0),
            ([2, 5], [10, 1], 1),
            ([3, 4], [8, 1], 2),
            ([3, 3], [7, 2], 1),
            ([2, 12], [12, -1], 11),
            ([6, 2], [0, 5], 3),
        ] {
            let view = Strided { shape: &shape, strides: &strides, offset };
            for extents in [&[4, 6][..], &[2, 3, 4], &[12, 2]] {
                assert_exact(extents, &view);
            }
        }
    }

    #[test]
    fn whole_rows_are_one_box() {
        let line = Strided { shape: &[4_000], strides: &[1], offset: 1_000 };
        assert_eq!(assert_exact(&[1_000, 10], &line), 1);
        let shifted = Strided { shape: &[4_000], strides: &[1], offset: 1_003 };
        assert_eq!(assert_exact(&[1_000, 10], &shifted), 3);
        let every_other = Strided { shape: &[2_000], strides: &[2], offset: 1_001 };
        assert_eq!(assert_exact(&[1_000, 10], &every_other), 1);
    }
}
