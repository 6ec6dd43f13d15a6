//! The messages that users get on machines whose driver, GPU or compiler cannot be used. Each test
//! has its own process, since a process has one driver.

use resident::{Device, Error, SmartArray};
use resident_stand_in::{self as driver, Settings};
use support::own_process::assert_success;
use support::{assert_says, in_own_process, own_process, test_name};

/// The message of a device that cannot be opened.
#[track_caller]
fn refused(outcome: resident::Result<Device>) -> String {
    match outcome {
        Err(error @ Error::NoDevice { .. }) => error.to_string(),
        other => panic!("{other:?} is not NoDevice"),
    }
}

fn load(settings: Settings) {
    driver::load(settings).expect("the stand-in driver loads");
}

/// Whether there is a real driver, in which case the test is meaningless.
fn has_real_driver() -> bool {
    let is_there = Device::cuda(0).is_ok();
    if is_there {
        println!("not done: this machine has a GPU");
    }
    is_there
}

#[test]
fn no_driver() {
    own_process!();
    if has_real_driver() {
        return;
    }
    let text = refused(Device::cuda(0));
    assert_says(
        &text,
        &[
            "no device for cuda:0",
            "libcuda.so",
            "LD_LIBRARY_PATH",
            "install an NVIDIA driver, or use Device::cpu()",
        ],
    );
    assert_eq!(Device::all(), [Device::cpu()]);
    assert_eq!(Device::current().expect("the embedded one"), Device::cpu());
    // Printing an error makes no driver call.
    let without_line = |text: &str| text.rsplit_once(" (called at").expect("a line").0.to_owned();
    assert_eq!(
        without_line(&refused(Device::cuda(3))),
        without_line(&text).replace("cuda:0", "cuda:3")
    );
    assert!(!format!("{:?}", Device::cuda(0)).is_empty());
}

#[test]
fn a_driver_without_a_gpu() {
    in_own_process!(load(Settings::new().devices(0)));
    let text = refused(Device::cuda(0));
    assert_says(
        &text,
        &[
            "cuda:0",
            "the NVIDIA driver shows no GPU",
            "NO_DEVICE",
            "nvidia-smi",
            "CUDA_VISIBLE_DEVICES",
            "Device::cpu()",
        ],
    );
    assert_eq!(Device::all(), [Device::cpu()]);
    assert_eq!(Device::current().expect("the embedded one"), Device::cpu());
}

#[test]
fn an_old_driver() {
    in_own_process!(load(Settings::new().driver_version(11_020)));
    assert_says(
        &refused(Device::cuda(0)),
        &["CUDA 11.2", "11.4 or later", "update the NVIDIA driver"],
    );
    assert_eq!(Device::all(), [Device::cpu()]);
}

#[test]
fn a_number_that_no_gpu_has() {
    in_own_process!(load(Settings::new().devices(2)));
    for ordinal in [2, 7, usize::MAX] {
        assert_says(
            &refused(Device::cuda(ordinal)),
            &[&format!("cuda:{ordinal}"), "2 GPU(s)", "numbered from 0", "CUDA_VISIBLE_DEVICES"],
        );
    }
    assert_eq!(Device::all().len(), 3);
    assert_eq!(Device::current().expect("the first GPU").name(), "cuda:0");
    assert_eq!(Device::cuda(1).expect("there").ordinal(), 1);
}

#[test]
fn the_environment_names_a_gpu_that_is_not_there() {
    own_process!([("RESIDENT_DEVICE", "cuda:7")]);
    load(Settings::new().devices(2));
    let text = refused(Device::current());
    assert_says(
        &text,
        &["RESIDENT_DEVICE=cuda:7", "2 GPU(s)", "set RESIDENT_DEVICE=cpu, or unset it"],
    );
    // The variable is never ignored, but an entered device has precedence.
    assert_says(
        &refused(SmartArray::<f32, _>::ones(3).gpu().map(|guard| guard.device())),
        &["RESIDENT_DEVICE=cuda:7"],
    );
    let _here = Device::cuda(1).expect("there").enter();
    assert_eq!(Device::current().expect("entered").ordinal(), 1);
}

#[test]
fn the_environment_names_a_gpu_that_is_there() {
    own_process!([("RESIDENT_DEVICE", "cuda:1")]);
    load(Settings::new().devices(2));
    assert_eq!(Device::current().expect("there").name(), "cuda:1");
}

#[test]
fn the_environment_names_a_gpu_without_a_driver() {
    own_process!([("RESIDENT_DEVICE", "cuda")]);
    if has_real_driver() {
        return;
    }
    assert_says(
        &refused(Device::current()),
        &[
            "RESIDENT_DEVICE=cuda",
            "no NVIDIA driver library",
            "set RESIDENT_DEVICE=cpu, or unset it",
        ],
    );
}

#[test]
fn a_gpu_that_another_process_has() {
    own_process!();
    const DEVICE_UNAVAILABLE: u32 = 46;
    load(Settings::new().devices(2));
    driver::fail_nth("cuDevicePrimaryCtxRetain", 1, DEVICE_UNAVAILABLE);
    assert_says(
        &refused(Device::cuda(0)),
        &[
            "cuda:0",
            "does not open",
            "cuDevicePrimaryCtxRetain",
            "DEVICE_UNAVAILABLE",
            "another process",
            "nvidia-smi",
        ],
    );
    // The other GPU can be opened, and this one as soon as it is free.
    assert_eq!(Device::cuda(1).expect("free").ordinal(), 1);
    assert_eq!(Device::cuda(0).expect("free now").ordinal(), 0);
}

