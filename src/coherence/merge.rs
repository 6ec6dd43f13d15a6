//! Joining boxes: neighbours of equal value become one box.

use smallvec::SmallVec;

use super::boxes::Boxes;
use super::region::{AXES_MAX, Region, merged_spans};
use super::span::Span;

/// A point of the index space.
type Point = SmallVec<[u64; AXES_MAX]>;

impl<V: Clone + PartialEq> Boxes<V> {
    /// Joins the boxes in these slots with their neighbours, as long as any joins. Slots may be
    /// freed; a slot in the list that is free by then is passed over.
    pub(super) fn merge_all(&mut self, slots: &[u32]) {
        if self.count() > 1 {
            for slot in slots {
                self.merge(*slot);
            }
        }
    }

    /// Joins the box in `slot` with its neighbours until none joins.
    fn merge(&mut self, slot: u32) {
        while let Some((neighbour, union)) = self.mergeable_neighbour(slot) {
            let _ = self.remove(neighbour);
            self.reshape(slot, &union);
        }
    }

    /// A box of the same value that makes one box with that in `slot`, and that box.
    fn mergeable_neighbour(&self, slot: u32) -> Option<(u32, Region)> {
        let value = self.value(slot)?;
        let union = |other: u32| {
            if other == slot || self.value(other) != Some(value) {
                return None;
            }
            let (axis, span) = merged_spans(self.spans(slot), self.spans(other), Span::merged)?;
            Some((other, axis, span))
        };
        let (other, axis, span) = if self.is_indexed() {
            self.adjacent(slot).find_map(union)?
        } else {
            self.slots().find_map(union)?
        };
        Some((other, self.region(slot).with_span(axis, span)))
    }

    /// Boxes among which are all those that join the one in `slot`, single indices with a step
    /// between aside.
    ///
    /// A box that joins has equal spans on all axes but one. So it contains the first corner of
    /// this one, moved along that axis by one step either way (an adjacent box) or half a step (a
    /// complementary phase). As boxes are disjoint, each such point leads to one box at most,
    /// however many there are around.
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

/// Indices in a span that could join this one: one step before the first, one step behind the last,
/// and half a step before and behind the first.
fn adjacent_indices(span: &Span) -> [Option<u64>; 4] {
    let half = (span.step() > 1 && span.step().is_multiple_of(2)).then_some(span.step() / 2);
    [
        span.start().checked_sub(span.step()),
        (span.end() - 1).checked_add(span.step()),
        half.and_then(|half| span.start().checked_sub(half)),
        half.and_then(|half| span.start().checked_add(half)),
    ]
}
