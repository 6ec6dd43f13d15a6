//! Parts of arrays. They hold no state of their own: validity, uses and totals are the array's.

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::Arc;

use ndarray::{Array, Axis, Dimension, IntoDimension, SliceArg};

use super::guard::{DeviceMut, DeviceRef, HostMut, HostRef};
use super::layout::Layout;
use super::methods::{reading, writing};
use super::multi_slice::MultiSlice;
use super::part::Part;
use super::pending::Pending;
use super::smart::SmartArray;
use crate::audit::{Residency, Traffic};
use crate::coherence::Access;
use crate::device::Stream;
use crate::element::Element;
use crate::error::Result;
use crate::storage::Storage;
use crate::transfer::Target;

/// A part of a [`SmartArray`], shared. Its guards live as long as the borrow of the array that it was made with.
pub struct SmartView<'a, T: Element, D: Dimension> {
    storage: &'a Storage,
    layout: Layout<D>,
    element: PhantomData<&'a T>,
}

/// A part of a [`SmartArray`], exclusive.
pub struct SmartViewMut<'a, T: Element, D: Dimension> {
    storage: &'a Storage,
    layout: Layout<D>,
    element: PhantomData<&'a mut T>,
}

impl<T: Element, D: Dimension + Copy> Copy for SmartView<'_, T, D> {}

impl<T: Element, D: Dimension> Clone for SmartView<'_, T, D> {
    fn clone(&self) -> Self {
        Self { storage: self.storage, layout: self.layout.clone(), element: PhantomData }
    }
}

impl<'a, T: Element, D: Dimension> SmartView<'a, T, D> {
    pub(super) fn new(storage: &'a Storage, layout: Layout<D>) -> Self {
        Self { storage, layout, element: PhantomData }
    }

    #[inline]
    pub(super) fn part(&self) -> Part<'a, '_, D> {
        Part { storage: self.storage, layout: &self.layout }
    }

    /// A part of this part for as long as this one would have lived, as ndarray's `slice_move`.
    ///
    /// # Panics
    ///
    /// As ndarray's `slice_move`, if an index lies outside.
    #[track_caller]
    #[must_use]
    pub fn slice_move<I: SliceArg<D>>(self, info: I) -> SmartView<'a, T, I::OutDim> {
        SmartView::new(self.storage, self.layout.slice(&info))
    }

    /// The parts before and from `index` on along an axis.
    ///
    /// # Panics
    ///
    /// As ndarray's `split_at`, if there is no such axis or `index` lies beyond its end.
    #[track_caller]
    #[must_use]
    pub fn split_at(self, axis: Axis, index: usize) -> (Self, Self) {
        let (first, second) = self.layout.split_at(axis, index);
        (Self::new(self.storage, first), Self::new(self.storage, second))
    }

    reading!('a);
}

impl<'a, T: Element, D: Dimension> SmartViewMut<'a, T, D> {
    /// The caller holds the elements of `layout` exclusively for `'a`.
    pub(super) fn new(storage: &'a Storage, layout: Layout<D>) -> Self {
        Self { storage, layout, element: PhantomData }
    }

    #[inline]
    pub(super) fn part(&self) -> Part<'_, '_, D> {
        Part { storage: self.storage, layout: &self.layout }
    }

    /// The same part with the lifetime of the view's own borrow, to be used up with the view.
    fn long_part(&self) -> Part<'a, '_, D> {
        Part { storage: self.storage, layout: &self.layout }
    }

    /// The same part, to be read.
    #[must_use]
    pub fn view(&self) -> SmartView<'_, T, D> {
        SmartView::new(self.storage, self.layout.clone())
    }

    /// The same part for a shorter time.
    #[must_use]
    pub fn reborrow(&mut self) -> SmartViewMut<'_, T, D> {
        SmartViewMut::new(self.storage, self.layout.clone())
    }

    /// The host's copy, to be changed, for as long as this view would have lived.
    ///
    /// # Errors
    ///
    /// As [`host_mut`](Self::host_mut).
    #[track_caller]
    pub fn into_host_mut(self) -> Result<HostMut<'a, T, D>> {
        self.long_part().host_mut(Access::ReadWrite, Location::caller())
    }

    /// The copy of `stream`'s device, to be changed by foreign work, for as long as this view would have lived.
    ///
    /// # Errors
    ///
    /// As [`gpu_mut_on`](Self::gpu_mut_on).
    #[track_caller]
    pub fn into_gpu_mut_on(self, stream: &Stream) -> Result<DeviceMut<'a, T, D>> {
        self.long_part().gpu_mut_on(Access::ReadWrite, stream, Location::caller())
    }

    /// A part of this part for as long as this one would have lived, as ndarray's `slice_move`.
    ///
    /// # Panics
    ///
    /// As ndarray's `slice_move`, if an index lies outside.
    #[track_caller]
    #[must_use]
    pub fn slice_move<I: SliceArg<D>>(self, info: I) -> SmartViewMut<'a, T, I::OutDim> {
        SmartViewMut::new(self.storage, self.layout.slice(&info))
    }

    /// The parts before and from `index` on along an axis, for as long as this one would have lived: so a part can be divided again and again.
    ///
    /// ```
    /// use resident::{Result, SmartArray, SmartViewMut, ndarray::{Axis, Ix1}};
    ///
    /// fn number(part: SmartViewMut<'_, u32, Ix1>, start: u32) -> Result<()> {
    ///     match part.len() {
    ///         0 => Ok(()),
    ///         1 => part.into_host_mut().map(|mut host| host[0] = start),
    ///         len => {
    ///             let (low, high) = part.split_at(Axis(0), len / 2);
    ///             number(low, start)?;
    ///             number(high, start + len as u32 / 2)
    ///         }
    ///     }
    /// }
    ///
    /// let mut array = SmartArray::<u32, _>::zeros(10);
    /// number(array.view_mut(), 0)?;
    /// assert_eq!(array.host()?.to_vec(), (0..10).collect::<Vec<_>>());
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// As ndarray's `split_at`, if there is no such axis or `index` lies beyond its end.
    #[track_caller]
    #[must_use]
    pub fn split_at(self, axis: Axis, index: usize) -> (Self, Self) {
        let (first, second) = self.layout.split_at(axis, index);
        (Self::new(self.storage, first), Self::new(self.storage, second))
    }

    reading!('_);
    writing!();
}

