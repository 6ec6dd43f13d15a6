//! A loop with host code in each round: a kernel brightens a picture, the host writes one row of it
//! and reads one column. The picture begins and ends on the host.
//!
//! Three programs do this with the same kernel and the same host code: one with this library, and
//! two with cudarc, which differ in what they copy.

pub mod by_hand;
pub mod by_resident;

use resident::Device;
use resident::ndarray::Array2;

use crate::gpu::fault::Outcome;
use crate::gpu::programs::Copies;

pub const SHAPE: (usize, usize) = (1024, 768);
pub const ROUNDS: usize = 20;

/// The kernel's factor and offset.
pub const BRIGHTEN: (f32, f32) = (1.0, 0.25);

/// The column that the host reads.
pub const COLUMN: usize = 99;

/// The row that the host writes in a round, and what it writes into all of it.
pub fn row_of(round: usize) -> (usize, f32) {
    (7 * round, round as f32)
}

/// The picture, and the sum of all columns that were read.
#[derive(Clone, PartialEq, Debug)]
pub struct Exposed {
    pub picture: Array2<f32>,
    pub sum: f32,
}

/// One of the three programs.
type Program = Box<dyn Fn(Array2<f32>) -> Outcome<Exposed>>;

/// The three programs, in the order of [`NAMES`](super::NAMES).
///
/// # Errors
///
/// If the device fails, or its kernel does not compile.
pub fn programs(gpu: &Device) -> Outcome<[Program; 3]> {
    let ours = by_resident::Camera::new(gpu)?;
    let [careful, hurried] = [Copies::Parts, Copies::WholeArrays].map(by_hand::Camera::new);
    let (careful, hurried) = (careful?, hurried?);
    Ok([
        Box::new(move |picture| ours.expose(picture)),
        Box::new(move |picture| careful.expose(picture)),
        Box::new(move |picture| hurried.expose(picture)),
    ])
}
