//! Changing a [`RegionMap`].
//!
//! An update first computes all new values. It then stores them in the cheapest way that keeps the
//! map small. If no value changes, it stores nothing. If the region contains the whole background,
//! a map that merges boxes changes the background. If the region gets a single value, it stores one
//! box. Otherwise it changes box by box.

use smallvec::SmallVec;

use super::box_store::BoxStore;
use super::merge::{Surroundings, around};
use super::subtract::Slots;
use super::{RegionMap, covers};
use crate::coherence::region::Region;

/// The new value of the part of a box that lies in the region. The part itself is cut when it is
/// needed: a region has more than 150 bytes.
struct BoxChange<V> {
    slot: u32,
    value: V,
}

/// The changes to all boxes that overlap the region. A short list takes no heap memory.
struct BoxChanges<V> {
    list: SmallVec<[BoxChange<V>; 8]>,
    /// The number of elements of the region in these boxes, or `u64::MAX` if it is larger.
    elements: u64,
    /// What else is next to the region.
    surroundings: Surroundings,
}

impl<V: Clone + PartialEq, const MERGES: bool> RegionMap<V, MERGES> {
    /// Replaces each value in the region by the result of `f` for it.
    pub fn update(&mut self, region: &Region, mut f: impl FnMut(&V) -> V) {
        let mut room = None;
        let Some(clip) = self.clip(region, &mut room) else { return };
        if let Some(slot) = self.find_equal(clip) {
            return self.update_box(slot, f);
        }
        let changes = self.box_changes(clip, &mut f);
        let gap = (!covers(changes.elements, clip)).then(|| f(&self.background));
        self.apply(clip, &changes, gap);
    }

    /// Replaces the value of a region that has only one by the result of `f` for it, unless that is
    /// `None`. Returns the value that was replaced.
    pub fn update_common(&mut self, region: &Region, f: impl FnOnce(&V) -> Option<V>) -> Option<V> {
        let mut room = None;
        let clip = self.clip(region, &mut room)?;
        let mut changes = self.box_changes(clip, &mut V::clone);
        let has_gap = !covers(changes.elements, clip);
        let old = common_value(&changes, has_gap.then_some(&self.background))?;
        let new = f(&old)?;
        changes.list.iter_mut().for_each(|change| change.value = new.clone());
        self.apply(clip, &changes, has_gap.then_some(new));
        Some(old)
    }

    /// Replaces the value of one box of a map that merges none.
    #[inline]
    pub fn update_box(&mut self, slot: u32, f: impl FnOnce(&V) -> V) {
        let Some(boxes) = &mut self.exceptions else { return };
        let Some(value) = boxes.value(slot).map(f) else { return };
        if value != self.background {
            return boxes.set_value(slot, value);
        }
        let _ = boxes.remove(slot);
        boxes.shrink();
    }

    /// The changes to the boxes that overlap `clip`.
    fn box_changes(&self, clip: &Region, f: &mut impl FnMut(&V) -> V) -> BoxChanges<V> {
        let mut list = SmallVec::new();
        let Some(boxes) = self.boxes() else {
            return BoxChanges { list, elements: 0, surroundings: Surroundings::Empty };
        };
        // A merge would search around a small box again.
        let around = if MERGES && boxes.is_indexed() { around(clip.spans()) } else { None };
        let mut has_others = around.is_none();
        let near = around.as_ref().unwrap_or(clip);
        let (_, elements) = boxes.any_slot_near(near, clip, |slot, value, common| {
            if common > 0 {
                list.push(BoxChange { slot, value: f(value) });
            }
            has_others |= common == 0;
            false
        });
        let is_empty = list.is_empty() && !has_others;
        let surroundings = if is_empty { Surroundings::Empty } else { Surroundings::Unknown };
        BoxChanges { list, elements, surroundings }
    }

    /// Applies the changes. Sets the elements of `clip` that no box covers to `gap`, which is
    /// `None` if boxes cover all of `clip`.
    fn apply(&mut self, clip: &Region, changes: &BoxChanges<V>, gap: Option<V>) {
        let gap_changes = gap.as_ref().is_some_and(|value| *value != self.background);
        if !gap_changes && changes.list.iter().all(|change| self.has_value(change)) {
            return;
        }
        if !MERGES
            && clip.is_whole(&self.shape)
            && let Some(value) = common_value(changes, gap.as_ref())
        {
            return self.set_all(value);
        }
        match gap {
            // A map that merges none keeps a box for each region that is updated again and again.
            Some(value)
                if MERGES && gap_changes && self.holds_background(clip, changes.elements) =>
            {
                self.change_background(clip, changes, value);
            }
            gap => match common_value(changes, gap.as_ref()) {
                Some(value) => self.set_region(clip, changes, value),
                None => self.change_parts(clip, changes, gap.filter(|_| gap_changes)),
            },
        }
    }

    /// Gives every element one value.
    fn set_all(&mut self, value: V) {
        self.background = value;
        if let Some(boxes) = &mut self.exceptions {
            boxes.clear();
            boxes.shrink();
        }
    }

