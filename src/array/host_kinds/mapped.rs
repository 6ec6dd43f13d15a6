//! Arrays in memory that the host and a device access.

use std::fmt;
use std::ops::Deref;

use ndarray::{Array, ArrayBase, ArrayRef, Data, Dimension, IntoDimension, ShapeBuilder};

use super::super::as_view::{AnyView, AnyViewMut, WithDimension, sealed};
use super::super::device_array::{AsDeviceView, DeviceArray, DeviceView, DeviceViewMut};
use super::super::host_guard::{HostMut, HostRef};
use super::super::layout::Layout;
use super::super::smart::SmartArray;
use crate::access::Access;
use crate::audit::Cause;
use crate::backend::PinnedOptions;
use crate::call_site::{CallSite, call_site};
use crate::device::Device;
use crate::element::Element;
use crate::error::{AtCall, Result};
use crate::transfer::{self, StoredView};

/// An array in host memory that one device accesses itself: nothing is ever copied, only the order
/// of accesses remains. Numba's `mapped_array`, CUDA's zero-copy memory (`cuMemHostAlloc` with
/// `DEVICEMAP`).
///
/// Kernels on that device take it as they take a [`DeviceArray`], and it dereferences to one. The
/// host accesses it through guards, which wait for queued work that uses it, as those of a
/// [`SmartArray`] do. A GPU accesses the memory over its link at each use: this suits what is used
/// once, or rarely.
///
/// ```
/// use resident::{Device, Grid, InOut, Kernel, MappedArray};
///
/// let double = Kernel::<(InOut<f32>,)>::new("double")
///     .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0));
/// let _here = Device::cpu().enter();
/// let mut frame = MappedArray::<f32, _>::zeros((4, 100))?;
/// frame.host_mut()?.fill(1.5);
/// double.launch(Grid::cover(frame.len()), (&mut frame,))?;          // copies nothing
/// assert_eq!(frame.host()?.sum(), 1200.0);                          // waits for the kernel
/// # Ok::<(), resident::Error>(())
/// ```
pub struct MappedArray<T: Element, D: Dimension> {
    array: DeviceArray<T, D>,
}

