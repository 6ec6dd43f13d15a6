//! Runs the benchmarks without a GPU, on the stand-in driver and the stand-in for NVRTC, which
//! compiles their kernels for the host.
//!
//! Such a run checks that a row works and that its results are right. It measures nothing.

use resident_stand_in::{self as driver, Settings};

/// Loads the stand-in driver and compiler.
///
/// # Errors
///
/// If the shared objects of the driver and compiler are not where cargo or the bundle puts them.
pub fn load(settings: Settings) -> Result<(), String> {
    driver::load(settings)?;
    resident_stand_in_nvrtc::load()
}

/// The number of hazards since the last call. Also clears the record of calls, which would
/// otherwise grow without end.
pub fn take_hazards() -> usize {
    driver::take_calls();
    driver::take_hazards().len()
}
