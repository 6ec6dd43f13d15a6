//! The largest grids that a device can launch.

use cudarc::driver::sys::CUdevice_attribute;

use crate::backend::BackendError;
use crate::backend::cuda::context::Context;
use crate::grid::{Extent3, Grid};

/// The limits of a device on grids.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Limits {
    /// Threads of a block along each axis.
    pub(super) block: Extent3,
    /// Blocks of a grid along each axis.
    pub(super) grid: Extent3,
    /// The shared memory that a block can opt in to, static and dynamic together, in bytes.
    pub(super) shared_bytes_opt_in: u32,
}

impl Limits {
    pub(super) fn of(context: &Context) -> Result<Self, BackendError> {
        use CUdevice_attribute as Attribute;
        let ask = |attribute| context.attribute(attribute).map(|value| value.max(0).unsigned_abs());
        let default = ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)?;
        // Devices that do not support this report 0.
        let opt_in =
            ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN).unwrap_or(0);
        Ok(Self {
            block: Extent3 {
                x: ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
                y: ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
                z: ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
            },
            grid: Extent3 {
                x: ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
                y: ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
                z: ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
            },
            shared_bytes_opt_in: default.max(opt_in),
        })
    }

    /// Whether blocks and threads are within the limits. Does not check shared memory.
    #[inline]
    pub(super) fn allows(&self, grid: &Grid, block_threads_max: u32) -> bool {
        let threads = grid.threads();
        let plane = u64::from(threads.x) * u64::from(threads.y);
        u128::from(plane) * u128::from(threads.z) <= u128::from(block_threads_max)
            && lies_within(threads, self.block)
            && lies_within(grid.blocks(), self.grid)
    }

    /// The limit that the grid exceeds; the text completes "which ...".
    #[cold]
    pub(super) fn violation(&self, grid: &Grid, block_threads_max: u32) -> String {
        let (threads, blocks) = (grid.threads(), grid.blocks());
        if threads.count() > u64::from(block_threads_max) {
            let count = threads.count();
            return format!(
                "has {count} threads in a block, where {block_threads_max} is the most for this \
                 kernel there; use smaller blocks, or `.auto()`"
            );
        }
        if let Some((axis, seen, max)) = exceeded(threads, self.block) {
            return format!(
                "has {seen} threads in a block along {axis}, where {max} is the most; use blocks \
                 of another shape"
            );
        }
        match exceeded(blocks, self.grid) {
            Some((axis, seen, max)) => {
                format!(
                    "has {seen} blocks along {axis}, where {max} is the most; put the longest axis \
                     last, which runs along x, or use larger blocks"
                )
            }
            None => "the device cannot launch".to_owned(),
        }
    }
}

#[inline]
fn lies_within(extent: Extent3, max: Extent3) -> bool {
    extent.x <= max.x && extent.y <= max.y && extent.z <= max.z
}

/// The first axis whose length exceeds the maximum, with the length and the maximum.
fn exceeded(extent: Extent3, max: Extent3) -> Option<(char, u32, u32)> {
    let axes = [('x', extent.x, max.x), ('y', extent.y, max.y), ('z', extent.z, max.z)];
    axes.into_iter().find(|(_, seen, max)| seen > max)
}

#[cfg(test)]
mod tests {
    use super::Limits;
    use crate::grid::{Extent3, Grid};

    /// The limits of current GPUs.
    const LIMITS: Limits = Limits {
        block: Extent3 { x: 1024, y: 1024, z: 64 },
        grid: Extent3 { x: i32::MAX as u32, y: 65_535, z: 65_535 },
        shared_bytes_opt_in: 232_448,
    };

    #[test]
    fn grids_at_the_limits_are_allowed() {
        let most = [
            Grid::new(i32::MAX as u32, 1024),
            Grid::new((1, 65_535, 65_535), (1, 16, 64)),
            Grid::new(1, (1, 1024)),
            Grid::cover((1_usize << 31) * 256 - 256),
        ];
        most.iter().for_each(|grid| assert!(LIMITS.allows(grid, 1024), "{grid:?}"));
    }

    #[test]
    fn an_exceeded_limit_is_named() {
        let cases = [
            (Grid::new(1, 1025), "1025 threads in a block, where 1024"),
            (Grid::new(1, (1, 1, 65)), "65 threads in a block along z, where 64"),
            (Grid::new((1, 65_536), 32), "65536 blocks along y, where 65535"),
            (Grid::new((1, 1, 65_536), 32), "65536 blocks along z"),
            (Grid::new(1 << 31, 32), "2147483648 blocks along x, where 2147483647"),
            (Grid::new(1, (u32::MAX, u32::MAX)), "18446744065119617025 threads"),
        ];
        for (grid, words) in cases {
            assert!(!LIMITS.allows(&grid, 1024), "{grid:?}");
            assert!(
                LIMITS.violation(&grid, 1024).contains(words),
                "{}",
                LIMITS.violation(&grid, 1024)
            );
        }
        assert!(
            !LIMITS.allows(&Grid::new(1, 512), 256),
            "registers allow this kernel no more than 256"
        );
    }
}
