//! Arrays in host memory that a device accesses itself.

use ndarray::{ArrayBase, ArrayRef, Data, Dimension, ShapeBuilder};

use super::super::device_array::DeviceArray;
use super::super::layout::Layout;
use super::super::smart::SmartArray;
use super::constructors::{constructors, constructors_with_options};
use crate::audit::Cause;
use crate::device::Device;
use crate::element::Element;
use crate::error::{AtCall, Result};
use crate::transfer;
use resident_backend::PinnedOptions;
use resident_backend::call_site::{CallSite, call_site};
use resident_core::Access;

/// An array in host memory that one device accesses itself: nothing is ever copied, only the order
/// of accesses remains. So it has no `traffic()`. Numba's `mapped_array`, CUDA's zero-copy memory
/// (`cuMemHostAlloc` with `DEVICEMAP`).
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
    pub(super) array: DeviceArray<T, D>,
}

impl<T: Element, D: Dimension> MappedArray<T, D> {
    constructors!(
        MappedArray, PinnedOptions, "host memory that the current device accesses",
        /// - [`OutOfMemory`](crate::Error::OutOfMemory) if the system pins no more memory.
        /// - [`Backend`](crate::Error::Backend) if the driver refuses, because the device cannot
        ///   map host memory; [`DeviceLost`](crate::Error::DeviceLost) if the device died.
    );
    constructors_with_options!(MappedArray);

    #[track_caller]
    fn allocated(array: SmartArray<T, D>, options: PinnedOptions, site: CallSite) -> Result<Self> {
        let device = Device::current().at(site)?;
        let request =
            array.request(Access::Overwrite, Cause::Explicit, "allocating mapped memory", site);
        transfer::allocate_mapped(&request, &device, options)?;
        Ok(Self { array: DeviceArray::over(array, &device.current_stream()) })
    }

    /// The driver's memory is all zeros.
    #[track_caller]
    fn with_zeros(array: SmartArray<T, D>, options: PinnedOptions, site: CallSite) -> Result<Self> {
        Self::allocated(array, options, site)
    }
}
