//! Helpers that the test suites share.

pub mod allocations;
pub mod block_on;
pub mod bodies;
pub mod device_sources;
#[cfg(all(target_os = "linux", feature = "cuda"))]
pub mod driver;
pub mod flags;
pub mod lab;
pub mod moves;
pub mod own_process;
pub mod watched;
