//! The heat equation on a grid of four times the memory that the device may hold, tile by tile.
//! Each launch needs the memory of its own rows only. The device writes back and frees the rows
//! that were used least recently, and the program copies nothing itself.

use std::process::ExitCode;

use resident::audit::{self, Report};
use resident::ndarray::{Array2, ArrayView2, Ix2, s};
use resident::{Device, Grid, In, Kernel, Out, Result, SmartArray};

const CUDA: &str = r#"
extern "C" __global__ void diffuse(resident::View2<const float> now, resident::View2<float> next) {
    long long i = blockIdx.y * (long long)blockDim.y + threadIdx.y;
    long long j = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (!next.contains(i, j)) return;
    next(i, j) = (now(i, j + 1) + now(i + 2, j + 1) + now(i + 1, j) + now(i + 1, j + 2)) * 0.25f;
}"#;

/// The grid has this many rows, and as many columns.
const POINTS: usize = 2048;
const GRID_BYTES: usize = POINTS * POINTS * size_of::<f32>();

/// What the device may hold, of two grids.
const LIMIT_BYTES: usize = GRID_BYTES / 4;

/// The rows of a tile: so many that two tiles fit, with the rows that they read and write.
const TILE_ROWS: usize = 128;
const STEPS: usize = 6;

type Plane = SmartArray<f32, Ix2>;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("tiles_out_of_core: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether the result is exact, and was computed within the limit.
fn run() -> Result<bool> {
    let device = Device::current()?;
    device.set_memory_limit(Some(LIMIT_BYTES as u64))?;
    let start = Array2::from_shape_fn((POINTS, POINTS), |(i, j)| ((i * 7 + j * 13) % 101) as f32);
    let (grid, report) = audit::capture(|| iterate(&device, &start));
    let (peak_bytes, is_exact) = (device.memory().peak, grid?.host()? == on_host(start));
    print_report(peak_bytes, &report);
    println!("the result is {}", if is_exact { "exact" } else { "wrong" });
    Ok(is_exact && peak_bytes <= LIMIT_BYTES as u64)
}

fn iterate(device: &Device, start: &Array2<f32>) -> Result<Plane> {
    let (kernel, stream) = (diffuse(), device.stream());
    // The border is never written: both grids have it from the start.
    let mut now = SmartArray::from(start.clone()).named("now");
    let mut next = SmartArray::from(start.clone()).named("next");
    for _ in 0..STEPS {
        for first in (1..POINTS - 1).step_by(TILE_ROWS) {
            let end = (first + TILE_ROWS).min(POINTS - 1);
            let tile = &mut next.slice_mut(s![first..end, 1..POINTS - 1]);
            let read = &now.slice(s![first - 1..end + 1, ..]);
            let grid = Grid::cover_2d((end - first, POINTS - 2), (8, 32));
            kernel.launch_on(&stream, grid, (read, tile))?;
        }
        std::mem::swap(&mut now, &mut next);
    }
    Ok(now)
}

fn diffuse() -> Kernel<(In<f32, Ix2>, Out<f32, Ix2>)> {
    let kernel = Kernel::<(In<f32, Ix2>, Out<f32, Ix2>)>::new("diffuse")
        .require("`now` has one row and one column more on each side", |_, (now, next)| {
            now.shape().iter().zip(next.shape()).all(|(now, next)| *now == next + 2)
        })
        .require("the grid covers `next`", |grid, (_, next)| grid.covers(next.shape()))
        .host_each(|(i, j), (now, next)| *next = mean(&now, i + 1, j + 1));
    // SAFETY: each thread writes its element of `next`, and reads the neighbours of the same
    // element in `now`, which has one row and one column more on each side.
    unsafe { kernel.cuda(CUDA) }
}

/// The mean of the four neighbours, added in the order of the CUDA C.
fn mean(now: &ArrayView2<'_, f32>, i: usize, j: usize) -> f32 {
    (now[[i - 1, j]] + now[[i + 1, j]] + now[[i, j - 1]] + now[[i, j + 1]]) * 0.25
}

/// The same steps with ndarray.
fn on_host(mut now: Array2<f32>) -> Array2<f32> {
    let mut next = now.clone();
    for _ in 0..STEPS {
        for ((i, j), next) in next.slice_mut(s![1..POINTS - 1, 1..POINTS - 1]).indexed_iter_mut() {
            *next = mean(&now.view(), i + 1, j + 1);
        }
        std::mem::swap(&mut now, &mut next);
    }
    now
}

fn print_report(peak_bytes: u64, report: &Report) {
    let mb = |bytes: u64| bytes as f64 / 1e6;
    let traffic = report.traffic();
    println!(
        "two grids of {:.1} MB on a device that may hold {:.1} MB; it held {:.1} MB at most",
        mb(GRID_BYTES as u64),
        mb(LIMIT_BYTES as u64),
        mb(peak_bytes)
    );
    println!(
        "{STEPS} steps copied {:.1} MB to the device and {:.1} MB to the host: {:.1} grids",
        mb(traffic.to_device.bytes),
        mb(traffic.to_host.bytes),
        (traffic.to_device.bytes + traffic.to_host.bytes) as f64 / GRID_BYTES as f64
    );
}
