//! The value of each element, if it has one, and whether a failure may have lost it.

use resident::ndarray::{ArrayD, IxDyn};

use super::parts::Cells;
use super::value::Value;

/// The contents of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents<T> {
    Unwritten,
    /// The element was never written, unless a copy did so that took several calls and was refused.
    PerhapsWritten,
    /// The program requested access to overwrite the element and did not write it, or a copy that
    /// was refused may have: any value is allowed.
    Anything,
    Value(T),
}

/// One element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element<T> {
    pub(super) contents: Contents<T>,
    /// Whether work that should have written the element may have failed.
    pub(super) may_be_lost: bool,
}

/// One array.
#[derive(Clone, Debug)]
pub(super) struct Reference<T> {
    /// The position in memory of the element at each index.
    pub(super) layout: Cells,
    /// The elements by position in memory.
    pub(super) elements: Vec<Element<T>>,
    /// Whether a copy of the array may have failed, or work that was to write some of it, with
    /// which copies of other elements fail: these are not lost, but what is made of such a copy
    /// may be.
    pub(super) is_doubtful: bool,
    /// Whether a guard of it was forgotten, so that its copy may stay where it is.
    pub(super) is_guarded: bool,
}

impl<T: Value> Contents<T> {
    /// The contents after a copy that may have written them.
    pub(super) fn after_refused_copy(self) -> Self {
        match self {
            Self::Unwritten | Self::PerhapsWritten => Self::PerhapsWritten,
            Self::Anything | Self::Value(_) => Self::Anything,
        }
    }

    /// The contents after a change of the value.
    pub(super) fn map(self, change: impl FnOnce(T) -> T) -> Self {
        match self {
            Self::Value(value) => Self::Value(change(value)),
            other => other,
        }
    }

    /// Whether reading this value is correct.
    pub(super) fn allows(self, seen: T) -> bool {
        match self {
            Self::Unwritten => false,
            Self::PerhapsWritten | Self::Anything => true,
            Self::Value(value) => value == seen,
        }
    }
}

impl<T: Value> Reference<T> {
    /// An array with this layout in memory and these contents by index.
    pub(super) fn new(layout: Cells, contents: impl IntoIterator<Item = Contents<T>>) -> Self {
        let blank = Element { contents: Contents::Unwritten, may_be_lost: false };
        let mut elements = vec![blank; layout.len()];
        layout
            .iter()
            .zip(contents)
            .for_each(|(number, contents)| elements[*number].contents = contents);
        Self { layout, elements, is_doubtful: false, is_guarded: false }
    }

    pub(super) fn contents(&self, cells: &Cells) -> ArrayD<Contents<T>> {
        cells.map(|cell| self.elements[*cell].contents)
    }

    pub(super) fn has_unwritten(&self, cells: &Cells) -> bool {
        cells.iter().any(|cell| self.elements[*cell].contents == Contents::Unwritten)
    }

    pub(super) fn may_be_unwritten(&self, cells: &Cells) -> bool {
        let perhaps = |cell: &usize| self.elements[*cell].contents == Contents::PerhapsWritten;
        self.has_unwritten(cells) || cells.iter().any(perhaps)
    }

    pub(super) fn may_be_lost(&self, cells: &Cells) -> bool {
        cells.iter().any(|cell| self.elements[*cell].may_be_lost)
    }

    /// Replaces contents, by index. What may be lost is in doubt with all of the array.
    pub(super) fn write(
        &mut self,
        cells: impl IntoIterator<Item = usize>,
        contents: impl IntoIterator<Item = Contents<T>>,
        may_be_lost: bool,
    ) {
        self.is_doubtful |= may_be_lost;
        cells
            .into_iter()
            .zip(contents)
            .for_each(|(cell, contents)| self.elements[cell] = Element { contents, may_be_lost });
    }

    /// Marks all contents as what a failure may lose.
    pub(super) fn doubt(&mut self) {
        self.is_doubtful = true;
        self.elements.iter_mut().for_each(|element| element.may_be_lost = true);
    }

    /// Marks elements as contents that no failure can lose.
    pub(super) fn save(&mut self, cells: &Cells) {
        cells.iter().for_each(|cell| self.elements[*cell].may_be_lost = false);
    }
}

/// Asserts that these values, which were read, are allowed.
pub(super) fn assert_allowed<T: Value>(seen: &ArrayD<T>, contents: &ArrayD<Contents<T>>) {
    assert_eq!(seen.shape(), contents.shape());
    assert!(
        contents.iter().zip(seen).all(|(contents, seen)| contents.allows(*seen)),
        "{seen:?} was read, but {contents:?} was expected"
    );
}

/// The position of each element in memory. The elements must lie without gaps.
pub(super) fn layout(shape: &[usize], strides: &[isize]) -> Cells {
    let offset = |index: &IxDyn| -> isize {
        let steps = (0..shape.len()).map(|axis| index[axis] as isize * strides[axis]);
        steps.sum()
    };
    let offsets = ArrayD::from_shape_fn(IxDyn(shape), |index| offset(&index));
    let lowest = offsets.iter().min().copied().unwrap_or(0);
    let cells = offsets.map(|offset| (offset - lowest) as usize);
    let mut sorted: Vec<usize> = cells.iter().copied().collect();
    sorted.sort_unstable();
    assert!(
        sorted.iter().copied().eq(0..cells.len()),
        "strides {strides:?} of {shape:?} leave gaps"
    );
    cells
}
