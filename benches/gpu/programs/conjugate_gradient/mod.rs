//! Conjugate gradient on a square's Laplacian to a fixed residual: two programs of the same kernels
//! and the same steps.

pub mod by_hand;
pub mod by_resident;

use crate::gpu::fault::{Fault, Outcome};

/// The residual is looked at after so many steps.
pub const STEPS_PER_LOOK: usize = 10;
/// By how much it has to become smaller.
pub const REDUCTION: f64 = 1e-6;
/// Nobody needs as many steps on these squares.
const STEPS_MAX: usize = 20_000;

/// What the solver came to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Solved {
    pub steps: usize,
    pub residual: f64,
}

/// Steps until the squared residual is small enough: `advance` takes one step, `look` brings the
/// squared residual to the host.
fn iterate<S>(
    state: &mut S,
    start: f64,
    advance: impl Fn(&mut S) -> Outcome,
    look: impl Fn(&S) -> Outcome<f64>,
) -> Outcome<Solved> {
    for steps in 1..=STEPS_MAX {
        advance(state)?;
        if steps % STEPS_PER_LOOK == 0 {
            let squared = look(state)?;
            if squared <= REDUCTION * REDUCTION * start {
                return Ok(Solved { steps, residual: squared.sqrt() });
            }
        }
    }
    Err(Fault::new(format_args!("{STEPS_MAX} steps were not enough")))
}
