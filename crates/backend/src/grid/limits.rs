//! The largest grids that a device can launch.

use super::{Extent3, Grid};

/// The largest grids that a device launches. Those of the [embedded
/// device](struct.Device.html#method.cpu) are the [default](Self::default), those of current GPUs;
/// an emulated device may have others: [`Emulation::limits`](struct.Emulation.html#method.limits).
/// A launch beyond them returns [`Error::Grid`](enum.Error.html#variant.Grid).
///
/// ```
/// use resident::{Device, Emulation, Error, Grid, GridLimits, InOut, Kernel, SmartArray};
///
/// let limits = GridLimits { block_threads_max: 256, ..GridLimits::default() };
/// let small = Device::emulated(Emulation::new().limits(limits));
/// let double = Kernel::<(InOut<f32>,)>::new("double")
///     .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0));
/// let mut array = SmartArray::<f32, _>::ones(1024);
/// let refused = double.launch_on(&small.stream(), Grid::new(1, 1024), (&mut array,));
/// assert!(matches!(refused, Err(Error::Grid { .. })));
/// double.launch_on(&small.stream(), Grid::new(4, 256), (&mut array,))?;
/// # Ok::<(), resident::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct GridLimits {
    /// The threads of a block, along all axes together: CUDA's `maxThreadsPerBlock`.
    pub block_threads_max: u32,
    /// The threads of a block along each axis: CUDA's `maxThreadsDim`.
    pub threads_max: Extent3,
    /// The blocks of a grid along each axis: CUDA's `maxGridSize`.
    pub blocks_max: Extent3,
    /// The shared memory of a block, in bytes: CUDA's `sharedMemPerBlockOptin`.
    pub shared_bytes_max: u32,
}

impl Default for GridLimits {
    /// The limits of current NVIDIA GPUs: blocks of 1,024 threads (1,024 along x and y, 64 along
    /// z), 2³¹ - 1 blocks along x and 65,535 along y and z, and 227 KiB of shared memory (compute
    /// capabilities 9.0 and 10.0).
    fn default() -> Self {
        Self {
            block_threads_max: 1024,
            threads_max: Extent3 { x: 1024, y: 1024, z: 64 },
            blocks_max: Extent3 { x: i32::MAX as u32, y: 65_535, z: 65_535 },
            shared_bytes_max: 227 << 10,
        }
    }
}

impl GridLimits {
    /// Whether the whole grid is within the limits.
    #[doc(hidden)]
    #[inline]
    pub fn allows(&self, grid: &Grid) -> bool {
        self.allows_extents(grid) && grid.shared_bytes <= self.shared_bytes_max
    }

    /// Whether blocks and threads are within the limits. Does not check shared memory.
    #[doc(hidden)]
    #[inline]
    pub fn allows_extents(&self, grid: &Grid) -> bool {
        let threads = grid.threads;
        let plane = u64::from(threads.x) * u64::from(threads.y);
        u128::from(plane) * u128::from(threads.z) <= u128::from(self.block_threads_max)
            && lies_within(threads, self.threads_max)
            && lies_within(grid.blocks, self.blocks_max)
    }

    /// The grid to launch instead of the given one, which is beyond the limits: with smaller
    /// blocks, if that is automatic. The error says which limit is exceeded; the text completes
    /// "which ...".
    #[cold]
    #[doc(hidden)]
    pub fn fit(&self, grid: &Grid) -> Result<Grid, String> {
        let fitted = if grid.is_auto() {
            grid.in_blocks_of(self.block_threads_max, self.threads_max)
        } else {
            *grid
        };
        match fitted.fault() {
            Some(fault) => Err(fault.to_owned()),
            None if self.allows(&fitted) => Ok(fitted),
            None => Err(self.violation(&fitted)),
        }
    }

    /// The limit that the grid exceeds; the text completes "which ...".
    #[cold]
    #[doc(hidden)]
    pub fn violation(&self, grid: &Grid) -> String {
        let (threads, most) = (grid.threads.count(), self.block_threads_max);
        if threads > u64::from(most) {
            return format!(
                "has {threads} threads in a block, where {most} is the most for this kernel there; \
                 use smaller blocks, or `.auto()`"
            );
        }
        if let Some((axis, seen, max)) = exceeded(grid.threads, self.threads_max) {
            return format!(
                "has {seen} threads in a block along {axis}, where {max} is the most; use blocks \
                 of another shape"
            );
        }
        if let Some((axis, seen, max)) = exceeded(grid.blocks, self.blocks_max) {
            return format!(
                "has {seen} blocks along {axis}, where {max} is the most; let the longest \
                 axis run along x (the first of `Grid::new`, the last of `Grid::cover_2d`), or use \
                 larger blocks"
            );
        }
        format!(
            "asks for {} bytes of dynamic shared memory, where {} is the most; ask for less, with \
             smaller blocks or tiles",
            grid.shared_bytes, self.shared_bytes_max
        )
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
    use super::GridLimits;
    use crate::grid::Grid;

    #[test]
    fn grids_at_the_limits_are_allowed() {
        let most = [
            Grid::new(i32::MAX as u32, 1024),
            Grid::new((1, 65_535, 65_535), (1, 16, 64)),
            Grid::new(1, (1, 1024)).shared_bytes(227 << 10),
            Grid::cover((1_usize << 31) * 256 - 256),
        ];
        let limits = GridLimits::default();
        most.iter().for_each(|grid| assert!(limits.allows(grid), "{grid:?}"));
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
            (Grid::new(1, 1).shared_bytes((227 << 10) + 1), "232449 bytes of dynamic shared"),
        ];
        let limits = GridLimits::default();
        for (grid, words) in cases {
            assert!(!limits.allows(&grid), "{grid:?}");
            let violation = limits.fit(&grid).expect_err("it is too large");
            assert!(violation.contains(words), "{violation}");
        }
        let of_kernel = GridLimits { block_threads_max: 256, ..limits };
        assert!(!of_kernel.allows(&Grid::new(1, 512)), "registers allow this kernel no more");
    }

    #[test]
    fn automatic_blocks_become_smaller() {
        let grid = Grid::cover_2d((100, 100), (64, 64)).auto();
        let fitted = GridLimits::default().fit(&grid).expect("its blocks are automatic");
        assert_eq!((fitted.threads().x, fitted.threads().y), (64, 16));
        assert_eq!((fitted.blocks().x, fitted.blocks().y), (2, 7));
        let given = Grid::new(4, 2048).auto();
        assert!(GridLimits::default().fit(&given).is_err(), "given blocks are never changed");
    }
}
