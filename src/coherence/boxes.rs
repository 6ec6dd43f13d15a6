//! Disjoint boxes with values: the store below [`RegionMap`](super::RegionMap) and
//! [`RegionSet`](super::RegionSet).
//!
//! A box has a slot, a number that stays until the box is removed. The spans of all slots lie in
//! one vector, packed by the actual number of axes, so that one box of a 3-D array takes 72 bytes
//! and not 144. Up to [`SCAN_MAX`] boxes are scanned; above that an [`Index`] finds them.

use std::ops::ControlFlow;

use super::bounds::Scale;
use super::index::Index;
use super::region::{self, AXES_MAX, Region};
use super::span::Span;

/// Up to so many boxes a scan is faster than an index.
const SCAN_MAX: usize = 8;

/// With so few boxes left an index is given up. Less than [`SCAN_MAX`], so that a change to and fro
/// costs nothing.
const INDEXED_MIN: usize = 4;

/// Disjoint, non-empty boxes, each with a value. See the module's documentation.
#[derive(Clone, Debug)]
pub(super) struct Boxes<V> {
    /// The number of spans for each slot.
    axes: usize,
    /// `axes` spans for each slot; empty spans where a slot is free.
    spans: Vec<Span>,
    /// The value of each slot; `None` where a slot is free.
    values: Vec<Option<V>>,
    /// Slots without a box, to be used again.
    free: Vec<u32>,
    /// The number of elements in all boxes, or `u64::MAX`.
    elements: u64,
    /// Finds boxes, once there are more than a scan is good for.
    index: Option<Box<Index>>,
}

impl<V: Clone + PartialEq> Boxes<V> {
    /// No box, in a space of at least one axis and at most six.
    #[must_use]
    pub(super) fn new(axes: usize) -> Self {
        let axes = axes.clamp(1, AXES_MAX);
        Self {
            axes,
            spans: Vec::new(),
            values: Vec::new(),
            free: Vec::new(),
            elements: 0,
            index: None,
        }
    }

