//! Merging of boxes with equal values whose union is a box.

use std::ops::ControlFlow;

use smallvec::SmallVec;

use super::box_store::BoxStore;
use crate::coherence::region::{AXES_MAX, Region, elements, merged_spans};
use crate::coherence::span::Span;

/// A box of up to this number of elements has only a few neighbours.
const FEW_ELEMENTS_MAX: u64 = 16;

/// One index per axis.
type Point = SmallVec<[u64; AXES_MAX]>;

impl<V: Clone + PartialEq> BoxStore<V> {
    /// Merges the boxes in these slots with their neighbours, until no two can be merged. A merge
    /// can free slots; free slots in the list are ignored.
    pub(super) fn merge_all(&mut self, slots: &[u32]) {
        if self.count() > 1 {
            for slot in slots {
                self.merge(*slot);
            }
        }
    }

    /// Merges the box in `slot` with its neighbours until none can be merged.
    fn merge(&mut self, slot: u32) {
        while let Some((neighbour, union)) = self.mergeable_neighbour(slot) {
            let _ = self.remove(neighbour);
            self.reshape(slot, &union);
        }
    }

    /// A box with the same value whose union with the box in `slot` is a box, and that union.
    fn mergeable_neighbour(&self, slot: u32) -> Option<(u32, Region)> {
        let value = self.value(slot)?;
        let union = |other: u32| {
            if other == slot || self.value(other) != Some(value) {
                return None;
            }
            let (axis, span) =
                merged_spans(self.spans(slot), self.spans(other), Span::union_without_gap)?;
            Some((other, axis, span))
        };
        let (other, axis, span) = if !self.is_indexed() {
            self.slots().find_map(union)?
        } else if self.has_few_neighbours(slot) {
            self.find_around(slot, union)?
        } else {
            self.adjacent(slot).find_map(union)?
        };
        Some((other, self.region(slot).with_span(axis, span)))
    }

    /// Whether the box in `slot` is so small that at most a few boxes touch it.
    fn has_few_neighbours(&self, slot: u32) -> bool {
        let spans = self.spans(slot);
        spans.iter().all(|span| span.step() == 1) && elements(spans) <= FEW_ELEMENTS_MAX
    }

    /// The first result of `f` for a box that touches the box in `slot`, which has steps of one:
    /// makes one search instead of one for each side.
    fn find_around<T>(&self, slot: u32, f: impl Fn(u32) -> Option<T>) -> Option<T> {
        let mut around = [Span::EMPTY; AXES_MAX];
        let spans = self.spans(slot);
        for (around, span) in around.iter_mut().zip(spans) {
            *around = Span::new(span.start().saturating_sub(1), span.end().saturating_add(1), 1);
        }
        let mut found = None;
        let _ = self.search(&around[..spans.len()], &mut |other| {
            found = f(other);
            if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        found
    }

    /// Candidates for a merge with the box in `slot`. They include all boxes that can be merged
    /// with it.
    ///
    /// A mergeable box has equal spans on all axes but one. So if the first corner of this box is
    /// moved along that axis by one step in either direction (to an adjacent box), or by half a
    /// step (between the indices of a strided box), one such point lies in the mergeable box. Boxes
    /// are disjoint, so each of these points lies in at most one box.
    fn adjacent(&self, slot: u32) -> impl Iterator<Item = u32> {
        let spans = self.spans(slot);
        let corner: Point = spans.iter().map(Span::start).collect();
        let moved = spans.iter().enumerate().flat_map(|(axis, span)| {
            adjacent_indices(span).into_iter().flatten().map(move |index| (axis, index))
        });
        moved.filter_map(move |(axis, index)| {
            let mut point = corner.clone();
            point[axis] = index;
            self.find(&point)
        })
    }
}

/// Any span that can be merged with this one contains one of these indices: one step before the
/// first or after the last index, or half a step before or after the first.
fn adjacent_indices(span: &Span) -> [Option<u64>; 4] {
    let half = (span.step() > 1 && span.step().is_multiple_of(2)).then_some(span.step() / 2);
    [
        span.start().checked_sub(span.step()),
        (span.end() - 1).checked_add(span.step()),
        half.and_then(|half| span.start().checked_sub(half)),
        half.and_then(|half| span.start().checked_add(half)),
    ]
}
