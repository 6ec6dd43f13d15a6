//! Iterators over the parts of an array along one axis.

use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::Range;

use ndarray::{Axis, Dimension, RemoveAxis};

use super::layout::Layout;
use super::rearrange::{chunk_size, in_range};
use super::view::{Coherent, View};
use crate::storage::Storage;

/// The numbers of the parts that an iterator has not returned yet, and where they lie.
#[derive(Debug)]
struct Parts<'a, H, R, D> {
    storage: &'a Storage,
    home: H,
    layout: Layout<D>,
    axis: usize,
    /// The length of a part along the axis; the last part may be shorter.
    size: usize,
    rest: Range<usize>,
    elements: PhantomData<R>,
}

impl<'a, H: Copy, R, D: Dimension> Parts<'a, H, R, D> {
    #[track_caller]
    fn new(view: View<'a, H, R, D>, axis: Axis, size: usize) -> Self {
        let (storage, home, layout) = view.into_parts();
        let axis = in_range(storage, layout.checked_axis(axis));
        let size = chunk_size(storage, size);
        let rest = 0..layout.shape()[axis].div_ceil(size);
        Self { storage, home, layout, axis, size, rest, elements: PhantomData }
    }

    /// Each number is taken from `rest` once, so that exclusive parts are disjoint.
    fn index(&self, number: usize) -> View<'a, H, R, D::Smaller> {
        View::new(self.storage, self.home, self.layout.at_index(self.axis, number))
    }

    /// As [`index`](Self::index), several indices long.
    fn chunk(&self, number: usize) -> View<'a, H, R, D> {
        let start = number * self.size;
        let len = self.size.min(self.layout.shape()[self.axis] - start);
        View::new(self.storage, self.home, self.layout.along(self.axis, start, len))
    }
}

macro_rules! parts_iterator {
    ($(#[$documentation:meta])* $name:ident<$bound:ident>: $part:ident -> $dim:ty) => {
        $(#[$documentation])*
        #[derive(Debug)]
        pub struct $name<'a, H, R, D>(Parts<'a, H, R, D>);

        impl<'a, H: Copy, R, D: Dimension> $name<'a, H, R, D> {
            /// # Panics
            ///
            /// If the view has no such axis, or `size`, the length of a part along it, is 0.
            #[track_caller]
            pub(super) fn new(view: View<'a, H, R, D>, axis: Axis, size: usize) -> Self {
                Self(Parts::new(view, axis, size))
            }
        }

        impl<'a, H: Copy, R, D: $bound> Iterator for $name<'a, H, R, D> {
            type Item = View<'a, H, R, $dim>;

            fn next(&mut self) -> Option<Self::Item> {
                let number = self.0.rest.next()?;
                Some(self.0.$part(number))
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                self.0.rest.size_hint()
            }

            fn nth(&mut self, n: usize) -> Option<Self::Item> {
                let number = self.0.rest.nth(n)?;
                Some(self.0.$part(number))
            }
        }

        impl<H: Copy, R, D: $bound> DoubleEndedIterator for $name<'_, H, R, D> {
            fn next_back(&mut self) -> Option<Self::Item> {
                let number = self.0.rest.next_back()?;
                Some(self.0.$part(number))
            }
        }

        impl<H: Copy, R, D: $bound> ExactSizeIterator for $name<'_, H, R, D> {}
        impl<H: Copy, R, D: $bound> FusedIterator for $name<'_, H, R, D> {}
    };
}

parts_iterator!(
    /// The parts of an array at each index of an axis, in order. `H` and `R` are those of their
    /// [`View`]s.
    AxisParts<RemoveAxis>: index -> D::Smaller
);

parts_iterator!(
    /// The parts of an array of some length along an axis, in order. `H` and `R` are those of their
    /// [`View`]s.
    AxisChunks<Dimension>: chunk -> D
);

/// The parts at each index of an axis, in order: [`SmartArray::axis_iter`].
///
/// [`SmartArray::axis_iter`]: crate::SmartArray::axis_iter
pub type AxisIter<'a, T, D, H = Coherent> = AxisParts<'a, H, &'a T, D>;

/// As [`AxisIter`], mutable: [`SmartArray::axis_iter_mut`].
///
/// [`SmartArray::axis_iter_mut`]: crate::SmartArray::axis_iter_mut
pub type AxisIterMut<'a, T, D, H = Coherent> = AxisParts<'a, H, &'a mut T, D>;

/// The parts of some length along an axis, in order: [`SmartArray::axis_chunks_iter`].
///
/// [`SmartArray::axis_chunks_iter`]: crate::SmartArray::axis_chunks_iter
pub type AxisChunksIter<'a, T, D, H = Coherent> = AxisChunks<'a, H, &'a T, D>;

/// As [`AxisChunksIter`], mutable: [`SmartArray::axis_chunks_iter_mut`].
///
/// [`SmartArray::axis_chunks_iter_mut`]: crate::SmartArray::axis_chunks_iter_mut
pub type AxisChunksIterMut<'a, T, D, H = Coherent> = AxisChunks<'a, H, &'a mut T, D>;
