//! The kernels, each with its requirements and a body in CUDA C. The embedded device runs it too.

use resident::ndarray::Ix1;
use resident::{CudaSource, In, InOut, Kernel, Out, Signature, SmartArray};

/// Threads of the one block that computes a dot product, as in `kernels.cu`.
pub const BLOCK: u32 = 256;

pub type Vector = SmartArray<f64, Ix1>;
/// One number, on the device.
pub type Number = SmartArray<f64, Ix1>;

/// The parameters: values, columns, and start of each row of a matrix; a vector; the matrix times
/// the vector.
type Multiply = Kernel<(In<f64, Ix1>, In<u32, Ix1>, In<u32, Ix1>, In<f64, Ix1>, Out<f64, Ix1>)>;
/// The parameters: two vectors and their dot product.
type Dot = Kernel<(In<f64, Ix1>, In<f64, Ix1>, Out<f64, Ix1>)>;
/// The parameters: a factor, a vector, and the vector to which their product is added.
type Add = Kernel<(In<f64, Ix1>, In<f64, Ix1>, InOut<f64, Ix1>)>;
/// The parameters: the square of the residual, the curvature; the step length and its negative.
type Step = Kernel<(In<f64, Ix1>, In<f64, Ix1>, Out<f64, Ix1>, Out<f64, Ix1>)>;
/// The parameters: the square of the residual now and one step before, the residual; the direction.
type Turn = Kernel<(In<f64, Ix1>, In<f64, Ix1>, In<f64, Ix1>, InOut<f64, Ix1>)>;

pub struct Kernels {
    pub multiply: Multiply,
    pub dot: Dot,
    pub add: Add,
    pub step: Step,
    pub turn: Turn,
}

impl Default for Kernels {
    fn default() -> Self {
        Self::new()
    }
}

impl Kernels {
    pub fn new() -> Self {
        Self {
            multiply: with_cuda_body(multiply_kernel()),
            dot: with_cuda_body(dot_kernel()),
            add: with_cuda_body(add_kernel()),
            step: with_cuda_body(step_kernel()),
            turn: with_cuda_body(turn_kernel()),
        }
    }
}

/// Adds the CUDA body to one of the kernels above.
fn with_cuda_body<S: Signature>(kernel: Kernel<S>) -> Kernel<S> {
    // SAFETY: each function in `kernels.cu` has the signature of the kernel with the same name.
    // Whatever the matrix contains, a function accesses only elements inside its views: its own
    // checks and the requirements ensure that.
    unsafe { kernel.cuda(CudaSource::c(include_str!("kernels.cu"))) }
}

fn multiply_kernel() -> Multiply {
    Multiply::new("multiply")
        .require("as many values as columns", |_grid, (values, columns, ..)| {
            values.len() == columns.len()
        })
        .require("a start for each row, and an end", |_grid, (_, _, starts, _, product)| {
            starts.len() == product.len() + 1
        })
}

fn dot_kernel() -> Dot {
    Dot::new("dot")
        .require("one block of 256 threads", |grid, _| {
            grid.blocks().count() == 1 && grid.threads() == BLOCK.into()
        })
        .require("two vectors of one length, and one number", |_grid, (x, y, product)| {
            x.len() == y.len() && product.len() == 1
        })
}

fn add_kernel() -> Add {
    Add::new("add").require("two vectors of one length, and one number", |_grid, (factor, x, y)| {
        x.len() == y.len() && factor.len() == 1
    })
}

fn step_kernel() -> Step {
    Step::new("step").require("one number each", |_grid, (square, curvature, step, negative)| {
        [square, curvature, step, negative].iter().all(|number| number.len() == 1)
    })
}

fn turn_kernel() -> Turn {
    Turn::new("turn")
        .require("one number each", |_grid, (now, before, ..)| now.len() == 1 && before.len() == 1)
        .require("two vectors of one length", |_grid, (_, _, residual, direction)| {
            residual.len() == direction.len()
        })
}
