//! Disjoint boxes with values: the storage of a [`RegionMap`](super::RegionMap).
//!
//! Each box has a slot, a number that identifies it until it is removed. The spans of all slots lie
//! in one vector, with as many per slot as there are axes, so that a box of a 3-D array takes 72
//! bytes instead of 144. Up to [`SCAN_MAX`] boxes are scanned; if there are more, they are found
//! through an [`RTree`], and boxes that are used again and again through a hash of their spans.

use std::ops::ControlFlow;

use super::bounds::Scale;
use super::exact::ExactIndex;
use super::rtree::RTree;
use crate::coherence::region::{self, AXES_MAX, Region};
use crate::coherence::span::Span;

/// Up to this number of boxes, a scan is faster than an R-tree.
const SCAN_MAX: usize = 8;

/// The R-tree is dropped at this number of boxes. It is less than [`SCAN_MAX`], so that repeated
/// insertions and removals do not rebuild the tree.
const INDEXED_MIN: usize = 4;

/// The number of no slot.
pub(super) const NO_SLOT: u32 = u32::MAX;

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
    /// The number of changes of boxes so far: while it is the same, so are all boxes and slots.
    changes: u64,
    /// An index of the boxes, if there are too many to scan.
    index: Option<Box<Index>>,
    lookup: Lookup,
    /// The slots of the last boxes that [`merge_all`](Self::merge_all) was called with, the last
    /// one first. They may be free by now, or have other boxes.
    pub(super) recent: [u32; 2],
}

/// What many boxes are found by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lookup {
    /// Regions that they overlap.
    Overlap,
    /// Regions that they overlap, and their exact spans. This makes changes of boxes dearer.
    OverlapAndSpans,
}

/// How boxes are found if there are too many to scan.
#[derive(Clone, Debug)]
struct Index {
    tree: RTree,
    exact: Option<ExactIndex>,
}

impl<V: Clone + PartialEq> BoxStore<V> {
    /// An empty store, for a space of at least one and at most six axes.
    #[must_use]
    pub(super) fn new(axes: usize, lookup: Lookup) -> Self {
        let axes = axes.clamp(1, AXES_MAX);
        Self {
            axes,
            spans: Vec::new(),
            values: Vec::new(),
            free: Vec::new(),
            elements: 0,
            changes: 0,
            index: None,
            lookup,
            recent: [NO_SLOT; 2],
        }
    }

    fn finds_spans(&self) -> bool {
        self.lookup == Lookup::OverlapAndSpans
    }

    /// An empty store with the settings of this one.
    fn emptied(&self) -> Self {
        Self { changes: self.changes + 1, ..Self::new(self.axes, self.lookup) }
    }

    /// The number of changes of boxes so far. While it is the same, every slot has the same box.
    #[must_use]
    pub(super) const fn changes(&self) -> u64 {
        self.changes
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
        self.index.is_some()
    }

    /// All slots, including free ones.
    pub(super) fn slots(&self) -> impl Iterator<Item = u32> + use<V> {
        0..self.values.len() as u32
    }

    /// Whether the box in `slot` is `region`, which is not empty. Any number may be asked for.
    #[must_use]
    #[inline]
    pub(super) fn is_at(&self, slot: u32, region: &Region) -> bool {
        let from = slot as usize * self.axes;
        let spans = self.spans.get(from..from.saturating_add(self.axes));
        // The spans of a free slot are empty.
        spans.is_some_and(|spans| spans == region.spans()) && !region.is_empty()
    }

