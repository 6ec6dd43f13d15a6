//! Photographs through the edge detector of the examples, with upload, computation and download
//! overlapped: two programs with the same kernels.

pub mod by_hand;
pub mod by_resident;

/// Photographs in flight at once, as in the example: one for each of the three streams, and one
/// that is ready when a stream becomes idle.
pub const IN_FLIGHT: usize = 4;

const SIGMA: f32 = 1.4;
const LOW: f32 = 0.04;
const HIGH: f32 = 0.1;