#[test]
fn a_driver_that_does_not_start() {
    own_process!();
    const SYSTEM_DRIVER_MISMATCH: u32 = 803;
    load(Settings::new());
    driver::fail_nth("cuInit", 1, SYSTEM_DRIVER_MISMATCH);
    assert_says(
        &refused(Device::cuda(0)),
        &["SYSTEM_DRIVER_MISMATCH", "reboot, or reinstall the driver"],
    );
    assert_eq!(Device::cuda(0).expect("it starts now").ordinal(), 0);
}

#[test]
fn opening_that_is_refused_anywhere_leaves_nothing_behind() {
    in_own_process!(load(Settings::new()));
    let mut refusals = 0;
    for nth in 1.. {
        driver::take_calls();
        driver::fail_any(nth, 999);
        let opened = Device::cuda(0);
        // What is refused to change no mode is not asked again.
        let calls: Vec<_> = driver::take_calls()
            .into_iter()
            .filter(|call| call.name != "cuThreadExchangeStreamCaptureMode")
            .collect();
        driver::forget_faults();
        let Err(error) = opened else { break };
        assert_says(&error.to_string(), &["no device for cuda:0", "CUDA_ERROR_UNKNOWN"]);
        assert_eq!(calls.get(nth as usize - 1).map(|call| call.code), Some(999), "{error}");
        refusals += 1;
    }
    assert!(refusals >= 5, "{refusals}");
    let array = SmartArray::from(vec![1.0_f32; 10]);
    let device = Device::cuda(0).expect("it opens now");
    drop(array.gpu_on(&device.stream()).expect("it works"));
    drop(array);
    device.synchronize().expect("it works");
    assert_eq!(
        (driver::memory_in_use(0), driver::take_hazards().len(), driver::take_notes().len()),
        (0, 0, 0)
    );
}

#[test]
fn an_array_larger_than_what_is_free() {
    own_process!();
    const MIB: usize = 1 << 20;
    load(Settings::new().memory(16 << 20));
    let device = Device::cuda(0).expect("there");
    let stream = device.stream();
    let kept = SmartArray::from(vec![1_u8; 6 * MIB]);
    kept.prefetch(&stream).expect("enough memory");
    let mut large = SmartArray::from(vec![2_u8; 12 * MIB]).named("picture");
    // One copy is evicted; the other one has a guard, and is kept.
    let mut used = SmartArray::<u8, _>::uninit(6 * MIB);
    let guard = used.gpu_overwrite_on(&stream).expect("enough memory");
    let refused = large.gpu_on(&stream).map(drop);
    let Err(Error::OutOfMemory { shortage, .. }) = &refused else { panic!("{refused:?}") };
    assert_eq!(shortage.requested, 12 << 20);
    assert!(shortage.free < 12 << 20 && shortage.in_use >= 6 << 20, "{shortage:?}");
    let text = refused.clone().unwrap_err().to_string();
    assert_says(
        &text,
        &[
            "\"picture\"",
            "12582912 bytes",
            "cuda:0",
            "live arrays hold",
            "drop arrays that are not needed there",
        ],
    );
    assert_eq!(large.host().expect("its contents are unchanged")[12 * MIB - 1], 2);
    drop(guard);
    drop(large.gpu_mut_on(&stream).expect("there is enough memory now"));
    assert_eq!(large.host().expect("there")[12 * MIB - 1], 2);
    assert_eq!(kept.host().expect("there")[0], 1);
}

/// Opens a device, which says what is wrong with a variable.
#[test]
#[ignore = "needs a variable: run in processes of its own by the test below"]
fn opens_unless_a_variable_is_wrong() {
    load(Settings::new());
    let expected = std::env::var("RESIDENT_TEST_EXPECTED").expect("the parent sets it");
    let outcome = Device::cuda(0).map_or_else(|error| error.to_string(), |device| device.name());
    assert!(outcome.contains(&expected), "{outcome}");
}

#[test]
fn a_variable_of_staging_that_makes_no_sense_is_refused() {
    for (variable, value, expected) in [
        ("RESIDENT_PINNED_MAX", "1g", "cuda:0"),
        ("RESIDENT_PINNED_MAX", "lots", "expected a number from 0 to"),
        ("RESIDENT_CHUNK_BYTES", "1", "expected a number from 65536 to 1073741824, as in 8388608"),
        ("RESIDENT_CHUNKS_MAX", "0", "expected a number from 1 to 1024; set it so, or unset it"),
        ("RESIDENT_STAGING_THREADS", "-1", "expected a number from 0 to 1024; set it so"),
        ("RESIDENT_COPY_CALL_BYTES", "many", "expected a number from 0 to 4294967295"),
        ("RESIDENT_COPY_ROW_BYTES", "1.5", "expected a number from 0 to 4294967295"),
        ("RESIDENT_COPY_DEVICE_ROW_BYTES", "-1", "expected a number from 0 to 4294967295"),
    ] {
        let expected = match expected {
            "cuda:0" => expected.to_owned(),
            refused => format!("{variable}={value}: {refused}"),
        };
        let variables = [(variable, value), ("RESIDENT_TEST_EXPECTED", &*expected)];
        let output = own_process::run(test_name!(opens_unless_a_variable_is_wrong), &variables);
        assert_success(&output, &format!("{variable}={value}"));
    }
}

#[test]
fn nothing_to_be_had_of_the_driver_for_staging_is_no_error() {
    own_process!([("RESIDENT_PINNED_MAX", "0")]);
    load(Settings::new());
    let device = Device::cuda(0).expect("there");
    let contents: Vec<u8> = (0..9_000_000_u32).map(|index| (index >> 7) as u8).collect();
    let mut array = SmartArray::from(contents.clone());
    drop(array.gpu_mut_on(&device.stream()).expect("up"));
    assert!(array.host().expect("down").to_vec() == contents);
    assert_eq!(driver::calls().iter().filter(|call| call.name == "cuMemHostAlloc").count(), 0);
}
