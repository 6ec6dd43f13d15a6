//! Disjoint boxes with values: the storage of a [`RegionMap`](super::RegionMap).
//!
//! Each box has a slot, a number that identifies it until it is removed. The spans of all slots lie
//! in one vector, with as many per slot as there are axes, so that a box of a 3-D array takes 72
//! bytes instead of 144. Up to [`SCAN_MAX`] boxes are scanned; if there are more, they are found
//! through an [`RTree`].

use std::ops::ControlFlow;

use super::bounds::Scale;
use super::rtree::RTree;
use crate::coherence::region::{self, AXES_MAX, Region};
use crate::coherence::span::Span;

/// Up to this number of boxes, a scan is faster than an R-tree.
const SCAN_MAX: usize = 8;

/// The R-tree is dropped at this number of boxes. It is less than [`SCAN_MAX`], so that repeated
/// insertions and removals do not rebuild the tree.
const INDEXED_MIN: usize = 4;

/// Disjoint, non-empty boxes, each with a value. See the module's documentation.
#[derive(Clone, Debug)]
pub(super) struct BoxStore<V> {
    /// The number of spans per slot.
    axes: usize,
    /// `axes` spans per slot; the spans of a free slot are empty.
    spans: Vec<Span>,
    /// The value of each slot; `None` if the slot is free.
    values: Vec<Option<V>>,
    /// Slots to reuse.
    free: Vec<u32>,
    /// The number of elements in all boxes, or `u64::MAX` if it is larger.
    elements: u64,
    /// An index of the boxes, if there are too many to scan.
    tree: Option<Box<RTree>>,
}

impl<V: Clone + PartialEq> BoxStore<V> {
    /// An empty store, for a space of at least one and at most six axes.
    #[must_use]
    pub(super) fn new(axes: usize) -> Self {
        let axes = axes.clamp(1, AXES_MAX);
        Self {
            axes,
            spans: Vec::new(),
            values: Vec::new(),
            free: Vec::new(),
            elements: 0,
            tree: None,
        }
    }

    /// The number of boxes.
    #[must_use]
    pub(super) const fn count(&self) -> usize {
        self.values.len() - self.free.len()
    }

    /// The number of elements in all boxes, or `u64::MAX` if it is larger.
    #[must_use]
    pub(super) const fn elements(&self) -> u64 {
        self.elements
    }

    /// Whether boxes are found through an R-tree; if not, there are only a few.
    #[must_use]
    pub(super) const fn is_indexed(&self) -> bool {
        self.tree.is_some()
    }

    /// All slots, including free ones.
    pub(super) fn slots(&self) -> impl Iterator<Item = u32> + use<V> {
        0..self.values.len() as u32
    }

    /// The spans of the box in `slot`.
    #[must_use]
    pub(super) fn spans(&self, slot: u32) -> &[Span] {
        let from = slot as usize * self.axes;
        &self.spans[from..from + self.axes]
    }

    /// The box in `slot`.
    #[must_use]
    pub(super) fn region(&self, slot: u32) -> Region {
        Region::new(self.spans(slot))
    }

    /// The value in `slot`, unless it is free.
    #[must_use]
    pub(super) fn value(&self, slot: u32) -> Option<&V> {
        self.values.get(slot as usize)?.as_ref()
    }

    /// All boxes with their slots and values.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, Region, &V)> {
        let value = |(slot, value): (usize, &'_ Option<V>)| value.is_some().then_some(slot as u32);
        let slots = self.values.iter().enumerate().filter_map(value);
        slots.filter_map(|slot| Some((slot, self.region(slot), self.value(slot)?)))
    }

