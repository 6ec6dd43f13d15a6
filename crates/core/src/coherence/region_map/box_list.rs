//! Boxes with values that may overlap each other.

use std::ops::ControlFlow;

use super::box_store::{BoxStore, Lookup};
use crate::coherence::region::Region;

/// Boxes with values, which may overlap and may be equal: found by an R-tree if there are more than
/// a few. Adding a box never cuts another.
#[derive(Clone, Debug)]
pub struct BoxList<V> {
    store: BoxStore<V>,
}

impl<V: Clone + PartialEq> BoxList<V> {
    /// An empty list of boxes with `axes` axes, at least one and at most six. Takes no heap.
    #[must_use]
    pub fn new(axes: usize) -> Self {
        Self { store: BoxStore::new(axes, Lookup::OverlapAndSpans) }
    }

    /// The number of boxes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.store.count()
    }

    /// Whether there is no box.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a box that is not empty. Returns its slot, which identifies it until it is removed.
    pub fn insert(&mut self, region: &Region, value: V) -> u32 {
        self.store.insert(region, value)
    }

    /// Removes the boxes in these slots. Other boxes may get other slots.
    pub fn remove_all(&mut self, slots: &[u32]) {
        for slot in slots {
            let _ = self.store.remove(*slot);
        }
        self.store.shrink();
    }

    /// The box in `slot`.
    #[must_use]
    pub fn region(&self, slot: u32) -> Region {
        self.store.region(slot)
    }

    /// Changes the value of the box in `slot`.
    pub fn set_value(&mut self, slot: u32, value: V) {
        self.store.set_value(slot, value);
    }

    /// Removes all boxes. A short list keeps its memory.
    pub fn clear(&mut self) {
        self.store.clear();
    }

    /// The slot, the box and the value of each box.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Region, &V)> {
        self.store.iter()
    }

    /// Calls `found` with the slot and the value of each box that has a common element with
    /// `region`, and with these elements, until `found` returns `Break`.
    pub fn overlapping(
        &self,
        region: &Region,
        mut found: impl FnMut(u32, &Region, &V) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.store.search(region.spans(), &mut |slot| match (
            region.intersection_spans(self.store.spans(slot)),
            self.store.value(slot),
        ) {
            (Some(common), Some(value)) => found(slot, &common, value),
            _ => ControlFlow::Continue(()),
        })
    }

    /// The slot of a box that is equal to `region` and whose value satisfies `is_wanted`.
    #[must_use]
    #[inline]
    pub fn find_equal(&self, region: &Region, is_wanted: impl FnMut(&V) -> bool) -> Option<u32> {
        self.store.find_equal(region, is_wanted)
    }

    /// Whether the box in `slot` is `region`, which is not empty. Any number may be asked for.
    #[must_use]
    #[inline]
    pub fn is_at(&self, slot: u32, region: &Region) -> bool {
        self.store.is_at(slot, region)
    }

    /// The value of the box in `slot`, unless the slot is free.
    #[must_use]
    #[inline]
    pub fn value(&self, slot: u32) -> Option<&V> {
        self.store.value(slot)
    }

    /// The number of changes so far. While it is the same, every slot has the same box.
    #[must_use]
    #[inline]
    pub const fn changes(&self) -> u64 {
        self.store.changes()
    }
}
