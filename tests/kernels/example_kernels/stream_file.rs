//! The kernels of `stream_file`, and its chunks: what they compute, that they fit, that they
//! overlap.

use std::sync::Arc;
use std::time::Duration;

use resident::ndarray::{Array2, Ix2};
use resident::{Device, Element, Emulation, Error, Grid, Link, Result, SmartArray};
use resident_example_programs::stream_file::kernels::{Kernels, expected};
use resident_example_programs::stream_file::streaming::{MEMORY_BYTES_MIN, ROW_LEN, Streaming};

use crate::{Bench, noise, pairs};

const SIZES: [(usize, usize); 7] = [(6, 8), (8, 6), (1, 1), (2, 9), (0, 5), (5, 0), (17, 33)];

fn array<T: Element>(size: (usize, usize), value: fn(u32) -> T) -> SmartArray<T, Ix2> {
    let values = noise(size.0 * size.1, 70_000).into_iter().map(value).collect();
    SmartArray::from(Array2::from_shape_vec(size, values).expect("as many as the size says"))
}

fn counts(size: (usize, usize)) -> SmartArray<u16, Ix2> {
    array(size, |number| number as u16)
}

fn grids((rows, columns): (usize, usize)) -> [Grid; 3] {
    [Grid::cover(rows * columns), Grid::new(1, 3), Grid::cover(rows * columns + 500)]
}

#[test]
pub(crate) fn kernels_survive_wrong_sizes() {
    let kernels = Kernels::new();
    let mut bench = Bench::new(|device| kernels.calibrate.prepare(device));
    for (one, other) in pairs(&SIZES) {
        let (volts, fits) = (array(one, |number| number as f32), one == other);
        for grid in grids(one) {
            let (mut to, mut back) = (SmartArray::uninit(other), SmartArray::uninit(other));
            bench.launch(fits, &kernels.calibrate, grid, (&counts(one), &mut to));
            bench.launch(fits, &kernels.smooth, grid, (&volts, &mut to));
            bench.launch(fits, &kernels.quantise, grid, (&volts, &mut back));
        }
    }
    bench.assert_counts(60, 350);
}

#[test]
pub(crate) fn kernels_compute_the_same_in_rust_and_in_cuda_c() {
    let kernels = Kernels::new();
    let bench = Bench::new(|device| kernels.calibrate.prepare(device));
    for size in SIZES {
        let (volts, grid) =
            (array(size, |number| number as f32 / 4.0), Grid::cover(size.0 * size.1));
        let any = array(size, f32::from_bits);
        bench.compare(&kernels.calibrate, grid, (&counts(size), &mut SmartArray::uninit(size)));
        bench.compare(&kernels.smooth, grid, (&volts, &mut SmartArray::uninit(size)));
        for volts in [&volts, &any] {
            bench.compare(&kernels.quantise, grid, (volts, &mut SmartArray::uninit(size)));
        }
    }
}

/// Rows whose chunks have one row each, on a device that holds four of them.
fn streamed(device: &Device, rows: usize) -> Result<(Streaming, Arc<Vec<u16>>)> {
    device.set_memory_limit(Some(MEMORY_BYTES_MIN as u64))?;
    let samples = noise(rows * ROW_LEN, 70_000).into_iter().map(|number| number as u16).collect();
    Ok((Streaming::new(device, MEMORY_BYTES_MIN)?, Arc::new(samples)))
}

#[test]
fn each_row_becomes_what_whole_numbers_say_in_little_memory() -> Result<()> {
    let device = Device::emulated(Emulation::new());
    let (streaming, samples) = streamed(&device, 50)?;
    let mut rows = samples.chunks(ROW_LEN);
    streaming.run(&samples, |chunk| {
        let row = rows.next().expect("as many chunks as rows");
        assert!(chunk.iter().copied().eq(expected(row)));
        Ok::<_, Error>(())
    })?;
    assert!(rows.next().is_none(), "all rows were written");
    assert!(device.memory().peak <= MEMORY_BYTES_MIN as u64);
    Ok(())
}

#[test]
fn a_failure_of_the_writer_ends_the_run() -> Result<()> {
    let device = Device::emulated(Emulation::new());
    let (streaming, samples) = streamed(&device, 50)?;
    let mut written = 0;
    let outcome = streaming.run(&samples, |_| {
        written += 1;
        if written < 5 { Ok(()) } else { Device::cuda(usize::MAX).map(drop) }
    });
    assert!(matches!(outcome, Err(Error::NoDevice { .. })), "{outcome:?}");
    assert_eq!(written, 5);
    Ok(())
}

/// In modelled time, in which each chunk crosses the link in 20 microseconds, twice, and each
/// launch takes one.
#[test]
fn upload_kernels_and_download_overlap() -> Result<()> {
    const CHUNKS: usize = 40;
    let chunk_bytes = (ROW_LEN * size_of::<u16>()) as f64;
    let link = Link { bytes_per_second: chunk_bytes / 20e-6, latency: Duration::ZERO };
    let device = Device::emulated(Emulation::new().seed(3).poison(false).link(link));
    let (streaming, samples) = streamed(&device, CHUNKS)?;
    let begin = streaming.download.record()?;
    streaming.run(&samples, |_| Ok::<_, Error>(()))?;
    let end = streaming.download.record()?;
    end.synchronize()?;
    let (all, copies) = (end.elapsed_since(&begin)?, Duration::from_micros(20 * CHUNKS as u64));
    println!("{all:?}; the uploads take {copies:?}, and the downloads as long");
    assert!(all >= copies && all <= copies + copies / 8, "{all:?}");
    Ok(())
}
