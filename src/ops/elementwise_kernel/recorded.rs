//! An [`Elementwise`] as a step of a chain.

use std::sync::Arc;

use resident_backend::call_site::{CallSite, call_site};
use resident_backend::grid::Grid;
use resident_documents::quoted;

use super::{Elementwise, ElementwiseSignature};
use crate::device::Device;
use crate::error::Result;
use crate::launch::{
    BoundArgument, ChainSignature, Recorder, ServeStep, StepArguments, StepKernel,
};

impl<'r, C: ChainSignature> Recorder<'r, C> {
    /// Records an [`Elementwise`] operation. Its inputs broadcast to the shape of its outputs, as
    /// by [`apply_on`](Elementwise::apply_on), and it chooses its grid.
    ///
    /// ```
    /// use resident::ndarray::{Ix1, s};
    /// use resident::ops::Elementwise;
    /// use resident::{Chain, Device, In, InOut, SmartArray};
    ///
    /// let add = Elementwise::<(In<f32>, InOut<f32>)>::new("add", "y = y + x", ["x", "y"])
    ///     .host(|(x, y)| *y += x);
    /// let pascal = Chain::<(InOut<f32, Ix1>, InOut<f32, Ix1>)>::record("pascal", |r, (a, b)| {
    ///     r.copy(a.read(), b.write())?;
    ///     r.apply(&add, (b.slice(s![..-1]).read(), a.slice(s![1..]).read_write()))
    /// })?;
    /// let mut row = SmartArray::from([1.0_f32, 0.0, 0.0, 0.0, 0.0]);
    /// let mut before = SmartArray::uninit_like(&row);
    /// pascal.repeat_on(&Device::cpu().stream(), 4, (&mut row, &mut before))?;
    /// assert_eq!(row.to_vec()?, [1.0, 4.0, 6.0, 4.0, 1.0]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`launch`](Self::launch). What is wrong with the text is returned by the first replay, as
    /// is what does not fit there.
    #[track_caller]
    pub fn apply<S: ElementwiseSignature>(
        &mut self,
        operation: &Elementwise<S>,
        arguments: impl StepArguments<'r, S>,
    ) -> Result<()> {
        let (operation, site) = (operation.clone(), call_site());
        let title = format!("elementwise operation {}", quoted(operation.name())).into();
        self.launch_own_grid(Arc::new(Recorded { operation, title, site }), &arguments, site)
    }
}

/// An operation, and the line that recorded it.
struct Recorded<S: ElementwiseSignature> {
    operation: Elementwise<S>,
    title: Arc<str>,
    site: CallSite,
}

impl<S: ElementwiseSignature> StepKernel for Recorded<S> {
    fn title(&self) -> &Arc<str> {
        &self.title
    }

    fn has_requirements(&self) -> bool {
        false
    }

    fn resolve(
        &self,
        device: &Device,
        _grid: Grid,
        bound: &[BoundArgument<'_>],
        serve: ServeStep<'_>,
    ) -> Result<()> {
        let Self { operation, site, .. } = self;
        let statements = operation.statements(device, site)?;
        operation.with_kernel(device, statements, bound, site, |kernel, grid, bound| {
            kernel.resolve(device, grid, bound, serve)
        })
    }
}
