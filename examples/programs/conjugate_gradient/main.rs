//! Solves a sparse linear system, the Laplacian of a square, by conjugate gradients. Kernels and
//! cuBLAS use the same arrays on one stream.
//!
//! The matrix is uploaded once. In the loop only the residual is downloaded, eight bytes every
//! [`STEPS_PER_READ`] steps; step lengths are computed and used on the device. With feature
//! `cublas` and a GPU, cuBLAS computes dot products and vector sums (through `sys`, because
//! cudarc's safe layer lacks them). Otherwise kernels compute them. Without a GPU the kernels run
//! on the embedded device (memory and threads of this process).
//!
//! With `--chain` it solves the system twice: by launches, and by a chain of the kernels, which is
//! queued as one operation. It prints the times of both, whose solutions are equal.

mod chain;
#[cfg(feature = "cublas")]
mod cublas;
mod laplacian;

use std::process::ExitCode;
use std::time::Instant;

use laplacian::Laplacian;
use resident::audit::{self, Report};
use resident::ndarray::Array1;
use resident::{Device, Error, Grid, SmartArray, Stream};
use resident_example_programs::conjugate_gradient::kernels::{BLOCK, Kernels, Number, Vector};

/// Grid points along each side of the square.
const SIDE: usize = 96;

const STEPS_MAX: usize = 1000;
const STEPS_PER_READ: usize = 25;

/// The iteration ends when the residual is this fraction of the initial residual.
const REDUCTION: f64 = 1e-10;

/// The largest accepted difference between the solution and the exact one.
const TOLERANCE: f64 = 1e-7;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// The implementation of dot products and vector sums.
enum Algebra {
    Kernels,
    #[cfg(feature = "cublas")]
    Cublas(cublas::Cublas),
}

/// The state of the iteration.
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
    /// The square of the residual, now and one step before.
    squares: [Number; 2],
    /// The dot product of direction and image.
    curvature: Number,
    /// The step length along the direction.
    step: Number,
    /// Its negative.
    negative: Number,
}

fn main() -> ExitCode {
    let by_chain = std::env::args().any(|argument| argument == "--chain");
    match if by_chain { compare_with_chain() } else { run() } {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("conjugate_gradient: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether the solution is right and only the necessary bytes were copied.
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
    println!("{steps} steps; the error of the solution is {error:.1e}, {TOLERANCE:.0e} is allowed");
    Ok(steps < STEPS_MAX && error < TOLERANCE && copied_no_more_than_needed(&report, steps))
}

/// Solves the system by launches and by a chain. Returns whether the solutions are equal.
fn compare_with_chain() -> Outcome<bool> {
    let stream = Device::current()?.new_stream()?;
    let expected = Array1::from_shape_fn(SIDE * SIDE, |index| ((index % 17) as f64 - 8.0) / 8.0);
    let solve = |by_chain: bool| -> Outcome<Vector> {
        let mut solver = Solver::new(stream.clone(), Algebra::Kernels, &expected)?;
        solver.start()?;
        stream.synchronize()?;
        let start = Instant::now();
        let steps = if by_chain { solver.iterate_by_chain()? } else { solver.iterate()? };
        let time = start.elapsed().as_secs_f64();
        let way = if by_chain { "a chain" } else { "launches" };
        println!("{steps} steps by {way}: {:.1} ms", 1e3 * time);
        Ok(solver.solution)
    };
    // The first one compiles the kernels.
    let [_, by_launches, by_chain] = [solve(false)?, solve(false)?, solve(true)?];
    Ok(*by_launches.host()? == *by_chain.host()?)
}

/// Checks that only eight bytes were copied each time the residual was read.
fn copied_no_more_than_needed(report: &Report, steps: usize) -> bool {
    let (moved, reads) = (report.traffic(), 1 + steps.div_ceil(STEPS_PER_READ));
    println!(
        "in the loop {} bytes were downloaded in {reads} reads of the residual, {} were uploaded",
        moved.to_host.bytes, moved.to_device.bytes
    );
    moved.to_device.bytes == 0
        && moved.to_host.bytes <= (reads * size_of::<f64>()) as u64
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
            step: Number::zeros(1),
            negative: Number::zeros(1),
        })
    }

    /// Uploads all arrays before the loop.
    fn start(&mut self) -> Outcome<()> {
        self.matrix.prefetch(&self.stream)?;
        self.solution.prefetch(&self.stream)?;
        self.direction.prefetch(&self.stream)?;
        self.square_of_residual()
    }

    fn iterate(&mut self) -> Outcome<usize> {
        self.iterate_by(|solver| (0..STEPS_PER_READ).try_for_each(|_| solver.advance()))
    }

    /// Repeats so many steps as there are between two reads of the residual.
    fn iterate_by(&mut self, mut advance: impl FnMut(&mut Self) -> Outcome<()>) -> Outcome<usize> {
        let start = self.squares[0].get(0)?;
        for step in (STEPS_PER_READ..=STEPS_MAX).step_by(STEPS_PER_READ) {
            advance(self)?;
            let reduction = (self.squares[0].get(0)? / start).sqrt();
            println!("step {step}: the residual is {reduction:.1e} of the first");
            if reduction < REDUCTION {
                return Ok(step);
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
            negative,
        } = self;
        kernels.multiply.launch_on(
            stream,
            grid(),
            (&matrix.values, &matrix.columns, &matrix.starts, &*direction, &mut *image),
        )?;
        algebra.dot(kernels, stream, direction, image, curvature)?;
        let lengths = (&squares[0], &*curvature, &mut *step, &mut *negative);
        kernels.step.launch_on(stream, Grid::new(1, 1), lengths)?;
        algebra.add(kernels, stream, step, direction, solution)?;
        algebra.add(kernels, stream, negative, image, residual)?;
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

/// One thread per unknown.
fn grid() -> Grid {
    Grid::cover(SIDE * SIDE)
}

impl Algebra {
    #[cfg(feature = "cublas")]
    fn new(stream: &Stream) -> Outcome<Self> {
        Ok(cublas::Cublas::new(stream)?.map_or(Self::Kernels, Self::Cublas))
    }

    #[cfg(not(feature = "cublas"))]
    fn new(_stream: &Stream) -> Outcome<Self> {
        Ok(Self::Kernels)
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Kernels => "kernels",
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
            Self::Kernels => {
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
        factor: &Number,
        x: &Vector,
        y: &mut Vector,
    ) -> Outcome<()> {
        match self {
            Self::Kernels => Ok(kernels.add.launch_on(stream, grid(), (factor, x, y))?),
            #[cfg(feature = "cublas")]
            Self::Cublas(cublas) => cublas.add(factor, x, y),
        }
    }
}
