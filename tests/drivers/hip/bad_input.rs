//! The messages that users get on machines whose runtime or GPU cannot be used.

use resident::{Device, SmartArray};
use resident_stand_in_hip::{self as driver, Settings};
use support::{assert_says, in_own_process, own_process};

use super::{open, refused};

#[test]
fn a_file_that_is_no_library() {
    own_process!([("RESIDENT_HIP", "/proc/version")]);
    let text = refused(Device::hip(0));
    assert_says(&text, &["hip:0", "RESIDENT_HIP names /proc/version", "or unset it"]);
}

#[test]
fn a_library_that_is_no_hip() {
    own_process!([("RESIDENT_HIP", "libc.so.6")]);
    let text = refused(Device::hip(0));
    assert_says(&text, &["RESIDENT_HIP names libc.so.6", "it has no function hipInit"]);
    assert!(!Device::all().iter().any(|device| device.kind() == resident::DeviceKind::Hip));
}

#[test]
fn a_runtime_that_is_too_old() {
    in_own_process!(driver::load(Settings::new().version(40_500_000)).expect("it loads"));
    let text = refused(Device::hip(0));
    assert_says(&text, &["supports HIP 4.5, but 5.0 or later is needed: update ROCm"]);
}

#[test]
fn a_runtime_without_a_device() {
    in_own_process!(driver::load(Settings::new().devices(0)).expect("it loads"));
    let text = refused(Device::hip(0));
    assert_says(&text, &["shows no GPU", "HIP_VISIBLE_DEVICES", "/dev/kfd"]);
}

#[test]
fn a_device_beyond_the_last() {
    in_own_process!(driver::load(Settings::new().devices(2)).expect("it loads"));
    let text = refused(Device::hip(2));
    assert_says(&text, &["hip:2", "shows 2 GPU(s), numbered from 0"]);
    assert_eq!(Device::hip(1).expect("it exists").name(), "hip:1");
}

/// HIP takes NVIDIA's variable too, if AMD's is not set.
#[test]
fn a_device_that_nvidias_variable_hides() {
    own_process!([("CUDA_VISIBLE_DEVICES", "3")]);
    driver::load(Settings::new().devices(0)).expect("it loads");
    let text = refused(Device::hip(0));
    assert_says(&text, &["shows no GPU", "CUDA_VISIBLE_DEVICES=3 counts for HIP too", "set both"]);
}

/// Each vendor's variable names a library of the other.
#[cfg(feature = "cuda")]
#[test]
fn variables_that_name_the_other_vendors_libraries() {
    let program = std::env::current_exe().expect("a path");
    let cuda = program.with_file_name("libresident_stand_in.so").display().to_string();
    own_process!([("RESIDENT_HIP", &cuda)]);
    let text = refused(Device::hip(0));
    assert_says(&text, &["RESIDENT_HIP names", "it has no function hipInit", "libamdhip64"]);
}

#[test]
fn the_variable_names_the_device() {
    own_process!([("RESIDENT_DEVICE", "hip:1")]);
    driver::load(Settings::new().devices(2)).expect("it loads");
    let current = Device::current().expect("it is there");
    assert_eq!((&*current.name(), current.kind()), ("hip:1", resident::DeviceKind::Hip));
    assert_eq!(SmartArray::<f32, _>::ones(3).gpu().expect("it uploads").device(), current);
}

#[test]
fn the_variable_names_a_device_that_is_not_there() {
    own_process!([("RESIDENT_DEVICE", "hip:7")]);
    driver::load(Settings::new()).expect("it loads");
    let text = refused(Device::current());
    assert_says(&text, &["RESIDENT_DEVICE=hip:7", "set RESIDENT_DEVICE=cpu, or unset it"]);
}

#[test]
fn an_amd_gpu_is_the_current_device_where_there_is_no_other() {
    let gpu = in_own_process!(open(Settings::new()));
    if Device::cuda(0).is_ok() {
        println!("not done: this machine has an NVIDIA GPU");
        return;
    }
    assert_eq!(Device::current().expect("it is there"), gpu);
    assert_eq!(Device::all(), [gpu, Device::cpu()]);
}

/// 911 is `CUDA_ERROR_EXTERNAL_DEVICE`, which kills the device, and in HIP
/// `hipErrorInvalidChannelDescriptor`.
#[test]
fn a_code_that_only_cudas_devices_die_of() {
    let gpu = in_own_process!(open(Settings::new()));
    let _here = gpu.enter();
    let array = SmartArray::<u32, _>::from(vec![3; 9000]);
    driver::fail_nth("hipMemcpyHtoDAsync", 1, 911);
    let text = array.gpu().map(drop).expect_err("it failed").to_string();
    assert_says(&text, &["hipMemcpyHtoDAsync", "driver error 911"]);
    drop(array.gpu().expect("the device lives"));
}

/// After an error that kills the device, contents that are nowhere else are lost, and say so.
#[test]
fn a_device_that_dies() {
    let gpu = in_own_process!(open(Settings::new()));
    let _here = gpu.enter();
    let kept = SmartArray::<u32, _>::ones(1000);
    drop(kept.gpu().expect("it uploads"));
    gpu.synchronize().expect("it works");
    driver::fail_nth("hipMemcpyHtoDAsync", 1, 700);
    let refused = SmartArray::<u32, _>::from(vec![3; 9000]).gpu().map(drop);
    let text = refused.expect_err("the device died").to_string();
    assert_says(&text, &["hipMemcpyHtoDAsync"]);
    assert_eq!(kept.host().expect("the host has it").sum(), 1000);
}
