//! The arrays of a run: of numbers, or of records whose fields are numbers.

use resident::bytemuck::{Pod, Zeroable};
use resident::ndarray::{ArrayD, Axis, Dimension, IxDyn, SliceInfoElem};
use resident::{Residency, Result, SmartArray, SmartView, SmartViewMut, Traffic, field, field_mut};

use super::contents::info;
use super::step::Part;

/// A record of two numbers.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Debug, Pod, Zeroable)]
pub(crate) struct Pair {
    pub(crate) one: u32,
    pub(crate) two: u32,
}

/// The number of fields of a record.
pub(crate) const FIELDS: usize = 2;

/// An array of the library. To the reference, the fields of records are a last axis, of which a
/// part has one index.
pub(crate) enum Smart {
    Numbers(SmartArray<u32, IxDyn>),
    Records(SmartArray<Pair, IxDyn>),
}

type View<'a> = SmartView<'a, u32, IxDyn>;
type ViewMut<'a> = SmartViewMut<'a, u32, IxDyn>;

/// Which field a part of records has, and the part of each field.
fn field_of(part: &Part) -> (bool, Part) {
    match part.split_last() {
        Some((SliceInfoElem::Index(field), part)) => (*field == 0, part.to_vec()),
        _ => unreachable!("{part:?} has no field"),
    }
}

/// The view of one field.
macro_rules! one_field {
    ($macro:ident, $records:expr, $is_first:expr) => {
        match $is_first {
            true => $macro!($records, Pair, one),
            false => $macro!($records, Pair, two),
        }
    };
}

impl Smart {
    /// An array without elements, in the place of one that is moved.
    pub(crate) fn none() -> Self {
        Self::Numbers(SmartArray::uninit(IxDyn(&[0])))
    }

    pub(crate) fn has_fields(&self) -> bool {
        matches!(self, Self::Records(_))
    }

    /// Without the axis of fields.
    pub(crate) fn shape(&self) -> &[usize] {
        match self {
            Self::Numbers(array) => array.shape(),
            Self::Records(array) => array.shape(),
        }
    }

    pub(crate) fn traffic(&self) -> Traffic {
        match self {
            Self::Numbers(array) => array.traffic(),
            Self::Records(array) => array.traffic(),
        }
    }

    pub(crate) fn residency(&self) -> Residency {
        match self {
            Self::Numbers(array) => array.residency(),
            Self::Records(array) => array.residency(),
        }
    }

    /// Of records, the field of the part.
    pub(crate) fn slice(&self, part: &Part) -> View<'_> {
        match self {
            Self::Numbers(array) => array.slice(info(part)),
            Self::Records(array) => {
                let (is_first, part) = field_of(part);
                one_field!(field, array.slice(info(&part)), is_first)
            }
        }
    }

    /// Of records, the part of the field.
    pub(crate) fn slice_mut(&mut self, part: &Part) -> ViewMut<'_> {
        match self {
            Self::Numbers(array) => array.slice_mut(info(part)),
            Self::Records(array) => {
                let (is_first, part) = field_of(part);
                one_field!(field_mut, array, is_first).slice_move(info(&part))
            }
        }
    }

    /// A part of each side of a split, as a source and a destination.
    pub(crate) fn halves(
        &mut self,
        axis: Axis,
        at: usize,
        [from, to]: [&Part; 2],
    ) -> [ViewMut<'_>; 2] {
        let array = match self {
            Self::Numbers(array) => {
                let (left, right) = array.view_mut().split_at(axis, at);
                return [left.slice_move(info(from)), right.slice_move(info(to))];
            }
            Self::Records(array) => array,
        };
        let ((is_first, from), (is_to_first, to)) = (field_of(from), field_of(to));
        let (left, right) = if is_first == is_to_first {
            one_field!(field_mut, array, is_first).split_at(axis, at)
        } else {
            let (one, two) = field_mut!(array, Pair, one, two);
            let (source, destination) = if is_first { (one, two) } else { (two, one) };
            (source.split_at(axis, at).0, destination.split_at(axis, at).1)
        };
        [left.slice_move(info(&from)), right.slice_move(info(&to))]
    }

    /// Two parts that share no elements: even and odd indices of axis 0, or the two fields.
    pub(crate) fn combs(&mut self) -> [ViewMut<'_>; 2] {
        let array = match self {
            Self::Numbers(array) => array,
            Self::Records(array) => {
                let (one, two) = field_mut!(array, Pair, one, two);
                return [one, two];
            }
        };
        let rest = (1..array.ndim()).map(|_| (..).into());
        let comb = |start: isize| -> Part {
            let rows = SliceInfoElem::Slice { start, end: None, step: 2 };
            std::iter::once(rows).chain(rest.clone()).collect()
        };
        let (even, odd) = array.multi_slice_mut((info(&comb(0)), info(&comb(1))));
        [even, odd]
    }

    /// One number, by an index that has the field as its last axis.
    pub(crate) fn get(&self, index: &IxDyn) -> Result<u32> {
        let part: Part =
            index.slice().iter().map(|index| SliceInfoElem::Index(*index as isize)).collect();
        self.slice(&part).get(IxDyn(&[]))
    }

    /// All numbers; of records, the fields are a last axis.
    pub(crate) fn numbers(&self) -> Result<ArrayD<u32>> {
        match self {
            Self::Numbers(array) => Ok(array.host()?.to_owned()),
            Self::Records(array) => Ok(numbers_of(&array.host()?.to_owned())),
        }
    }

    /// `into_array` and back: the numbers, and the array that was made of them.
    pub(crate) fn given_back(self) -> Result<(ArrayD<u32>, Self)> {
        match self {
            Self::Numbers(array) => {
                let given = array.into_array()?;
                Ok((given.clone(), Self::Numbers(SmartArray::from(given))))
            }
            Self::Records(array) => {
                let given = array.into_array()?;
                Ok((numbers_of(&given), Self::Records(SmartArray::from(given))))
            }
        }
    }
}

fn numbers_of(records: &ArrayD<Pair>) -> ArrayD<u32> {
    let shape: Vec<usize> = records.shape().iter().copied().chain([FIELDS]).collect();
    let numbers = records.iter().flat_map(|record| [record.one, record.two]).collect();
    ArrayD::from_shape_vec(IxDyn(&shape), numbers).expect("two numbers of each record")
}
