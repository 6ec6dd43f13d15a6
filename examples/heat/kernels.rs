//! The kernels: each with its requirements, a body for the host and one for GPUs.

use resident::ndarray::{ArrayView3, ArrayViewMut3, Ix3, Zip};
use resident::{CudaSource, In, InOut, Kernel, Out, Signature};

use super::waves::{POINTS, WAVES, heat};

/// The first plane's number in the whole cube; the planes to fill.
type Start = Kernel<(u64, Out<f64, Ix3>)>;
/// A half as it was; the inner part of the half as it will be.
type Jacobi = Kernel<(In<f64, Ix3>, Out<f64, Ix3>)>;
/// The inner parts of both, and the largest change so far.
type Residual = Kernel<(In<f64, Ix3>, In<f64, Ix3>, InOut<f64>)>;

pub struct Kernels {
    pub start: Start,
    pub jacobi: Jacobi,
    pub residual: Residual,
}

impl Kernels {
    pub fn new() -> Self {
        Self {
            start: on_gpus(
                Start::new("start")
                    .require("the cube has these planes", |_grid, (first_plane, planes)| {
                        first_plane.saturating_add(planes.shape()[0] as u64) <= POINTS as u64
                    })
                    .require("planes are as large as the cube's", |_grid, (_, planes)| {
                        planes.shape()[1..] == [POINTS, POINTS]
                    })
                    .host(|_grid, (first_plane, planes)| start(first_plane, planes)),
            ),
            jacobi: on_gpus(
                Jacobi::new("jacobi")
                    .require("a wall or a neighbour's plane on each side", |_grid, (now, inner)| {
                        now.shape().iter().zip(inner.shape()).all(|(all, inner)| *all == *inner + 2)
                    })
                    .host(|_grid, (now, inner)| jacobi(now, inner)),
            ),
            residual: on_gpus(
                Residual::new("residual")
                    .require("before and after have one shape", |_grid, (before, after, _)| {
                        before.shape() == after.shape()
                    })
                    .require("one largest change", |_grid, (_, _, largest)| largest.len() == 1)
                    .host(|_grid, (before, after, largest)| {
                        largest[0] = largest[0].max(change(before, after))
                    }),
            ),
        }
    }
}

/// Gives one of the kernels above its device body.
fn on_gpus<S: Signature>(kernel: Kernel<S>) -> Kernel<S> {
    // SAFETY: each function there has the signature of the kernel that is called like it. It looks
    // at elements of its views alone, by the shape of one of them, to which the requirements tie
    // the other's; the residual is one number by its requirement.
    unsafe { kernel.cuda(CudaSource::c(include_str!("kernels.cu"))) }
}

fn start(first_plane: u64, mut planes: ArrayViewMut3<'_, f64>) {
    for ((plane, row, column), value) in planes.indexed_iter_mut() {
        *value = heat(&WAVES, [first_plane as usize + plane, row, column]);
    }
}

/// The mean of the six neighbours. The windows of `now` are as many as `inner` has points.
fn jacobi(now: ArrayView3<'_, f64>, inner: ArrayViewMut3<'_, f64>) {
    Zip::from(inner).and(now.windows((3, 3, 3))).for_each(|value, around| {
        let (planes, rows) =
            (around[[0, 1, 1]] + around[[2, 1, 1]], around[[1, 0, 1]] + around[[1, 2, 1]]);
        *value = (planes + rows + around[[1, 1, 0]] + around[[1, 1, 2]]) / 6.0;
    });
}

/// The largest between two of one shape.
fn change(before: ArrayView3<'_, f64>, after: ArrayView3<'_, f64>) -> f64 {
    Zip::from(before)
        .and(after)
        .fold(0.0, |largest, before, after| largest.max((after - before).abs()))
}
