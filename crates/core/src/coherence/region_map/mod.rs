//! A map that has a value for every element of an index space.
//!
//! It stores a background value, and disjoint boxes ([`BoxStore`]) with other values. A uniform map
//! has no boxes and takes no heap. The map is always exact. Boxes are merged only where that is
//! cheap, so two equal maps may have different boxes. Invariants:
//!
//! - no box has the value of the background, so the map is uniform if and only if it has no boxes;
//! - boxes are disjoint, not empty, and inside the space;
//! - boxes do not fill the space (if its number of elements fits 64 bits).
//!
//! This file contains the queries, `update` the changes. `box_store` stores the boxes and finds
//! them, through an R-tree (`rtree`, `bounds`) if there are more than a few. `subtract` cuts boxes;
//! `merge` joins them.

mod bounds;
mod box_list;
mod box_store;
mod exact;
mod merge;
mod rtree;
mod subtract;
mod update;

use std::ops::ControlFlow;

use smallvec::SmallVec;

use super::region::{AXES_MAX, Region};
use super::span::Span;
pub use box_list::BoxList;
use box_store::{BoxStore, Lookup};
use subtract::Slots;

/// A value for every element of an index space. See the module's documentation. With `MERGES`,
/// neighbouring boxes with equal values are merged.
///
/// Methods clip the regions they are given to the space. Regions must have as many axes as the
/// space, which debug builds check; in release builds, a region with another number of axes
/// contains no element.
#[derive(Clone, Debug)]
pub struct RegionMap<V, const MERGES: bool = true> {
    /// The extents of the space.
    shape: SmallVec<[u64; 3]>,
    /// The value outside all boxes.
    background: V,
    /// The store is kept when the last box is removed, if it is small, so that repeated changes
    /// allocate nothing.
    exceptions: Option<Box<BoxStore<V>>>,
}

impl<V: Clone + PartialEq> RegionMap<V> {
    /// A uniform map over a space of at most six axes (as in [`Region::whole`]). Up to three axes
    /// take no heap.
    #[must_use]
    pub fn new(shape: &[u64], value: V) -> Self {
        debug_assert!(
            shape.len() <= AXES_MAX,
            "a map has at most {AXES_MAX} axes, not {}",
            shape.len()
        );
        let axes = shape.len().min(AXES_MAX);
        let shape = SmallVec::from_slice(&shape[..axes]);
        Self { shape, background: value, exceptions: None }
    }
}

impl<V: Clone + PartialEq> RegionMap<V, false> {
    /// As [`new`](RegionMap::new), for values that are rarely equal: the map does not look for
    /// neighbouring boxes to merge.
    #[must_use]
    pub fn without_merging(shape: &[u64], value: V) -> Self {
        let RegionMap { shape, background, exceptions } = RegionMap::new(shape, value);
        Self { shape, background, exceptions }
    }
}

impl<V: Clone + PartialEq, const MERGES: bool> RegionMap<V, MERGES> {
    /// The extents of the space.
    #[must_use]
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The number of elements, or `u64::MAX` if it is larger.
    #[must_use]
    pub fn elements(&self) -> u64 {
        if self.shape.contains(&0) {
            return 0;
        }
        self.shape.iter().fold(1, |product, extent| product.saturating_mul(*extent))
    }

    /// The value of every element, if the map is uniform.
    #[must_use]
    #[inline]
    pub fn uniform(&self) -> Option<&V> {
        self.boxes().is_none().then_some(&self.background)
    }

    /// Like [`uniform`](Self::uniform), but mutable.
    #[must_use]
    #[inline]
    pub fn uniform_mut(&mut self) -> Option<&mut V> {
        if self.boxes().is_some() {
            return None;
        }
        Some(&mut self.background)
    }

    /// Calls `f` with disjoint parts that exactly cover the region, and their values.
    #[inline]
    pub fn visit(&self, region: &Region, mut f: impl FnMut(&Region, &V)) {
        let _ = self.any(region, |part, value| {
            f(part, value);
            false
        });
    }

