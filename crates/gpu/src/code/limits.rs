//! The largest grids that a device can launch.

use crate::context::Context;
use crate::driver::DeviceAttribute;
use resident_backend::BackendError;
use resident_backend::grid::{Extent3, GridLimits};

/// The limits of a device on grids. That on all threads of a block is the kernel's own, which
/// `GpuKernel` asks for.
pub(super) fn grid_limits(context: &Context) -> Result<GridLimits, BackendError> {
    let ask = |attribute| context.attribute(attribute).map(|value| value.max(0).unsigned_abs());
    let default = ask(DeviceAttribute::SharedBytesPerBlock)?;
    // Devices that do not support this report 0.
    let opt_in = ask(DeviceAttribute::SharedBytesPerBlockOptIn).unwrap_or(0);
    Ok(GridLimits {
        block_threads_max: u32::MAX,
        threads_max: Extent3 {
            x: ask(DeviceAttribute::BlockExtentMaxX)?,
            y: ask(DeviceAttribute::BlockExtentMaxY)?,
            z: ask(DeviceAttribute::BlockExtentMaxZ)?,
        },
        blocks_max: Extent3 {
            x: ask(DeviceAttribute::GridExtentMaxX)?,
            y: ask(DeviceAttribute::GridExtentMaxY)?,
            z: ask(DeviceAttribute::GridExtentMaxZ)?,
        },
        shared_bytes_max: default.max(opt_in),
    })
}
