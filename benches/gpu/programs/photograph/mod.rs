//! The twelve launches of the example `pipeline` on one photograph, with host code between them:
//!
//! - The first row of the sensor is dead: it gets the values of the second (in `grey`).
//! - The host reads the histogram, and one column of the gradient, by which it chooses a threshold.
//! - The host draws a scale into one row of the result.
//!
//! Three programs do this with the same kernels and the same host code: one with this library, and
//! two with cudarc, which differ in what they copy.

pub mod by_hand;
pub mod by_resident;

use resident::Device;
use resident::ndarray::Array3;

use crate::gpu::fault::{Fault, Outcome};
use crate::gpu::programs::Copies;
use resident_example_pipeline::picture;

pub const SIGMA: f32 = 1.4;
pub const LOW: f32 = 0.04;

/// The row of the result that has the scale.
pub const SCALE_ROW: usize = 8;

/// What the host gets: the sheet's bytes, and the bins of the histogram.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Print {
    pub sheet: Vec<u8>,
    pub bins: Vec<u32>,
}

/// Gradients above this are edges: half of the strongest in the middle column.
pub fn threshold<'a>(column: impl IntoIterator<Item = &'a f32>) -> f32 {
    LOW.max(column.into_iter().fold(0.0, |most: f32, &strength| most.max(strength)) / 2.0)
}

/// A row of this many pixels: a scale with a line every 64 pixels.
pub fn scale(columns: usize) -> Vec<u8> {
    (0..columns).flat_map(|column| [if column % 64 == 0 { 255 } else { 32 }; 3]).collect()
}

/// One of the three programs: it gets a photograph and returns the print.
type Program = Box<dyn Fn(Array3<u8>) -> Outcome<Print>>;

/// The three programs, for photographs of one shape, in the order of [`NAMES`](super::NAMES).
///
/// # Errors
///
/// If the device fails, or its kernels do not compile.
pub fn programs(gpu: &Device, shape: (usize, usize, usize)) -> Outcome<[Program; 3]> {
    let ours = by_resident::Darkroom::new(gpu)?;
    let [careful, hurried] =
        [Copies::Parts, Copies::WholeArrays].map(|copies| by_hand::Darkroom::new(shape, copies));
    let (careful, hurried) = (careful?, hurried?);
    Ok([
        Box::new(move |photo| ours.develop(photo)),
        Box::new(move |photo| careful.develop(photo)),
        Box::new(move |photo| hurried.develop(photo)),
    ])
}

/// The portrait of the examples, 512 x 512.
///
/// # Errors
///
/// If the portrait cannot be read.
pub fn portrait() -> Outcome<Array3<u8>> {
    picture::built_in().map_err(|_| Fault::new("the portrait of the examples cannot be read"))
}
