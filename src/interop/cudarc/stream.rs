//! This library's streams as cudarc streams, and cudarc's streams as streams of this library.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream};

use super::no_gpu;
use crate::device::{Device, Stream};
use crate::error::{AtCall, CalledAt, Error, Result};
use resident_backend::call_site::call_site;
use resident_backend::{DeviceKind, RawStream};
use resident_gpu::GpuStreamHandle;

impl Stream {
    /// This stream as a cudarc stream, for cudarc's copies, launches and wrapped libraries. For an
    /// adopted stream, returns the adopted object. A stream of this library belongs to
    /// [`Device::cuda_context`] and lives as long as this library or cudarc has a handle of it.
    ///
    /// Work that other code queues on this stream (foreign work) is ordered against this library's
    /// work only by the stream itself. So pass arrays to such work by guards of this stream
    /// ([`gpu_on`](crate::SmartArray::gpu_on)), which need no synchronisation on this stream.
    ///
    /// ```no_run
    /// use resident::{Device, SmartArray};
    ///
    /// let gpu = Device::cuda(0)?;
    /// let stream = gpu.new_stream()?;
    /// let mut array = SmartArray::<f32, _>::uninit(1000);
    /// stream.cudarc().memset_zeros(&mut array.gpu_overwrite_on(&stream)?).expect("cudarc");
    /// assert_eq!(array.host()?.sum(), 0.0);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the stream is not on an NVIDIA GPU: see [`try_cudarc`](Self::try_cudarc).
    #[must_use]
    #[track_caller]
    pub fn cudarc(&self) -> Arc<CudaStream> {
        self.try_cudarc().unwrap_or_else(|error| panic!("{error}"))
    }

    /// As [`cudarc`](Self::cudarc), but returns an error for streams of other devices.
    ///
    /// ```
    /// use resident::{Device, Error};
    ///
    /// let stream = Device::current()?.stream();
    /// match stream.try_cudarc() {
    ///     Ok(cuda) => println!("{:?} of the driver", cuda.cu_stream()),
    ///     Err(Error::NoDevice { reason, .. }) => println!("{reason}"),
    ///     Err(other) => return Err(other),
    /// }
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] if the stream is not on an NVIDIA GPU.
    #[track_caller]
    pub fn try_cudarc(&self) -> Result<Arc<CudaStream>> {
        self.cuda_handle()
            .and_then(GpuStreamHandle::stream)
            .map(Arc::clone)
            .ok_or_else(|| no_gpu("a CUDA stream", self.device_ref()))
            .at(call_site())
    }

    /// A cudarc stream as a stream of this library. Adopting it twice returns equal streams while
    /// one of them is alive. Adopting a stream that [`cudarc`](Self::cudarc) returned gives the
    /// original stream.
    ///
    /// Other code may continue to queue work there. That work is ordered against this library's
    /// work only by the stream itself. To synchronise the stream is to wait for all of this work.
    /// The library keeps the stream alive until its own work on it is complete, even if all handles
    /// have dropped.
    ///
    /// ```no_run
    /// use resident::{Device, Grid, InOut, Kernel, SmartArray, Stream};
    ///
    /// # let kernel = Kernel::<(InOut<f32>,)>::new("kernel");
    /// # let mut array = SmartArray::<f32, _>::zeros(100);
    /// let theirs = Device::cuda(0)?.cuda_context()?.new_stream().expect("cudarc");
    /// let ours = Stream::adopt(theirs.clone())?;
    /// kernel.launch_on(&ours, Grid::cover(100), (&mut array,))?;    // after the work on `theirs`
    /// assert_eq!(ours, Stream::adopt(theirs)?);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// - [`Error::Foreign`] if its context is not its GPU's primary context, or if the stream is
    ///   the per-thread default stream, which is a different stream on each thread.
    /// - [`Error::NoDevice`] if the GPU cannot be used.
    #[track_caller]
    pub fn adopt(stream: Arc<CudaStream>) -> Result<Self> {
        if stream.cu_stream() as usize == PER_THREAD {
            return Err(Error::Foreign {
                call: call_site().into(),
                seen: String::from(
                    "the stream to be adopted is the per-thread default stream, which is another \
                     stream on each thread",
                ),
                expected: String::from(
                    "one of `CudaContext::new_stream`; or take the legacy default stream by \
                     `Stream::legacy`",
                ),
            });
        }
        let device = primary_device(stream.context(), "the stream to be adopted").at(call_site())?;
        let Some(cuda) = device.cuda_backend() else {
            return Err(no_gpu("a CUDA stream", &device).at(call_site()));
        };
        let is_same = |raw: &dyn RawStream| {
            raw.downcast_ref::<GpuStreamHandle>().is_some_and(|raw| raw.is(&stream))
        };
        Ok(device.find_or_add_stream(is_same, || cuda.adopt(Arc::clone(&stream))))
    }

    /// The legacy default stream of a GPU, CUDA's stream 0, which libraries and kernels use by
    /// default. It synchronises with all *blocking* streams of the context. This library's own
    /// streams and cudarc's are non-blocking, so the legacy default stream and these streams do not
    /// wait for each other.
    ///
    /// ```no_run
    /// use resident::{Device, Stream};
    ///
    /// let legacy = Stream::legacy(&Device::cuda(0)?)?;
    /// legacy.synchronize()?;
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] if the device is not an NVIDIA GPU.
    #[track_caller]
    pub fn legacy(device: &Device) -> Result<Self> {
        let site = call_site();
        Self::adopt(device.cuda_context().at(site)?.default_stream()).at(site)
    }

    /// The backend's stream, if it is on an NVIDIA GPU.
    pub(super) fn cuda_handle(&self) -> Option<&GpuStreamHandle> {
        let is_cuda = self.device_ref().kind() == DeviceKind::Cuda;
        self.raw().downcast_ref().filter(|_| is_cuda)
    }
}

/// The driver's handle of the calling thread's default stream (`CU_STREAM_PER_THREAD`).
const PER_THREAD: usize = 2;

/// The device whose primary context `context` is.
pub(super) fn primary_device(context: &CudaContext, object: &str) -> Result<Device> {
    let device = Device::cuda(context.ordinal())?;
    let primary = device.cuda_context()?;
    if device.cuda_backend().is_some_and(|cuda| cuda.has_context(context)) {
        return Ok(device);
    }
    Err(Error::Foreign {
        call: CalledAt::UNKNOWN,
        seen: format!(
            "{object} belongs to context {:p} of GPU {}",
            context.cu_ctx(),
            context.ordinal()
        ),
        expected: format!(
            "one of the GPU's primary context {:p}, in which this library works: make it by \
             `Device::cuda_context` or `CudaContext::new`",
            primary.cu_ctx()
        ),
    })
}
