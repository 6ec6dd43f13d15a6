//! The arrays of a program: of numbers, or of records whose fields are numbers.

use resident::ndarray::{ArrayD, Axis, Dimension, IxDyn, SliceInfoElem};
use resident::{Residency, Result, SmartArray, SmartView, SmartViewMut, Traffic, field, field_mut};

use super::parts::{Cells, Elements, Part, comb, info};
use super::reference::layout;
use super::value::{FIELDS, Pair, Value};

/// An array of the library. To the reference, the fields of records are a last axis, of which a
/// part has one index.
pub(super) enum Smart<T: Value> {
    Numbers(SmartArray<T, IxDyn>),
    Records(SmartArray<Pair<T>, IxDyn>),
}

type View<'a, T> = SmartView<'a, T, IxDyn>;
type ViewMut<'a, T> = SmartViewMut<'a, T, IxDyn>;

#[derive(Clone, Copy, PartialEq)]
enum Field {
    One,
    Two,
}

/// Which field a part of records has, and the part of each field.
fn field_of(part: &Elements) -> (Field, &[SliceInfoElem]) {
    match part.split_last() {
        Some((SliceInfoElem::Index(0), part)) => (Field::One, part),
        Some((SliceInfoElem::Index(_), part)) => (Field::Two, part),
        _ => unreachable!("{part:?} has no field"),
    }
}

/// The view of one field.
macro_rules! one_field {
    ($macro:ident, $records:expr, $field:expr) => {
        match $field {
            Field::One => $macro!($records, Pair<T>, one),
            Field::Two => $macro!($records, Pair<T>, two),
        }
    };
}

/// What arrays of both kinds can do.
macro_rules! of_either {
    ($smart:expr, $array:ident => $result:expr) => {
        match $smart {
            Smart::Numbers($array) => $result,
            Smart::Records($array) => $result,
        }
    };
}

impl<T: Value> Smart<T> {
    /// An array without elements, in the place of one that is moved.
    pub(super) fn none() -> Self {
        Self::Numbers(SmartArray::uninit(IxDyn(&[0])))
    }

    /// Zeros in the place of this array.
    pub(super) fn zeros(&self) -> Self {
        let shape = IxDyn(self.shape());
        match self {
            Self::Numbers(_) => Self::Numbers(SmartArray::zeros(shape)),
            Self::Records(_) => Self::Records(SmartArray::zeros(shape)),
        }
    }

    pub(super) fn has_fields(&self) -> bool {
        matches!(self, Self::Records(_))
    }

    /// Without the axis of fields.
    pub(super) fn shape(&self) -> &[usize] {
        of_either!(self, array => array.shape())
    }

    pub(super) fn strides(&self) -> &[isize] {
        of_either!(self, array => array.strides())
    }

    /// The position in memory of the number at each index.
    pub(super) fn layout(&self) -> Cells {
        layout_of(self.shape(), self.strides(), self.has_fields())
    }

    pub(super) fn traffic(&self) -> Traffic {
        of_either!(self, array => array.traffic())
    }

    pub(super) fn residency(&self) -> Residency {
        of_either!(self, array => array.residency())
    }

    /// What is said about the array.
    pub(super) fn words(&self) -> String {
        of_either!(self, array => format!("{array:?} {}", array.name()))
    }

    /// Pins its host memory.
    pub(super) fn page_lock(&mut self) -> Result<()> {
        of_either!(self, array => array.page_lock().map(drop))
    }

    /// The elements of a part; of records, those of one field.
    pub(super) fn resolve(&self, part: &Part) -> Elements {
        self.resolve_in(self.shape(), part)
    }

    /// The elements of a part of some of the array that has this shape.
    pub(super) fn resolve_in(&self, shape: &[usize], part: &Part) -> Elements {
        let mut elements = part.resolve(shape);
        elements.extend(self.has_fields().then(|| part.field()));
        elements
    }

