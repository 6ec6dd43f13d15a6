//! cudarc's traits on the guards of device copies, so that cudarc's copies and launches, cuBLAS and
//! NCCL take an array directly.
//!
//! A guard keeps the order only on its own stream, and once the guard has dropped, its array may be
//! used elsewhere. So a use on another stream must be complete when the call returns: after the use
//! is queued, cudarc's `SyncOnDrop::Sync` waits for the other stream.

use std::sync::Arc;

use cudarc::driver::sys::{CUdeviceptr, CUresult};
use cudarc::driver::{
    CudaStream, DevicePtr, DevicePtrMut, DeviceSlice, DriverError, LaunchArgs, PushKernelArg,
    SyncOnDrop,
};
use ndarray::Dimension;

use super::no_gpu;
use crate::array::{DeviceMut, DevicePart, DeviceRef};
use crate::audit;
use crate::device::Device;
use crate::error::{AtCall, CalledAt, Error, Result};
use resident_backend::call_site::call_site;
use resident_gpu::GpuStreamHandle;

impl<D: Dimension> DevicePart<'_, D> {
    /// Whether cudarc can use the guard as a slice: it must be contiguous memory of a GPU.
    fn is_slice(&self) -> bool {
        self.layout().strided().is_contiguous() && self.stream_ref().cuda_handle().is_some()
    }

    /// The length for cudarc. Libraries ask for it before the pointer.
    #[track_caller]
    fn slice_len(&self) -> usize {
        self.expect_slice();
        self.layout().len()
    }

    /// Panics if the guard has elements but is not a slice. cudarc's traits cannot return an error,
    /// and a library that got a length of 0 would do nothing and report success.
    #[track_caller]
    fn expect_slice(&self) {
        if self.layout().len() > 0
            && let Err(error) = self.check_slice()
        {
            panic!(
                "resident: {error}; `as_cuda_slice` and `as_cuda_slice_mut` check this and return \
                 an error"
            );
        }
    }

    fn check_slice(&self) -> Result<()> {
        let device = self.stream_ref().device_ref();
        if self.stream_ref().cuda_handle().is_none() {
            return Err(no_gpu("a cudarc slice", device));
        }
        if self.is_slice() {
            return Ok(());
        }
        Err(Error::NotContiguous {
            call: CalledAt::UNKNOWN,
            array: self.display_name(),
            parameter: String::from("a cudarc slice"),
            layout: format!(
                "shape {:?} and strides {:?}",
                self.layout().shape(),
                self.layout().strides()
            ),
            instead: String::from("pass a part without gaps, or a copy: `try_clone`"),
        })
    }

    pub(super) fn cudarc_stream(&self) -> &Arc<CudaStream> {
        match self.stream_ref().cuda_handle().and_then(GpuStreamHandle::stream) {
            Some(stream) => stream,
            None => some_stream(),
        }
    }

    /// The pointer for a use on `stream`, and the synchronisation to run once the use is queued.
    /// Makes `stream` wait for the work that wrote the bytes.
    #[track_caller]
    fn pointer<'a, T>(&'a self, stream: &'a CudaStream) -> (CUdeviceptr, SyncOnDrop<'a>) {
        self.expect_slice();
        let Some(own) = self.stream_ref().cuda_handle() else {
            // It has no elements.
            return (0, SyncOnDrop::Sync(None));
        };
        if own.is(stream) {
            // The guard is still alive, so later uses of the bytes are ordered after all work
            // queued here until the guard drops.
            return (self.lowest_address::<T>(), SyncOnDrop::Sync(None));
        }
        let device = self.stream_ref().device_ref();
        let number = self.stream_ref().number();
        audit::report_foreign_use(&self.array_name(), &device.name_shared(), number);
        match own.make_wait(stream).or_else(|_| own.wait_before(stream)) {
            Ok(()) => (self.lowest_address::<T>(), SyncOnDrop::sync_stream(stream)),
            Err(_) => refused(stream),
        }
    }
}

/// Returns the null pointer, which makes the driver refuse copies. The driver does not refuse a
/// copy of 0 bytes, so cudarc's next call on the context also returns the error.
fn refused(stream: &CudaStream) -> (CUdeviceptr, SyncOnDrop<'_>) {
    stream.context().record_err::<()>(Err(DriverError(CUresult::CUDA_ERROR_NOT_PERMITTED)));
    (0, SyncOnDrop::Sync(None))
}

/// The stream of any GPU, for a guard on a device that is not an NVIDIA GPU. The stream is never
/// used, since such a guard has no pointer and no bytes.
fn some_stream() -> &'static Arc<CudaStream> {
    static STREAM: std::sync::OnceLock<Arc<CudaStream>> = std::sync::OnceLock::new();
    let first = || Device::all().into_iter().find_map(|device| device.stream().try_cudarc().ok());
    STREAM.get_or_init(|| {
        first().unwrap_or_else(|| {
            panic!("resident: there is no NVIDIA GPU whose stream cudarc could get")
        })
    })
}

