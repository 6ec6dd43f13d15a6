//! Changing a [`RegionMap`].
//!
//! An update first asks for all new values, then chooses the cheapest way to write them that keeps
//! the map small: nothing, if nothing changes; the background, if all of it lies in the region; one
//! box for the whole region, if it gets one value; part by part otherwise.

use std::ops::ControlFlow;

use smallvec::SmallVec;

use super::boxes::Boxes;
use super::carve::Slots;
use super::region::Region;
use super::region_map::{RegionMap, is_covered};

/// The part of a box that lies in the region, and the value that it is to take.
struct Change<V> {
    /// The box.
    slot: u32,
    /// What of it lies in the region.
    part: Region,
    /// The value to be.
    value: V,
}

/// What changes in boxes, and the number of elements in them. A few changes need no heap.
struct Changes<V> {
    /// One for each box that meets the region.
    list: SmallVec<[Change<V>; 6]>,
    /// The number of elements in all their parts, or `u64::MAX`.
    covered: u64,
}

impl<V: Clone + PartialEq> RegionMap<V> {
    /// Gives each part of the region the value that `f` makes of its old one.
    pub(crate) fn update(&mut self, region: &Region, mut f: impl FnMut(&Region, &V) -> V) {
        let mut room = None;
        let Some(clip) = self.clip(region, &mut room) else { return };
        let changes = self.changes(clip, &mut f);
        let mut gaps: SmallVec<[(Region, V); 1]> = SmallVec::new();
        if !is_covered(clip, changes.covered) {
            self.gaps(clip, &changes, |gap| gaps.push((*gap, f(gap, &self.background))));
        }
        match gaps.split_first() {
            Some(((_, first), rest)) if rest.iter().any(|(_, value)| value != first) => {
                self.change_parts(clip, &changes, gaps);
            }
            first => {
                let gap = first.map(|((_, value), _)| value.clone());
                self.change(clip, &changes, gap);
            }
        }
    }

    /// As [`update`](Self::update), where the new value depends on the old one alone. Cheaper: the
    /// background is asked once, and its extent is found out only where it must become boxes.
    pub(crate) fn update_values(&mut self, region: &Region, mut f: impl FnMut(&V) -> V) {
        let mut room = None;
        let Some(clip) = self.clip(region, &mut room) else { return };
        let changes = self.changes(clip, &mut |_, value| f(value));
        let gap = (!is_covered(clip, changes.covered)).then(|| f(&self.background));
        self.change(clip, &changes, gap);
    }

    /// The parts of boxes in `clip` with their new values.
    fn changes(&self, clip: &Region, f: &mut impl FnMut(&Region, &V) -> V) -> Changes<V> {
        let mut changes = Changes { list: SmallVec::new(), covered: 0 };
        if let Some(boxes) = self.boxes() {
            let _ = boxes.overlapping(clip, |slot, part, value| {
                changes.covered = changes.covered.saturating_add(part.len());
                changes.list.push(Change { slot, part: *part, value: f(part, value) });
                ControlFlow::Continue(())
            });
        }
        changes
    }

    /// Emits the parts of `clip` that no box holds; `changes` names the boxes there.
    fn gaps(&self, clip: &Region, changes: &Changes<V>, mut emit: impl FnMut(&Region)) {
        match self.boxes() {
            Some(boxes) => {
                let slots: Slots = changes.list.iter().map(|change| change.slot).collect();
                boxes.remainder(clip, &slots, emit);
            }
            None => emit(clip),
        }
    }

    /// Makes the changes, and gives the rest of `clip` the value `gap`; `None` if there is no rest.
    fn change(&mut self, clip: &Region, changes: &Changes<V>, gap: Option<V>) {
        let gap_changes = gap.as_ref().is_some_and(|value| *value != self.background);
        if !gap_changes && changes.list.iter().all(|change| self.has_value(change)) {
            return;
        }
        match gap {
            Some(value) if gap_changes && self.holds_background(clip, changes.covered) => {
                self.change_background(changes, value);
            }
            gap => match one_value(changes, gap.as_ref()) {
                Some(value) => self.replace(clip, changes, value),
                None => {
                    let gaps = gap
                        .filter(|_| gap_changes)
                        .map(|value| self.gaps_with(clip, changes, &value));
                    self.change_parts(clip, changes, gaps.unwrap_or_default());
                }
            },
        }
    }

    /// True if the change leaves its box as it is.
    fn has_value(&self, change: &Change<V>) -> bool {
        self.boxes().and_then(|boxes| boxes.value(change.slot)) == Some(&change.value)
    }

    /// True if all of the background lies in `clip`, of which boxes cover this number of elements.
    fn holds_background(&self, clip: &Region, covered: u64) -> bool {
        let (space, boxed) = (self.elements(), self.boxes().map_or(0, Boxes::elements));
        space != u64::MAX && clip.len() - covered == space - boxed
    }

