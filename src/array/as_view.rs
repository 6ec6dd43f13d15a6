//! Sealed traits for functions and launches that accept both arrays and views.

use std::sync::Arc;

use ndarray::Dimension;

use super::view::{SmartView, SmartViewMut};
use crate::device::Device;
use crate::element::Element;
use crate::transfer::StoredView;

/// Arrays and views of this library, for functions that accept both. Sealed, since soundness
/// depends on the borrow of the array that each view contains.
///
/// ```
/// use resident::{AsView, Result, SmartArray, ndarray::{Ix2, s}};
///
/// fn mean(image: &impl AsView<f32, Ix2>) -> Result<Option<f32>> {
///     Ok(image.as_view().host()?.mean())
/// }
///
/// let image = SmartArray::<f32, _>::ones((10, 10));
/// assert_eq!((mean(&image)?, mean(&image.slice(s![..5, ..]))?), (Some(1.0), Some(1.0)));
/// # Ok::<(), resident::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an array or view of `{T}` with dimension `{D}`",
    note = "adopt an ndarray array with `SmartArray::from(array)`, or copy it into an existing one \
            with `a.host_overwrite()?.assign(&x)`; convert elements with `ops::cast`"
)]
pub trait AsView<T: Element, D: Dimension>: sealed::Sealed {
    /// A shared view of all elements.
    fn as_view(&self) -> SmartView<'_, T, D>;
}

/// Arrays and exclusive views, for functions that write to one of them. Sealed as [`AsView`].
///
/// ```
/// use resident::{AsViewMut, Result, SmartArray, ndarray::{Ix1, s}};
///
/// fn ramp(line: &mut impl AsViewMut<f32, Ix1>) -> Result<()> {
///     let mut view = line.as_view_mut();
///     view.host_overwrite()?.iter_mut().enumerate().for_each(|(index, x)| *x = index as f32);
///     Ok(())
/// }
///
/// let mut lines = SmartArray::<f32, _>::uninit((2, 4));
/// ramp(&mut lines.slice_mut(s![0, ..]))?;
/// ramp(&mut lines.slice_mut(s![1, ..]))?;
/// assert_eq!(lines.host()?.sum(), 12.0);
/// # Ok::<(), resident::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a writable array or view of `{T}` with dimension `{D}`",
    label = "expected a `SmartArray` or a `SmartViewMut`, with that element and that dimension",
    note = "adopt an ndarray array with `SmartArray::from(array)`; `into_array` gives it back"
)]
pub trait AsViewMut<T: Element, D: Dimension>: AsView<T, D> {
    /// An exclusive view of all elements.
    fn as_view_mut(&mut self) -> SmartViewMut<'_, T, D>;
}

pub(super) mod sealed {
    pub trait Sealed {}
}

impl<T: Element, D: Dimension> sealed::Sealed for SmartView<'_, T, D> {}
impl<T: Element, D: Dimension> sealed::Sealed for SmartViewMut<'_, T, D> {}

#[diagnostic::do_not_recommend]
impl<T: Element, D: Dimension> AsView<T, D> for SmartView<'_, T, D> {
    fn as_view(&self) -> SmartView<'_, T, D> {
        self.clone()
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element, D: Dimension> AsView<T, D> for SmartViewMut<'_, T, D> {
    fn as_view(&self) -> SmartView<'_, T, D> {
        self.view()
    }
}

/// Implements [`AsView`] for a reference or smart pointer to an array or view.
macro_rules! as_view_through {
    ($pointer:ty) => {
        impl<V: sealed::Sealed + ?Sized> sealed::Sealed for $pointer {}

        #[diagnostic::do_not_recommend]
        impl<T: Element, D: Dimension, V: AsView<T, D> + ?Sized> AsView<T, D> for $pointer {
            fn as_view(&self) -> SmartView<'_, T, D> {
                (**self).as_view()
            }
        }
    };
}

as_view_through!(&V);
as_view_through!(&mut V);
as_view_through!(Box<V>);
as_view_through!(std::rc::Rc<V>);
as_view_through!(Arc<V>);

