//! The behaviour that every backend must have, on the stand-ins for the drivers, and on the
//! machine's GPUs if it has some.

#[cfg(all(target_os = "linux", feature = "cuda"))]
mod cudarc_holes;
#[cfg(any(feature = "cuda", feature = "hip"))]
mod drivers_gpus;
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
#[path = "../../fast/conformance/suite/mod.rs"]
mod suite;
