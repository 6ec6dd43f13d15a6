//! Arrays in pinned host memory.

use std::fmt;
use std::ops::Deref;

use ndarray::{Array, ArrayBase, ArrayRef, Data, Dimension, ShapeBuilder};

use super::super::as_view::{
    AnyView, AnyViewMut, AsView, AsViewMut, WithDimension, any_view, coherent_arguments, sealed,
};
use super::super::layout::Layout;
use super::super::smart::SmartArray;
use super::super::view::{SmartView, SmartViewMut};
use super::constructors::{constructors, constructors_with_options};
use crate::audit::Cause;
use crate::device::Device;
use crate::element::Element;
use crate::error::{AtCall, Result};
use crate::transfer::{self, StoredView};
use resident_backend::PinnedOptions;
use resident_backend::call_site::{CallSite, call_site};
use resident_core::Access;

/// A [`SmartArray`] whose host memory the driver allocated, pinned (page-locked): copies between it
/// and devices go directly, without staging, and uploads return at once. Numba's `pinned_array`.
///
/// It dereferences to a [`SmartArray`], and has the methods of one that change it too; kernels take
/// it as they take any array. It gives away no `&mut SmartArray`, so that no array in ordinary
/// memory can take its place: pass [`view_mut`](Self::view_mut) to functions. The memory is pinned
/// for all devices of the kind that was current when the array was made, until the array drops.
/// Pinned memory cannot be swapped out, so make few of these, for what is transferred often.
/// [`SmartArray::page_lock`] pins an array that exists.
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
    array: SmartArray<T, D>,
}

impl<T: Element, D: Dimension> PinnedArray<T, D> {
    constructors!(
        PinnedArray, PinnedOptions, "memory pinned for devices of the current device's kind",
        /// - [`OutOfMemory`](crate::Error::OutOfMemory) if the system pins no more memory.
        /// - [`Backend`](crate::Error::Backend) if the driver refuses;
        ///   [`DeviceLost`](crate::Error::DeviceLost) if the device died.
    );
    constructors_with_options!(PinnedArray);

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

    /// An exclusive view of the whole array: see [`SmartArray::view_mut`].
    #[must_use]
    pub fn view_mut(&mut self) -> SmartViewMut<'_, T, D> {
        self.array.view_mut()
    }

    /// Names the array in errors, reports and events.
    #[must_use]
    pub fn named(self, name: impl AsRef<str>) -> Self {
        Self { array: self.array.named(name) }
    }

    /// Names the array anew: see [`SmartArray::set_name`].
    pub fn set_name(&mut self, name: impl AsRef<str>) {
        self.array.set_name(name);
    }

    /// Frees the array's memory on a device: see [`SmartArray::release_on`].
    ///
    /// # Errors
    ///
    /// As [`SmartArray::release_on`].
    #[track_caller]
    pub fn release_on(&mut self, device: &Device) -> Result<()> {
        self.array.release_on(device)
    }

    #[track_caller]
    fn allocated(array: SmartArray<T, D>, options: PinnedOptions, site: CallSite) -> Result<Self> {
        let device = Device::current().at(site)?;
        let request =
            array.request(Access::Overwrite, Cause::Explicit, "allocating pinned memory", site);
        transfer::allocate_pinned(&request, &device, options)?;
        Ok(Self { array })
    }

    fn with_zeros(array: SmartArray<T, D>, options: PinnedOptions, site: CallSite) -> Result<Self> {
        let made = Self::allocated(array, options, site)?;
        // The driver's memory is all zeros.
        let request = made.array.request(Access::Overwrite, Cause::Explicit, "zeros", site);
        drop(transfer::mark_host_written(&request));
        Ok(made)
    }
}

impl<T: Element, D: Dimension> Deref for PinnedArray<T, D> {
    type Target = SmartArray<T, D>;

    #[inline]
    fn deref(&self) -> &SmartArray<T, D> {
        &self.array
    }
}

/// The same array, with the same memory.
impl<T: Element, D: Dimension> From<PinnedArray<T, D>> for SmartArray<T, D> {
    fn from(array: PinnedArray<T, D>) -> Self {
        array.array
    }
}

coherent_arguments!(PinnedArray<T, D>);

/// Prints name, shape and residency; copies nothing.
impl<T: Element, D: Dimension> fmt::Debug for PinnedArray<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (shape, residency) = (self.array.shape(), self.array.residency());
        write!(f, "PinnedArray({}, {:?}, {})", self.array.label(), shape, residency)
    }
}
