//! Streams both ways: ours as cudarc's, cudarc's as ours.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream};

use super::no_gpu;
use crate::backend::Queue;
use crate::backend::cuda::CudaQueue;
use crate::device::{Device, Stream};
use crate::error::{Error, Result, Text};

impl Stream {
    /// This stream as cudarc's, for its copies, its launches and the libraries that it wraps. For
    /// an adopted stream it is the object that was adopted; for others it is of
    /// [`Device::cuda_context`], and the stream lives as long as either side has it.
    ///
    /// Work that is queued there is ordered against this library's by the stream alone: hand arrays
    /// to it by guards of this very stream ([`gpu_on`](crate::SmartArray::gpu_on)), which then cost
    /// nothing.
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
    /// If the stream is not of an NVIDIA GPU: there is nothing to give then. Where that may be, use
    /// [`try_cudarc`](Self::try_cudarc).
    #[must_use]
    #[track_caller]
    pub fn cudarc(&self) -> Arc<CudaStream> {
        self.try_cudarc().unwrap_or_else(|error| panic!("{error}"))
    }

    /// As [`cudarc`](Self::cudarc), for streams of any device: for code that has another way
    /// without a GPU.
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
    /// [`Error::NoDevice`] if the stream is not of an NVIDIA GPU.
    pub fn try_cudarc(&self) -> Result<Arc<CudaStream>> {
        self.cuda_queue()
            .map(|queue| Arc::clone(queue.stream()))
            .ok_or_else(|| no_gpu("a CUDA stream", self.device_ref()))
    }

    /// A stream of cudarc's as one of this library. Adopting it twice gives equal streams while one
    /// of them is alive, and adopting what [`cudarc`](Self::cudarc) gave is the stream that it was
    /// given by.
    ///
    /// Others may go on to queue there. What they queue is ordered against this library's work by
    /// the stream alone; waiting for the stream waits for it too. The stream is kept until this
    /// library's work there is known to be over, also if every handle is gone before.
    ///
    /// ```no_run
    /// use resident::{Device, Grid, InOut, Kernel, SmartArray, Stream};
    ///
    /// # let kernel = Kernel::<(InOut<f32>,)>::new("kernel");
    /// # let mut array = SmartArray::<f32, _>::zeros(100);
    /// let theirs = Device::cuda(0)?.cuda_context()?.new_stream().expect("cudarc");
    /// let ours = Stream::adopt(theirs.clone())?;
    /// kernel.launch_on(&ours, Grid::cover(100), (&mut array,))?;            // behind what was queued on `theirs`
    /// assert_eq!(ours, Stream::adopt(theirs)?);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Foreign`] if its context is not the primary one of its GPU, or if it is the
    /// per-thread default stream, which is another on each thread; [`Error::NoDevice`] if the GPU
    /// cannot be used.
    pub fn adopt(stream: Arc<CudaStream>) -> Result<Self> {
        if stream.cu_stream() as usize == PER_THREAD {
            return Err(Error::Foreign {
                seen: Text::new(
                    "the stream to be adopted is the per-thread default stream, which is another stream on each thread",
                ),
                expected: Text::new(
                    "adopt one of `CudaContext::new_stream`, or take the legacy default stream by `Stream::legacy`",
                ),
            });
        }
        let device = primary_device(stream.context(), "the stream to be adopted")?;
        let Some(cuda) = device.cuda_backend() else {
            return Err(no_gpu("a CUDA stream", &device));
        };
        let is_it = |queue: &dyn Queue| {
            queue.downcast_ref::<CudaQueue>().is_some_and(|queue| queue.is(&stream))
        };
        Ok(device.stream_where(is_it, || cuda.adopt(Arc::clone(&stream))))
    }

    /// The legacy default stream of a GPU, CUDA's stream 0, which libraries and kernels use that
    /// were given none. Work there starts after, and is waited for by, the work of all *blocking*
    /// streams of the context; this library's own streams and cudarc's are non-blocking and not
    /// held up.
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
    /// [`Error::NoDevice`] if the device is no NVIDIA GPU.
    pub fn legacy(device: &Device) -> Result<Self> {
        Self::adopt(device.cuda_context()?.default_stream())
    }

    pub(super) fn cuda_queue(&self) -> Option<&CudaQueue> {
        self.queue().downcast_ref()
    }
}

/// The driver's name for the default stream of whichever thread asks.
const PER_THREAD: usize = 2;

/// The device whose primary context that is.
pub(super) fn primary_device(context: &CudaContext, object: &str) -> Result<Device> {
    let device = Device::cuda(context.ordinal())?;
    let primary = device.cuda_context()?;
    if device.cuda_backend().is_some_and(|cuda| cuda.has_context(context)) {
        return Ok(device);
    }
    Err(Error::Foreign {
        seen: Text::new(format!(
            "{object} belongs to context {:p} of GPU {}",
            context.cu_ctx(),
            context.ordinal()
        )),
        expected: Text::new(format!(
            "this library works in the GPU's primary context {:p}: make it by `Device::cuda_context` or `CudaContext::new`",
            primary.cu_ctx()
        )),
    })
}
