//! The program on memory that host and device both access, on the GPU backend. In each run another
//! driver call fails, or the device dies at another call.

use resident::ndarray::Array1;
use resident::{Device, Error, ManagedArray, MappedArray, SmartArray, with_mapped};
use support::own_process::{self, assert_success};
use support::test_name;

use super::face as driver;
use super::kernels;
use crate::environment::Sample;
use crate::in_place::run;

/// CUDA_ERROR_OUT_OF_MEMORY and CUDA_ERROR_UNKNOWN, and the same of hipError_t.
const OUT_OF_MEMORY: u32 = 2;
const UNKNOWN: u32 = 999;

#[test]
fn each_refused_driver_call_on_memory_in_place_can_be_repeated() {
    support::own_process!();
    let devices: [Device; 2] =
        kernels::open(driver::settings().devices(2), 2).try_into().expect("two");
    for (code, first) in [(OUT_OF_MEMORY, 0), (UNKNOWN, 1)] {
        assert_eq!(run(&devices, false), 0, "without faults, no call is refused");
        for nth in Sample::new(2, first).numbers() {
            driver::take_calls();
            driver::fail_any(nth, code);
            let told = run(&devices, false);
            driver::forget_faults();
            let mut calls = driver::take_calls();
            // `fail_any` leaves these out.
            calls.retain(|call| call.name != driver::CAPTURE_MODE);
            let Some(failed) = calls.get(nth as usize - 1) else {
                assert!(nth > 100, "{nth} calls");
                break;
            };
            let what = format!("call {nth}, {failed}");
            assert!(told <= 1, "{what}: one fault, {told} errors");
            assert_eq!(driver::take_hazards(), Vec::<String>::new(), "{what}");
            assert_eq!(driver::take_notes(), Vec::<String>::new(), "{what}");
            for device in 0..2 {
                assert_eq!(driver::memory_in_use(device), 0, "{what}: bytes on device {device}");
            }
        }
    }
}

/// This variable gives a child process the number of the operation or call.
const NTH: &str = "RESIDENT_TEST_NTH";

/// CUDA_ERROR_ILLEGAL_ADDRESS, hipErrorIllegalAddress.
const ILLEGAL_ADDRESS: u32 = 700;

fn expect_lost<T>(outcome: resident::Result<T>) -> Option<T> {
    match outcome {
        Ok(value) => Some(value),
        Err(Error::DeviceLost { .. } | Error::Lost { .. }) => None,
        Err(other) => panic!("an unexpected kind of error: {other:?}"),
    }
}

/// The device dies at some call or work: loans end, dropped arrays do not wait, and what is
/// overwritten on the host is usable.
fn program(device: &Device) {
    let _here = device.enter();
    let stream = device.stream();
    let mut lent = Array1::<u32>::zeros(100);
    expect_lost(with_mapped(&mut lent, |mapped| {
        mapped.fill_on(&stream, 3)?;
        mapped.host().map(drop)
    }));
    lent.fill(1);
    let mapped = expect_lost(MappedArray::from_array(lent.view())).map(SmartArray::from);
    let managed = expect_lost(ManagedArray::from_array(lent.view())).map(SmartArray::from);
    for mut array in [mapped, managed].into_iter().flatten() {
        expect_lost(array.fill_on(&stream, 5));
        if expect_lost(array.host_overwrite().map(|mut host| host.fill(2))).is_some() {
            assert!(array.host().expect("the host wrote it").iter().all(|value| *value == 2));
            let there = Device::cpu().stream();
            assert_eq!(array.gpu_on(&there).expect("another device").len(), 100);
        }
    }
    assert!(lent.iter().all(|value| *value == 1), "the loan is over");
}

fn die(kill: fn(u64)) {
    let Some(nth) = std::env::var(NTH).ok().and_then(|nth| nth.parse().ok()) else { return };
    let devices = kernels::open(driver::settings(), 1);
    driver::take_calls();
    kill(nth);
    program(&devices[0]);
    println!("lost: {}", matches!(devices[0].capacity(), Err(Error::DeviceLost { .. })));
}

#[test]
#[ignore = "run in processes of its own by the test below"]
fn dies_at_work() {
    die(|nth| driver::fail_late(nth, ILLEGAL_ADDRESS));
}

#[test]
#[ignore = "run in processes of its own by the test below"]
fn dies_at_a_call() {
    die(|nth| driver::fail_any(nth, ILLEGAL_ADDRESS));
}

#[test]
fn a_device_lost_at_any_point_gives_lent_memory_back() {
    let died = |(test, nth): &(&str, u64)| {
        let output = own_process::run(test, &[(NTH, &nth.to_string())]);
        assert_success(&output, &format!("{test}, number {nth}"));
        String::from_utf8_lossy(&output.stdout).contains("lost: true")
    };
    let at_work = (1..5).map(|nth| (test_name!(dies_at_work), nth));
    assert!(at_work.filter(died).count() > 1);
    let at_calls = (1..45).map(|nth| (test_name!(dies_at_a_call), nth));
    assert!(at_calls.filter(died).count() > 25);
}