    /// Calls `found` with the slot of each box whose bounds overlap the bounds of `query`, until
    /// `found` returns `Break`.
    pub(super) fn search(
        &self,
        query: &[Span],
        found: &mut impl FnMut(u32) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if query.len() != self.axes {
            return ControlFlow::Continue(());
        }
        if let Some(tree) = &self.tree {
            return tree.search(query, found);
        }
        for (slot, spans) in self.spans.chunks_exact(self.axes).enumerate() {
            if spans.iter().zip(query).all(|(span, others)| span.overlaps(others)) {
                found(slot as u32)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// For each box that overlaps `region`, calls `found` with the box's slot, the part of it that
    /// lies in `region`, and its value, until `found` returns `Break`.
    pub(super) fn overlapping(
        &self,
        region: &Region,
        mut found: impl FnMut(u32, &Region, &V) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut flow = ControlFlow::Continue(());
        let _ = self.search(region.spans(), &mut |slot| {
            let Some(value) = self.value(slot) else { return flow };
            // Usually one box contains all of the region. Then no intersection needs to be
            // computed, and no other box overlaps the region.
            if self.contains(slot, region) {
                flow = found(slot, region, value);
                return ControlFlow::Break(());
            }
            if let Some(part) = region.intersection_spans(self.spans(slot)) {
                flow = found(slot, &part, value);
            }
            flow
        });
        flow
    }

    /// Calls `found` with the value of each box that has elements in `region` and the number of
    /// these elements, until `found` returns true. Returns whether it did, and the number of
    /// elements of `region` that lie in the boxes found.
    #[inline]
    pub(super) fn any_value(
        &self,
        region: &Region,
        mut found: impl FnMut(&V, u64) -> bool,
    ) -> (bool, u64) {
        let len = region.len();
        let (mut is_found, mut covered) = (false, 0_u64);
        let _ = self.search(region.spans(), &mut |slot| {
            let common = region::common_elements(region.spans(), self.spans(slot));
            let Some(value) = self.value(slot).filter(|_| common > 0) else {
                return ControlFlow::Continue(());
            };
            covered = covered.saturating_add(common);
            is_found = found(value, common);
            match is_found || covered == len && len != u64::MAX {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        (is_found, covered)
    }

    /// Whether the box in `slot` contains all of `region`, which is not empty.
    fn contains(&self, slot: u32, region: &Region) -> bool {
        self.spans(slot).iter().zip(region.spans()).all(|(own, other)| own.contains_span(other))
    }

    /// The box that contains this element.
    #[must_use]
    pub(super) fn find(&self, point: &[u64]) -> Option<u32> {
        let mut query = [Span::EMPTY; AXES_MAX];
        for (span, index) in query.iter_mut().zip(point) {
            *span = Span::single(*index);
        }
        let mut at = None;
        let _ = self.search(query.get(..point.len())?, &mut |slot| {
            if self.spans(slot).iter().zip(point).all(|(span, index)| span.contains(*index)) {
                at = Some(slot);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        at
    }

    /// Adds a box and returns its slot. The box must not be empty and must have `axes` axes. In a
    /// [`RegionMap`](super::RegionMap) it must overlap no other box.
    pub(super) fn insert(&mut self, region: &Region, value: V) -> u32 {
        debug_assert!(
            region.axes() == self.axes && !region.is_empty(),
            "{region:?} is empty or has not {} axes",
            self.axes
        );
        let slot = self.new_slot();
        self.values[slot as usize] = Some(value);
        self.set_spans(slot, region);
        if self.tree.is_none() && self.count() > SCAN_MAX {
            self.build_tree();
        }
        slot
    }

    /// A free slot, or a new one with empty spans. For the first slot, memory for only one slot is
    /// reserved.
    fn new_slot(&mut self) -> u32 {
        if let Some(slot) = self.free.pop() {
            return slot;
        }
        if self.values.is_empty() {
            self.spans.reserve_exact(self.axes);
            self.values.reserve_exact(1);
        }
        self.spans.resize(self.spans.len() + self.axes, Span::EMPTY);
        self.values.push(None);
        self.values.len() as u32 - 1
    }

    /// Sets the spans of a slot whose spans are empty.
    fn set_spans(&mut self, slot: u32, region: &Region) {
        let from = slot as usize * self.axes;
        for (span, new) in self.spans[from..from + self.axes].iter_mut().zip(region.spans()) {
            *span = *new;
        }
        self.elements = self.elements.saturating_add(region.len());
        match &mut self.tree {
            Some(tree) if tree.can_represent(region.spans()) => tree.insert(slot, region.spans()),
            Some(_) => self.build_tree(),
            None => {}
        }
    }

    /// Empties the spans of a slot.
    fn clear_spans(&mut self, slot: u32) {
        self.elements = self.elements.saturating_sub(region::elements(self.spans(slot)));
        let from = slot as usize * self.axes;
        self.spans[from..from + self.axes].fill(Span::EMPTY);
        if let Some(tree) = &mut self.tree {
            tree.remove(slot);
        }
    }

    /// Replaces a box by `region`, which must overlap no other box.
    pub(super) fn reshape(&mut self, slot: u32, region: &Region) {
        self.clear_spans(slot);
        self.set_spans(slot, region);
    }

    /// Changes the value of a box.
    pub(super) fn set_value(&mut self, slot: u32, value: V) {
        if let Some(old @ Some(_)) = self.values.get_mut(slot as usize) {
            *old = Some(value);
        }
    }

    /// Removes a box and returns its value; `None` if the slot is free.
    pub(super) fn remove(&mut self, slot: u32) -> Option<V> {
        let value = self.values.get_mut(slot as usize)?.take()?;
        self.clear_spans(slot);
        self.free.push(slot);
        Some(value)
    }

    /// Removes every box with this value, in time proportional to the number of slots.
    pub(super) fn remove_equal(&mut self, value: &V) {
        for slot in self.slots() {
            if self.value(slot) == Some(value) {
                let _ = self.remove(slot);
            }
        }
    }

    /// Removes all boxes. A small store keeps its memory, so that repeated changes allocate
    /// nothing.
    pub(super) fn clear(&mut self) {
        if self.values.capacity() > SCAN_MAX {
            *self = Self::new(self.axes);
            return;
        }
        self.spans.clear();
        self.values.clear();
        self.free.clear();
        self.elements = 0;
        self.tree = None;
    }

    /// Frees unused memory and rebuilds the R-tree, if that is worth its cost. This can renumber
    /// slots.
    pub(super) fn shrink(&mut self) {
        let count = self.count();
        if count == 0 && !self.values.is_empty() {
            self.clear();
        } else if self.tree.is_some() && count <= INDEXED_MIN
            || self.values.len() > 4 * (count + SCAN_MAX)
        {
            self.renumber();
        } else if self.tree.as_ref().is_some_and(|tree| tree.is_sparse()) {
            self.build_tree();
        }
    }

    /// Renumbers the boxes so that no slot is free, and allocates exactly the memory that they
    /// need.
    fn renumber(&mut self) {
        let mut compact = Self::new(self.axes);
        compact.spans.reserve_exact(self.count() * self.axes);
        compact.values.reserve_exact(self.count());
        for (_, region, value) in self.iter() {
            compact.insert(&region, value.clone());
        }
        *self = compact;
    }

    /// Builds a new R-tree of all boxes.
    fn build_tree(&mut self) {
        let mut ends = [0; AXES_MAX];
        for spans in self.spans.chunks_exact(self.axes) {
            ends.iter_mut().zip(spans).for_each(|(end, span)| *end = span.end().max(*end));
        }
        let mut tree = RTree::new(self.axes, Scale::for_ends(&ends));
        for slot in self.slots() {
            if self.value(slot).is_some() {
                tree.insert(slot, self.spans(slot));
            }
        }
        self.tree = Some(Box::new(tree));
    }
}

#[cfg(test)]
impl<V: Clone + PartialEq + std::fmt::Debug> BoxStore<V> {
    /// The heap bytes that the store takes.
    pub(super) fn heap_bytes(&self) -> usize {
        self.spans.capacity() * size_of::<Span>()
            + self.values.capacity() * size_of::<Option<V>>()
            + self.free.capacity() * size_of::<u32>()
            + self.tree.as_ref().map_or(0, |tree| size_of::<RTree>() + tree.heap_bytes())
    }

    /// Checks that boxes are disjoint and not empty, and that the R-tree finds them.
    pub(super) fn assert_sound(&self) {
        let boxes: Vec<_> = self.iter().collect();
        assert_eq!(boxes.len(), self.count());
        assert_eq!(boxes.iter().map(|(_, region, _)| region.len()).sum::<u64>(), self.elements());
        for (at, (_, region, _)) in boxes.iter().enumerate() {
            assert!(!region.is_empty());
            assert!(
                boxes[..at].iter().all(|(_, other, _)| region.intersection(other).is_none()),
                "{boxes:?}"
            );
        }
        for slot in &self.free {
            assert!(self.value(*slot).is_none() && self.spans(*slot).iter().all(Span::is_empty));
        }
        if let Some(tree) = &self.tree {
            tree.assert_sound(self.count(), |slot| self.spans(slot));
        }
    }
}
