//! Arrays whose host memory a driver allocated, and host arrays that are lent to the library for
//! the time of a call.

mod loan;
mod mapped;
mod pinned;

use std::fmt;
use std::ops::{Deref, DerefMut};

use ndarray::Dimension;

use super::as_view::{AnyView, AnyViewMut, AsView, AsViewMut, WithDimension, sealed};
use super::smart::SmartArray;
use super::view::{SmartView, SmartViewMut};
use crate::element::Element;
use crate::transfer::StoredView;

pub use loan::with_pinned;
pub use mapped::MappedArray;
pub use pinned::PinnedArray;

/// Implements what all kinds have in common: they are a [`SmartArray`] with other host memory.
macro_rules! host_kind {
    ($type:ident, $name:literal) => {
        impl<T: Element, D: Dimension> Deref for $type<T, D> {
            type Target = SmartArray<T, D>;

            #[inline]
            fn deref(&self) -> &SmartArray<T, D> {
                &self.array
            }
        }

        impl<T: Element, D: Dimension> DerefMut for $type<T, D> {
            #[inline]
            fn deref_mut(&mut self) -> &mut SmartArray<T, D> {
                &mut self.array
            }
        }

        /// The same array, with the same memory.
        impl<T: Element, D: Dimension> From<$type<T, D>> for SmartArray<T, D> {
            fn from(array: $type<T, D>) -> Self {
                array.array
            }
        }

        impl<T: Element, D: Dimension> sealed::Sealed for $type<T, D> {}

        impl<T: Element, D: Dimension> AsView<T, D> for $type<T, D> {
            fn as_view(&self) -> SmartView<'_, T, D> {
                self.array.view()
            }
        }

        impl<T: Element, D: Dimension> AsViewMut<T, D> for $type<T, D> {
            fn as_view_mut(&mut self) -> SmartViewMut<'_, T, D> {
                self.array.view_mut()
            }
        }

        impl<T: Element, D: Dimension> WithDimension<T, D> for $type<T, D> {}

        impl<T: Element, D: Dimension> AnyView<T> for $type<T, D> {
            #[allow(private_interfaces)]
            #[inline]
            fn erased(&self) -> StoredView<'_> {
                self.array.part().stored_view()
            }
        }

        impl<T: Element, D: Dimension> AnyViewMut<T> for $type<T, D> {}

        /// Prints name, shape and residency; copies nothing.
        impl<T: Element, D: Dimension> fmt::Debug for $type<T, D> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let (shape, residency) = (self.array.shape(), self.array.residency());
                write!(f, concat!($name, "({}, {:?}, {})"), self.array.label(), shape, residency)
            }
        }
    };
}

host_kind!(PinnedArray, "PinnedArray");
