//! The program on memory that host and device both access, on the GPU backend. In each run another
//! driver call fails, or the device dies at another call.

use support::prelude::*;

use super::{
    ILLEGAL_ADDRESS, OUT_OF_MEMORY, UNKNOWN, deaths, driver, kernels, nth, sweep, two_devices,
};
use crate::environment::Sample;
use crate::in_place::run;

#[test]
fn each_refused_driver_call_on_memory_in_place_can_be_repeated() {
    support::own_process!();
    let devices = two_devices();
    for (code, first) in [(OUT_OF_MEMORY, 0), (UNKNOWN, 1)] {
        let swept = sweep(code, Sample::new(2, first).numbers(), || run(&devices, false));
        assert!(swept.end > 100, "{} calls", swept.end);
    }
}

fn expect_lost<T>(outcome: Result<T>) -> Option<T> {
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

/// Runs a program on a device that dies at one point.
pub(super) fn die(kill: fn(u64), program: fn(&Device)) {
    let Some(nth) = nth() else { return };
    let devices = kernels::open(driver::settings(), 1);
    driver::take_calls();
    kill(nth);
    program(&devices[0]);
    println!("lost: {}", matches!(devices[0].capacity(), Err(Error::DeviceLost { .. })));
}

#[test]
#[ignore = "run in processes of its own by the test below"]
fn dies_at_work() {
    die(|nth| driver::fail_late(nth, ILLEGAL_ADDRESS), program);
}

#[test]
#[ignore = "run in processes of its own by the test below"]
fn dies_at_a_call() {
    die(|nth| driver::fail_any(nth, ILLEGAL_ADDRESS), program);
}

#[test]
fn a_device_lost_at_any_point_gives_lent_memory_back() {
    assert!(deaths(test_name!(dies_at_work), 1..5) > 1);
    assert!(deaths(test_name!(dies_at_a_call), 1..45) > 25);
}
