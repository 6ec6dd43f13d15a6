//! Conjugate gradients on a sparse matrix, the Laplacian of a square: our kernels and cuBLAS on one
//! stream, over the same arrays.
//!
//! The matrix goes up once. In the loop nothing moves but the residual, eight bytes each
//! [`STEPS_PER_LOOK`] steps: step lengths are made and used on the device. With the feature
//! `cublas` and a GPU, dot products and vector sums are cuBLAS's (through `sys`, since cudarc's
//! safe layer has none); else they are kernels of ours, and without a GPU all of it runs on the
//! embedded device.

#[cfg(feature = "cublas")]
mod cublas;
mod laplacian;

use resident_examples::conjugate_gradient::kernels;
use std::process::ExitCode;

use laplacian::Laplacian;
use resident::audit::{self, Report};
use resident::ndarray::{Array1, s};
use resident::{Device, Error, Grid, SmartArray, Stream};
use resident_examples::conjugate_gradient::kernels::{BLOCK, Kernels, Number, Vector};

/// Grid points along each side of the square.
const SIDE: usize = 96;

const STEPS_MAX: usize = 1000;
const STEPS_PER_LOOK: usize = 25;

/// The residual to be reached, against that of the start.
const REDUCTION: f64 = 1e-10;

/// So far may the solution be from the one that the right-hand side was made of.
const TOLERANCE: f64 = 1e-7;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Who adds and multiplies vectors.
enum Algebra {
    Ours,
    #[cfg(feature = "cublas")]
    Cublas(cublas::Cublas),
}

