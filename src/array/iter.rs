//! Iterators over the parts of an array along one axis.

use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::Range;

use ndarray::{Dimension, RemoveAxis};

use super::layout::Layout;
use super::view::{SmartView, SmartViewMut};
use crate::element::Element;
use crate::storage::Storage;

/// The numbers of the parts that an iterator has not returned yet, and where they lie.
#[derive(Clone, Debug)]
struct Parts<'a, D> {
    storage: &'a Storage,
    layout: Layout<D>,
    axis: usize,
    /// The length of a part along the axis; the last part may be shorter.
    size: usize,
    rest: Range<usize>,
}

impl<'a, D: Dimension> Parts<'a, D> {
    /// `axis` is an axis of the layout, and `size` is not 0.
    fn new(storage: &'a Storage, layout: Layout<D>, axis: usize, size: usize) -> Self {
        let rest = 0..layout.shape()[axis].div_ceil(size);
        Self { storage, layout, axis, size, rest }
    }

    fn chunk(&self, number: usize) -> Layout<D> {
        let start = number * self.size;
        let len = self.size.min(self.layout.shape()[self.axis] - start);
        self.layout.along(self.axis, start, len)
    }
}

macro_rules! parts_iterator {
    (
        $(#[$documentation:meta])* $name:ident: $view:ident<$view_dim:ty> where $bound:ident,
        $marker:ty, |$parts:ident, $number:ident| $part:expr
    ) => {
        $(#[$documentation])*
        #[derive(Debug)]
        pub struct $name<'a, T, D> {
            parts: Parts<'a, D>,
            element: PhantomData<$marker>,
        }

        impl<'a, T: Element, D: Dimension> $name<'a, T, D> {
            /// `axis` is an axis of the layout, and `size` is not 0. The caller's borrow of the
            /// elements lasts for `'a`.
            pub(super) fn new(
                storage: &'a Storage,
                layout: Layout<D>,
                axis: usize,
                size: usize,
            ) -> Self {
                Self { parts: Parts::new(storage, layout, axis, size), element: PhantomData }
            }
        }

        impl<'a, T: Element, D: $bound> $name<'a, T, D> {
            fn part(&self, $number: usize) -> $view<'a, T, $view_dim> {
                let $parts = &self.parts;
                $view::new($parts.storage, $part)
            }
        }

        impl<'a, T: Element, D: $bound> Iterator for $name<'a, T, D> {
            type Item = $view<'a, T, $view_dim>;

            fn next(&mut self) -> Option<Self::Item> {
                let number = self.parts.rest.next()?;
                Some(self.part(number))
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                self.parts.rest.size_hint()
            }

            fn nth(&mut self, n: usize) -> Option<Self::Item> {
                let number = self.parts.rest.nth(n)?;
                Some(self.part(number))
            }
        }

        impl<T: Element, D: $bound> DoubleEndedIterator for $name<'_, T, D> {
            fn next_back(&mut self) -> Option<Self::Item> {
                let number = self.parts.rest.next_back()?;
                Some(self.part(number))
            }
        }

        impl<T: Element, D: $bound> ExactSizeIterator for $name<'_, T, D> {}
        impl<T: Element, D: $bound> FusedIterator for $name<'_, T, D> {}
    };
}

parts_iterator!(
    /// The parts at each index of an axis, in order: [`SmartArray::axis_iter`].
    ///
    /// [`SmartArray::axis_iter`]: crate::SmartArray::axis_iter
    AxisIter: SmartView<D::Smaller> where RemoveAxis, &'a T,
    |parts, number| parts.layout.at_index(parts.axis, number)
);

parts_iterator!(
    /// As [`AxisIter`], mutable: [`SmartArray::axis_iter_mut`].
    ///
    /// [`SmartArray::axis_iter_mut`]: crate::SmartArray::axis_iter_mut
    AxisIterMut: SmartViewMut<D::Smaller> where RemoveAxis, &'a mut T,
    |parts, number| parts.layout.at_index(parts.axis, number)
);

parts_iterator!(
    /// The parts of some length along an axis, in order: [`SmartArray::axis_chunks_iter`].
    ///
    /// [`SmartArray::axis_chunks_iter`]: crate::SmartArray::axis_chunks_iter
    AxisChunksIter: SmartView<D> where Dimension, &'a T,
    |parts, number| parts.chunk(number)
);

parts_iterator!(
    /// As [`AxisChunksIter`], mutable: [`SmartArray::axis_chunks_iter_mut`].
    ///
    /// [`SmartArray::axis_chunks_iter_mut`]: crate::SmartArray::axis_chunks_iter_mut
    AxisChunksIterMut: SmartViewMut<D> where Dimension, &'a mut T,
    |parts, number| parts.chunk(number)
);
