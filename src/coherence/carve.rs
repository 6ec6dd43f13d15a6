//! Cutting boxes: what of a region no box holds, and boxes with a region taken out.

use smallvec::SmallVec;

use super::boxes::Boxes;
use super::region::Region;

/// Slots of boxes, as found or touched by an operation. A few need no heap.
pub(super) type Slots = SmallVec<[u32; 16]>;

impl<V: Clone + PartialEq> Boxes<V> {
    /// Emits what none of the boxes in `slots` holds of `region`, as disjoint boxes.
    ///
    /// A sort of quicksort: one box, from the middle of the list, is subtracted; each piece of the
    /// rest goes on with those other boxes that it meets. So `k` boxes cost about `k log k`, not
    /// `k` times the pieces that all of them leave. The lists of the pieces that wait lie in one
    /// stack, each above that of its origin.
    pub(super) fn remainder(&self, region: &Region, slots: &[u32], mut emit: impl FnMut(&Region)) {
        let mut lists = Slots::from_slice(slots);
        let mut waiting: SmallVec<[(Region, usize, usize); 4]> = SmallVec::new();
        waiting.push((*region, 0, lists.len()));
        while let Some((piece, from, to)) = waiting.pop() {
            lists.truncate(to);
            if from == to {
                emit(&piece);
                continue;
            }
            let pivot = lists[from + (to - from) / 2];
            piece.difference_each(&self.region(pivot), |smaller| {
                let start = lists.len();
                for at in from..to {
                    let slot = lists[at];
                    if slot != pivot && self.meets(slot, smaller) {
                        lists.push(slot);
                    }
                }
                waiting.push((*smaller, start, lists.len()));
            });
        }
    }

    /// True if the box in `slot` and `region` have an element in common.
    fn meets(&self, slot: u32, region: &Region) -> bool {
        let mut pairs = self.spans(slot).iter().zip(region.spans());
        pairs.clone().all(|(own, other)| own.overlaps(other))
            && pairs.all(|(own, other)| own.intersection(other).is_some())
    }

    /// Takes `part`, which lies in it, out of the box in `slot`. The slot keeps one piece of the
    /// rest, and is freed if there is none; the slots of all pieces are added to `touched`.
    pub(super) fn carve(&mut self, slot: u32, part: &Region, touched: &mut Slots) {
        if self.spans(slot) == part.spans() {
            let _ = self.remove(slot);
            return;
        }
        let mut pieces: SmallVec<[Region; 8]> = SmallVec::new();
        self.region(slot).without_each(part, |piece| pieces.push(*piece));
        let Some((first, rest)) = pieces.split_first() else {
            let _ = self.remove(slot);
            return;
        };
        self.reshape(slot, first);
        touched.push(slot);
        for piece in rest {
            let Some(value) = self.value(slot).cloned() else { return };
            touched.push(self.insert(piece, value));
        }
    }
}
