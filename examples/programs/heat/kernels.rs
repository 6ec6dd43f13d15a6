//! The kernels, each with its requirements and a body in CUDA C. The embedded device runs it too.

use resident::ndarray::Ix3;
use resident::{CudaSource, In, InOut, Kernel, Out, Signature};

use super::waves::POINTS;

/// The parameters: the index of the first plane in the whole cube; the planes to fill.
type Start = Kernel<(u64, Out<f64, Ix3>)>;
/// The parameters: a half of the cube before the step; the inner part of that half after the step.
type Jacobi = Kernel<(In<f64, Ix3>, Out<f64, Ix3>)>;
/// The parameters: the inner parts before and after the step; the largest change so far.
type Residual = Kernel<(In<f64, Ix3>, In<f64, Ix3>, InOut<f64>)>;

pub struct Kernels {
    pub start: Start,
    pub jacobi: Jacobi,
    pub residual: Residual,
}

impl Default for Kernels {
    fn default() -> Self {
        Self::new()
    }
}

impl Kernels {
    pub fn new() -> Self {
        Self {
            start: with_cuda_body(
                Start::new("start")
                    .require("the cube has these planes", |_grid, (first_plane, planes)| {
                        first_plane.saturating_add(planes.shape()[0] as u64) <= POINTS as u64
                    })
                    .require("planes are as large as the cube's", |_grid, (_, planes)| {
                        planes.shape()[1..] == [POINTS, POINTS]
                    }),
            ),
            jacobi: with_cuda_body(Jacobi::new("jacobi").require(
                "a wall or a neighbour's plane on each side",
                |_grid, (now, inner)| {
                    now.shape().iter().zip(inner.shape()).all(|(all, inner)| *all == *inner + 2)
                },
            )),
            residual: with_cuda_body(
                Residual::new("residual")
                    .require("before and after have one shape", |_grid, (before, after, _)| {
                        before.shape() == after.shape()
                    })
                    .require("one largest change", |_grid, (_, _, largest)| largest.len() == 1),
            ),
        }
    }
}

/// Adds the CUDA body to one of the kernels above.
fn with_cuda_body<S: Signature>(kernel: Kernel<S>) -> Kernel<S> {
    // SAFETY: each function in `kernels.cu` has the signature of the kernel with the same name. A
    // function accesses only elements inside its views: it checks indices against the shape of one
    // view, and the requirements relate the other shapes to that shape. The residual has one
    // element by its requirement.
    unsafe { kernel.cuda(CudaSource::c(include_str!("kernels.cu"))) }
}
