//! A driver on a machine without a device.

#![cfg(all(target_os = "linux", feature = "cuda"))]
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "calls of the driver in a row are safe for one reason"
)]

use cudarc::driver::sys::CUresult;
use cudarc::driver::{CudaContext, DriverError, result, sys};
use resident_stand_in::Settings;

#[test]
fn nothing_starts_and_nothing_crashes() {
    resident_stand_in::load(Settings::new().devices(0)).expect("the stand-in loads");
    // SAFETY: it opens libraries by name, of which the first is the stand-in.
    assert!(unsafe { sys::is_culib_present() });
    assert_eq!(CudaContext::device_count(), Err(DriverError(CUresult::CUDA_ERROR_NO_DEVICE)));
    assert_eq!(result::device::get_count(), Err(DriverError(CUresult::CUDA_ERROR_NOT_INITIALIZED)));
    assert!(resident_stand_in::load(Settings::new()).is_err(), "a process has one machine");
}
