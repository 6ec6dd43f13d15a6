//! Explicit device arrays: contents on one device, which move only when the program says so.

mod copies;
mod exchange;
mod guards;
mod make;
mod parts;
#[cfg(feature = "dlpack")]
mod read_only;
mod views;

pub(crate) use exchange::HandedOut;
#[cfg(feature = "dlpack")]
pub(crate) use exchange::{layout_without_gaps, lowest_address};
#[cfg(feature = "dlpack")]
pub use read_only::ReadOnlyDeviceArray;

use std::fmt;

use ndarray::Dimension;

use super::as_view::{AnyView, AnyViewMut, WithDimension, sealed};
use super::part::Part;
use super::smart::SmartArray;
use super::view::{DeviceView, DeviceViewMut};
use crate::device::Device;
use crate::element::Element;
use crate::transfer::StoredView;

/// An array in the memory of one device, which moves only when the program says so: with
/// [`copy_to_host`](Self::copy_to_host), [`copy_from_host`](Self::copy_from_host),
/// [`copy_from_device`](Self::copy_from_device) and their kin. Numba's `DeviceNDArray` and cudarc's
/// `CudaSlice` are its like.
///
/// Its memory is allocated when it is made, is never evicted, and keeps its address until the array
/// drops. Kernels take it as they take a [`SmartArray`], and uses of the same bytes are ordered
/// across streams as for a `SmartArray`. A launch on another device is an error,
/// [`WrongDevice`](crate::Error::WrongDevice), and there is no access by the host.
///
/// ```
/// use resident::{Device, DeviceArray, Grid, InOut, Kernel, ndarray::{Array2, Ix2}};
///
/// let double = Kernel::<(InOut<f32, Ix2>,)>::new("double")
///     .host(|_grid, (mut xs,)| xs *= 2.0);
/// let _here = Device::cpu().enter();
/// let mut table = DeviceArray::from_host(&Array2::<f32>::ones((3, 4)))?; // uploads 48 bytes
/// double.launch(Grid::cover(table.len()), (&mut table,))?;               // moves nothing
/// assert_eq!(table.copy_to_host()?.sum(), 24.0);                         // downloads 48 bytes
/// # Ok::<(), resident::Error>(())
/// ```
pub struct DeviceArray<T: Element, D: Dimension> {
    /// Its contents are on `device` and nowhere else.
    array: SmartArray<T, D>,
    device: Device,
}

impl<T: Element, D: Dimension> DeviceArray<T, D> {
    #[inline]
    pub(in crate::array) fn part(&self) -> Part<'_, '_, T, D> {
        self.array.part()
    }

    #[inline]
    pub(in crate::array) fn home(&self) -> &Device {
        &self.device
    }
}

/// Device arrays and views of them, for [`DeviceArray::copy_from_device`] and functions that accept
/// all of these. Sealed, as [`AsView`](crate::AsView) is.
pub trait AsDeviceView<T: Element, D: Dimension>: sealed::Sealed {
    /// A shared view of all elements.
    fn as_device_view(&self) -> DeviceView<'_, T, D>;
}

/// What all arrays on one device and their views are; `$inner` is that array or view.
macro_rules! device_arguments {
    ($type:ty, $name:literal, |$outer:ident| $inner:expr) => {
        impl<T: Element, D: Dimension> sealed::Sealed for $type {}

        impl<T: Element, D: Dimension> AsDeviceView<T, D> for $type {
            fn as_device_view(&self) -> DeviceView<'_, T, D> {
                let $outer = self;
                $inner.view()
            }
        }

        impl<T: Element, D: Dimension> WithDimension<T, D> for $type {}

        #[diagnostic::do_not_recommend]
        impl<T: Element, D: Dimension> AnyView<T> for $type {
            #[allow(private_interfaces)]
            #[inline]
            fn erased(&self) -> StoredView<'_> {
                let $outer = self;
                $inner.part().stored_view()
            }

            #[inline]
            fn home(&self) -> Option<&Device> {
                let $outer = self;
                Some($inner.home())
            }
        }

        /// Prints name, shape and device; copies nothing.
        impl<T: Element, D: Dimension> fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let $outer = self;
                let (name, shape) = ($inner.part().storage.named(), $inner.shape());
                write!(f, concat!($name, "({}, {:?}, on {})"), name, shape, $inner.home())
            }
        }
    };
}
pub(super) use device_arguments;

device_arguments!(DeviceArray<T, D>, "DeviceArray", |array| array);
device_arguments!(DeviceView<'_, T, D>, "DeviceView", |array| array);
device_arguments!(DeviceViewMut<'_, T, D>, "DeviceViewMut", |array| array);
#[diagnostic::do_not_recommend]
impl<T: Element, D: Dimension> AnyViewMut<T> for DeviceArray<T, D> {}
#[diagnostic::do_not_recommend]
impl<T: Element, D: Dimension> AnyViewMut<T> for DeviceViewMut<'_, T, D> {}
