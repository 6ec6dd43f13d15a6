//! What was recorded of a chain, without its signature.

use std::sync::Arc;

use super::part::PartsNamed;
use super::recorder::Recorded;
use super::signature::ParameterKind;
use super::step::{Passed, Step, StepGrid, StepKind};

/// See the module.
pub(super) struct Core {
    pub(super) name: Arc<str>,
    /// `chain "name"`, for messages.
    pub(super) title: Arc<str>,
    pub(super) kinds: Box<[ParameterKind]>,
    pub(super) steps: Vec<Step>,
    pub(super) parts: PartsNamed,
    /// The part that says whether `repeat_while_on` goes on.
    pub(super) condition: Option<usize>,
    /// Whether grids and checks of the steps may depend on scalar parameters.
    pub(super) depends_on_scalars: bool,
}

impl Core {
    pub(super) fn new(
        name: Arc<str>,
        title: Arc<str>,
        kinds: Box<[ParameterKind]>,
        recorded: Recorded,
    ) -> Self {
        let Recorded { steps, parts, condition } = recorded;
        let depends_on_scalars = steps.iter().any(depends_on_scalars);
        Self { name, title, kinds, steps, parts, condition, depends_on_scalars }
    }

    pub(super) fn is_temporary(&self, parameter: usize) -> bool {
        matches!(self.kinds[parameter], ParameterKind::Temporary(_))
    }
}

/// Whether the grid of a step, or a requirement of its kernel, may depend on scalar parameters.
fn depends_on_scalars(step: &Step) -> bool {
    let StepKind::Launch { kernel, grid, arguments } = &step.kind else { return false };
    let has_scalars = arguments.iter().any(|passed| matches!(passed, Passed::Scalar(_)));
    matches!(grid, StepGrid::OfArguments(_)) || kernel.has_requirements() && has_scalars
}
