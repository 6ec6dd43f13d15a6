//! What a kernel needs of a device, and the grids that this allows.

use crate::grid::{Grid, GridLimits};

/// The resources that a kernel needs. CUDA C on the embedded device has only static shared memory
/// (on Linux) and the largest block, which is that of its `__launch_bounds__` unless a macro hides
/// them. For a body in Rust, and on a HIP runtime without `hipFuncGetAttribute`, all fields but the
/// last are zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct KernelAttributes {
    /// Registers of one thread.
    pub registers: u32,
    /// Static shared memory of one block, in bytes.
    pub shared_bytes: u32,
    /// Local memory of one thread (spilled registers), in bytes.
    pub local_bytes: u32,
    /// The maximum number of threads in a block: that of the device ([`GridLimits`]), or less if
    /// the kernel's `__launch_bounds__` or registers allow no more.
    pub block_threads_max: u32,
}

impl KernelAttributes {
    /// Those of a body in Rust, whatever the device.
    pub(crate) fn of_rust() -> Self {
        Self { block_threads_max: u32::MAX, ..Self::default() }
    }

    /// Those of CUDA C that is compiled for the host, whatever the device.
    pub fn of_host_code(shared_bytes: u64, block_threads_max: u32) -> Self {
        let shared_bytes = shared_bytes.try_into().unwrap_or(u32::MAX);
        Self { shared_bytes, block_threads_max, ..Self::default() }
    }

    /// The same on a device with these limits.
    pub(crate) fn within(self, limits: &GridLimits) -> Self {
        let block_threads_max = self.block_threads_max.min(limits.block_threads_max);
        Self { block_threads_max, ..self }
    }

    /// Whether a grid within the limits of a device can be launched there.
    #[inline]
    pub(crate) fn allow(&self, grid: &Grid, limits: &GridLimits) -> bool {
        let shared_bytes = u64::from(self.shared_bytes) + u64::from(grid.dynamic_shared_bytes());
        grid.threads().count() <= u64::from(self.block_threads_max)
            && shared_bytes <= u64::from(limits.shared_bytes_max)
    }

    /// As [`GridLimits::fit`], for a grid that the kernel or the device does not allow.
    #[cold]
    pub(crate) fn fit(&self, grid: &Grid, limits: &GridLimits) -> Result<Grid, String> {
        let block_threads_max = limits.block_threads_max.min(self.block_threads_max);
        let fitted = GridLimits { block_threads_max, ..*limits }.fit(grid);
        match fitted {
            Ok(grid) if self.allow(&grid, limits) => Ok(grid),
            Ok(grid) => Err(self.too_much_shared(&grid, limits)),
            Err(_) if self.is_the_bound(grid, limits) => Err(self.beyond_bound(grid)),
            Err(fault) => Err(fault),
        }
    }

    /// Whether it is the kernel, not the device, that allows no blocks as large as the grid's.
    fn is_the_bound(&self, grid: &Grid, limits: &GridLimits) -> bool {
        let threads = grid.threads().count();
        threads > u64::from(self.block_threads_max)
            && threads <= u64::from(limits.block_threads_max)
    }

    #[cold]
    fn beyond_bound(&self, grid: &Grid) -> String {
        let (threads, most) = (grid.threads().count(), self.block_threads_max);
        format!(
            "has {threads} threads in a block, where the kernel's `__launch_bounds__({most})` \
             allows {most}; use smaller blocks, or `.auto()`, or raise the bound"
        )
    }

    #[cold]
    fn too_much_shared(&self, grid: &Grid, limits: &GridLimits) -> String {
        let (own, most) = (self.shared_bytes, limits.shared_bytes_max);
        format!(
            "asks for {} bytes of dynamic shared memory, where {} is the most for this kernel \
             there ({own} of {most} are its own); ask for less",
            grid.dynamic_shared_bytes(),
            most.saturating_sub(own)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::KernelAttributes;
    use crate::grid::{Grid, GridLimits};

    fn attributes() -> KernelAttributes {
        KernelAttributes { shared_bytes: 4096, block_threads_max: 96, ..Default::default() }
    }

    #[test]
    fn what_a_kernel_does_not_allow_is_named_with_its_own_limit() {
        let limits = GridLimits::default();
        let most = Grid::new(1, 96).shared_bytes((227 << 10) - 4096);
        assert!(attributes().allow(&most, &limits));
        for (grid, words) in [
            (Grid::new(1, 97), "97 threads in a block, where the kernel's `__launch_bounds__(96)`"),
            (Grid::new(1, 2000), "2000 threads in a block, where 96 is the most"),
            (
                most.shared_bytes((227 << 10) - 4095),
                "228352 is the most for this kernel there (4096",
            ),
        ] {
            assert!(!attributes().allow(&grid, &limits), "{grid:?}");
            let fault = attributes().fit(&grid, &limits).expect_err("it is too large");
            assert!(fault.contains(words), "{fault}");
        }
    }

    #[test]
    fn automatic_blocks_are_those_that_the_kernel_allows() {
        let fitted = attributes().fit(&Grid::cover(1000).auto(), &GridLimits::default());
        assert_eq!(fitted.expect("automatic").threads().x, 96);
        let small = GridLimits { block_threads_max: 64, ..GridLimits::default() };
        assert_eq!(attributes().within(&small).block_threads_max, 64);
        assert_eq!(KernelAttributes::of_rust().within(&small).block_threads_max, 64);
    }
}