/// What the iteration works on.
struct Solver {
    stream: Stream,
    kernels: Kernels,
    algebra: Algebra,
    matrix: Laplacian,
    solution: Vector,
    residual: Vector,
    direction: Vector,
    /// The matrix times the direction.
    image: Vector,
    /// The residual's square, now and before.
    squares: [Number; 2],
    /// The direction times its image.
    curvature: Number,
    /// How far to go along the direction, and the same backwards.
    step: Number,
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("conjugate_gradient: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether the solution is right, and no more has moved than had to.
pub(crate) fn run() -> Outcome<bool> {
    let stream = Device::current()?.new_stream()?;
    let algebra = Algebra::new(&stream)?;
    println!("{} unknowns on {}, vectors by {}", SIDE * SIDE, stream.device(), algebra.name());
    let expected = Array1::from_shape_fn(SIDE * SIDE, |index| ((index % 17) as f64 - 8.0) / 8.0);
    let mut solver = Solver::new(stream, algebra, &expected)?;
    solver.start()?;
    let (steps, report) = audit::capture(|| solver.iterate());
    let steps = steps?;
    let solution = solver.solution.host()?;
    let error = solution
        .iter()
        .zip(&expected)
        .fold(0.0, |largest: f64, (value, expected)| largest.max((value - expected).abs()));
    println!(
        "{steps} steps; the solution is within {error:.1e} of the exact one, {TOLERANCE:.0e} is allowed"
    );
    Ok(steps < STEPS_MAX && error < TOLERANCE && moved_little(&report, steps))
}

/// Eight bytes each time that the residual was looked at, and nothing else.
fn moved_little(report: &Report, steps: usize) -> bool {
    let (moved, looks) = (report.traffic(), 1 + steps.div_ceil(STEPS_PER_LOOK));
    println!(
        "in the loop {} bytes came down in {looks} looks at the residual, and {} went up",
        moved.to_host.bytes, moved.to_device.bytes
    );
    moved.to_device.bytes == 0
        && moved.to_host.bytes <= (looks * size_of::<f64>()) as u64
        && report.waited_for().is_empty()
}

impl Solver {
    fn new(stream: Stream, algebra: Algebra, expected: &Array1<f64>) -> Result<Self, Error> {
        let matrix = Laplacian::of_square(SIDE);
        let right_hand_side = matrix.times(expected)?;
        let vector = |name| Vector::zeros(SIDE * SIDE).named(name);
        Ok(Self {
            stream,
            kernels: Kernels::new(),
            algebra,
            matrix,
            solution: vector("solution"),
            residual: SmartArray::from(right_hand_side.clone()).named("residual"),
            direction: SmartArray::from(right_hand_side).named("direction"),
            image: vector("image"),
            squares: [Number::zeros(1), Number::zeros(1)],
            curvature: Number::zeros(1),
            step: Number::zeros(2),
        })
    }

    /// Everything goes up before the loop.
    fn start(&mut self) -> Outcome<()> {
        self.matrix.prefetch(&self.stream)?;
        self.solution.prefetch(&self.stream)?;
        self.direction.prefetch(&self.stream)?;
        self.square_of_residual()
    }

    fn iterate(&mut self) -> Outcome<usize> {
        let start = self.squares[0].get(0)?;
        for step in 1..=STEPS_MAX {
            self.advance()?;
            if step % STEPS_PER_LOOK == 0 {
                let reduction = (self.squares[0].get(0)? / start).sqrt();
                println!("step {step}: the residual is {reduction:.1e} of the first");
                if reduction < REDUCTION {
                    return Ok(step);
                }
            }
        }
        Ok(STEPS_MAX)
    }

    fn advance(&mut self) -> Outcome<()> {
        let Self {
            stream,
            kernels,
            algebra,
            matrix,
            solution,
            residual,
            direction,
            image,
            squares,
            curvature,
            step,
        } = self;
        kernels.multiply.launch_on(
            stream,
            grid(),
            (&matrix.values, &matrix.columns, &matrix.starts, &*direction, &mut *image),
        )?;
        algebra.dot(kernels, stream, direction, image, curvature)?;
        kernels.step.launch_on(stream, Grid::new(1, 1), (&squares[0], &*curvature, &mut *step))?;
        algebra.add(kernels, stream, &step.slice(s![0..1]), direction, solution)?;
        algebra.add(kernels, stream, &step.slice(s![1..2]), image, residual)?;
        self.squares.swap(0, 1);
        self.square_of_residual()?;
        let [now, before] = &self.squares;
        let turn = (now, before, &self.residual, &mut self.direction);
        Ok(self.kernels.turn.launch_on(&self.stream, grid(), turn)?)
    }

    fn square_of_residual(&mut self) -> Outcome<()> {
        self.algebra.dot(
            &self.kernels,
            &self.stream,
            &self.residual,
            &self.residual,
            &mut self.squares[0],
        )
    }
}

/// One thread for each unknown.
fn grid() -> Grid {
    Grid::cover(SIDE * SIDE)
}

impl Algebra {
    #[cfg(feature = "cublas")]
    fn new(stream: &Stream) -> Outcome<Self> {
        Ok(cublas::Cublas::new(stream)?.map_or(Self::Ours, Self::Cublas))
    }

    #[cfg(not(feature = "cublas"))]
    fn new(_stream: &Stream) -> Outcome<Self> {
        Ok(Self::Ours)
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Ours => "kernels of ours",
            #[cfg(feature = "cublas")]
            Self::Cublas(_) => "cuBLAS",
        }
    }

    fn dot(
        &self,
        kernels: &Kernels,
        stream: &Stream,
        x: &Vector,
        y: &Vector,
        product: &mut Number,
    ) -> Outcome<()> {
        match self {
            Self::Ours => {
                Ok(kernels.dot.launch_on(stream, Grid::new(1, BLOCK), (x, y, product))?)
            }
            #[cfg(feature = "cublas")]
            Self::Cublas(cublas) => cublas.dot(x, y, product),
        }
    }

    /// Adds `factor` times `x` to `y`.
    fn add(
        &self,
        kernels: &Kernels,
        stream: &Stream,
        factor: &kernels::Factor<'_>,
        x: &Vector,
        y: &mut Vector,
    ) -> Outcome<()> {
        match self {
            Self::Ours => Ok(kernels.add.launch_on(stream, grid(), (factor, x, y))?),
            #[cfg(feature = "cublas")]
            Self::Cublas(cublas) => cublas.add(factor, x, y),
        }
    }
}
