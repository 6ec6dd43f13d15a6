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

/// As [`load`], HIP's.
///
/// # Errors
///
/// As [`load`], and in builds without the feature `hip`.
#[cfg(feature = "hip")]
pub fn load_hip() -> Result<(), String> {
    resident_stand_in_hip::load(resident_stand_in_hip::Settings::new())?;
    resident_stand_in_hiprtc::load()
}

/// As above.
///
/// # Errors
///
/// In builds without the feature `hip`.
#[cfg(not(feature = "hip"))]
pub fn load_hip() -> Result<(), String> {
    Err("this program was built without the feature `hip`".to_owned())
}

/// As [`take_hazards`], of HIP's.
pub fn take_hazards_of_hip() -> usize {
    #[cfg(feature = "hip")]
    {
        resident_stand_in_hip::take_calls();
        resident_stand_in_hip::take_hazards().len()
    }
    #[cfg(not(feature = "hip"))]
    0
}

/// The number of hazards since the last call. Also clears the record of calls, which would
/// otherwise grow without end.
pub fn take_hazards() -> usize {
    driver::take_calls();
    driver::take_hazards().len()
}

/// What a program asked of the stand-in driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Traffic {
    /// Bytes copied between host and device.
    pub bytes: u64,
    /// Calls that copy.
    pub copies: usize,
    /// All calls, without the two around each wait that set the calling thread's mode beside
    /// captures.
    pub calls: usize,
}

/// The traffic since the calls were last taken.
pub fn take_traffic() -> Traffic {
    let mut calls = driver::take_calls();
    calls.retain(|call| call.name != "cuThreadExchangeStreamCaptureMode");
    let copies = || calls.iter().filter(|call| call.name.starts_with("cuMemcpy"));
    Traffic {
        bytes: copies().map(|call| call.len_bytes).sum(),
        copies: copies().count(),
        calls: calls.len(),
    }
}