    /// The number of axes.
    #[must_use]
    pub(super) const fn axes(&self) -> usize {
        self.axes
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

    /// True if there is an index; there are but a few boxes if not.
    #[must_use]
    pub(super) const fn is_indexed(&self) -> bool {
        self.index.is_some()
    }

    /// The slots, of which some may be free.
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

    /// Calls `found` with the slot of each box whose bounds overlap those of `query`, until it
    /// breaks.
    fn search(
        &self,
        query: &[Span],
        found: &mut impl FnMut(u32) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if query.len() != self.axes {
            return ControlFlow::Continue(());
        }
        if let Some(index) = &self.index {
            return index.search(query, found);
        }
        for (slot, spans) in self.spans.chunks_exact(self.axes).enumerate() {
            if spans.iter().zip(query).all(|(span, others)| span.overlaps(others)) {
                found(slot as u32)?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Calls `found` with slot, common part and value of each box that meets `region`, until it
    /// breaks.
    pub(super) fn overlapping(
        &self,
        region: &Region,
        mut found: impl FnMut(u32, &Region, &V) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut flow = ControlFlow::Continue(());
        let _ = self.search(region.spans(), &mut |slot| {
            let Some(value) = self.value(slot) else { return flow };
            // Most often one box holds all of the region: no part need be made, and no other box be
            // looked for.
            if self.holds(slot, region) {
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

    /// True if the box in `slot` holds all of `region`, which is not empty.
    fn holds(&self, slot: u32, region: &Region) -> bool {
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

    /// Adds a box that is not empty, has the right number of axes and meets no other box. Returns
    /// its slot.
    pub(super) fn insert(&mut self, region: &Region, value: V) -> u32 {
        debug_assert!(
            region.axes() == self.axes && !region.is_empty(),
            "{region:?} is no box here"
        );
        let slot = self.new_slot();
        self.values[slot as usize] = Some(value);
        self.location(slot, region);
        if self.index.is_none() && self.count() > SCAN_MAX {
            self.build_index();
        }
        slot
    }

    /// A free slot, or a new one with empty spans. The first takes memory for itself alone.
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

    /// Writes the spans of a slot that has none.
    fn location(&mut self, slot: u32, region: &Region) {
        let from = slot as usize * self.axes;
        for (span, new) in self.spans[from..from + self.axes].iter_mut().zip(region.spans()) {
            *span = *new;
        }
        self.elements = self.elements.saturating_add(region.len());
        match &mut self.index {
            Some(index) if index.can_access_peer(region.spans()) => {
                index.insert(slot, region.spans())
            }
            Some(_) => self.build_index(),
            None => {}
        }
    }

    /// Takes the spans of a slot away.
    fn displace(&mut self, slot: u32) {
        self.elements = self.elements.saturating_sub(region::elements(self.spans(slot)));
        let from = slot as usize * self.axes;
        self.spans[from..from + self.axes].fill(Span::EMPTY);
        if let Some(index) = &mut self.index {
            index.remove(slot);
        }
    }

    /// Gives a box another extent, which meets no other box.
    pub(super) fn reshape(&mut self, slot: u32, region: &Region) {
        self.displace(slot);
        self.location(slot, region);
    }

    /// Gives a box another value.
    pub(super) fn set_value(&mut self, slot: u32, value: V) {
        if let Some(old @ Some(_)) = self.values.get_mut(slot as usize) {
            *old = Some(value);
        }
    }

    /// Removes a box and returns its value; `None` if the slot is free.
    pub(super) fn remove(&mut self, slot: u32) -> Option<V> {
        let value = self.values.get_mut(slot as usize)?.take()?;
        self.displace(slot);
        self.free.push(slot);
        Some(value)
    }

    /// Removes every box with this value. CopyCosts a look at each.
    pub(super) fn remove_equal(&mut self, value: &V) {
        for slot in self.slots() {
            if self.value(slot) == Some(value) {
                let _ = self.remove(slot);
            }
        }
    }

    /// Removes all boxes; keeps a little memory for the next, so that a change to and fro allocates
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
        self.index = None;
    }

    /// Gives memory back and renews the index where that pays for itself. Slots change their
    /// numbers.
    pub(super) fn tidy(&mut self) {
        let count = self.count();
        if count == 0 && !self.values.is_empty() {
            self.clear();
        } else if self.index.is_some() && count <= INDEXED_MIN
            || self.values.len() > 4 * (count + SCAN_MAX)
        {
            self.compact();
        } else if self.index.as_ref().is_some_and(|index| index.is_sparse()) {
            self.build_index();
        }
    }

    /// Renumbers the boxes so that no slot is free, and takes no more memory than they need.
    fn compact(&mut self) {
        let mut compact = Self::new(self.axes);
        compact.spans.reserve_exact(self.count() * self.axes);
        compact.values.reserve_exact(self.count());
        for (_, region, value) in self.iter() {
            compact.insert(&region, value.clone());
        }
        *self = compact;
    }

    /// Makes a new index of all boxes.
    fn build_index(&mut self) {
        let mut ends = [0; AXES_MAX];
        for spans in self.spans.chunks_exact(self.axes) {
            ends.iter_mut().zip(spans).for_each(|(end, span)| *end = span.end().max(*end));
        }
        let mut index = Index::new(self.axes, Scale::reaching(&ends));
        for slot in self.slots() {
            if self.value(slot).is_some() {
                index.insert(slot, self.spans(slot));
            }
        }
        self.index = Some(Box::new(index));
    }

    /// The heap that the boxes take.
    #[must_use]
    pub(super) fn heap_bytes(&self) -> usize {
        self.spans.capacity() * size_of::<Span>()
            + self.values.capacity() * size_of::<Option<V>>()
            + self.free.capacity() * size_of::<u32>()
            + self.index.as_ref().map_or(0, |index| size_of::<Index>() + index.heap_bytes())
    }
}

#[cfg(test)]
impl<V: Clone + PartialEq + std::fmt::Debug> Boxes<V> {
    /// Checks all that the module's documentation promises.
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
            index.assert_sound(self.count(), |slot| self.spans(slot));
        }
    }
}
