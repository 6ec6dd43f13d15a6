//! The solver with cudarc only.

use std::sync::Arc;

use resident::cudarc::driver::{CudaFunction, CudaSlice, CudaStream, PushKernelArg};

use super::{Solved, iterate};
use crate::gpu::fault::Outcome;
use crate::gpu::ours::PARTS;
use crate::gpu::twin::{Twin, cover, one_block, parts};

type Vector = CudaSlice<f64>;

pub struct Solver {
    laplace: CudaFunction,
    partial_dot: CudaFunction,
    finish_dot: CudaFunction,
    advance: CudaFunction,
    redirect: CudaFunction,
    stream: Arc<CudaStream>,
    ones: Vector,
    side: usize,
}

type State<'a> = super::State<'a, Solver, Vector>;

impl Solver {
    pub fn new(side: usize) -> Outcome<Self> {
        let twin = Twin::untracked()?;
        let stream = twin.stream()?;
        Ok(Self {
            ones: stream.clone_htod(&vec![1.0; side * side])?,
            laplace: twin.function("laplace")?,
            partial_dot: twin.function("partial_dot")?,
            finish_dot: twin.function("finish_dot")?,
            advance: twin.function("advance")?,
            redirect: twin.function("redirect")?,
            stream,
            side,
        })
    }

    /// Solves with ones on the right-hand side, starting from zeros.
    pub fn solve(&mut self) -> Outcome<Solved> {
        let (len, stream) = (self.side * self.side, &self.stream);
        let (r, p) = (stream.clone_dtod(&self.ones)?, stream.clone_dtod(&self.ones)?);
        let (x, ap, parts) =
            (stream.alloc_zeros(len)?, stream.alloc_zeros(len)?, stream.alloc_zeros(PARTS)?);
        let (rr, rr_new, pap) =
            (stream.alloc_zeros(1)?, stream.alloc_zeros(1)?, stream.alloc_zeros(1)?);
        let mut state = State { solver: self, x, r, p, ap, parts, rr, rr_new, pap };
        self.dot(&state.r, &state.r, &mut state.parts, &mut state.rr)?;
        let start = state.look()?;
        iterate(&mut state, start, State::step, State::look)
    }

    fn dot(&self, a: &Vector, b: &Vector, sums: &mut Vector, dot: &mut Vector) -> Outcome {
        let len = a.len() as u64;
        let mut partial = self.stream.launch_builder(&self.partial_dot);
        partial.arg(a).arg(b).arg(&mut *sums).arg(&len);
        // SAFETY: these are the parameters of the function; both vectors have `len` elements, and
        // there is a partial sum for each block.
        unsafe { partial.launch(parts()) }?;
        let mut finish = self.stream.launch_builder(&self.finish_dot);
        finish.arg(&*sums).arg(dot);
        // SAFETY: as above, with a partial sum for each thread, and one result.
        unsafe { finish.launch(one_block()) }?;
        Ok(())
    }
}

impl super::State<'_, Solver, Vector> {
    fn step(&mut self) -> Outcome {
        let Self { solver, x, r, p, ap, parts, rr, rr_new, pap } = self;
        let (side, len, grid) = (solver.side as u64, x.len() as u64, cover(x.len()));
        let mut laplace = solver.stream.launch_builder(&solver.laplace);
        laplace.arg(&*p).arg(&mut *ap).arg(&side);
        // SAFETY: these are the parameters of the function, and both vectors have `side` squared
        // elements.
        unsafe { laplace.launch(grid) }?;
        solver.dot(p, ap, parts, pap)?;
        let mut advance = solver.stream.launch_builder(&solver.advance);
        advance.arg(x).arg(&mut *r).arg(&*p).arg(&*ap).arg(&*rr).arg(&*pap).arg(&len);
        // SAFETY: as above; the vectors have `len` elements, and the other arrays one element each.
        unsafe { advance.launch(grid) }?;
        solver.dot(r, r, parts, rr_new)?;
        let mut redirect = solver.stream.launch_builder(&solver.redirect);
        redirect.arg(p).arg(&*r).arg(&*rr_new).arg(&*rr).arg(&len);
        // SAFETY: as above.
        unsafe { redirect.launch(grid) }?;
        std::mem::swap(rr, rr_new);
        Ok(())
    }

    fn look(&self) -> Outcome<f64> {
        let mut number = [0.0];
        self.solver.stream.memcpy_dtoh(&self.rr, &mut number)?;
        self.solver.stream.synchronize()?;
        Ok(number[0])
    }
}