    /// Makes the changes in boxes, and gives the whole background another value.
    fn change_background(&mut self, changes: &Changes<V>, value: V) {
        self.background = value;
        let mut touched = Slots::new();
        if !self.clear_equal(changes, &self.background.clone()) {
            self.change_boxes(changes, &mut touched);
            if let Some(boxes) = &mut self.exceptions {
                boxes.remove_equal(&self.background);
            }
        }
        self.settle(&touched);
    }

    /// Removes all boxes at once, if the changes concern all of them and give them this value.
    fn clear_equal(&mut self, changes: &Changes<V>, value: &V) -> bool {
        let Some(boxes) = &mut self.exceptions else { return false };
        let all = changes.covered == boxes.elements() && changes.covered != u64::MAX;
        let equal = all && changes.list.iter().all(|change| change.value == *value);
        if equal {
            boxes.clear();
        }
        equal
    }

    /// Gives all of `clip` one value; `changes` names the boxes that it meets.
    fn replace(&mut self, clip: &Region, changes: &Changes<V>, value: V) {
        let mut touched = Slots::new();
        let becomes_background = value == self.background;
        let is_cleared = changes.list.len() > 1 && self.clear_equal(changes, &value);
        let boxes = self.exceptions.get_or_insert_with(|| Box::new(Boxes::new(clip.axes())));
        match changes.list.as_slice() {
            [only] if !becomes_background && boxes.spans(only.slot) == clip.spans() => {
                boxes.set_value(only.slot, value);
                touched.push(only.slot);
                return self.settle(&touched);
            }
            list if !is_cleared => {
                list.iter().for_each(|change| boxes.carve(change.slot, &change.part, &mut touched))
            }
            _ => {}
        }
        if !becomes_background {
            touched.push(boxes.insert(clip, value));
        }
        self.settle(&touched);
    }

    /// Makes the changes in boxes, and makes boxes of the gaps.
    fn change_parts(
        &mut self,
        clip: &Region,
        changes: &Changes<V>,
        gaps: SmallVec<[(Region, V); 1]>,
    ) {
        let mut touched = Slots::new();
        self.change_boxes(changes, &mut touched);
        let boxes = self.exceptions.get_or_insert_with(|| Box::new(Boxes::new(clip.axes())));
        for (gap, value) in gaps {
            if value != self.background {
                touched.push(boxes.insert(&gap, value));
            }
        }
        self.settle(&touched);
    }

    /// The gaps in `clip` between the boxes that `changes` names, all with one value.
    fn gaps_with(
        &self,
        clip: &Region,
        changes: &Changes<V>,
        value: &V,
    ) -> SmallVec<[(Region, V); 1]> {
        let mut gaps = SmallVec::new();
        self.gaps(clip, changes, |gap| gaps.push((*gap, value.clone())));
        gaps
    }

    /// Makes the changes in boxes one by one: a box that lies in the region as a whole takes its
    /// new value, another is cut. Adds the slots of all boxes that may find new neighbours to
    /// `touched`.
    fn change_boxes(&mut self, changes: &Changes<V>, touched: &mut Slots) {
        let Some(boxes) = &mut self.exceptions else { return };
        for Change { slot, part, value } in &changes.list {
            if boxes.value(*slot) == Some(value) {
                continue;
            }
            if *value != self.background && boxes.spans(*slot) == part.spans() {
                boxes.set_value(*slot, value.clone());
                touched.push(*slot);
                continue;
            }
            boxes.carve(*slot, part, touched);
            if *value != self.background {
                touched.push(boxes.insert(part, value.clone()));
            }
        }
    }

    /// After a change: joins neighbours, sees to it that something is left to the background, and
    /// tidies up.
    fn settle(&mut self, touched: &[u32]) {
        let space = self.elements();
        let Some(boxes) = &mut self.exceptions else { return };
        boxes.merge_all(touched);
        if boxes.elements() == space && space != u64::MAX {
            // The background is nowhere. Let the value of the largest box take its part.
            let largest = boxes.iter().max_by_key(|(_, region, _)| region.len());
            if let Some(value) = largest.map(|(.., value)| value.clone()) {
                boxes.remove_equal(&value);
                self.background = value;
            }
        }
        boxes.tidy();
    }
}

/// The value that the changes and the gaps between them have in common.
fn one_value<V: Clone + PartialEq>(changes: &Changes<V>, gap: Option<&V>) -> Option<V> {
    let first = gap.or_else(|| changes.list.first().map(|change| &change.value))?;
    changes.list.iter().all(|change| change.value == *first).then(|| first.clone())
}
