//! The histogram of the photograph's brightness, computed on a second stream while the first
//! continues.

use resident::ndarray::{ArrayView2, Ix1, Ix2};
use resident::{Grid, In, InOut, Kernel, Result, SmartArray, Stream};

use super::steps::Plane;

/// Bins from black to white.
pub const BINS: usize = 256;

/// Bars of increasing height.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const BINS_PER_BAR: usize = 8;

pub type HistogramKernel = Kernel<(In<f32, Ix2>, InOut<u32>)>;

/// Queues the histogram. The bins start as zeros, which needs no transfer.
pub fn histogram(stream: &Stream, grey: &Plane<f32>) -> Result<SmartArray<u32, Ix1>> {
    let mut bins = SmartArray::zeros(BINS).named("histogram");
    kernel().launch_on(stream, Grid::cover(grey.len()), (grey, &mut bins))?;
    Ok(bins)
}

pub fn kernel() -> HistogramKernel {
    let kernel = HistogramKernel::new("histogram")
        .require("there are 256 bins", |_grid, (_, bins)| bins.len() == BINS)
        .host(|_grid, (grey, bins)| body(grey, bins));
    // SAFETY: the kernel reads `grey` within its shape and writes only the 256 bins, which the
    // requirement checks.
    unsafe { kernel.cuda(include_str!("brightness.cu")) }
}

pub fn body(grey: ArrayView2<'_, f32>, bins: &mut [u32]) {
    for &brightness in grey {
        bins[bin(brightness)] += 1;
    }
}

/// One line of text: the histogram as bars, and the median brightness.
pub fn line(bins: &[u32]) -> String {
    let heights: Vec<u64> = bins
        .chunks(BINS_PER_BAR)
        .map(|chunk| chunk.iter().map(|&count| u64::from(count)).sum())
        .collect();
    let tallest = heights.iter().copied().max().unwrap_or(0).max(1);
    let bars: String = heights
        .iter()
        .map(|height| BARS[(height * (BARS.len() as u64 - 1)).div_ceil(tallest) as usize])
        .collect();
    format!("dark {bars} bright, median {}", median(bins))
}

fn median(bins: &[u32]) -> usize {
    let half = bins.iter().map(|&count| u64::from(count)).sum::<u64>().div_ceil(2);
    let mut below = 0;
    let reaches_half = |&count: &u32| {
        below += u64::from(count);
        below >= half
    };
    bins.iter().position(reaches_half).unwrap_or(0)
}

/// Rounding can lift white above 1, so the last bin also counts values above 1.
fn bin(brightness: f32) -> usize {
    ((brightness * BINS as f32) as usize).min(BINS - 1)
}
