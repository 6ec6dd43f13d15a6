//! The kernels of `stream_file`, each with a host body and a CUDA body. All numbers in between are
//! exact in 32 bits, so the results are the same on every device.

use resident::ndarray::Ix2;
use resident::{CudaSource, In, Kernel, Out, Signature};

/// The counts of the sensor without light.
const DARK: f32 = 100.0;
const VOLTS_PER_COUNT: f32 = 0.25;

type Calibrate = Kernel<(In<u16, Ix2>, Out<f32, Ix2>)>;
type Smooth = Kernel<(In<f32, Ix2>, Out<f32, Ix2>)>;
type Quantise = Kernel<(In<f32, Ix2>, Out<u16, Ix2>)>;

pub struct Kernels {
    /// Counts of a sensor become volts.
    pub calibrate: Calibrate,
    /// Each sample becomes a mean of itself and its two neighbours in the row.
    pub smooth: Smooth,
    /// Volts become counts again, rounded to the nearest.
    pub quantise: Quantise,
}

impl Kernels {
    pub fn new() -> Self {
        let calibrate = Calibrate::new("calibrate")
            .require("both have one shape", |_, (counts, volts)| counts.shape() == volts.shape())
            .host_each(|at, (counts, volts)| {
                *volts = VOLTS_PER_COUNT * (f32::from(counts[at]) - DARK);
            });
        let smooth = Smooth::new("smooth")
            .require("both have one shape", |_, (volts, smoothed)| {
                volts.shape() == smoothed.shape()
            })
            .host_each(|(row, column), (volts, smoothed)| {
                let left = volts[(row, column.saturating_sub(1))];
                let right = volts[(row, (column + 1).min(volts.ncols() - 1))];
                *smoothed = 0.25 * left + 0.5 * volts[(row, column)] + 0.25 * right;
            });
        let quantise = Quantise::new("quantise")
            .require("both have one shape", |_, (volts, counts)| volts.shape() == counts.shape())
            .host_each(|at, (volts, count)| {
                *count = (volts[at] / VOLTS_PER_COUNT + DARK + 0.5) as u16;
            });
        Self {
            calibrate: with_cuda_body(calibrate),
            smooth: with_cuda_body(smooth),
            quantise: with_cuda_body(quantise),
        }
    }
}

/// Adds the CUDA body to one of the kernels above.
fn with_cuda_body<S: Signature>(kernel: Kernel<S>) -> Kernel<S> {
    // SAFETY: each function in `kernels.cu` has the signature of the kernel with the same name. It
    // accesses only elements inside its views: it checks indices against the shape of one view, and
    // the requirement makes the shapes equal.
    unsafe { kernel.cuda(CudaSource::c(include_str!("kernels.cu"))) }
}

/// What the three kernels make of a row, in whole numbers: for checks.
pub fn expected(row: &[u16]) -> impl Iterator<Item = u16> {
    let at = |column: usize| u32::from(row[column.min(row.len() - 1)]);
    (0..row.len()).map(move |column| {
        ((at(column.saturating_sub(1)) + 2 * at(column) + at(column + 1) + 2) / 4) as u16
    })
}