    /// Of records, the field of the part.
    pub(super) fn slice(&self, part: &Elements) -> View<'_, T> {
        match self {
            Self::Numbers(array) => array.slice(info(part)),
            Self::Records(array) => {
                let (field, part) = field_of(part);
                one_field!(field, array.slice(info(part)), field)
            }
        }
    }

    /// Of records, the part of the field.
    pub(super) fn slice_mut(&mut self, part: &Elements) -> ViewMut<'_, T> {
        match self {
            Self::Numbers(array) => array.slice_mut(info(part)),
            Self::Records(array) => {
                let (field, part) = field_of(part);
                one_field!(field_mut, array, field).slice_move(info(part))
            }
        }
    }

    /// A part of each side of a split, as a source and a destination.
    pub(super) fn halves(
        &mut self,
        axis: Axis,
        at: usize,
        [from, to]: [&Elements; 2],
    ) -> [ViewMut<'_, T>; 2] {
        let array = match self {
            Self::Numbers(array) => {
                let (left, right) = array.split_at_mut(axis, at);
                return [left.slice_move(info(from)), right.slice_move(info(to))];
            }
            Self::Records(array) => array,
        };
        let ((field, from), (to_field, to)) = (field_of(from), field_of(to));
        let (left, right) = if field == to_field {
            one_field!(field_mut, array, field).split_at(axis, at)
        } else {
            let (one, two) = field_mut!(array, Pair<T>, one, two);
            let (source, target) = if field == Field::One { (one, two) } else { (two, one) };
            (source.split_at(axis, at).0, target.split_at(axis, at).1)
        };
        [left.slice_move(info(from)), right.slice_move(info(to))]
    }

    /// Two parts that share no elements: even and odd indices of an axis, or the two fields.
    pub(super) fn combs(&mut self, axis: usize) -> [ViewMut<'_, T>; 2] {
        match self {
            Self::Numbers(array) => {
                let [even, odd] = [0, 1].map(|first| info(&comb(array.shape(), axis, first)));
                let (even, odd) = array.multi_slice_mut((even, odd));
                [even, odd]
            }
            Self::Records(array) => {
                let (one, two) = field_mut!(array, Pair<T>, one, two);
                [one, two]
            }
        }
    }

    /// One number, by an index that has the field as its last axis.
    pub(super) fn get(&self, index: &IxDyn) -> Result<T> {
        self.slice(&at(index)).get(IxDyn(&[]))
    }

    /// All numbers; of records, the fields are a last axis.
    pub(super) fn numbers(&self) -> Result<ArrayD<T>> {
        match self {
            Self::Numbers(array) => Ok(array.host()?.to_owned()),
            Self::Records(array) => Ok(numbers_of(&array.host()?.to_owned())),
        }
    }

    /// `into_array` and back: the numbers, and the array that was made of them. The strides stay.
    pub(super) fn given_back(self) -> Result<(ArrayD<T>, Self)> {
        let strides = self.strides().to_vec();
        // Without elements, strides have no meaning.
        let check = |is_empty: bool, given: &[isize]| assert!(is_empty || given == strides);
        match self {
            Self::Numbers(array) => {
                let given = array.into_array()?;
                check(given.is_empty(), given.strides());
                Ok((given.clone(), Self::Numbers(SmartArray::from(given))))
            }
            Self::Records(array) => {
                let given = array.into_array()?;
                check(given.is_empty(), given.strides());
                Ok((numbers_of(&given), Self::Records(SmartArray::from(given))))
            }
        }
    }
}

/// The part that is one element.
pub(super) fn at(index: &IxDyn) -> Elements {
    index.slice().iter().map(|index| SliceInfoElem::Index(*index as isize)).collect()
}

/// The layout of an array with these strides; of records, the fields are a last axis.
pub(super) fn layout_of(shape: &[usize], strides: &[isize], has_fields: bool) -> Cells {
    if !has_fields {
        return layout(shape, strides);
    }
    let shape: Vec<usize> = shape.iter().copied().chain([FIELDS]).collect();
    let strides = strides.iter().map(|stride| FIELDS as isize * stride);
    layout(&shape, &strides.chain([1]).collect::<Vec<_>>())
}

fn numbers_of<T: Value>(records: &ArrayD<Pair<T>>) -> ArrayD<T> {
    let shape: Vec<usize> = records.shape().iter().copied().chain([FIELDS]).collect();
    let numbers = records.iter().flat_map(|record| record.fields()).collect();
    ArrayD::from_shape_vec(IxDyn(&shape), numbers).expect("two numbers of each record")
}
