//! cudarc's traits on the guards of a device's side, so that its copies, cuBLAS, NCCL and
//! hand-written launches take an array directly.
//!
//! A guard keeps order on its own stream alone, and its array may be used elsewhere as soon as it
//! is gone. So a use on another stream is over when it returns: cudarc's `SyncOnDrop::Sync` waits
//! for that stream, once what uses the pointer is queued.

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
use crate::error::{Error, Result, Text};

impl<D: Dimension> DevicePart<'_, D> {
    /// Whether cudarc can take it for a slice: unbroken memory of a GPU.
    fn is_slice(&self) -> bool {
        self.layout().strided().is_contiguous() && self.stream_ref().cuda_queue().is_some()
    }

    /// What cudarc takes for its length. Nothing may be done with what is no slice: the gaps belong
    /// to others.
    fn slice_len(&self) -> usize {
        if self.is_slice() { self.layout().len() } else { 0 }
    }

    fn check_slice(&self) -> Result<()> {
        let device = self.stream_ref().device_ref();
        if self.stream_ref().cuda_queue().is_none() {
            return Err(no_gpu("a cudarc slice", device));
        }
        if self.is_slice() {
            return Ok(());
        }
        Err(Error::NotContiguous {
            array: Text::new(self.display_name()),
            parameter: Text::new("a cudarc slice"),
            layout: Text::new(format!(
                "shape {:?} and strides {:?}",
                self.layout().shape(),
                self.layout().strides()
            )),
        })
    }

    fn cudarc_stream(&self) -> &Arc<CudaStream> {
        match self.stream_ref().cuda_queue() {
            Some(queue) => queue.stream(),
            None => some_stream(),
        }
    }

    /// The pointer for a use on `stream`, ordered behind what made the bytes, and what is to be
    /// done once the use is queued.
    fn pointer<'a>(&'a self, stream: &'a CudaStream) -> (CUdeviceptr, SyncOnDrop<'a>) {
        let Some(own) = self.stream_ref().cuda_queue().filter(|_| self.is_slice()) else {
            return refused(stream, CUresult::CUDA_ERROR_INVALID_VALUE);
        };
        if own.is(stream) {
            // The guard is open: whoever uses the bytes later is ordered behind everything that is
            // queued here by then.
            return (self.lowest_address(), SyncOnDrop::Sync(None));
        }
        let device = self.stream_ref().device_ref();
        audit::waited_for(&self.array_name(), &device.name_shared(), self.stream_ref().number());
        match own.hold_up(stream).or_else(|_| own.wait_before(stream)) {
            Ok(()) => (self.lowest_address(), SyncOnDrop::sync_stream(stream)),
            Err(_) => refused(stream, CUresult::CUDA_ERROR_NOT_PERMITTED),
        }
    }
}

/// No pointer: the driver refuses copies from and to there. cudarc's next call on the context
/// returns the reason too, since a use of no bytes is no failure to the driver.
fn refused(stream: &CudaStream, reason: CUresult) -> (CUdeviceptr, SyncOnDrop<'_>) {
    stream.context().record_err::<()>(Err(DriverError(reason)));
    (0, SyncOnDrop::Sync(None))
}

/// The stream of a guard that is not of a GPU: there is none, and any will do, since such a guard
/// gives no pointer and no bytes.
fn some_stream() -> &'static Arc<CudaStream> {
    static STREAM: std::sync::OnceLock<Arc<CudaStream>> = std::sync::OnceLock::new();
    let first = || Device::all().into_iter().find_map(|device| device.stream().try_cudarc().ok());
    STREAM.get_or_init(|| {
        first().unwrap_or_else(|| {
            panic!("resident: no GPU is there whose stream cudarc could be given")
        })
    })
}

macro_rules! slice_of_cudarc {
    ($guard:ident, $read:literal) => {
        /// Elements in memory order, from the lowest address on. A part with gaps and a guard of
        /// another kind of device have no elements to cudarc: its
        #[doc = concat!("copies are refused or do nothing, and its next call returns `CUDA_ERROR_INVALID_VALUE`; `", $read, "` says so at once.")]
        ///
        /// # Panics
        ///
        /// `stream` of a guard that is not of a GPU, in a process without any. cudarc itself panics
        /// there.
        impl<T, D: Dimension> DeviceSlice<T> for $guard<'_, T, D> {
            fn len(&self) -> usize {
                self.part.slice_len()
            }

            fn stream(&self) -> &Arc<CudaStream> {
                self.part.cudarc_stream()
            }
        }

        /// On the guard's own stream, by whatever object of cudarc's, this asks nothing of the
        /// driver: the open guard keeps order. On any other the use is waited for: that stream for
        /// what the guard's stream has queued, and the host, by `SyncOnDrop::Sync`, for that
        /// stream.
        ///
        /// cudarc's `memcpy_dtod` to another GPU does not say on which stream it copies: wait for
        /// that stream before the array is used again.
        impl<T, D: Dimension> DevicePtr<T> for $guard<'_, T, D> {
            fn device_ptr<'a>(&'a self, stream: &'a CudaStream) -> (CUdeviceptr, SyncOnDrop<'a>) {
                self.part.pointer(stream)
            }
        }
    };
}

