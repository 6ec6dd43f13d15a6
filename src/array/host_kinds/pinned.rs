//! Arrays in pinned host memory.

use ndarray::{Array, ArrayBase, Data, Dimension, ShapeBuilder};

use super::super::layout::Layout;
use super::super::smart::SmartArray;
use crate::access::Access;
use crate::audit::Cause;
use crate::backend::PinnedOptions;
use crate::call_site::{CallSite, call_site};
use crate::device::Device;
use crate::element::Element;
use crate::error::{AtCall, Result};
use crate::transfer;

/// A [`SmartArray`] whose host memory the driver allocated, pinned (page-locked): copies between it
/// and devices go directly, without staging, and uploads return at once. Numba's `pinned_array`.
///
/// It dereferences to a [`SmartArray`] and has all methods of one; kernels take it as they take any
/// array. The memory is pinned for all devices of the kind that was current when the array was
/// made, until the array drops. Pinned memory cannot be swapped out, so make few of these, for what
/// is transferred often. [`SmartArray::page_lock`] pins an array that exists.
///
/// ```
/// use resident::{Device, Grid, InOut, Kernel, PinnedArray};
///
/// let double = Kernel::<(InOut<f32>,)>::new("double")
///     .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0));
/// let device = Device::cpu();
/// let _here = device.enter();
/// let mut frame = PinnedArray::<f32, _>::zeros((4, 100))?;
/// assert_eq!(device.memory().pinned, 1600);
/// frame.host_mut()?.fill(1.5);
/// double.launch(Grid::cover(frame.len()), (&mut frame,))?;      // uploads without staging
/// assert_eq!(frame.host()?.sum(), 1200.0);
/// # Ok::<(), resident::Error>(())
/// ```
pub struct PinnedArray<T: Element, D: Dimension> {
    pub(super) array: SmartArray<T, D>,
}

impl<T: Element, D: Dimension> PinnedArray<T, D> {
    /// An array of zeros in memory that is pinned for devices of the current device's kind.
    ///
    /// # Errors
    ///
    /// - [`NoDevice`](crate::Error::NoDevice) if there is no current device.
    /// - [`OutOfMemory`](crate::Error::OutOfMemory) if the system pins no more memory.
    /// - [`Backend`](crate::Error::Backend) if the driver refuses;
    ///   [`DeviceLost`](crate::Error::DeviceLost) if the device died.
    ///
    /// # Panics
    ///
    /// Like ndarray's constructors, if the shape overflows an `isize`, in elements or in bytes.
    #[track_caller]
    pub fn zeros(shape: impl ShapeBuilder<Dim = D>) -> Result<Self> {
        Self::zeros_with(shape, PinnedOptions::new())
    }

    /// As [`zeros`](Self::zeros), with options of the driver's allocation.
    ///
    /// ```
    /// use resident::{Device, PinnedArray, PinnedOptions};
    ///
    /// let _here = Device::cpu().enter();
    /// let options = PinnedOptions::new().write_combined(true);      // the host only writes it
    /// let mut samples = PinnedArray::<f32, _>::zeros_with(1000, options)?;
    /// samples.host_overwrite()?.fill(0.5);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`zeros`](Self::zeros).
    ///
    /// # Panics
    ///
    /// As [`zeros`](Self::zeros).
    #[track_caller]
    pub fn zeros_with(shape: impl ShapeBuilder<Dim = D>, options: PinnedOptions) -> Result<Self> {
        let site = call_site();
        let array = Self::allocated(SmartArray::uninit_at(shape, site), options, site)?;
        // The driver's memory is all zeros.
        array.array.mark_host_written(site);
        Ok(array)
    }

    /// An array without contents: its memory is allocated now, and its elements count as unwritten.
    /// Reading one is [`Uninitialised`](crate::Error::Uninitialised).
    ///
    /// # Errors
    ///
    /// As [`zeros`](Self::zeros).
    ///
    /// # Panics
    ///
    /// As [`zeros`](Self::zeros).
    #[track_caller]
    pub fn uninit(shape: impl ShapeBuilder<Dim = D>) -> Result<Self> {
        let site = call_site();
        Self::allocated(SmartArray::uninit_at(shape, site), PinnedOptions::new(), site)
    }

    /// A copy of an array or view of the host, in its axis order if it has no gaps, else row-major.
    ///
    /// ```
    /// use resident::{Device, PinnedArray, ndarray::array};
    ///
    /// let _here = Device::cpu().enter();
    /// let table = PinnedArray::from_array(array![[1, 2], [3, 4]])?;
    /// assert_eq!(table.into_array()?, array![[1, 2], [3, 4]]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`zeros`](Self::zeros).
    #[track_caller]
    pub fn from_array<S: Data<Elem = T>>(array: ArrayBase<S, D>) -> Result<Self> {
        Self::from_array_with(array, PinnedOptions::new())
    }

    /// As [`from_array`](Self::from_array), with options of the driver's allocation.
    ///
    /// # Errors
    ///
    /// As [`zeros`](Self::zeros).
    #[track_caller]
    pub fn from_array_with<S: Data<Elem = T>>(
        array: ArrayBase<S, D>,
        options: PinnedOptions,
    ) -> Result<Self> {
        let site = call_site();
        let layout = Layout::new(array.raw_dim(), array.strides(), 0);
        let mut made = Self::allocated(SmartArray::uninit_in(&layout, site), options, site)?;
        made.host_overwrite()?.assign(&array);
        Ok(made)
    }

    /// The contents as an owned ndarray array. Downloads what is stale on the host, waits for work
    /// that uses this array, and copies the elements to ordinary memory, since ndarray's arrays
    /// cannot own memory of a driver.
    ///
    /// # Errors
    ///
    /// As [`SmartArray::into_array`].
    #[track_caller]
    pub fn into_array(self) -> Result<Array<T, D>> {
        self.array.into_array()
    }

    #[track_caller]
    fn allocated(array: SmartArray<T, D>, options: PinnedOptions, site: CallSite) -> Result<Self> {
        let device = Device::current().at(site)?;
        let request = array.request(Cause::Explicit, "allocating pinned memory", site);
        transfer::allocate_pinned(&request, &device, options)?;
        Ok(Self { array })
    }
}

impl<T: Element, D: Dimension> SmartArray<T, D> {
    /// Marks the whole array as written by the host.
    fn mark_host_written(&self, site: CallSite) {
        let request = self.request(Cause::Explicit, "zeros", site);
        transfer::mark_host_written(&request, Access::Overwrite);
    }
}
