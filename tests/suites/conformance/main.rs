//! The behaviour that every backend must have, tested on each of them.

#[cfg(all(target_os = "linux", feature = "cuda"))]
mod cudarc_holes;
#[cfg(any(feature = "cuda", feature = "hip"))]
mod drivers_gpus;
mod embedded;
#[cfg(all(target_os = "linux", any(feature = "cuda", feature = "hip")))]
mod faces;
#[cfg(feature = "cuda")]
mod gpu;
#[cfg(all(target_os = "linux", feature = "hip"))]
mod hip;
#[cfg(feature = "hip")]
mod runtime;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod stand_in;
mod suite;