macro_rules! slice_of_cudarc {
    ($guard:ident, $read:literal) => {
        /// The elements in memory order, starting at the lowest address.
        ///
        /// # Panics
        ///
        /// `len`, and so every copy of cudarc's and every call of NCCL's, panics for a part with
        /// gaps and for a guard on another kind of device, unless it has no elements.
        #[doc = concat!("`", $read, "` returns an error instead.")]
        /// `stream` panics for a guard on another kind of device if there is no NVIDIA GPU; cudarc
        /// itself panics without a GPU, too.
        impl<T, D: Dimension> DeviceSlice<T> for $guard<'_, T, D> {
            #[track_caller]
            fn len(&self) -> usize {
                self.part.slice_len()
            }

            fn stream(&self) -> &Arc<CudaStream> {
                self.part.cudarc_stream()
            }
        }

        /// On the guard's own stream (through any cudarc object for it) this makes no driver call:
        /// the live guard keeps the order. Any other stream is made to wait for the work queued on
        /// the guard's stream. After the use the host waits for this other stream, by
        /// `SyncOnDrop::Sync`.
        ///
        /// cudarc's `memcpy_dtod` to another GPU does not report on which stream it copies: wait
        /// for that stream before you use the array again.
        ///
        /// # Panics
        ///
        /// For a part with gaps and for a guard on another kind of device, unless it has no
        /// elements: cuBLAS asks only for pointers.
        #[doc = concat!("`", $read, "` returns an error instead.")]
        impl<T, D: Dimension> DevicePtr<T> for $guard<'_, T, D> {
            #[track_caller]
            fn device_ptr<'a>(&'a self, stream: &'a CudaStream) -> (CUdeviceptr, SyncOnDrop<'a>) {
                self.part.pointer::<T>(stream)
            }
        }
    };
}

slice_of_cudarc!(DeviceRef, "as_cuda_slice");
slice_of_cudarc!(DeviceMut, "as_cuda_slice_mut");

/// See the impl for [`DeviceRef`].
impl<T, D: Dimension> DevicePtrMut<T> for DeviceMut<'_, T, D> {
    #[track_caller]
    fn device_ptr_mut<'a>(&'a mut self, stream: &'a CudaStream) -> (CUdeviceptr, SyncOnDrop<'a>) {
        self.part.pointer::<T>(stream)
    }
}

impl<T, D: Dimension> DeviceRef<'_, T, D> {
    /// This guard, after a check that cudarc can use it as a slice: it must be contiguous memory of
    /// a GPU. The elements are in memory order. Makes no driver call.
    ///
    /// ```no_run
    /// use resident::{Device, SmartArray, ndarray::s};
    ///
    /// let stream = Device::cuda(0)?.stream();
    /// let table = SmartArray::<f32, _>::ones((100, 100));
    /// let (row, column) = (table.slice(s![7, ..]), table.slice(s![.., 7]));
    /// let guard = row.gpu_on(&stream)?;
    /// let copied = stream.cudarc().clone_dtoh(guard.as_cuda_slice()?).expect("cudarc");
    /// assert_eq!(copied.len(), 100);
    /// assert!(column.gpu_on(&stream)?.as_cuda_slice().is_err());        // gaps
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotContiguous`] if the part has gaps; [`Error::NoDevice`] if it is not on an NVIDIA
    /// GPU.
    #[track_caller]
    pub fn as_cuda_slice(&self) -> Result<&Self> {
        self.part.check_slice().map(|()| self).at(call_site())
    }
}

impl<T, D: Dimension> DeviceMut<'_, T, D> {
    /// This guard, after a check that cudarc can use it as a slice to write.
    ///
    /// ```no_run
    /// use resident::{Device, SmartArray};
    ///
    /// let stream = Device::cuda(0)?.stream();
    /// let mut array = SmartArray::<f32, _>::uninit(3);
    /// {
    ///     let mut guard = array.gpu_overwrite_on(&stream)?;
    ///     let slice = guard.as_cuda_slice_mut()?;
    ///     stream.cudarc().memcpy_htod(&[1.0, 2.0, 3.0], slice).expect("cudarc");
    /// }
    /// assert_eq!(array.host()?.sum(), 6.0);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`DeviceRef::as_cuda_slice`].
    #[track_caller]
    pub fn as_cuda_slice_mut(&mut self) -> Result<&mut Self> {
        self.part.check_slice().at(call_site())?;
        Ok(self)
    }
}

// SAFETY: the driver reads one pointer-sized argument. It is a field of the guard, which is
// borrowed as long as the arguments live.
/// The address of the element with index 0, 0, ..., for a launch on the guard's own stream; the
/// part may have gaps. cudarc's launch builder does not pass its stream to this function. So on any
/// other stream the caller of `launch`, which is unsafe, must ensure the order: get the pointer by
/// `device_ptr`, keep its `SyncOnDrop` until after the launch, and push the pointer.
unsafe impl<'a, 'b: 'a, T, D: Dimension> PushKernelArg<&'b DeviceRef<'_, T, D>> for LaunchArgs<'a> {
    #[inline(always)]
    fn arg(&mut self, guard: &'b DeviceRef<'_, T, D>) -> &mut Self {
        self.arg(guard.part.address())
    }
}

// SAFETY: as above.
/// See the impl for [`DeviceRef`].
unsafe impl<'a, 'b: 'a, T, D: Dimension> PushKernelArg<&'b mut DeviceMut<'_, T, D>>
    for LaunchArgs<'a>
{
    #[inline(always)]
    fn arg(&mut self, guard: &'b mut DeviceMut<'_, T, D>) -> &mut Self {
        self.arg(guard.part.address())
    }
}

// SAFETY: as above.
/// See the impl for [`DeviceRef`].
unsafe impl<'a, 'b: 'a, T, D: Dimension> PushKernelArg<&'b DeviceMut<'_, T, D>> for LaunchArgs<'a> {
    #[inline(always)]
    fn arg(&mut self, guard: &'b DeviceMut<'_, T, D>) -> &mut Self {
        self.arg(guard.part.address())
    }
}
