//! Living with cudarc: its contexts and streams over the same GPU, its traits on our guards, its
//! slices as device copies.
//!
//! The one module beside `backend/cuda` that names cudarc. It keeps no order of its own: on a
//! guard's stream the open guard does (`order`), on any other the use is waited for, before by an
//! event and after by the host. It moves nothing.

mod guard;
mod slice;
mod stream;

use std::sync::Arc;

use cudarc::driver::CudaContext;

use crate::backend::cuda::CudaDevice;
use crate::device::Device;
use crate::error::{Error, Result};

impl Device {
    /// cudarc's context object of this GPU, for slices, modules and streams of cudarc's own beside
    /// arrays of this library. Nothing is asked of the driver.
    ///
    /// It is of the GPU's primary context, which the CUDA runtime and cuBLAS use too, and tracks
    /// uses of its slices as cudarc does by default. This library's streams are among its streams,
    /// so that it is in what cudarc calls multi-stream mode from the start. All calls return the
    /// same object: two objects of one context do not know of each other's streams, and cudarc then
    /// orders less than it must.
    ///
    /// ```no_run
    /// use resident::Device;
    ///
    /// let gpu = Device::cuda(0)?;
    /// let context = gpu.cuda_context()?;
    /// println!("{} of compute capability {:?}", gpu, context.compute_capability());
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// Any other device has none:
    ///
    /// ```
    /// use resident::{Device, Error};
    ///
    /// assert!(matches!(Device::cpu().cuda_context(), Err(Error::NoDevice { .. })));
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] if this is no NVIDIA GPU.
    pub fn cuda_context(&self) -> Result<Arc<CudaContext>> {
        let cuda = self.cuda_backend().ok_or_else(|| no_gpu("a CUDA context", self))?;
        Ok(Arc::clone(cuda.shared_context()))
    }

    fn cuda_backend(&self) -> Option<&CudaDevice> {
        self.backend().downcast_ref()
    }
}

/// Something of CUDA was asked of another kind of device.
fn no_gpu(wanted: &str, device: &Device) -> Error {
    Error::no_device(
        format!("{wanted} of {device}"),
        format!("{device} is no NVIDIA GPU; use one of `Device::cuda`"),
    )
}
