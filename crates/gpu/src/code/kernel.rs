//! A loaded kernel: its function, its attributes, and the grids that it can be launched on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::function::LoadedFunction;
use super::module::Module;
use super::parameter_starts::ParameterStarts;
use crate::driver::{Driver, FunctionAttribute, FunctionHandle};
use resident_backend::grid::{Grid, GridLimits};
use resident_backend::{BackendError, KernelAttributes, LoadedKernel, ParameterLayout};

/// A loaded kernel.
#[derive(Debug)]
pub(crate) struct GpuKernel {
    name: Arc<str>,
    function: Arc<LoadedFunction>,
    module: Arc<Module>,
    parameters: Box<[ParameterLayout]>,
    starts: Option<ParameterStarts>,
    attributes: KernelAttributes,
    limits: GridLimits,
    /// The most threads of a grid along an axis.
    axis_threads_max: u64,
    /// The last automatic block size: the dynamic shared bytes in the upper 32 bits, the threads in
    /// the lower ones. 0 threads mean that no block size is known yet.
    auto_block: AtomicU64,
}

impl GpuKernel {
    /// Makes a kernel after checking that its parameters agree with the function's. The context is
    /// current.
    pub(super) fn new(
        name: &Arc<str>,
        function: Arc<LoadedFunction>,
        module: Arc<Module>,
        parameters: Box<[ParameterLayout]>,
        limits: GridLimits,
    ) -> Result<Self, BackendError> {
        use FunctionAttribute as Attribute;
        let ask = |attribute| function.attribute(attribute);
        let mut attributes = KernelAttributes::default();
        attributes.registers = ask(Attribute::Registers)?.unwrap_or(0);
        attributes.shared_bytes = ask(Attribute::SharedBytes)?.unwrap_or(0);
        attributes.local_bytes = ask(Attribute::LocalBytes)?.unwrap_or(0);
        attributes.block_threads_max =
            ask(Attribute::BlockThreadsMax)?.unwrap_or(limits.block_threads_max);
        let axis_threads_max = module.context().driver().vendor.axis_threads_max;
        Ok(Self {
            name: Arc::clone(name),
            function,
            module,
            starts: ParameterStarts::of(&parameters),
            parameters,
            attributes,
            limits: GridLimits { block_threads_max: attributes.block_threads_max, ..limits },
            axis_threads_max,
            auto_block: AtomicU64::new(0),
        })
    }

    /// Whether the kernel was loaded by this driver.
    #[inline]
    pub(crate) fn is_of(&self, driver: &Driver) -> bool {
        std::ptr::eq(self.function.driver(), driver)
    }

    /// The handle for a launch.
    #[inline]
    pub(crate) fn function(&self) -> FunctionHandle {
        self.function.handle()
    }

    /// The parameters. A view whose dimensions the signature leaves open has the compiled number of
    /// dimensions, if the driver reports it.
    #[inline]
    pub(crate) fn parameters(&self) -> &[ParameterLayout] {
        &self.parameters
    }

    /// The words at which the parameters start, if they are the same for all launches.
    #[inline]
    pub(crate) fn starts(&self) -> Option<&ParameterStarts> {
        self.starts.as_ref()
    }

    /// Allows this much dynamic shared memory, if the device has it.
    #[cold]
    fn allow_shared(&self, len_bytes: u32) -> Result<(), String> {
        let most = self.limits.shared_bytes_max.saturating_sub(self.attributes.shared_bytes);
        if len_bytes > most {
            return Err(format!(
                "asks for {len_bytes} bytes of dynamic shared memory, where {most} is the most for \
                 this kernel there ({} of {} are its own); ask for less",
                self.attributes.shared_bytes, self.limits.shared_bytes_max
            ));
        }
        let context = self.module.context();
        let outcome = context
            .make_current()
            .and_then(|()| context.record_death(self.function.allow_shared(len_bytes)));
        outcome.map_err(|error| {
            format!(
                "asks for {len_bytes} bytes of dynamic shared memory, which the driver did not \
                 allow ({error}); ask for less"
            )
        })
    }

    /// The block size that the driver suggests for the highest occupancy.
    fn auto_block_threads(&self, shared_bytes: u32) -> Result<u32, BackendError> {
        let known = self.auto_block.load(Ordering::Relaxed);
        if (known >> 32) as u32 == shared_bytes && known as u32 != 0 {
            return Ok(known as u32);
        }
        let context = self.module.context();
        context.make_current()?;
        // SAFETY: the context is current and the function's module stays loaded.
        let best =
            unsafe { context.driver().best_block_threads(self.function.handle(), shared_bytes) };
        let threads = context.record_death(best)?.min(self.attributes.block_threads_max.max(1));
        self.auto_block
            .store(u64::from(shared_bytes) << 32 | u64::from(threads), Ordering::Relaxed);
        Ok(threads)
    }

    /// Whether blocks and threads are within the limits.
    #[inline]
    fn allows_extents(&self, grid: &Grid) -> bool {
        let threads = grid.threads_along();
        self.limits.allows_extents(grid)
            && threads.iter().all(|threads| *threads <= self.axis_threads_max)
    }

    /// The limit that the grid exceeds.
    #[cold]
    fn violation(&self, grid: &Grid) -> String {
        let mut along = ['x', 'y', 'z'].into_iter().zip(grid.threads_along());
        let beyond = along.find(|(_, threads)| *threads > self.axis_threads_max);
        match beyond.filter(|_| self.limits.allows_extents(grid)) {
            Some((axis, threads)) => format!(
                "has {threads} threads along {axis}, where {} is the most; put blocks along y too \
                 (`resident::thread()` counts on there), or let a thread do several elements",
                self.axis_threads_max
            ),
            None => self.limits.violation(grid),
        }
    }

    /// The grid with the automatic block size.
    fn with_auto_blocks(&self, grid: Grid) -> Result<Grid, String> {
        let threads = self.auto_block_threads(grid.dynamic_shared_bytes());
        let threads = threads.map_err(|error| {
            format!(
                "has no block size that the driver could choose ({error}); give one, without \
                 `.auto()`"
            )
        })?;
        let grid = grid.in_blocks_of(threads, self.limits.threads_max);
        grid.fault().map_or(Ok(grid), |fault| Err(fault.to_owned()))
    }
}

impl LoadedKernel for GpuKernel {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn attributes(&self) -> KernelAttributes {
        self.attributes
    }

    #[inline]
    fn accepts_grid(&self, grid: &Grid) -> bool {
        !grid.is_auto()
            && grid.dynamic_shared_bytes() <= self.function.shared_bytes_allowed()
            && self.allows_extents(grid)
    }

    fn resolve_grid(&self, grid: &Grid) -> Result<Option<Grid>, String> {
        let shared_bytes = grid.dynamic_shared_bytes();
        if shared_bytes > self.function.shared_bytes_allowed() {
            self.allow_shared(shared_bytes)?;
        }
        let auto = if grid.is_auto() { Some(self.with_auto_blocks(*grid)?) } else { None };
        let grid = auto.as_ref().unwrap_or(grid);
        if self.allows_extents(grid) {
            return Ok(auto);
        }
        Err(self.violation(grid))
    }
}
