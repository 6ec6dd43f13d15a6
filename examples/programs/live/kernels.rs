//! The kernels of `live`: each with its requirements, a host body and a CUDA body. The bodies in
//! Rust are there for their speed on the embedded device. The views of CUDA C have strides that are
//! known only at the launch, so its loads are not vectorised: on 512 by 512 points a step took more
//! than twice as long.

use resident::ndarray::{ArrayView2, ArrayViewMut2, Ix2};
use resident::{CudaSource, In, InOut, Kernel, Out, Signature};

/// The parameters: the row and the column of the middle of the drop; its radius; the heights to
/// fill.
type Drop = Kernel<(f32, f32, f32, Out<f32, Ix2>)>;
/// The parameters: the heights now; the heights before, which become those after.
type Wave = Kernel<(In<f32, Ix2>, InOut<f32, Ix2>)>;

/// The square of the distance that a wave runs in a step, in points. Below 0.5 the scheme is
/// stable.
pub const SPEED: f32 = 0.25;

pub struct Kernels {
    pub drop: Drop,
    pub wave: Wave,
}

impl Default for Kernels {
    fn default() -> Self {
        Self::new()
    }
}

impl Kernels {
    pub fn new() -> Self {
        Self {
            drop: with_cuda_body(Drop::new("drop").host(
                |_grid, (row, column, radius, heights)| {
                    fill(row, column, radius, heights);
                },
            )),
            wave: with_cuda_body(
                Wave::new("wave")
                    .require("both have one shape", |_grid, (now, before)| {
                        now.shape() == before.shape()
                    })
                    .host(|_grid, (now, before)| wave(now, before)),
            ),
        }
    }
}

/// Adds the CUDA body to one of the kernels above.
fn with_cuda_body<S: Signature>(kernel: Kernel<S>) -> Kernel<S> {
    // SAFETY: each function in `kernels.cu` has the signature of the kernel with the same name. A
    // function accesses only elements inside its views: it checks indices against the shape of one
    // view, and the requirement makes the shapes equal.
    unsafe { kernel.cuda(CudaSource::c(include_str!("kernels.cu"))) }
}

/// A smooth bump; the border stays zero.
fn fill(row: f32, column: f32, radius: f32, mut heights: ArrayViewMut2<'_, f32>) {
    let (rows, columns) = heights.dim();
    for ((at_row, at_column), height) in heights.indexed_iter_mut() {
        let is_border =
            at_row == 0 || at_column == 0 || at_row + 1 == rows || at_column + 1 == columns;
        let (down, right) = (at_row as f32 - row, at_column as f32 - column);
        let distance = (down * down + right * right) / (radius * radius);
        *height = if is_border { 0.0 } else { (-distance).exp() };
    }
}

/// One step of the leapfrog scheme: the heights after from those now and before. The border stays
/// as it is.
fn wave(now: ArrayView2<'_, f32>, mut before: ArrayViewMut2<'_, f32>) {
    let (rows, columns) = now.dim();
    if rows < 3 || columns < 3 {
        return;
    }
    for row in 1..rows - 1 {
        let (above, here, below) = (now.row(row - 1), now.row(row), now.row(row + 1));
        let mut before = before.row_mut(row);
        for x in 1..columns - 1 {
            let around = above[x] + below[x] + here[x - 1] + here[x + 1] - 4.0 * here[x];
            before[x] = 2.0 * here[x] - before[x] + SPEED * around;
        }
    }
}
