//! Repeated runs of whole programs: with each call failing in turn, and under many legal orders.

mod bench;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod driver_faults;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod driver_interleavings;
mod faults;
mod interleavings;
mod model;
mod pictures;
mod scenario;
mod steps;
