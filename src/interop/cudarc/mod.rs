//! Interoperation with cudarc: its contexts and streams on the same GPU, its traits on the guards
//! of device copies, and its slices as device copies. With feature `dlpack`, the fields of
//! `__cuda_array_interface__`.
//!
//! Only this folder and `crates/gpu` name cudarc. It copies nothing and orders nothing itself: on
//! a guard's stream the live guard keeps the order (`ordering`). On any other stream, an event
//! orders the use after earlier work, and the host waits until the use is complete.

#[cfg(feature = "dlpack")]
mod array_interface;
#[cfg(feature = "cublas")]
mod cublas;
mod guard;
#[cfg(feature = "nccl")]
pub mod nccl;
mod slice;
mod stream;

use std::sync::Arc;

use cudarc::driver::CudaContext;

use crate::device::Device;
use crate::error::{AtCall, Error, Result};
use resident_backend::DeviceKind;
use resident_backend::call_site::call_site;
use resident_gpu::GpuDevice;

#[cfg(feature = "dlpack")]
pub use array_interface::CudaArrayInterface;
#[cfg(feature = "cublas")]
pub(crate) use cublas::product;

impl Device {
    /// cudarc's context object of this GPU, to use cudarc's slices, modules and streams together
    /// with arrays of this library. Makes no driver call.
    ///
    /// The object belongs to the GPU's primary context, which the CUDA runtime and cuBLAS use too,
    /// and tracks uses of its slices as cudarc does by default. This library's streams belong to
    /// this object, so it is in cudarc's multi-stream mode from the start. All calls return the
    /// same object. Do not create a second one: an object does not see the streams of another
    /// object of the same context, so cudarc would omit necessary waits.
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
    /// Other devices have none:
    ///
    /// ```
    /// use resident::{Device, Error};
    ///
    /// assert!(matches!(Device::cpu().cuda_context(), Err(Error::NoDevice { .. })));
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] if this is not an NVIDIA GPU.
    #[track_caller]
    pub fn cuda_context(&self) -> Result<Arc<CudaContext>> {
        let context = self.cuda_backend().and_then(GpuDevice::shared_context);
        let context = context.ok_or_else(|| no_gpu("a CUDA context", self)).at(call_site())?;
        Ok(Arc::clone(context))
    }

    /// The backend, if this is an NVIDIA GPU.
    fn cuda_backend(&self) -> Option<&GpuDevice> {
        let is_cuda = self.kind() == DeviceKind::Cuda;
        self.backend().downcast_ref().filter(|_| is_cuda)
    }
}

/// The error for a request for a CUDA object of another kind of device.
fn no_gpu(wanted: &str, device: &Device) -> Error {
    Error::no_device(
        format!("{wanted} of {device}"),
        format!("{device} is not an NVIDIA GPU; use one of `Device::cuda`"),
    )
}