impl<T: Element, D: Dimension> fmt::Debug for SmartView<'_, T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SmartView(of {}, {:?}, {})", self.storage.named(), self.shape(), self.residency())
    }
}

impl<T: Element, D: Dimension> fmt::Debug for SmartViewMut<'_, T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SmartViewMut(of {}, {:?}, {})", self.storage.named(), self.shape(), self.residency())
    }
}

/// Anything that can be looked at as a view: arrays and views of this library. Sealed: views carry the borrow that soundness rests on.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no array or view of `{T}` with dimension `{D}`",
    label = "expected a `SmartArray` or a view of one, with that element and that dimension"
)]
pub trait AsView<T: Element, D: Dimension>: sealed::Sealed {
    /// All of it, to be read.
    fn as_view(&self) -> SmartView<'_, T, D>;
}

/// Anything that can be looked at as an exclusive view. Sealed as [`AsView`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no writable array or view of `{T}` with dimension `{D}`",
    label = "expected a `SmartArray` or a `SmartViewMut`, with that element and that dimension"
)]
pub trait AsViewMut<T: Element, D: Dimension>: AsView<T, D> {
    /// All of it, to be written.
    fn as_view_mut(&mut self) -> SmartViewMut<'_, T, D>;
}

mod sealed {
    pub trait Sealed {}
}

impl<T: Element, D: Dimension> sealed::Sealed for SmartArray<T, D> {}
impl<T: Element, D: Dimension> sealed::Sealed for SmartView<'_, T, D> {}
impl<T: Element, D: Dimension> sealed::Sealed for SmartViewMut<'_, T, D> {}

impl<T: Element, D: Dimension> AsView<T, D> for SmartArray<T, D> {
    fn as_view(&self) -> SmartView<'_, T, D> {
        self.view()
    }
}

impl<T: Element, D: Dimension> AsView<T, D> for SmartView<'_, T, D> {
    fn as_view(&self) -> SmartView<'_, T, D> {
        self.clone()
    }
}

impl<T: Element, D: Dimension> AsView<T, D> for SmartViewMut<'_, T, D> {
    fn as_view(&self) -> SmartView<'_, T, D> {
        self.view()
    }
}

impl<T: Element, D: Dimension> AsViewMut<T, D> for SmartArray<T, D> {
    fn as_view_mut(&mut self) -> SmartViewMut<'_, T, D> {
        self.view_mut()
    }
}

impl<T: Element, D: Dimension> AsViewMut<T, D> for SmartViewMut<'_, T, D> {
    fn as_view_mut(&mut self) -> SmartViewMut<'_, T, D> {
        self.reborrow()
    }
}

/// An array or view with its type erased: what a launch needs of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Erased<'a> {
    pub(crate) storage: &'a Storage,
    pub(crate) view: crate::storage::Strided<'a>,
}

/// Any array or view of elements `T`, of whatever dimensions. Sealed as [`AsView`].
pub trait AnyView<T: Element>: sealed::Sealed {
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn erased(&self) -> Erased<'_>;
}

/// Any array or view of elements `T` that may be written. Sealed as [`AsView`].
pub trait AnyViewMut<T: Element>: AnyView<T> {}

macro_rules! any_view {
    ($type:ty) => {
        impl<T: Element, D: Dimension> AnyView<T> for $type {
            #[allow(private_interfaces)]
            #[inline]
            fn erased(&self) -> Erased<'_> {
                let part = self.part();
                Erased { storage: part.storage, view: part.layout.strided() }
            }
        }
    };
}

any_view!(SmartArray<T, D>);
any_view!(SmartView<'_, T, D>);
any_view!(SmartViewMut<'_, T, D>);
impl<T: Element, D: Dimension> AnyViewMut<T> for SmartArray<T, D> {}
impl<T: Element, D: Dimension> AnyViewMut<T> for SmartViewMut<'_, T, D> {}
