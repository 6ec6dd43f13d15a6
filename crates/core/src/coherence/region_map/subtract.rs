//! Set differences: a region minus boxes, and a box minus a region.

use smallvec::SmallVec;

use super::box_store::BoxStore;
use crate::coherence::region::Region;

/// Slots of boxes that an operation found or changed. A short list takes no heap memory.
pub(super) type Slots = SmallVec<[u32; 16]>;

impl<V: Clone + PartialEq> BoxStore<V> {
    /// Calls `emit` with disjoint boxes of the elements of `region` that are in no box in `slots`.
    ///
    /// Works like quicksort: it subtracts one box, the pivot, from the middle of the list. From
    /// each piece that remains it then subtracts only the boxes of the list that overlap the piece.
    /// So `k` boxes cost about `k log k` steps, not `k` times the number of pieces. All lists share
    /// one stack; the list of a pending piece lies above the list of the piece from which it was
    /// cut.
    pub(super) fn remainder(&self, region: &Region, slots: &[u32], mut emit: impl FnMut(&Region)) {
        let mut lists = Slots::from_slice(slots);
        let mut pending: SmallVec<[(Region, usize, usize); 4]> = SmallVec::new();
        pending.push((*region, 0, lists.len()));
        while let Some((piece, from, to)) = pending.pop() {
            lists.truncate(to);
            if from == to {
                emit(&piece);
                continue;
            }
            let pivot = lists[from + (to - from) / 2];
            piece.difference(&self.region(pivot), |smaller| {
                let start = lists.len();
                for at in from..to {
                    let slot = lists[at];
                    if slot != pivot && self.meets(slot, smaller) {
                        lists.push(slot);
                    }
                }
                pending.push((*smaller, start, lists.len()));
            });
        }
    }

    /// Whether the box in `slot` and `region` have a common element.
    fn meets(&self, slot: u32, region: &Region) -> bool {
        let mut pairs = self.spans(slot).iter().zip(region.spans());
        pairs.clone().all(|(own, other)| own.overlaps(other))
            && pairs.all(|(own, other)| own.intersection(other).is_some())
    }

    /// Removes the elements of `region` from the box in `slot`, which has some of them. The slot
    /// keeps one of the remaining pieces, or becomes free if nothing remains. Adds the slots of all
    /// pieces to `changed`.
    pub(super) fn subtract(&mut self, slot: u32, region: &Region, changed: &mut Slots) {
        let pairs = self.spans(slot).iter().zip(region.spans()).enumerate();
        let mut cuts = pairs.filter(|(_, (own, other))| !other.contains_span(own));
        let Some((axis, (own, other))) = cuts.next() else {
            let _ = self.remove(slot);
            return;
        };
        // Usually an end of the box along one axis is cut off.
        if cuts.next().is_none()
            && let Some(rest) = own.without_end(other)
        {
            self.reshape_axis(slot, axis, rest);
            return changed.push(slot);
        }
        self.subtract_middle(slot, region, changed);
    }

    /// As [`subtract`](Self::subtract), if several pieces may remain.
    fn subtract_middle(&mut self, slot: u32, region: &Region, changed: &mut Slots) {
        let whole = self.region(slot);
        let Some(common) = region.intersection(&whole) else { return };
        let mut is_kept = false;
        whole.without(&common, |piece| {
            let piece_slot = if std::mem::replace(&mut is_kept, true) {
                let Some(value) = self.value(slot).cloned() else { return };
                self.insert(piece, value)
            } else {
                self.reshape(slot, piece);
                slot
            };
            changed.push(piece_slot);
        });
    }
}
