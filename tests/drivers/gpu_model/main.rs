//! Random programs, and copies of short rows, on the stand-ins for the drivers.

#[cfg(all(target_os = "linux", feature = "cuda"))]
mod cuda;
#[cfg(all(target_os = "linux", feature = "hip"))]
mod hip;
#[cfg(all(target_os = "linux", any(feature = "cuda", feature = "hip")))]
#[path = "../../fast/model/programs.rs"]
mod programs;

#[cfg(all(target_os = "linux", any(feature = "cuda", feature = "hip")))]
use programs::{run, run_made};
