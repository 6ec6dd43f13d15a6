//! Conjugate gradient on a square's Laplacian to a fixed residual: two programs with the same
//! kernels and steps.

pub mod by_hand;
pub mod by_resident;

use crate::gpu::fault::{Fault, Outcome};

/// The residual is read after this many steps.
pub const STEPS_PER_READ: usize = 10;
/// The iteration ends when the residual is this fraction of the initial residual.
pub const REDUCTION: f64 = 1e-6;
/// The solver stops after this many steps; none of the measured squares needs as many.
const STEPS_MAX: usize = 20_000;

/// The result of the solver.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Solved {
    pub steps: usize,
    pub residual: f64,
}

/// The vectors of a solver, and its numbers, which are vectors of one element.
struct State<'a, S, V> {
    solver: &'a S,
    x: V,
    r: V,
    p: V,
    ap: V,
    parts: V,
    rr: V,
    rr_new: V,
    pap: V,
}

/// Runs steps until the squared residual is small enough. `advance` takes one step, `read`
/// downloads the squared residual.
fn iterate<S>(
    state: &mut S,
    start: f64,
    advance: impl Fn(&mut S) -> Outcome,
    read: impl Fn(&S) -> Outcome<f64>,
) -> Outcome<Solved> {
    for steps in 1..=STEPS_MAX {
        advance(state)?;
        if steps % STEPS_PER_READ == 0 {
            let squared = read(state)?;
            if squared <= REDUCTION * REDUCTION * start {
                return Ok(Solved { steps, residual: squared.sqrt() });
            }
        }
    }
    Err(Fault::new(format_args!("{STEPS_MAX} steps were not enough")))
}