    /// The spans of the box in `slot`.
    #[must_use]
    pub(super) fn spans(&self, slot: u32) -> &[Span] {
        spans_of(&self.spans, self.axes, slot)
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

    /// The values of all boxes.
    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.values.iter().flatten()
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
        if let Some(index) = &self.index {
            return index.tree.search(query, found);
        }
        for (slot, spans) in self.spans.chunks_exact(self.axes).enumerate() {
            if spans.iter().zip(query).all(|(span, others)| span.overlaps(others)) {
                found(slot as u32)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// The slot of a box that is equal to `region` and whose value satisfies `is_wanted`.
    #[inline]
    pub(super) fn find_equal(
        &self,
        region: &Region,
        mut is_wanted: impl FnMut(&V) -> bool,
    ) -> Option<u32> {
        let mut is_equal = |spans: &[Span], slot| {
            spans == region.spans() && self.value(slot).is_some_and(&mut is_wanted)
        };
        match &self.index {
            None => {
                let mut boxes = self.spans.chunks_exact(self.axes).zip(0..);
                boxes.find(|(spans, slot)| is_equal(spans, *slot)).map(|(_, slot)| slot)
            }
            Some(index) => {
                let exact = index.exact.as_ref()?;
                exact.find(region.spans(), |slot| is_equal(self.spans(slot), slot))
            }
        }
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
        self.any_slot(region, |_, value, count| found(value, count))
    }

    /// As [`any_value`](Self::any_value); also passes the slots.
    #[inline]
    pub(super) fn any_slot(
        &self,
        region: &Region,
        mut found: impl FnMut(u32, &V, u64) -> bool,
    ) -> (bool, u64) {
        self.any_slot_near(region, region, |slot, value, common| {
            common > 0 && found(slot, value, common)
        })
    }

    /// As [`any_slot`](Self::any_slot), if there is an index for all boxes whose bounds overlap
    /// `near`, which contains `region`: also for those that have no elements in `region`.
    #[inline]
    pub(super) fn any_slot_near(
        &self,
        near: &Region,
        region: &Region,
        mut found: impl FnMut(u32, &V, u64) -> bool,
    ) -> (bool, u64) {
        let len = region.len();
        let (mut is_found, mut covered) = (false, 0_u64);
        let mut visit = |slot, value: &V, common| {
            covered = covered.saturating_add(common);
            is_found = found(slot, value, common);
            if is_found || covered == len && len != u64::MAX {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let common = |spans| region::common_elements(region.spans(), spans);
        if self.index.is_some() {
            let _ = self.search(near.spans(), &mut |slot| {
                let Some(value) = self.value(slot) else { return ControlFlow::Continue(()) };
                visit(slot, value, common(self.spans(slot)))
            });
        } else if near.axes() == self.axes {
            let boxes = self.spans.chunks_exact(self.axes).zip(&self.values).zip(0..);
            let _ = boxes.into_iter().try_for_each(|((spans, value), slot)| {
                let common = common(spans);
                let value = value.as_ref().filter(|_| common > 0);
                value.map_or(ControlFlow::Continue(()), |value| visit(slot, value, common))
            });
        }
        (is_found, covered)
    }

    /// Whether the box in `slot` contains all of `region`, which is not empty.
    fn contains(&self, slot: u32, region: &Region) -> bool {
        self.spans(slot).iter().zip(region.spans()).all(|(own, other)| own.contains_span(other))
    }

    /// Whether all of the box in `slot` is in `region`.
    #[must_use]
    pub(super) fn lies_in(&self, slot: u32, region: &Region) -> bool {
        region.spans().iter().zip(self.spans(slot)).all(|(outer, own)| outer.contains_span(own))
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
        if self.index.is_none() && self.count() > SCAN_MAX {
            self.build_index();
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
        self.changes += 1;
        let (axes, all) = (self.axes, &self.spans);
        match &mut self.index {
            Some(index) if index.tree.can_represent(region.spans()) => {
                index.tree.insert(slot, region.spans());
                if let Some(exact) = &mut index.exact {
                    exact.insert(slot, |slot| spans_of(all, axes, slot));
                }
            }
            Some(_) => self.build_index(),
            None => {}
        }
    }

    /// Empties the spans of a slot.
    fn clear_spans(&mut self, slot: u32) {
        self.elements = self.elements.saturating_sub(region::elements(self.spans(slot)));
        self.changes += 1;
        let from = slot as usize * self.axes;
        let spans = &mut self.spans[from..from + self.axes];
        if let Some(index) = &mut self.index {
            index.tree.remove(slot);
            if let Some(exact) = &mut index.exact {
                exact.remove(slot, spans);
            }
        }
        spans.fill(Span::EMPTY);
    }

    /// Replaces a box by `region`, which must overlap no other box.
    pub(super) fn reshape(&mut self, slot: u32, region: &Region) {
        self.clear_spans(slot);
        self.set_spans(slot, region);
    }

    /// As [`reshape`](Self::reshape), along one axis.
    pub(super) fn reshape_axis(&mut self, slot: u32, axis: usize, span: Span) {
        if self.index.is_some() {
            return self.reshape(slot, &self.region(slot).with_span(axis, span));
        }
        let from = slot as usize * self.axes;
        let own = &mut self.spans[from..from + self.axes];
        let before = region::elements(own);
        own[axis] = span;
        self.elements = self.elements.saturating_sub(before) + region::elements(own);
        self.changes += 1;
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
            *self = self.emptied();
            return;
        }
        self.changes += 1;
        self.spans.clear();
        self.values.clear();
        self.free.clear();
        self.elements = 0;
        self.index = None;
    }

    /// Frees unused memory and rebuilds the R-tree, if that is worth its cost. This can renumber
    /// slots.
    pub(super) fn shrink(&mut self) {
        let count = self.count();
        if count == 0 && !self.values.is_empty() {
            self.clear();
        } else if self.index.is_some() && count <= INDEXED_MIN
            || self.values.len() > 4 * (count + SCAN_MAX)
        {
            self.renumber();
        } else if self.index.as_ref().is_some_and(|index| index.tree.is_sparse()) {
            self.build_index();
        }
    }

    /// Renumbers the boxes so that no slot is free, and allocates exactly the memory that they
    /// need.
    fn renumber(&mut self) {
        let mut compact = self.emptied();
        compact.spans.reserve_exact(self.count() * self.axes);
        compact.values.reserve_exact(self.count());
        for (_, region, value) in self.iter() {
            compact.insert(&region, value.clone());
        }
        *self = compact;
    }

    /// Builds a new index of all boxes.
    fn build_index(&mut self) {
        let mut ends = [0; AXES_MAX];
        for spans in self.spans.chunks_exact(self.axes) {
            ends.iter_mut().zip(spans).for_each(|(end, span)| *end = span.end().max(*end));
        }
        let mut tree = RTree::new(self.axes, Scale::for_ends(&ends));
        let mut exact = self.finds_spans().then(ExactIndex::default);
        for slot in self.slots() {
            if self.value(slot).is_some() {
                tree.insert(slot, self.spans(slot));
                exact.iter_mut().for_each(|exact| exact.insert(slot, |slot| self.spans(slot)));
            }
        }
        self.index = Some(Box::new(Index { tree, exact }));
    }
}

/// The spans of a slot, from those of all slots.
#[inline]
fn spans_of(all: &[Span], axes: usize, slot: u32) -> &[Span] {
    let from = slot as usize * axes;
    &all[from..from + axes]
}

#[cfg(test)]
impl<V: Clone + PartialEq + std::fmt::Debug> BoxStore<V> {
    /// The heap bytes that the store takes.
    pub(super) fn heap_bytes(&self) -> usize {
        self.spans.capacity() * size_of::<Span>()
            + self.values.capacity() * size_of::<Option<V>>()
            + self.free.capacity() * size_of::<u32>()
            + self.index.as_ref().map_or(0, |index| {
                let exact = index.exact.as_ref().map_or(0, ExactIndex::heap_bytes);
                size_of::<Index>() + index.tree.heap_bytes() + exact
            })
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
        if let Some(index) = &self.index {
            index.tree.assert_sound(self.count(), |slot| self.spans(slot));
            assert!(index.exact.as_ref().is_none_or(|exact| exact.len() == self.count()));
            assert_eq!(index.exact.is_some(), self.finds_spans());
            for (slot, region, _) in self.iter().filter(|_| self.finds_spans()) {
                assert_eq!(self.find_equal(&region, |_| true), Some(slot));
            }
        }
    }
}