    /// Calls `f` with disjoint parts that exactly cover the elements of the region whose values
    /// `is_wanted`. The parts of the background are not looked for if its value is not wanted:
    /// among many boxes, that takes longer than to find the boxes.
    pub fn visit_where(
        &self,
        region: &Region,
        is_wanted: impl Fn(&V) -> bool,
        mut f: impl FnMut(&Region, &V),
    ) {
        let _ = self.any_where(region, is_wanted, |part, value| {
            f(part, value);
            false
        });
    }

    /// Whether `f` returns true for any of the disjoint parts that exactly cover the region. Stops
    /// at the first such part.
    #[must_use]
    pub fn any(&self, region: &Region, f: impl FnMut(&Region, &V) -> bool) -> bool {
        self.any_where(region, |_| true, f)
    }

    /// As [`any`](Self::any), for the elements whose values `is_wanted`.
    fn any_where(
        &self,
        region: &Region,
        is_wanted: impl Fn(&V) -> bool,
        mut f: impl FnMut(&Region, &V) -> bool,
    ) -> bool {
        let mut room = None;
        let Some(clip) = self.clip(region, &mut room) else { return false };
        let mut f = |part: &Region, value: &V| is_wanted(value) && f(part, value);
        let Some(boxes) = self.boxes() else { return f(clip, &self.background) };
        let mut slots = Slots::new();
        let mut covered = 0_u64;
        let flow = boxes.overlapping(clip, |slot, part, value| {
            slots.push(slot);
            covered = covered.saturating_add(part.len());
            if f(part, value) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let mut found = flow.is_break();
        if !found && is_wanted(&self.background) && !covers(covered, clip) {
            boxes.remainder(clip, &slots, |part| found = found || f(part, &self.background));
        }
        found
    }

    /// Whether `f` returns true for any value in the region. Cheaper than [`any`](Self::any), which
    /// must also find the parts of the background.
    #[must_use]
    pub fn any_value(&self, region: &Region, mut f: impl FnMut(&V) -> bool) -> bool {
        let mut room = None;
        let Some(clip) = self.clip(region, &mut room) else { return false };
        let Some(boxes) = self.boxes() else { return f(&self.background) };
        if let Some(value) = self.find_equal(clip).and_then(|slot| boxes.value(slot)) {
            return f(value);
        }
        let (is_found, covered) = boxes.any_value(clip, |value, _| f(value));
        is_found || !covers(covered, clip) && f(&self.background)
    }

    /// The box that is equal to `region`, which then has one value. Only maps that do not merge
    /// boxes look for it: in others, boxes are seldom the parts that a program uses.
    #[must_use]
    #[inline]
    pub fn find_equal(&self, region: &Region) -> Option<u32> {
        if MERGES {
            return None;
        }
        self.boxes()?.find_equal(region, |_| true)
    }

    /// Whether the box in `slot` is `region`, which is not empty. Any number may be asked for.
    #[must_use]
    #[inline]
    pub fn is_at(&self, slot: u32, region: &Region) -> bool {
        self.exceptions.as_deref().is_some_and(|boxes| boxes.is_at(slot, region))
    }

    /// The value of a box. Together with [`changes`](Self::changes), boxes found before need not be
    /// looked for again.
    #[must_use]
    #[inline]
    pub fn box_value(&self, slot: u32) -> Option<&V> {
        self.exceptions.as_deref()?.value(slot)
    }

    /// The number of changes of boxes so far. While it is the same, every slot has the same box.
    #[must_use]
    #[inline]
    pub fn changes(&self) -> u64 {
        self.exceptions.as_deref().map_or(0, BoxStore::changes)
    }

    /// Calls `f` with the slot and the value of each box that has elements in the region. Returns
    /// whether there are other elements in the region, which have the value of the background.
    pub fn visit_boxes(&self, region: &Region, mut f: impl FnMut(u32, &V)) -> bool {
        let mut room = None;
        let Some(clip) = self.clip(region, &mut room) else { return false };
        let Some(boxes) = self.boxes() else { return true };
        let (_, covered) = boxes.any_slot(clip, |slot, value, _| {
            f(slot, value);
            false
        });
        !covers(covered, clip)
    }

    /// Calls `f` with disjoint parts that exactly cover the whole space, and their values.
    pub fn visit_all(&self, f: impl FnMut(&Region, &V)) {
        self.visit(&Region::whole(&self.shape), f);
    }

    /// Calls `f` with each box and its value.
    pub fn for_each_box(&self, mut f: impl FnMut(&Region, &V)) {
        if let Some(boxes) = self.boxes() {
            boxes.iter().for_each(|(_, region, value)| f(&region, value));
        }
    }

    /// The value outside all boxes.
    #[must_use]
    pub const fn background(&self) -> &V {
        &self.background
    }

    /// The stored values: that of the background, and one for each box.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        std::iter::once(&self.background).chain(self.boxes().into_iter().flat_map(BoxStore::values))
    }

    /// The number of stored values: one for the background and one for each box.
    #[must_use]
    pub fn value_count(&self) -> usize {
        1 + self.boxes().map_or(0, BoxStore::count)
    }

    /// The part of the region inside the space, or `None` if that is empty. A part that is not the
    /// region itself is stored in `room`, and a reference to it returned.
    fn clip<'a>(&self, region: &'a Region, room: &'a mut Option<Region>) -> Option<&'a Region> {
        debug_assert!(
            region.axes() == self.shape.len(),
            "{region:?} is looked up in the shape {:?}",
            self.shape
        );
        if region.axes() != self.shape.len() {
            return None;
        }
        let inside = |(span, extent): (&Span, &u64)| span.end() <= *extent;
        let clip = if region.spans().iter().zip(&self.shape).all(inside) {
            region
        } else {
            room.insert(region.clipped(&self.shape))
        };
        (!clip.is_empty()).then_some(clip)
    }

    /// The boxes, if there are any.
    fn boxes(&self) -> Option<&BoxStore<V>> {
        self.exceptions.as_deref().filter(|boxes| boxes.count() > 0)
    }

    /// The store of the boxes, for changes.
    fn store(&mut self) -> &mut BoxStore<V> {
        let lookup = if MERGES { Lookup::Overlap } else { Lookup::OverlapAndSpans };
        let axes = self.shape.len();
        self.exceptions.get_or_insert_with(|| Box::new(BoxStore::new(axes, lookup)))
    }
}

/// Whether disjoint parts of `region` with this number of elements in all cover it. If the number
/// saturated, the answer is `false`.
#[inline]
fn covers(elements: u64, region: &Region) -> bool {
    elements == region.len() && elements != u64::MAX
}

#[cfg(test)]
impl<V: Clone + PartialEq + std::fmt::Debug> RegionMap<V> {
    /// Checks the invariants in the module's documentation.
    pub(in crate::coherence) fn assert_sound(&self) {
        let Some(boxes) = self.boxes() else { return };
        boxes.assert_sound();
        assert!(boxes.elements() < self.elements());
        for (_, region, value) in boxes.iter() {
            assert_ne!(*value, self.background);
            assert_eq!(region, region.clipped(&self.shape));
        }
    }

    /// The heap bytes that the map takes.
    pub(in crate::coherence) fn heap_bytes(&self) -> usize {
        let shape = if self.shape.spilled() { self.shape.capacity() * size_of::<u64>() } else { 0 };
        let boxes = |boxes: &BoxStore<V>| size_of::<BoxStore<V>>() + boxes.heap_bytes();
        shape + self.exceptions.as_deref().map_or(0, boxes)
    }

    /// The background and the boxes in the order of their slots. Two maps for which these are equal
    /// behave the same.
    pub(in crate::coherence) fn form(&self) -> (V, Vec<(u32, Region, V)>) {
        let boxes = self.boxes().into_iter().flat_map(BoxStore::iter);
        (
            self.background.clone(),
            boxes.map(|(slot, region, value)| (slot, region, value.clone())).collect(),
        )
    }

    /// Whether an R-tree is in use.
    pub(in crate::coherence) fn is_indexed(&self) -> bool {
        self.boxes().is_some_and(BoxStore::is_indexed)
    }
}