slice_of_cudarc!(DeviceRef, "as_cuda_slice");
slice_of_cudarc!(DeviceMut, "as_cuda_slice_mut");

/// As for reading.
impl<T, D: Dimension> DevicePtrMut<T> for DeviceMut<'_, T, D> {
    fn device_ptr_mut<'a>(&'a mut self, stream: &'a CudaStream) -> (CUdeviceptr, SyncOnDrop<'a>) {
        self.part.pointer(stream)
    }
}

impl<T, D: Dimension> DeviceRef<'_, T, D> {
    /// This guard, if cudarc can take it for a slice: elements in memory order, of unbroken memory
    /// of a GPU. Nothing is asked of the driver.
    ///
    /// ```no_run
    /// use resident::{Device, SmartArray, ndarray::s};
    ///
    /// let stream = Device::cuda(0)?.stream();
    /// let table = SmartArray::<f32, _>::ones((100, 100));
    /// let (row, column) = (table.slice(s![7, ..]), table.slice(s![.., 7]));
    /// let copied = stream.cudarc().clone_dtoh(row.gpu_on(&stream)?.as_cuda_slice()?).expect("cudarc");
    /// assert_eq!(copied.len(), 100);
    /// assert!(column.gpu_on(&stream)?.as_cuda_slice().is_err());            // gaps
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotContiguous`] if the part has gaps; [`Error::NoDevice`] if the guard is not of an
    /// NVIDIA GPU.
    pub fn as_cuda_slice(&self) -> Result<&Self> {
        self.part.check_slice().map(|()| self)
    }
}

impl<T, D: Dimension> DeviceMut<'_, T, D> {
    /// This guard, if cudarc can take it for a slice to be read: as of [`DeviceRef`].
    ///
    /// # Errors
    ///
    /// [`Error::NotContiguous`] if the part has gaps; [`Error::NoDevice`] if the guard is not of an
    /// NVIDIA GPU.
    pub fn as_cuda_slice(&self) -> Result<&Self> {
        self.part.check_slice().map(|()| self)
    }

    /// This guard, if cudarc can take it for a slice to be written.
    ///
    /// ```no_run
    /// use resident::{Device, SmartArray};
    ///
    /// let stream = Device::cuda(0)?.stream();
    /// let mut array = SmartArray::<f32, _>::uninit(3);
    /// {
    ///     let mut guard = array.gpu_overwrite_on(&stream)?;
    ///     stream.cudarc().memcpy_htod(&[1.0, 2.0, 3.0], guard.as_cuda_slice_mut()?).expect("cudarc");
    /// }
    /// assert_eq!(array.host()?.sum(), 6.0);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`as_cuda_slice`](Self::as_cuda_slice).
    pub fn as_cuda_slice_mut(&mut self) -> Result<&mut Self> {
        self.part.check_slice()?;
        Ok(self)
    }
}

// SAFETY: the driver reads one pointer-sized argument; it stands in the guard, which is borrowed
// for as long as the arguments live.
/// The address of the element with index 0, 0, ..., for a launch on the guard's own stream, of
/// parts with gaps too. The builder does not say on which stream it launches, so that order on any
/// other is for the caller of `launch`, which is unsafe: get the pointer by `device_ptr` there,
/// keep what comes with it until after the launch, and push the pointer.
unsafe impl<'a, 'b: 'a, T, D: Dimension> PushKernelArg<&'b DeviceRef<'_, T, D>> for LaunchArgs<'a> {
    #[inline(always)]
    fn arg(&mut self, guard: &'b DeviceRef<'_, T, D>) -> &mut Self {
        self.arg(guard.part.address())
    }
}

// SAFETY: as above.
/// As for reading.
unsafe impl<'a, 'b: 'a, T, D: Dimension> PushKernelArg<&'b mut DeviceMut<'_, T, D>>
    for LaunchArgs<'a>
{
    #[inline(always)]
    fn arg(&mut self, guard: &'b mut DeviceMut<'_, T, D>) -> &mut Self {
        self.arg(guard.part.address())
    }
}

// SAFETY: as above.
/// As for reading.
unsafe impl<'a, 'b: 'a, T, D: Dimension> PushKernelArg<&'b DeviceMut<'_, T, D>> for LaunchArgs<'a> {
    #[inline(always)]
    fn arg(&mut self, guard: &'b DeviceMut<'_, T, D>) -> &mut Self {
        self.arg(guard.part.address())
    }
}
