//! Parts of parameters: as steps name them, and as boxes of the arrays of a replay.

use std::fmt;

use ndarray::{IxDyn, SliceInfoElem};
use smallvec::SmallVec;

use super::super::arguments::bound::BoundArray;
use crate::array::Layout;
use crate::transfer::StoredView;
use resident_core::layout::{OwnView, Strided, ViewBox};

/// A parameter of a chain, or a slice of one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PartOf {
    pub(super) parameter: usize,
    /// Empty for all of it.
    pub(super) slice: SmallVec<[SliceInfoElem; 2]>,
}

/// The parts that the steps of a chain name, by number: first each whole parameter.
#[derive(Debug)]
pub(super) struct PartsNamed(Vec<PartOf>);

impl PartOf {
    pub(super) fn whole(parameter: usize) -> Self {
        Self { parameter, slice: SmallVec::new() }
    }

    /// The part of an array of this shape, or why ndarray would panic.
    pub(super) fn within(&self, array: Option<&Strided<'_>>) -> Result<Part, String> {
        let Some(view) = array else {
            return Ok(Part::of_all(self.parameter, ViewBox::new(std::iter::empty())));
        };
        if self.slice.is_empty() {
            return Ok(Part::of_all(self.parameter, view.whole_box()));
        }
        let all = Layout::new(IxDyn(view.shape), view.strides, view.offset);
        let part = all.slice(&&*self.slice)?;
        let placed = PlacedView::new(part.strided().to_own(), view);
        let elements = all.box_of_slice(&self.slice);
        Ok(Part { parameter: self.parameter, elements, placed: Some(placed) })
    }
}

/// `parameter 1`, or `slice [1..-1, ..] of parameter 1`.
impl fmt::Display for PartOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.slice.is_empty() {
            f.write_str("slice [")?;
            for (index, element) in self.slice.iter().enumerate() {
                write!(f, "{}{element}", if index == 0 { "" } else { ", " })?;
            }
            f.write_str("] of ")?;
        }
        write!(f, "parameter {}", self.parameter)
    }
}

impl PartsNamed {
    pub(super) fn of_parameters(count: usize) -> Self {
        Self((0..count).map(PartOf::whole).collect())
    }

    /// The number of a part, which is a new one if no step has named it.
    pub(super) fn number_of(&mut self, part: &PartOf) -> usize {
        self.0.iter().position(|known| known == part).unwrap_or_else(|| {
            self.0.push(part.clone());
            self.0.len() - 1
        })
    }

    pub(super) fn get(&self, part: usize) -> &PartOf {
        &self.0[part]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &PartOf> {
        self.0.iter()
    }
}

/// A part of the arrays of one shape that an instance is for.
pub(super) struct Part {
    pub(super) parameter: usize,
    /// The elements, as a box of the parameter's array.
    pub(super) elements: ViewBox,
    /// `None` for all of it.
    placed: Option<PlacedView>,
}

impl Part {
    fn of_all(parameter: usize, elements: ViewBox) -> Self {
        Self { parameter, elements, placed: None }
    }

    pub(super) fn is_empty_slice(&self) -> bool {
        self.placed.is_some() && self.elements.is_empty()
    }

    pub(super) fn of<'a>(&'a self, array: &BoundArray<'a>) -> BoundArray<'a> {
        self.placed.as_ref().map_or(*array, |placed| placed.of(array))
    }
}

/// A view, and how far it begins from the first element of the array that a replay gets.
#[derive(Clone, Debug)]
pub(super) struct PlacedView {
    view: OwnView,
    from_first: isize,
}

impl PlacedView {
    /// A part of `array`.
    pub(super) fn new(view: OwnView, array: &Strided<'_>) -> Self {
        let from_first = view.strided().offset.wrapping_sub(array.offset) as isize;
        Self { view, from_first }
    }

    /// This part of another array of the same shape and strides.
    pub(super) fn of<'a>(&'a self, array: &BoundArray<'a>) -> BoundArray<'a> {
        let offset = array.view.offset.wrapping_add_signed(self.from_first);
        let view = Strided { offset, ..self.view.strided() };
        BoundArray::sized(StoredView { view, ..array.stored() }, array.home, array.access)
    }

    /// The offset of the array of which this is the part at `offset`.
    pub(super) fn offset_of_whole(&self, offset: usize) -> usize {
        offset.wrapping_add_signed(self.from_first.wrapping_neg())
    }
}

#[cfg(test)]
impl PlacedView {
    /// The elements of a view of one axis with stride 1.
    pub(super) fn range(&self) -> std::ops::Range<isize> {
        self.from_first..self.from_first + self.view.strided().shape[0] as isize
    }
}
