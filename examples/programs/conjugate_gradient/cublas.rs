//! Dot products and vector sums by cuBLAS on the stream of the kernels. Guards of that stream give
//! cuBLAS the arrays without an event or a wait.

use resident::cudarc::cublas::CudaBlas;
use resident::cudarc::cublas::sys::{self, cublasPointerMode_t};
use resident::cudarc::driver::{DevicePtr, DevicePtrMut};
use resident::{DeviceKind, Stream};

use super::Outcome;
use resident_example_programs::conjugate_gradient::kernels::{Number, Vector};

pub(crate) struct Cublas {
    handle: CudaBlas,
    stream: Stream,
}

impl Cublas {
    /// Returns `None` if there is no GPU or no cuBLAS.
    pub(crate) fn new(stream: &Stream) -> Outcome<Option<Self>> {
        // SAFETY: this opens NVIDIA's library if it is installed, as the first cuBLAS call would.
        if stream.device().kind() != DeviceKind::Cuda || !unsafe { sys::is_culib_present() } {
            return Ok(None);
        }
        let handle = CudaBlas::new(stream.cudarc())?;
        // cuBLAS reads factors and writes products in device memory.
        handle.set_pointer_mode(cublasPointerMode_t::CUBLAS_POINTER_MODE_DEVICE)?;
        Ok(Some(Self { handle, stream: stream.clone() }))
    }

    pub(crate) fn dot(&self, x: &Vector, y: &Vector, product: &mut Number) -> Outcome<()> {
        let cudarc = self.stream.cudarc();
        let (x, y, mut product) = (
            x.gpu_on(&self.stream)?,
            y.gpu_on(&self.stream)?,
            product.gpu_overwrite_on(&self.stream)?,
        );
        let len = i32::try_from(x.len().min(y.len()))?;
        let ((x, _x), (y, _y)) =
            (x.as_cuda_slice()?.device_ptr(&cudarc), y.as_cuda_slice()?.device_ptr(&cudarc));
        let (product, _product) = product.as_cuda_slice_mut()?.device_ptr_mut(&cudarc);
        // SAFETY: each vector has `len` elements and the product has one. All are on the handle's
        // device. The guards order the accesses on the handle's stream.
        unsafe {
            sys::cublasDdot_v2(
                *self.handle.handle(),
                len,
                x as *const f64,
                1,
                y as *const f64,
                1,
                product as *mut f64,
            )
        }
        .result()?;
        Ok(())
    }

    pub(crate) fn add(&self, factor: &Number, x: &Vector, y: &mut Vector) -> Outcome<()> {
        let cudarc = self.stream.cudarc();
        let (factor, x, mut y) =
            (factor.gpu_on(&self.stream)?, x.gpu_on(&self.stream)?, y.gpu_mut_on(&self.stream)?);
        let len = i32::try_from(x.len().min(y.len()))?;
        let ((factor, _factor), (x, _x)) =
            (factor.as_cuda_slice()?.device_ptr(&cudarc), x.as_cuda_slice()?.device_ptr(&cudarc));
        let (y, _y) = y.as_cuda_slice_mut()?.device_ptr_mut(&cudarc);
        // SAFETY: as for the dot product; the factor has one element.
        unsafe {
            sys::cublasDaxpy_v2(
                *self.handle.handle(),
                len,
                factor as *const f64,
                x as *const f64,
                1,
                y as *mut f64,
                1,
            )
        }
        .result()?;
        Ok(())
    }
}
