//! Photographs through the edge detector of the examples, uploading, computing and downloading
//! overlapped: two programs of the same kernels.

pub mod by_hand;
pub mod by_resident;

/// Photographs under way at once, as in the example: three streams are busy with three; the fourth
/// is ready when one of them is done.
pub const IN_FLIGHT: usize = 4;

const SIGMA: f32 = 1.4;
const LOW: f32 = 0.04;
const HIGH: f32 = 0.1;