impl<T: Element, D: Dimension> MappedArray<T, D> {
    /// An array of zeros in host memory that the current device accesses.
    ///
    /// # Errors
    ///
    /// - [`NoDevice`](crate::Error::NoDevice) if there is no current device.
    /// - [`OutOfMemory`](crate::Error::OutOfMemory) if the system pins no more memory.
    /// - [`Backend`](crate::Error::Backend) if the driver refuses, because the device cannot map
    ///   host memory; [`DeviceLost`](crate::Error::DeviceLost) if the device died.
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
        Self::allocated(SmartArray::uninit_at(shape, site), options, site)
    }

    /// A copy of an array or view of the host, in its axis order if it has no gaps, else row-major.
    ///
    /// ```
    /// use resident::{Device, MappedArray, ndarray::array};
    ///
    /// let _here = Device::cpu().enter();
    /// let table = MappedArray::from_array(array![[1, 2], [3, 4]])?;
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

    #[track_caller]
    fn allocated(array: SmartArray<T, D>, options: PinnedOptions, site: CallSite) -> Result<Self> {
        let device = Device::current().at(site)?;
        let request = array.request(Cause::Explicit, "allocating mapped memory", site);
        transfer::allocate_mapped(&request, &device, options)?;
        Ok(Self { array: DeviceArray::over(array, &device.stream()) })
    }

    /// The contents, for the host to read. Waits for queued work that writes them.
    ///
    /// # Errors
    ///
    /// - [`Lost`](crate::Error::Lost) if work that should have written some elements failed.
    /// - [`Backend`](crate::Error::Backend) if waiting fails;
    ///   [`DeviceLost`](crate::Error::DeviceLost) if the device died.
    /// - [`InsideKernel`](crate::Error::InsideKernel) if the call would have to wait inside a
    ///   kernel body.
    #[track_caller]
    pub fn host(&self) -> Result<HostRef<'_, T, D>> {
        let start = self.acquire(Access::Read, "host", call_site())?;
        let part = self.array.part();
        // SAFETY: `acquire` waited for all work that writes the memory, whose bytes are initialised
        // and stay until this array drops. Its shared borrow excludes new writers for as long as
        // the guard lives.
        Ok(HostRef::new(unsafe { part.layout.view(start) }, part.storage))
    }

    /// The contents, for the host to change. Waits for queued work that uses them.
    ///
    /// # Errors
    ///
    /// As [`host`](Self::host).
    #[track_caller]
    pub fn host_mut(&mut self) -> Result<HostMut<'_, T, D>> {
        self.writable(Access::ReadWrite, "host_mut", call_site())
    }

    /// The contents, for the host to overwrite, those that were lost included. Write every element.
    /// Waits for queued work that uses them.
    ///
    /// # Errors
    ///
    /// As [`host`](Self::host), without [`Lost`](crate::Error::Lost).
    #[track_caller]
    pub fn host_overwrite(&mut self) -> Result<HostMut<'_, T, D>> {
        self.writable(Access::Overwrite, "host_overwrite", call_site())
    }

    fn writable(
        &mut self,
        access: Access,
        operation: &str,
        site: CallSite,
    ) -> Result<HostMut<'_, T, D>> {
        let start = self.acquire(access, operation, site)?;
        // SAFETY: `acquire` waited for all work that uses the memory, whose bytes are initialised
        // and stay until this array drops. Its exclusive borrow excludes every other access for as
        // long as the guard lives.
        Ok(HostMut { view: unsafe { self.array.part().layout.view_mut(start) } })
    }

    /// The memory's start, once the host may access it. Dangling if the array has no bytes.
    fn acquire(&self, access: Access, operation: &str, site: CallSite) -> Result<*mut u8> {
        let part = self.array.part();
        if part.storage.memory_order().is_empty() || part.storage.memory_order().len_bytes() == 0 {
            return Ok(std::ptr::NonNull::<T>::dangling().as_ptr().cast());
        }
        part.with(Cause::Host, operation, site, |request| {
            transfer::acquire_mapped(request, self.array.home(), access)
        })
    }

    /// The contents as an owned ndarray array: a copy, since ndarray's arrays cannot own memory of
    /// a driver. Waits for work that writes them.
    ///
    /// # Errors
    ///
    /// As [`host`](Self::host); an error drops the array.
    #[track_caller]
    pub fn into_array(self) -> Result<Array<T, D>> {
        Ok(self.host()?.to_owned())
    }

    /// Overwrites the elements, in the order of the device's default stream: see
    /// [`DeviceArray::fill`].
    ///
    /// # Errors
    ///
    /// As [`DeviceArray::fill`].
    #[track_caller]
    pub fn fill(&mut self, value: T) -> Result<()> {
        self.array.fill(value)
    }

    /// Writes one element: see [`DeviceArray::set`].
    ///
    /// # Errors
    ///
    /// As [`DeviceArray::set`].
    #[track_caller]
    pub fn set(&mut self, index: impl IntoDimension<Dim = D>, value: T) -> Result<()> {
        self.array.set(index, value)
    }

    /// Overwrites the elements with those of a host array: see [`DeviceArray::copy_from_host`].
    ///
    /// # Errors
    ///
    /// As [`DeviceArray::copy_from_host`].
    #[track_caller]
    pub fn copy_from_host(&mut self, from: &ArrayRef<T, D>) -> Result<()> {
        self.array.copy_from_host(from)
    }

    /// Overwrites the elements with those of a device array: see [`DeviceArray::copy_from_device`].
    ///
    /// # Errors
    ///
    /// As [`DeviceArray::copy_from_device`].
    #[track_caller]
    pub fn copy_from_device(&mut self, from: &impl AsDeviceView<T, D>) -> Result<()> {
        self.array.copy_from_device(from)
    }

    /// An exclusive view for the device: see [`DeviceArray::view_mut`].
    #[must_use]
    pub fn view_mut(&mut self) -> DeviceViewMut<'_, T, D> {
        self.array.view_mut()
    }

    /// Names the array in errors, reports and events.
    #[must_use]
    pub fn named(self, name: impl AsRef<str>) -> Self {
        Self { array: self.array.named(name) }
    }
}

impl<T: Element, D: Dimension> Deref for MappedArray<T, D> {
    type Target = DeviceArray<T, D>;

    #[inline]
    fn deref(&self) -> &DeviceArray<T, D> {
        &self.array
    }
}

/// A coherent array whose copy on the device is this memory. The host's copy is ordinary memory, so
/// that accesses of the host copy.
impl<T: Element, D: Dimension> From<MappedArray<T, D>> for SmartArray<T, D> {
    fn from(array: MappedArray<T, D>) -> Self {
        Self::from_device(array.array)
    }
}

impl<T: Element, D: Dimension> sealed::Sealed for MappedArray<T, D> {}

impl<T: Element, D: Dimension> AsDeviceView<T, D> for MappedArray<T, D> {
    fn as_device_view(&self) -> DeviceView<'_, T, D> {
        self.array.view()
    }
}

impl<T: Element, D: Dimension> WithDimension<T, D> for MappedArray<T, D> {}

impl<T: Element, D: Dimension> AnyView<T> for MappedArray<T, D> {
    #[allow(private_interfaces)]
    #[inline]
    fn erased(&self) -> StoredView<'_> {
        self.array.part().stored_view()
    }

    #[inline]
    fn home(&self) -> Option<&Device> {
        Some(self.array.home())
    }
}

impl<T: Element, D: Dimension> AnyViewMut<T> for MappedArray<T, D> {}

/// Prints name, shape and device; copies nothing.
impl<T: Element, D: Dimension> fmt::Debug for MappedArray<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, shape) = (self.array.part().storage.named(), self.array.shape());
        write!(f, "MappedArray({}, {:?}, on {})", name, shape, self.array.home())
    }
}
