//! Device arrays that nothing writes.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use ndarray::Dimension;

use super::super::as_view::{AnyView, WithDimension, sealed};
use super::super::view::DeviceView;
use super::{AsDeviceView, DeviceArray, device_arguments};
use crate::device::Device;
use crate::element::Element;
use crate::transfer::StoredView;

/// A [`DeviceArray`] that nothing writes, so that it may be over a read-only tensor of another
/// library ([`from_dlpack_on`](Self::from_dlpack_on)), and may be shared with one while the program
/// reads it too ([`to_dlpack_on`](Self::to_dlpack_on)). NumPy's arrays whose flag `WRITEABLE` is
/// not set are its like.
///
/// It dereferences to a `DeviceArray`, and gives away no `&mut` to one: methods that write take
/// `&mut self`, so they do not compile. Kernels take it as `In`. A clone is another handle of the
/// same memory, which is freed after the last handle and the last tensor.
///
/// ```
/// use resident::{Device, DeviceArray, Grid, In, Kernel, Out, ReadOnlyDeviceArray};
///
/// let double = Kernel::<(In<f32>, Out<f32>)>::new("double")
///     .host(|_grid, (xs, ys)| ys.iter_mut().zip(xs).for_each(|(y, x)| *y = 2.0 * x));
/// let _here = Device::cpu().enter();
/// let weights = ReadOnlyDeviceArray::from(DeviceArray::<f32, _>::full(3, 0.5)?);
/// let mut doubled = DeviceArray::like(&weights)?;
/// double.launch(Grid::cover(3), (&weights, &mut doubled))?;
/// assert_eq!(doubled.copy_to_host()?.sum(), 3.0);
/// let mut weights = weights.into_device_array().expect("the only handle of its own memory");
/// weights.fill(1.0)?;
/// # Ok::<(), resident::Error>(())
/// ```
pub struct ReadOnlyDeviceArray<T: Element, D: Dimension> {
    array: Arc<DeviceArray<T, D>>,
    /// Whether the memory is that of a read-only tensor, so that it is never written.
    is_others: bool,
}

impl<T: Element, D: Dimension> ReadOnlyDeviceArray<T, D> {
    /// Over memory that another library lends for reading.
    pub(crate) fn of_others(array: DeviceArray<T, D>) -> Self {
        Self { array: Arc::new(array), is_others: true }
    }

    /// A handle of the array.
    pub(crate) fn shared(&self) -> Arc<DeviceArray<T, D>> {
        Arc::clone(&self.array)
    }

    /// The array, to be written again; as [`Arc::try_unwrap`].
    ///
    /// # Errors
    ///
    /// `self`, if it has clones, or tensors whose deleters are not called yet, or if the memory
    /// came from another library, to be read only: [`to_contiguous`](DeviceArray::to_contiguous)
    /// makes a copy.
    pub fn into_device_array(self) -> Result<DeviceArray<T, D>, Self> {
        let Self { array, is_others } = self;
        if is_others {
            return Err(Self { array, is_others });
        }
        Arc::try_unwrap(array).map_err(|array| Self { array, is_others })
    }
}

/// The same memory, to be read only from now on.
impl<T: Element, D: Dimension> From<DeviceArray<T, D>> for ReadOnlyDeviceArray<T, D> {
    fn from(array: DeviceArray<T, D>) -> Self {
        Self { array: Arc::new(array), is_others: false }
    }
}

/// Another handle of the same memory; copies nothing.
impl<T: Element, D: Dimension> Clone for ReadOnlyDeviceArray<T, D> {
    fn clone(&self) -> Self {
        Self { array: self.shared(), is_others: self.is_others }
    }
}

impl<T: Element, D: Dimension> Deref for ReadOnlyDeviceArray<T, D> {
    type Target = DeviceArray<T, D>;

    #[inline]
    fn deref(&self) -> &DeviceArray<T, D> {
        &self.array
    }
}

device_arguments!(ReadOnlyDeviceArray<T, D>, "ReadOnlyDeviceArray", |handle| handle.array);
