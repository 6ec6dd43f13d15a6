//! Repeated runs of whole programs: in each run another call fails, or the work runs in another
//! legal order.

mod bench;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod driver_faults;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod driver_interleavings;
mod faults;
mod in_place;
mod interleavings;
mod model;
mod pictures;
mod scenario;
#[cfg(target_os = "linux")]
mod soak;
mod steps;
