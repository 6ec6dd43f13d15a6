//! The sizes of a function's parameters, as the driver knows them.

use cudarc::driver::sys::{CUfunction, CUresult};

use crate::backend::BackendError;
use crate::backend::cuda::call::refusal;
use crate::backend::cuda::library::DRIVER;

/// `cuFuncGetParamInfo`, which drivers have since 12.4.
type GetParamInfo = unsafe extern "C" fn(CUfunction, usize, *mut usize, *mut usize) -> CUresult;

/// The size in bytes of each parameter of a function; `None` if the driver is older than CUDA 12.4.
/// The caller has made a context current on this thread.
pub(super) fn parameter_bytes_of(function: CUfunction) -> Result<Option<Vec<usize>>, BackendError> {
    // SAFETY: the type is that of the function in `cuda.h`.
    let Some(get) = (unsafe { DRIVER.function::<GetParamInfo>("cuFuncGetParamInfo") }) else {
        return Ok(None);
    };
    let mut sizes = Vec::new();
    loop {
        let (mut offset, mut size) = (0, 0);
        // SAFETY: the function belongs to the current context, and the caller has a handle of its
        // module; the driver writes two sizes.
        match unsafe { get(function, sizes.len(), &raw mut offset, &raw mut size) } {
            CUresult::CUDA_SUCCESS => sizes.push(size),
            // The index is past the last parameter.
            CUresult::CUDA_ERROR_INVALID_VALUE => return Ok(Some(sizes)),
            CUresult::CUDA_ERROR_NOT_SUPPORTED => return Ok(None),
            failed => return Err(refusal(failed, "cuFuncGetParamInfo")),
        }
    }
}
