//! A driver on a machine without a device: a real one shows none if a variable hides them all.

use resident::cudarc::driver::sys::CUresult;
use resident::cudarc::driver::{CudaContext, DriverError, result, sys};
use resident_stand_in::Settings;

use crate::driver::choice::is_real;

#[test]
fn nothing_starts_and_nothing_crashes() {
    on_either_driver!(NoGpu);
    if !is_real() {
        support::own_process!();
        resident_stand_in::load(Settings::new().devices(0)).expect("the stand-in loads");
    }
    // SAFETY: it opens libraries by name: the driver.
    assert!(unsafe { sys::is_culib_present() });
    assert_eq!(CudaContext::device_count(), Err(DriverError(CUresult::CUDA_ERROR_NO_DEVICE)));
    assert_eq!(result::device::get_count(), Err(DriverError(CUresult::CUDA_ERROR_NOT_INITIALIZED)));
}
