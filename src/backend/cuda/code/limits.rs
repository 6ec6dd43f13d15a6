//! The largest grids that a device can launch.

use cudarc::driver::sys::CUdevice_attribute;

use crate::backend::BackendError;
use crate::backend::cuda::context::Context;
use crate::grid::{Extent3, GridLimits};

/// The limits of a device on grids. That on all threads of a block is the kernel's own, which
/// `CudaKernel` asks for.
pub(super) fn grid_limits(context: &Context) -> Result<GridLimits, BackendError> {
    use CUdevice_attribute as Attribute;
    let ask = |attribute| context.attribute(attribute).map(|value| value.max(0).unsigned_abs());
    let default = ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?;
    // Devices that do not support this report 0.
    let opt_in = ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN).unwrap_or(0);
    Ok(GridLimits {
        block_threads_max: u32::MAX,
        threads_max: Extent3 {
            x: ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
            y: ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
            z: ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
        },
        blocks_max: Extent3 {
            x: ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
            y: ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
            z: ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
        },
        shared_bytes_max: default.max(opt_in),
    })
}
