//! The kernels: each with a body for the host and one for GPUs.

use resident::ndarray::{ArrayView1, ArrayViewMut1, Ix1};
use resident::{CudaSource, In, InOut, Kernel, Out, Signature, SmartArray, SmartView};

/// Threads of the one block that makes a product of two vectors, as in `kernels.cu`.
pub const BLOCK: u32 = 256;

pub type Vector = SmartArray<f64, Ix1>;
/// One number or two, on the device.
pub type Number = SmartArray<f64, Ix1>;
/// One number of those.
pub type Factor<'a> = SmartView<'a, f64, Ix1>;

/// Values, columns, where rows start; a vector; the matrix times the vector.
type Multiply = Kernel<(In<f64, Ix1>, In<u32, Ix1>, In<u32, Ix1>, In<f64, Ix1>, Out<f64, Ix1>)>;
/// Two vectors and their product.
type Dot = Kernel<(In<f64, Ix1>, In<f64, Ix1>, Out<f64, Ix1>)>;
/// A factor, a vector, and the vector that so much of it is added to.
type Add = Kernel<(In<f64, Ix1>, In<f64, Ix1>, InOut<f64, Ix1>)>;
/// The residual's square, the curvature; how far to go, and the same backwards.
type Step = Kernel<(In<f64, Ix1>, In<f64, Ix1>, Out<f64, Ix1>)>;
/// The residual's square now and before, the residual; the direction.
type Turn = Kernel<(In<f64, Ix1>, In<f64, Ix1>, In<f64, Ix1>, InOut<f64, Ix1>)>;

pub struct Kernels {
    pub multiply: Multiply,
    pub dot: Dot,
    pub add: Add,
    pub step: Step,
    pub turn: Turn,
}

impl Kernels {
    pub fn new() -> Self {
        Self {
            multiply: on_gpus(
                Multiply::new("multiply")
                    .require("as many values as columns", |_grid, (values, columns, ..)| {
                        values.len() == columns.len()
                    })
                    .require(
                        "a start for each row, and an end",
                        |_grid, (_, _, starts, _, product)| starts.len() == product.len() + 1,
                    )
                    .host(|_grid, (values, columns, starts, vector, product)| {
                        multiply((values, columns, starts), vector, product)
                    }),
            ),
            dot: on_gpus(
                Dot::new("dot")
                    .require("one block of 256 threads", |grid, _| {
                        grid.blocks().count() == 1 && grid.threads() == BLOCK.into()
                    })
                    .require(
                        "two vectors of one length, and one number",
                        |_grid, (x, y, product)| x.len() == y.len() && product.len() == 1,
                    )
                    .host(|_grid, (x, y, mut product)| product[0] = x.dot(&y)),
            ),
            add: on_gpus(
                Add::new("add")
                    .require(
                        "two vectors of one length, and one number",
                        |_grid, (factor, x, y)| x.len() == y.len() && factor.len() == 1,
                    )
                    .host(|_grid, (factor, x, mut y)| y.scaled_add(factor[0], &x)),
            ),
            step: on_gpus(
                Step::new("step")
                    .require("one number each, and two", |_grid, (square, curvature, step)| {
                        square.len() == 1 && curvature.len() == 1 && step.len() == 2
                    })
                    .host(|_grid, (square, curvature, mut step)| {
                        step[0] = square[0] / curvature[0];
                        step[1] = -step[0];
                    }),
            ),
            turn: on_gpus(
                Turn::new("turn")
                    .require("one number each", |_grid, (now, before, ..)| {
                        now.len() == 1 && before.len() == 1
                    })
                    .require("two vectors of one length", |_grid, (_, _, residual, direction)| {
                        residual.len() == direction.len()
                    })
                    .host(|_grid, (now, before, residual, mut direction)| {
                        let kept = now[0] / before[0];
                        direction.zip_mut_with(&residual, |direction, residual| {
                            *direction = residual + kept * *direction
                        });
                    }),
            ),
        }
    }
}

/// Gives one of the kernels above its device body.
fn on_gpus<S: Signature>(kernel: Kernel<S>) -> Kernel<S> {
    // SAFETY: each function there has the signature of the kernel that is called like it. It looks
    // at elements of its views alone: at those that its own checks or the requirements let through,
    // whatever the matrix holds.
    unsafe { kernel.cuda(CudaSource::c(include_str!("kernels.cu"))) }
}

/// The matrix may hold anything: places and columns that there are not count as zeros, as they do
/// on GPUs.
fn multiply(
    (values, columns, starts): (ArrayView1<'_, f64>, ArrayView1<'_, u32>, ArrayView1<'_, u32>),
    vector: ArrayView1<'_, f64>,
    mut product: ArrayViewMut1<'_, f64>,
) {
    let entry = |place: usize| {
        vector.get(columns[place] as usize).map_or(0.0, |element| values[place] * element)
    };
    for (row, sum) in product.iter_mut().enumerate() {
        let end = (starts[row + 1] as usize).min(values.len());
        *sum = (starts[row] as usize..end).map(entry).sum();
    }
}
