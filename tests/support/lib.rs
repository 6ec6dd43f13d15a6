//! Helpers that the test suites share.

pub mod assert_says;
pub mod audited;
pub mod block_on;
pub mod bodies;
pub mod cases;
#[cfg(all(target_os = "linux", feature = "cuda"))]
pub mod cuda;
pub mod device_sources;
pub mod eventually;
pub mod flags;
#[cfg(feature = "dlpack")]
pub mod foreign;
#[cfg(all(target_os = "linux", feature = "hip"))]
pub mod hip;
pub mod lab;
pub mod mistakes;
pub mod moves;
pub mod own_process;
pub mod panics;
pub mod prelude;
pub mod random;
pub mod record_launches;
#[cfg(all(target_os = "linux", feature = "recording"))]
pub mod recording;
pub mod watched;

pub use assert_says::assert_says;
#[cfg(all(target_os = "linux", feature = "cuda"))]
pub use cuda::driver;
pub use eventually::eventually;
pub use resident_allocations as allocations;
