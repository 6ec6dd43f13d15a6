//! Sets of elements as disjoint boxes.

use std::ops::ControlFlow;

use super::boxes::Boxes;
use super::carve::Slots;
use super::region::Region;

/// A set of elements of one index space: disjoint boxes with exact union, intersection and
/// difference.
///
/// The first region that is inserted settles the number of axes, which debug builds check from then
/// on; a release build passes over regions with another. Different boxes can make the same set, so
/// sets are compared by [`is_same`](Self::is_same).
#[derive(Clone, Debug, Default)]
pub(crate) struct RegionSet {
    /// What is in it.
    form: Form,
}

/// 0-d spaces have one element and no axis that boxes could be kept along.
#[derive(Clone, Debug, Default)]
enum Form {
    #[default]
    /// Nothing, of any number of axes.
    Empty,
    /// The one element of a space without axes.
    Point,
    /// Boxes with at least one axis, or none left.
    Boxes(Boxes<()>),
}

impl RegionSet {
    /// The empty set.
    #[must_use]
    pub(crate) const fn new() -> Self {
        Self { form: Form::Empty }
    }

    /// The elements of `region`.
    #[must_use]
    pub(crate) fn from(region: Region) -> Self {
        let mut set = Self::new();
        set.insert(&region);
        set
    }

    /// Adds the elements of `region`.
    pub(crate) fn insert(&mut self, region: &Region) {
        if region.is_empty() {
            return;
        }
        if region.axes() == 0 {
            self.form = Form::Point;
            return;
        }
        if !matches!(self.form, Form::Boxes(_)) {
            self.form = Form::Boxes(Boxes::new(region.axes()));
        }
        let Form::Boxes(boxes) = &mut self.form else { return };
        if fits(boxes, region) && !covers(boxes, region) {
            let mut touched = Slots::new();
            carve_out(boxes, region, &mut touched);
            touched.push(boxes.insert(region, ()));
            boxes.merge_all(&touched);
            boxes.tidy();
        }
    }

    /// Takes the elements of `region` out.
    pub(crate) fn remove(&mut self, region: &Region) {
        match &mut self.form {
            Form::Boxes(boxes) if fits(boxes, region) => {
                let mut touched = Slots::new();
                carve_out(boxes, region, &mut touched);
                boxes.merge_all(&touched);
                boxes.tidy();
            }
            Form::Point if region.axes() == 0 => self.form = Form::Empty,
            _ => {}
        }
    }

    /// The elements of either set.
    #[must_use]
    pub(crate) fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        other.iter().for_each(|region| union.insert(&region));
        union
    }

    /// The elements of both sets.
    #[must_use]
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let mut common = Self::new();
        other.iter().for_each(|region| self.visit(&region, |part| common.insert(part)));
        common
    }

    /// The elements of this set that `other` lacks.
    #[must_use]
    pub(crate) fn difference(&self, other: &Self) -> Self {
        let mut rest = self.clone();
        other.iter().for_each(|region| rest.remove(&region));
        rest
    }

    /// The number of elements, or `u64::MAX` if it is larger.
    #[must_use]
    pub(crate) fn len(&self) -> u64 {
        match &self.form {
            Form::Empty => 0,
            Form::Point => 1,
            Form::Boxes(boxes) => boxes.elements(),
        }
    }

    /// True if there is no element.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of boxes.
    #[must_use]
    pub(crate) fn count(&self) -> usize {
        match &self.form {
            Form::Empty => 0,
            Form::Point => 1,
            Form::Boxes(boxes) => boxes.count(),
        }
    }

    /// The boxes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Region> {
        let (point, boxes) = match &self.form {
            Form::Empty => (None, None),
            Form::Point => (Some(Region::new(&[])), None),
            Form::Boxes(boxes) => (None, Some(boxes.iter().map(|(_, region, ())| region))),
        };
        point.into_iter().chain(boxes.into_iter().flatten())
    }

    /// Calls `f` with disjoint parts that exactly cover what the set holds of `region`.
    pub(crate) fn visit(&self, region: &Region, mut f: impl FnMut(&Region)) {
        match &self.form {
            Form::Boxes(boxes) if fits(boxes, region) => {
                let _ = boxes.overlapping(region, |_, part, ()| {
                    f(part);
                    ControlFlow::Continue(())
                });
            }
            Form::Point if region.axes() == 0 => f(region),
            _ => {}
        }
    }

    /// Calls `f` with disjoint parts that exactly cover what the set lacks of `region`.
    pub(crate) fn visit_missing(&self, region: &Region, mut f: impl FnMut(&Region)) {
        match &self.form {
            _ if region.is_empty() => {}
            Form::Boxes(boxes) if fits(boxes, region) => {
                let slots = slots_in(boxes, region);
                boxes.remainder(region, &slots, f);
            }
            Form::Point if region.axes() == 0 => {}
            _ => f(region),
        }
    }

    /// True if the element at `point` (one index per axis) is in the set.
    #[must_use]
    pub(crate) fn contains_point(&self, point: &[u64]) -> bool {
        match &self.form {
            Form::Empty => false,
            Form::Point => point.is_empty(),
            Form::Boxes(boxes) => boxes.axes() == point.len() && boxes.find(point).is_some(),
        }
    }

    /// True if every element of `region` is in the set.
    #[must_use]
    pub(crate) fn contains(&self, region: &Region) -> bool {
        match &self.form {
            _ if region.is_empty() => true,
            Form::Empty => false,
            Form::Point => region.axes() == 0,
            Form::Boxes(boxes) => fits(boxes, region) && covers(boxes, region),
        }
    }

    /// True if any element of `region` is in the set.
    #[must_use]
    pub(crate) fn intersects(&self, region: &Region) -> bool {
        match &self.form {
            _ if region.is_empty() => false,
            Form::Empty => false,
            Form::Point => region.axes() == 0,
            Form::Boxes(boxes) => {
                fits(boxes, region)
                    && boxes.overlapping(region, |_, _, ()| ControlFlow::Break(())).is_break()
            }
        }
    }

    /// True if both sets have the same elements, whatever their boxes.
    #[must_use]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().all(|region| other.contains(&region))
    }
}

/// True if the region has the axes of the boxes.
fn fits(boxes: &Boxes<()>, region: &Region) -> bool {
    debug_assert!(
        boxes.axes() == region.axes(),
        "{region:?} meets a set with {} axes",
        boxes.axes()
    );
    boxes.axes() == region.axes()
}

/// True if the boxes hold all of `region`.
fn covers(boxes: &Boxes<()>, region: &Region) -> bool {
    let mut missing = false;
    boxes.remainder(region, &slots_in(boxes, region), |_| missing = true);
    !missing
}

/// The boxes that meet `region`.
fn slots_in(boxes: &Boxes<()>, region: &Region) -> Slots {
    let mut slots = Slots::new();
    let _ = boxes.overlapping(region, |slot, _, ()| {
        slots.push(slot);
        ControlFlow::Continue(())
    });
    slots
}

/// Takes `region` out of all boxes.
fn carve_out(boxes: &mut Boxes<()>, region: &Region, touched: &mut Slots) {
    for slot in slots_in(boxes, region) {
        if let Some(part) = boxes.region(slot).intersection(region) {
            boxes.carve(slot, &part, touched);
        }
    }
}
