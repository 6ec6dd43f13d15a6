//! cudarc's slices as arrays and arrays as cudarc's slices, without a copy.

use cudarc::driver::{CudaSlice, DevicePtr};
use ndarray::{Dimension, Ix1};

use super::no_gpu;
use super::stream::primary_device;
use crate::array::SmartArray;
use crate::audit;
use crate::device::{Stream, call_error};
use crate::element::Element;
use crate::error::{AtCall, CalledAt, Error, Result};
use resident_backend::call_site::{CallSite, call_site};

/// # From a slice of cudarc
impl<T: Element> SmartArray<T, Ix1> {
    /// An array whose newest contents are a cudarc slice, in place. Copies nothing and does not
    /// wait: uses of the array are ordered after the work with the slice that cudarc tracks. The
    /// array keeps the slice until the array drops or [`release_on`](Self::release_on) frees its
    /// memory on this GPU, or until [`into_cuda_slice`](Self::into_cuda_slice) returns the slice. A
    /// slice without bytes becomes an array of zero bytes with its length.
    ///
    /// cudarc keeps one event for all readers of a slice. If several streams have read the slice
    /// concurrently, wait for these streams before this call.
    ///
    /// ```no_run
    /// use resident::{Device, SmartArray};
    ///
    /// let stream = Device::cuda(0)?.cuda_context()?.new_stream().expect("cudarc");
    /// let slice = stream.clone_htod(&[1.0_f32; 1000]).expect("cudarc");
    /// let array = SmartArray::from_cuda_slice(slice)?;
    /// assert_eq!(array.host()?.sum(), 1000.0);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The slice is dropped then.
    ///
    /// - [`Error::Foreign`] if the slice does not belong to its GPU's primary context, or starts at
    ///   address 0 or at one that is not aligned for `T`.
    /// - [`Error::NoDevice`] if the GPU cannot be used.
    /// - [`Error::Backend`] if the driver refuses to order streams, or another array uses this
    ///   memory.
    /// - [`Error::DeviceLost`] if the GPU died.
    #[track_caller]
    pub fn from_cuda_slice(slice: CudaSlice<T>) -> Result<Self> {
        let site = call_site();
        let len = slice.len();
        if slice.num_bytes() == 0 {
            return Ok(Self::zeros(len));
        }
        let device = primary_device(slice.context(), "the slice to be taken over").at(site)?;
        check_start::<T>(slice.device_ptr(slice.stream()).0).at(site)?;
        let stream = device.current_stream();
        let Some(raw) = stream.cuda_handle() else {
            return Err(no_gpu("memory", &device).at(site));
        };
        let address = raw
            .take_over(slice)
            .map_err(|error| call_error(&device, "a slice", "taking a slice over", &error))
            .at(site)?;
        Ok(Self::over_device(Ix1(len), stream, address, site))
    }
}

fn check_start<T>(address: u64) -> Result<()> {
    if address != 0 && address.is_multiple_of(align_of::<T>() as u64) {
        return Ok(());
    }
    Err(Error::Foreign {
        call: CalledAt::UNKNOWN,
        seen: format!("the slice to be taken over starts at address {address:#x}"),
        expected: format!(
            "an address other than 0 that is a multiple of {}, as cudarc's `alloc` gives them",
            align_of::<T>()
        ),
    })
}

/// # As a slice of cudarc
impl<T: Element, D: Dimension> SmartArray<T, D> {
    /// The array as a cudarc slice, its elements in memory order: the slice that it was made from,
    /// or a new one over the array's memory on a GPU. Uploads the bytes that are stale on that GPU.
    /// Does not wait for the device: work queued with the slice is ordered after all uses of the
    /// array.
    ///
    /// The GPU is the first one that has a copy of the array, else the current device.
    ///
    /// ```no_run
    /// use resident::{Device, SmartArray};
    ///
    /// let gpu = Device::cuda(0)?;
    /// let _here = gpu.enter();
    /// let slice = SmartArray::from(vec![1, 2, 3]).into_cuda_slice()?;
    /// assert_eq!(slice.stream().clone_dtoh(&slice).expect("cudarc"), [1, 2, 3]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`gpu_on`](Self::gpu_on); [`Error::NoDevice`] if no NVIDIA GPU has a copy and the current
    /// device is not one; [`Error::Shape`] if the array has no bytes, since CUDA has no empty
    /// allocations. The array is dropped then.
    #[track_caller]
    pub fn into_cuda_slice(self) -> Result<CudaSlice<T>> {
        let site = call_site();
        let stream = match self.stream_of_a_copy() {
            Some(stream) => stream,
            None => Stream::current().at(site)?,
        };
        self.into_slice_on(&stream, site)
    }

    /// As [`into_cuda_slice`](Self::into_cuda_slice), on the device of `stream`. A new slice
    /// belongs to this stream, which frees it.
    ///
    /// ```no_run
    /// use resident::{Device, SmartArray};
    ///
    /// let stream = Device::cuda(0)?.new_stream()?;
    /// let slice = SmartArray::<f32, _>::zeros(1000).into_cuda_slice_on(&stream)?;
    /// assert_eq!(slice.len(), 1000);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`gpu_on`](Self::gpu_on); [`Error::NoDevice`] if `stream` is not a stream of an NVIDIA
    /// GPU; [`Error::Shape`] if the array has no bytes. The array is dropped then.
    #[track_caller]
    pub fn into_cuda_slice_on(self, stream: &Stream) -> Result<CudaSlice<T>> {
        self.into_slice_on(stream, call_site())
    }

    fn into_slice_on(self, stream: &Stream, site: CallSite) -> Result<CudaSlice<T>> {
        let device = stream.device_ref();
        let raw = stream.cuda_handle().ok_or_else(|| no_gpu("a cudarc slice", device)).at(site)?;
        let (name, len, shape) = (self.display_name(), self.len(), format!("{:?}", self.shape()));
        let Some(address) = self.take_device_memory(stream, site)? else {
            return Err(Error::Shape {
                call: site.into(),
                operation: format!("a cudarc slice of {name}"),
                expected: String::from("at least one byte"),
                seen: shape,
                instead: "leave arrays without elements out: cudarc has no slices without memory"
                    .into(),
            });
        };
        let slice = raw
            .give_away(address, len)
            .map_err(|error| {
                device.free_after_stream(stream, address);
                call_error(
                    device,
                    &name,
                    &format!("giving {name} away as a slice at {site}"),
                    &error,
                )
            })
            .at(site);
        // It would not be freed if a subscriber panicked before.
        audit::report_recorded();
        slice
    }
}
