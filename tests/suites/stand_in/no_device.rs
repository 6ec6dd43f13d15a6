//! A driver on a machine without a device.

use resident::cudarc::driver::sys::CUresult;
use resident::cudarc::driver::{CudaContext, DriverError, result, sys};
use resident_stand_in::Settings;
use support::own_process;

#[test]
fn nothing_starts_and_nothing_crashes() {
    own_process!();
    resident_stand_in::load(Settings::new().devices(0)).expect("the stand-in loads");
    // SAFETY: cudarc opens libraries by name; the first that it finds is the stand-in.
    assert!(unsafe { sys::is_culib_present() });
    assert_eq!(CudaContext::device_count(), Err(DriverError(CUresult::CUDA_ERROR_NO_DEVICE)));
    assert_eq!(result::device::get_count(), Err(DriverError(CUresult::CUDA_ERROR_NOT_INITIALIZED)));
    assert!(resident_stand_in::load(Settings::new()).is_err(), "a process has one machine");
}
