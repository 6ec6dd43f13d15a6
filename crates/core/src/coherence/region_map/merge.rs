//! Merging of boxes with equal values whose union is a box.

use std::ops::ControlFlow;

use smallvec::SmallVec;

use super::box_store::{BoxStore, NO_SLOT};
use crate::coherence::region::{AXES_MAX, Region, elements, merged_spans};
use crate::coherence::span::Span;

/// A box of up to this number of elements has only a few neighbours.
const FEW_ELEMENTS_MAX: u64 = 16;

/// Single boxes are joined to one with a step only if that is small: boxes with large steps lie
/// inside one another, so that searches find many that do not have the element.
const STEP_MAX: u64 = 8;

/// What is next to a changed box.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Surroundings {
    /// No other box touches it.
    Empty,
    Unknown,
}

/// One index per axis.
type Point = SmallVec<[u64; AXES_MAX]>;

impl<V: Clone + PartialEq> BoxStore<V> {
    /// Merges the boxes in these slots with the boxes changed before them and with their
    /// neighbours, until no two can be merged. A merge can free slots; free slots in the list are
    /// ignored.
    pub(super) fn merge_all(&mut self, slots: &[u32], surroundings: Surroundings) {
        for slot in slots {
            let is_merged = self.merge_with_recent(*slot);
            if self.count() > 1 && (is_merged || surroundings == Surroundings::Unknown) {
                self.merge_with_neighbours(*slot);
            }
        }
    }

    /// Merges the box in `slot` with its neighbours until none can be merged.
    fn merge_with_neighbours(&mut self, slot: u32) {
        while let Some((neighbour, union)) = self.mergeable_neighbour(slot) {
            let _ = self.remove(neighbour);
            self.reshape(slot, &union);
        }
    }

    /// Merges the box in `slot` with the box changed before it, or with the last two if the three
    /// lie at equal distances. So the writes of every second element become one box with a step,
    /// although no two of these elements may be joined. Returns whether it merged any.
    fn merge_with_recent(&mut self, slot: u32) -> bool {
        let [last, before] = self.recent;
        if last == slot || self.value(slot).is_none() {
            return false;
        }
        // The usual case, decided before any union is computed: they differ on several axes.
        let pairs = || self.spans(slot).iter().zip(self.spans(last));
        let may_join = self.value(slot) == self.value(last)
            && pairs().filter(|(own, other)| own != other).count() == 1;
        if may_join && let Some(union) = self.union(slot, last, Span::union_without_gap) {
            let _ = self.remove(last);
            self.reshape(slot, &union);
            self.recent[0] = slot;
        } else if may_join && let Some(union) = self.union_of_three(slot, last, before) {
            let _ = (self.remove(last), self.remove(before));
            self.reshape(slot, &union);
            self.recent = [slot, NO_SLOT];
        } else {
            self.recent = [slot, last];
            return false;
        }
        true
    }

    /// The union of two boxes, if they have the same value and `merge` joins them.
    fn union(
        &self,
        slot: u32,
        other: u32,
        merge: impl Fn(&Span, &Span) -> Option<Span>,
    ) -> Option<Region> {
        let value = self.value(slot)?;
        if other == slot || self.value(other) != Some(value) {
            return None;
        }
        let (axis, span) = merged_spans(self.spans(slot), self.spans(other), merge)?;
        Some(self.region(slot).with_span(axis, span))
    }

    /// The union of three boxes, of which the first two have the same value, if the third has it
    /// too and they lie at equal, small distances along one axis.
    fn union_of_three(&self, slot: u32, last: u32, before: u32) -> Option<Region> {
        let near = |a: &Span, b: &Span| a.union(b).filter(|span| span.step() <= STEP_MAX);
        let two = self.union(last, before, near)?;
        if slot == before {
            return None;
        }
        let (axis, span) = merged_spans(two.spans(), self.spans(slot), near)?;
        Some(two.with_span(axis, span))
    }

    /// A box with the same value whose union with the box in `slot` is a box, and that union.
    fn mergeable_neighbour(&self, slot: u32) -> Option<(u32, Region)> {
        let _ = self.value(slot)?;
        let union = |other: u32| Some((other, self.union(slot, other, Span::union_without_gap)?));
        if !self.is_indexed() {
            self.slots().find_map(union)
        } else if let Some(around) = around(self.spans(slot)) {
            self.find_in(&around, union)
        } else {
            self.adjacent(slot).find_map(union)
        }
    }

    /// The first result of `f` for a box whose bounds overlap `region`.
    fn find_in<T>(&self, region: &Region, f: impl Fn(u32) -> Option<T>) -> Option<T> {
        let mut found = None;
        let _ = self.search(region.spans(), &mut |other| {
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

/// What all boxes overlap that touch the box with these spans, if it is so small that they are few:
/// one search of it replaces one for each side.
pub(super) fn around(spans: &[Span]) -> Option<Region> {
    let is_small = spans.iter().all(|span| span.step() == 1) && elements(spans) <= FEW_ELEMENTS_MAX;
    is_small.then(|| {
        let mut around = [Span::EMPTY; AXES_MAX];
        for (around, span) in around.iter_mut().zip(spans) {
            *around = Span::new(span.start().saturating_sub(1), span.end().saturating_add(1), 1);
        }
        Region::of_spans(spans.len(), around)
    })
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