#[diagnostic::do_not_recommend]
impl<T: Element, D: Dimension> AsViewMut<T, D> for SmartViewMut<'_, T, D> {
    fn as_view_mut(&mut self) -> SmartViewMut<'_, T, D> {
        self.view_mut()
    }
}

/// Arrays and views with elements `T` and any dimension. They may be passed for a flat
/// [`In`](crate::In), which the body gets as a slice. Sealed as [`AsView`].
///
/// ```
/// use resident::{AnyView, Device, Grid, In, Kernel, Out, Result, SmartArray};
///
/// fn sum(xs: &impl AnyView<u32>) -> Result<u32> {
///     let kernel = Kernel::<(In<u32>, Out<u32>)>::new("sum")
///         .host(|_grid, (xs, sum)| sum[0] = xs.iter().sum());
///     let mut sum = SmartArray::<u32, _>::uninit(1);
///     kernel.launch(Grid::cover(1), (xs, &mut sum))?;
///     sum.get(0)
/// }
///
/// let _here = Device::cpu().enter();
/// assert_eq!(sum(&SmartArray::<u32, _>::ones(10))?, 10);
/// assert_eq!(sum(&SmartArray::<u32, _>::ones((3, 4)))?, 12);
/// # Ok::<(), resident::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an array or view of this library with elements `{T}`",
    note = "adopt an ndarray array with `SmartArray::from(array)`, or copy it into an existing one \
            with `a.host_overwrite()?.assign(&x)`; convert elements with `ops::cast`"
)]
pub trait AnyView<T: Element>: sealed::Sealed {
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn erased(&self) -> StoredView<'_>;

    /// The device that alone has the elements, if this is a device array.
    #[doc(hidden)]
    #[inline]
    fn home(&self) -> Option<&Device> {
        None
    }
}

/// Arrays and views, device arrays included, with elements `T` and dimension `D`. They may be
/// passed for a sized parameter, such as `In<f32, Ix2>`. Sealed as [`AsView`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an array or view of `{T}` with dimension `{D}`",
    label = "expected an array or view with that element and that dimension",
    note = "`reshape`, `insert_axis` and `index_axis` make views with another number of axes"
)]
pub trait WithDimension<T: Element, D: Dimension>: sealed::Sealed {}

/// Arrays and exclusive views with elements `T` and any dimension. They may be passed for a flat
/// [`InOut`](crate::InOut) or [`Out`](crate::Out), which the body gets as a slice. Sealed, as
/// [`AsView`] is; see [`AnyView`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a writable array or view of this library with elements `{T}`",
    note = "adopt an ndarray array with `SmartArray::from(array)`; `into_array` gives it back; \
            convert elements with `ops::cast`"
)]
pub trait AnyViewMut<T: Element>: AnyView<T> {}

macro_rules! any_view {
    ($type:ty) => {
        impl<T: Element, D: Dimension> WithDimension<T, D> for $type {}

        #[diagnostic::do_not_recommend]
        impl<T: Element, D: Dimension> AnyView<T> for $type {
            #[allow(private_interfaces)]
            #[inline]
            fn erased(&self) -> StoredView<'_> {
                self.part().stored_view()
            }
        }
    };
}

any_view!(SmartView<'_, T, D>);
any_view!(SmartViewMut<'_, T, D>);
#[diagnostic::do_not_recommend]
impl<T: Element, D: Dimension> AnyViewMut<T> for SmartViewMut<'_, T, D> {}

/// What all coherent arrays are.
macro_rules! coherent_arguments {
    ($type:ty) => {
        impl<T: Element, D: Dimension> sealed::Sealed for $type {}

        #[diagnostic::do_not_recommend]
        impl<T: Element, D: Dimension> AsView<T, D> for $type {
            fn as_view(&self) -> SmartView<'_, T, D> {
                self.view()
            }
        }

        #[diagnostic::do_not_recommend]
        impl<T: Element, D: Dimension> AsViewMut<T, D> for $type {
            fn as_view_mut(&mut self) -> SmartViewMut<'_, T, D> {
                self.view_mut()
            }
        }

        any_view!($type);
        #[diagnostic::do_not_recommend]
        impl<T: Element, D: Dimension> AnyViewMut<T> for $type {}
    };
}

pub(super) use {any_view, coherent_arguments};
