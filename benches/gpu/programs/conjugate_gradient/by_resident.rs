//! The solver with this library.

use resident::ndarray::Ix1;
use resident::{Device, In, InOut, Kernel, Out, SmartArray, Stream};

use super::{Solved, iterate};
use crate::gpu::fault::Outcome;
use crate::gpu::ours::{PARTS, cover, one_block, parts, with_cuda_body};

type Vector = SmartArray<f64, Ix1>;

type Laplace = Kernel<(In<f64>, Out<f64>, u64)>;
type PartialDot = Kernel<(In<f64>, In<f64>, Out<f64>, u64)>;
type FinishDot = Kernel<(In<f64>, Out<f64>)>;
type Advance = Kernel<(InOut<f64>, InOut<f64>, In<f64>, In<f64>, In<f64>, In<f64>, u64)>;
type Redirect = Kernel<(InOut<f64>, In<f64>, In<f64>, In<f64>, u64)>;

pub struct Solver {
    laplace: Laplace,
    partial_dot: PartialDot,
    finish_dot: FinishDot,
    advance: Advance,
    redirect: Redirect,
    stream: Stream,
    side: usize,
}

type State<'a> = super::State<'a, Solver, Vector>;

impl Solver {
    pub fn new(gpu: &Device, side: usize) -> Outcome<Self> {
        Ok(Self {
            laplace: with_cuda_body(
                Laplace::new("laplace")
                    .require("squares with the same side", |_grid, (p, ap, side)| {
                        side * side == p.len() as u64 && p.len() == ap.len()
                    }),
            ),
            partial_dot: with_cuda_body(PartialDot::new("partial_dot").require(
                "vectors of one length, and a partial sum for each block of 256",
                |grid, (a, b, parts, len)| {
                    let fits = parts.len() as u64 == grid.blocks().count()
                        && grid.threads().count() == 256;
                    fits && a.len() as u64 == len && b.len() as u64 == len
                },
            )),
            finish_dot: with_cuda_body(FinishDot::new("finish_dot").require(
                "a partial sum for each of 256 threads, and one result",
                |grid, (parts, dot)| grid == one_block() && parts.len() == PARTS && dot.len() == 1,
            )),
            advance: with_cuda_body(Advance::new("advance").require(
                "vectors of one length, and two numbers",
                |_grid, (x, r, p, ap, rr, pap, len)| {
                    [x.len(), r.len(), p.len(), ap.len()].iter().all(|other| *other as u64 == len)
                        && rr.len() == 1
                        && pap.len() == 1
                },
            )),
            redirect: with_cuda_body(Redirect::new("redirect").require(
                "vectors of one length, and two numbers",
                |_grid, (p, r, rr_new, rr, len)| {
                    p.len() as u64 == len
                        && r.len() as u64 == len
                        && rr_new.len() == 1
                        && rr.len() == 1
                },
            )),
            stream: gpu.new_stream()?,
            side,
        })
    }

    /// Solves with ones on the right-hand side, starting from zeros.
    pub fn solve(&mut self) -> Outcome<Solved> {
        let len = self.side * self.side;
        let (vector, number) = (|| Vector::uninit(len), || Vector::uninit(1));
        let (r, p) = (Vector::ones(len), Vector::ones(len));
        let (x, ap, parts) = (Vector::zeros(len), vector(), Vector::uninit(PARTS));
        let mut state = State {
            solver: self,
            x,
            r,
            p,
            ap,
            parts,
            rr: number(),
            rr_new: number(),
            pap: number(),
        };
        self.dot(&state.r, &state.r, &mut state.parts, &mut state.rr)?;
        let start = state.rr.get(0)?;
        iterate(&mut state, start, State::step, |state| Ok(state.rr.get(0)?))
    }

    fn dot(&self, a: &Vector, b: &Vector, sums: &mut Vector, dot: &mut Vector) -> Outcome {
        self.partial_dot.launch_on(&self.stream, parts(), (a, b, &mut *sums, a.len() as u64))?;
        Ok(self.finish_dot.launch_on(&self.stream, one_block(), (&*sums, dot))?)
    }
}

impl super::State<'_, Solver, Vector> {
    fn step(&mut self) -> Outcome {
        let Self { solver, x, r, p, ap, parts, rr, rr_new, pap } = self;
        let (stream, grid, len) = (&solver.stream, cover(x.len()), x.len() as u64);
        solver.laplace.launch_on(stream, grid, (&*p, &mut *ap, solver.side as u64))?;
        solver.dot(p, ap, parts, pap)?;
        solver.advance.launch_on(stream, grid, (x, &mut *r, &*p, &*ap, &*rr, &*pap, len))?;
        solver.dot(r, r, parts, rr_new)?;
        solver.redirect.launch_on(stream, grid, (p, &*r, &*rr_new, &*rr, len))?;
        std::mem::swap(rr, rr_new);
        Ok(())
    }
}