    /// Whether the change leaves its box unchanged.
    fn has_value(&self, change: &BoxChange<V>) -> bool {
        self.boxes().and_then(|boxes| boxes.value(change.slot)) == Some(&change.value)
    }

    /// Whether `clip` contains the whole background, given the number of elements of `clip` that
    /// boxes cover.
    fn holds_background(&self, clip: &Region, covered: u64) -> bool {
        let (space, boxed) = (self.elements(), self.boxes().map_or(0, BoxStore::elements));
        space != u64::MAX && clip.len() - covered == space - boxed
    }

    /// Applies the changes to boxes, and changes the value of the whole background.
    fn change_background(&mut self, clip: &Region, changes: &BoxChanges<V>, value: V) {
        self.background = value;
        let mut changed = Slots::new();
        if !self.clear_equal(changes, &self.background.clone()) {
            self.change_boxes(clip, changes, &mut changed);
            if let Some(boxes) = &mut self.exceptions {
                boxes.remove_equal(&self.background);
            }
        }
        self.compact(&changed, Surroundings::Unknown);
    }

    /// Removes all boxes in one step, if the changes give every element of every box this value.
    fn clear_equal(&mut self, changes: &BoxChanges<V>, value: &V) -> bool {
        let Some(boxes) = &mut self.exceptions else { return false };
        let all = changes.elements == boxes.elements() && changes.elements != u64::MAX;
        let equal = all && changes.list.iter().all(|change| change.value == *value);
        if equal {
            boxes.clear();
        }
        equal
    }

    /// Gives all of `clip` one value. `changes` lists the boxes that overlap `clip`.
    fn set_region(&mut self, clip: &Region, changes: &BoxChanges<V>, value: V) {
        let mut changed = Slots::new();
        let becomes_background = value == self.background;
        let is_cleared = changes.list.len() > 1 && self.clear_equal(changes, &value);
        let boxes = self.store();
        match changes.list.as_slice() {
            [only] if !becomes_background && boxes.spans(only.slot) == clip.spans() => {
                boxes.set_value(only.slot, value);
                changed.push(only.slot);
                return self.compact(&changed, Surroundings::Unknown);
            }
            list if !is_cleared => {
                list.iter().for_each(|change| boxes.subtract(change.slot, clip, &mut changed));
            }
            _ => {}
        }
        if !becomes_background {
            changed.push(boxes.insert(clip, value));
        }
        self.compact(&changed, changes.surroundings);
    }

    /// Applies the changes to boxes. If `gap` is a value, inserts boxes with this value into the
    /// gaps between them.
    fn change_parts(&mut self, clip: &Region, changes: &BoxChanges<V>, gap: Option<V>) {
        let mut gaps: SmallVec<[Region; 1]> = SmallVec::new();
        if gap.is_some() {
            self.gaps(clip, changes, |part| gaps.push(*part));
        }
        let mut changed = Slots::new();
        self.change_boxes(clip, changes, &mut changed);
        if let Some(value) = gap {
            let boxes = self.store();
            changed.extend(gaps.iter().map(|part| boxes.insert(part, value.clone())));
        }
        self.compact(&changed, Surroundings::Unknown);
    }

    /// Calls `emit` with the parts of `clip` that no box covers. `changes` lists the boxes there.
    fn gaps(&self, clip: &Region, changes: &BoxChanges<V>, mut emit: impl FnMut(&Region)) {
        match self.boxes() {
            Some(boxes) => {
                let slots: Slots = changes.list.iter().map(|change| change.slot).collect();
                boxes.remainder(clip, &slots, emit);
            }
            None => emit(clip),
        }
    }

    /// Applies the changes to boxes one by one: a box that lies within the region gets its new
    /// value, and a box that lies partly within it is cut. Adds the slots of all boxes that may
    /// have new neighbours to `changed`.
    fn change_boxes(&mut self, clip: &Region, changes: &BoxChanges<V>, changed: &mut Slots) {
        let Some(boxes) = &mut self.exceptions else { return };
        for BoxChange { slot, value } in &changes.list {
            if boxes.value(*slot) == Some(value) {
                continue;
            }
            if *value != self.background && boxes.lies_in(*slot, clip) {
                boxes.set_value(*slot, value.clone());
                changed.push(*slot);
                continue;
            }
            let part = clip.intersection_spans(boxes.spans(*slot));
            boxes.subtract(*slot, clip, changed);
            if let Some(part) = part.filter(|_| *value != self.background) {
                changed.push(boxes.insert(&part, value.clone()));
            }
        }
    }

    /// After a change: merges the changed boxes with their neighbours, if they have any, and frees
    /// unused memory.
    fn compact(&mut self, changed: &[u32], surroundings: Surroundings) {
        if let Some(boxes) = &mut self.exceptions {
            if MERGES {
                boxes.merge_all(changed, surroundings);
            }
            boxes.shrink();
        }
    }
}

/// The new value of all parts and gaps, if they all get the same one.
fn common_value<V: Clone + PartialEq>(changes: &BoxChanges<V>, gap: Option<&V>) -> Option<V> {
    let first = gap.or_else(|| changes.list.first().map(|change| &change.value))?;
    changes.list.iter().all(|change| change.value == *first).then(|| first.clone())
}
