//! A total function from an index space to values.
//!
//! A background value, and disjoint boxes that differ from it. One value everywhere is the
//! background alone and takes no heap. The form is not unique, nor need it be small: exactness is
//! kept always, compactness where it is cheap. What is kept always:
//!
//! - no box has the background's value, so the map is uniform if and only if there is no box;
//! - boxes are disjoint, not empty, and inside the space;
//! - the boxes leave some of the space to the background (where the number of elements fits 64
//!   bits).

use std::ops::ControlFlow;

use smallvec::SmallVec;

use super::boxes::Boxes;
use super::carve::Slots;
use super::region::{AXES_MAX, Region};
use super::span::Span;

/// A total function from an index space to values. See the module's documentation.
///
/// Regions given to its methods are cut to the space. They have as many axes as the space, which
/// debug builds check; a release build finds nothing in any other.
#[derive(Clone, Debug)]
pub(crate) struct RegionMap<V> {
    /// The extents of the space.
    shape: SmallVec<[u64; 3]>,
    /// The value wherever no box is.
    pub(super) background: V,
    /// Kept when the last box goes, if it is small: a change to and fro then allocates nothing.
    pub(super) exceptions: Option<Box<Boxes<V>>>,
}

impl<V: Clone + PartialEq> RegionMap<V> {
    /// One value everywhere, in a space of at most six axes (as in [`Region::whole`]). Up to three
    /// take no heap.
    #[must_use]
    pub(crate) fn new(shape: &[u64], value: V) -> Self {
        debug_assert!(
            shape.len() <= AXES_MAX,
            "a map has at most {AXES_MAX} axes, not {}",
            shape.len()
        );
        let axes = shape.len().min(AXES_MAX);
        Self { shape: SmallVec::from_slice(&shape[..axes]), background: value, exceptions: None }
    }

    /// The extents of the space.
    #[must_use]
    pub(crate) fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The number of elements, or `u64::MAX` if it is larger.
    #[must_use]
    pub(crate) fn elements(&self) -> u64 {
        if self.shape.contains(&0) {
            return 0;
        }
        self.shape.iter().fold(1, |product, extent| product.saturating_mul(*extent))
    }

    /// The value, if there is one value everywhere.
    #[must_use]
    #[inline]
    pub(crate) fn uniform(&self) -> Option<&V> {
        self.boxes().is_none().then_some(&self.background)
    }

    /// The value, to be changed, if there is one value everywhere.
    #[must_use]
    #[inline]
    pub(crate) fn uniform_mut(&mut self) -> Option<&mut V> {
        if self.boxes().is_some() {
            return None;
        }
        Some(&mut self.background)
    }

    /// Makes it one value everywhere and frees the boxes.
    pub(crate) fn set_all(&mut self, value: V) {
        self.background = value;
        self.exceptions = None;
    }

    /// True if `region` holds the whole space.
    #[must_use]
    #[inline]
    pub(crate) fn is_whole(&self, region: &Region) -> bool {
        let covers = |(span, extent): (&Span, &u64)| {
            *extent == 0 || span.start() == 0 && span.step() == 1 && span.end() >= *extent
        };
        region.axes() == self.shape.len() && region.spans().iter().zip(&self.shape).all(covers)
    }

    /// Calls `f` with disjoint parts that exactly cover the region, and their values.
    pub(crate) fn visit(&self, region: &Region, mut f: impl FnMut(&Region, &V)) {
        let _ = self.any(region, |part, value| {
            f(part, value);
            false
        });
    }

    /// True if `f` is true of any of the disjoint parts that exactly cover the region; the rest is
    /// not asked then.
    #[must_use]
    pub(crate) fn any(&self, region: &Region, mut f: impl FnMut(&Region, &V) -> bool) -> bool {
        let mut room = None;
        let Some(clip) = self.clip(region, &mut room) else { return false };
        let Some(boxes) = self.boxes() else { return f(clip, &self.background) };
        let mut slots = Slots::new();
        let mut covered = 0_u64;
        let flow = boxes.overlapping(clip, |slot, part, value| {
            slots.push(slot);
            covered = covered.saturating_add(part.len());
            if f(part, value) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let mut found = flow.is_break();
        if !found && !is_covered(clip, covered) {
            boxes.remainder(clip, &slots, |part| found = found || f(part, &self.background));
        }
        found
    }

    /// True if `f` is true of any value in the region. Cheaper than [`any`](Self::any): of the
    /// background only the presence matters, not the extent.
    #[must_use]
    pub(crate) fn any_value(&self, region: &Region, mut f: impl FnMut(&V) -> bool) -> bool {
        let mut room = None;
        let Some(clip) = self.clip(region, &mut room) else { return false };
        let Some(boxes) = self.boxes() else { return f(&self.background) };
        let mut covered = 0_u64;
        let flow = boxes.overlapping(clip, |_, part, value| {
            covered = covered.saturating_add(part.len());
            if f(value) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        flow.is_break() || !is_covered(clip, covered) && f(&self.background)
    }

    /// Calls `f` with disjoint parts that exactly cover the whole space, and their values.
    pub(crate) fn visit_all(&self, f: impl FnMut(&Region, &V)) {
        self.visit(&Region::whole(&self.shape), f);
    }

    /// The number of values that are kept: the background and one for each box.
    #[must_use]
    pub(crate) fn pieces(&self) -> usize {
        1 + self.boxes().map_or(0, Boxes::count)
    }

    /// The heap that the map takes.
    #[must_use]
    pub(crate) fn heap_bytes(&self) -> usize {
        let shape = if self.shape.spilled() { self.shape.capacity() * size_of::<u64>() } else { 0 };
        shape
            + self.exceptions.as_ref().map_or(0, |boxes| size_of::<Boxes<V>>() + boxes.heap_bytes())
    }

    /// The part of the region inside the space, unless it is empty. `room` takes it if it is not
    /// the region itself.
    pub(super) fn clip<'a>(
        &self,
        region: &'a Region,
        room: &'a mut Option<Region>,
    ) -> Option<&'a Region> {
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
    pub(super) fn boxes(&self) -> Option<&Boxes<V>> {
        self.exceptions.as_deref().filter(|boxes| boxes.count() > 0)
    }
}

/// True if this number of elements is all of the region. A number that is cut to 64 bits proves
/// nothing.
pub(super) fn is_covered(region: &Region, elements: u64) -> bool {
    elements == region.len() && elements != u64::MAX
}

#[cfg(test)]
impl<V: Clone + PartialEq + std::fmt::Debug> RegionMap<V> {
    /// Checks all that the module's documentation promises.
    pub(super) fn assert_sound(&self) {
        let Some(boxes) = self.boxes() else { return };
        boxes.assert_sound();
        assert!(boxes.elements() < self.elements());
        for (_, region, value) in boxes.iter() {
            assert_ne!(*value, self.background);
            assert_eq!(region, region.clipped(&self.shape));
        }
    }

    /// The background and the boxes in the order of their slots: two maps that agree in this behave
    /// the same.
    pub(super) fn form(&self) -> (V, Vec<(u32, Region, V)>) {
        let boxes = self.boxes().into_iter().flat_map(Boxes::iter);
        (
            self.background.clone(),
            boxes.map(|(slot, region, value)| (slot, region, value.clone())).collect(),
        )
    }

    /// True if an index is in use.
    pub(super) fn is_indexed(&self) -> bool {
        self.boxes().is_some_and(Boxes::is_indexed)
    }
}
