//! A matrix product through shared memory, from one source: CUDA C, which a GPU runs, and the
//! embedded device too. Compares the result with ndarray's `dot`, and prints the speed of both.
//!
//! Usage: `matmul [SIZE]`, the number of rows and columns, 512 by default.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use resident::ndarray::{Array2, Ix2};
use resident::{CudaSource, Device, Grid, In, Kernel, Out, Result, SmartArray};
use resident_example_programs::{is_ready, number_argument};

/// The rows and columns of a tile: `TILE` of the source.
const TILE: u32 = 16;

type Matmul = Kernel<(In<f32, Ix2>, In<f32, Ix2>, Out<f32, Ix2>)>;

fn matmul() -> Matmul {
    let kernel = Matmul::new("matmul")
        .require("the shapes are those of a product", |_grid, (a, b, c)| {
            a.shape()[1] == b.shape()[0] && c.shape() == [a.shape()[0], b.shape()[1]]
        })
        .require("blocks are tiles", |grid, _| {
            let threads = grid.threads();
            (threads.x, threads.y, threads.z) == (TILE, TILE, 1)
        });
    let source = CudaSource::c(include_str!("matmul.cu")).define("TILE", TILE);
    // SAFETY: it reads and writes elements inside the views only, and shared memory inside the
    // tiles, whose size is that of the blocks by the requirement.
    unsafe { kernel.cuda(source) }
}

/// A matrix of small numbers, whose products are exact.
fn matrix(size: usize, seed: usize) -> Array2<f32> {
    Array2::from_shape_fn((size, size), |(i, j)| ((i * 31 + j * 17 + seed) % 9) as f32 - 4.0)
}

/// The billions of additions and multiplications per second of a product.
fn gflops(size: usize, time: Duration) -> f64 {
    2.0 * (size as f64).powi(3) / time.as_secs_f64() / 1e9
}

fn main() -> Result<ExitCode> {
    let Some(size) = number_argument("matmul", 512) else { return Ok(ExitCode::from(2)) };
    let (left, right) = (matrix(size, 1), matrix(size, 5));
    let (a, b) = (SmartArray::from(left.clone()), SmartArray::from(right.clone()));
    let mut c = SmartArray::<f32, _>::uninit((size, size));
    let (device, matmul) = (Device::current()?, matmul());
    if !is_ready("matmul", matmul.prepare(&device))? {
        return Ok(ExitCode::FAILURE);
    }
    let grid = Grid::cover_2d((size, size), (TILE, TILE));
    matmul.launch(grid, (&a, &b, &mut c))?; // uploads `a` and `b`
    device.synchronize()?;
    let start = Instant::now();
    matmul.launch(grid, (&a, &b, &mut c))?; // copies nothing
    device.synchronize()?;
    let ours = start.elapsed();
    let start = Instant::now();
    let expected = left.dot(&right);
    let ndarrays = start.elapsed();
    println!("{size} x {size} on {device}: {:.1} GFLOP/s", gflops(size, ours));
    println!("ndarray's dot on one core: {:.1} GFLOP/s", gflops(size, ndarrays));
    assert_eq!(*c.host()?, expected, "both are exact");
    println!("both results are equal");
    Ok(ExitCode::SUCCESS)
}
