//! One step of the iteration as a chain of eight launches and copies.

use resident::ndarray::Ix1;
use resident::{Chain, Grid, In, InOut, Result, Temp};
use resident_example_programs::conjugate_gradient::kernels::{BLOCK, Kernels};

use super::{Outcome, SIDE, STEPS_PER_READ, Solver, grid};

/// The parameters: values, columns and starts of the matrix; solution, residual and direction; the
/// square of the residual; the matrix times the direction; the square one step before; the
/// curvature; the step length, and its negative.
type Step = Chain<(
    In<f64, Ix1>,
    In<u32, Ix1>,
    In<u32, Ix1>,
    InOut<f64, Ix1>,
    InOut<f64, Ix1>,
    InOut<f64, Ix1>,
    InOut<f64, Ix1>,
    Temp<f64, Ix1>,
    Temp<f64, Ix1>,
    Temp<f64, Ix1>,
    Temp<f64, Ix1>,
    Temp<f64, Ix1>,
)>;

fn record(kernels: &Kernels) -> Result<Step> {
    let (one, block) = (Grid::new(1, 1), Grid::new(1, BLOCK));
    Step::record("step", |r, arguments| {
        let (values, columns, starts, solution, residual, direction, ..) = arguments;
        let (.., square, image, before, curvature, length, negative) = arguments;
        let matrix = (values.read(), columns.read(), starts.read());
        let product = (matrix.0, matrix.1, matrix.2, direction.read(), image.write());
        r.launch(&kernels.multiply, grid(), product)?;
        r.launch(&kernels.dot, block, (direction.read(), image.read(), curvature.write()))?;
        let lengths = (square.read(), curvature.read(), length.write(), negative.write());
        r.launch(&kernels.step, one, lengths)?;
        r.launch(&kernels.add, grid(), (length.read(), direction.read(), solution.read_write()))?;
        r.launch(&kernels.add, grid(), (negative.read(), image.read(), residual.read_write()))?;
        r.copy(square.read(), before.write())?;
        r.launch(&kernels.dot, block, (residual.read(), residual.read(), square.write()))?;
        let turn = (square.read(), before.read(), residual.read(), direction.read_write());
        r.launch(&kernels.turn, grid(), turn)
    })
}

impl Solver {
    pub(crate) fn iterate_by_chain(&mut self) -> Outcome<usize> {
        let step = record(&self.kernels)?;
        let (vector, number) = (Temp::shape(SIDE * SIDE), Temp::shape(1));
        self.iterate_by(|solver| {
            let Self { stream, matrix, solution, residual, direction, squares, .. } = solver;
            let arguments = (
                &matrix.values,
                &matrix.columns,
                &matrix.starts,
                solution,
                residual,
                direction,
                &mut squares[0],
                vector,
                number,
                number,
                number,
                number,
            );
            Ok(step.repeat_on(stream, STEPS_PER_READ as u64, arguments)?)
        })
    }
}
