//! A kernel as a step of a chain.

use std::sync::Arc;

use super::Kernel;
use crate::device::Device;
use crate::error::Result;
use crate::launch::arguments::bound::BoundArgument;
use crate::launch::chain::{ServeStep, StepKernel};
use crate::launch::signature::Signature;
use resident_backend::grid::Grid;

impl<S: Signature> StepKernel for Kernel<S> {
    fn title(&self) -> &Arc<str> {
        &self.inner.title
    }

    fn has_requirements(&self) -> bool {
        !self.inner.requirements.is_empty()
    }

    fn resolve(
        &self,
        device: &Device,
        grid: Grid,
        bound: &[BoundArgument<'_>],
        serve: ServeStep<'_>,
    ) -> Result<()> {
        self.check(&grid, bound)?;
        let (code, limits) = (self.loaded_on(device)?, device.grid_limits());
        let grid = if code.accepts_grid(&grid, limits) {
            grid
        } else {
            self.fitted(code, grid, limits, bound)?
        };
        serve(code.clone(), grid, bound)
    }
}
