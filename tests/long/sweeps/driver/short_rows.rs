//! Copies of short rows, which are packed on the device, since calls cost nothing here. In each run
//! another driver call fails, or the device dies at another call.

use support::prelude::*;

use super::in_place::die;
use super::{
    ILLEGAL_ADDRESS, OUT_OF_MEMORY, UNKNOWN, deaths, driver, sweep, take_calls, two_devices,
};
use crate::environment::Sample;

/// All copies of short rows are packed with this setting.
const PACKED: [(&str, &str); 1] = [("RESIDENT_COPY_CALL_BYTES", "0")];

type Matrix = SmartArray<u32, Ix2>;

fn contents() -> Array2<u32> {
    Array2::from_shape_fn((40, 30), |(row, column)| (row * 30 + column) as u32)
}

/// Repeats a call until it succeeds.
fn again<T>(refused: &mut usize, mut call: impl FnMut() -> Result<T>) -> T {
    for _ in 0..3 {
        match call() {
            Ok(value) => return value,
            Err(Error::Backend { .. } | Error::OutOfMemory { .. }) => *refused += 1,
            Err(other) => panic!("an unexpected kind of error: {other:?}"),
        }
    }
    panic!("a call fails for ever")
}

/// Columns that the host changes go down and up between uses of the whole by the device. Returns
/// how many calls were refused.
fn run(device: &Device) -> usize {
    let mut refused = 0;
    let stream = again(&mut refused, || device.new_stream());
    let (mut array, mut expected) = (SmartArray::from(contents()), contents());
    for turn in 0..4 {
        let columns = s![1.., 3 * turn..3 * turn + 2];
        again(&mut refused, || array.gpu_mut_on(&stream).map(drop));
        again(&mut refused, || {
            array.slice_mut(columns).host_mut()?.fill(turn as u32);
            Ok(())
        });
        again(&mut refused, || array.prefetch(&stream));
        expected.slice_mut(columns).fill(turn as u32);
    }
    again(&mut refused, || array.gpu_mut_on(&stream).map(drop));
    let seen = again(&mut refused, || array.host().map(|host| host.to_owned()));
    assert_eq!(seen, expected);
    drop(array);
    drop(stream);
    again(&mut refused, || device.synchronize());
    again(&mut refused, || device.trim());
    assert_eq!(device.memory().in_use, 0);
    refused
}

#[test]
fn each_refused_driver_call_of_packed_copies_can_be_repeated() {
    support::own_process!(PACKED);
    let devices = two_devices();
    take_calls();
    assert_eq!(run(&devices[0]), 0);
    let frees = take_calls().iter().filter(|call| call.name.ends_with("FreeAsync")).count();
    assert_eq!(frees, 9, "a block for each of four downloads and uploads, and the array");
    for (code, first) in [(OUT_OF_MEMORY, 0), (UNKNOWN, 1)] {
        let swept = sweep(code, Sample::new(2, first).numbers(), || run(&devices[0]));
        assert!(swept.end > 60 && swept.told > 10, "{} of {} calls", swept.told, swept.end);
    }
}

/// `None` if the device was lost before or during the call.
fn expect_lost<T>(outcome: Result<T>) -> Option<T> {
    match outcome {
        Ok(value) => Some(value),
        Err(Error::DeviceLost { .. } | Error::Lost { .. }) => None,
        Err(other) => panic!("an unexpected kind of error: {other:?}"),
    }
}

fn column(array: &Matrix) -> Result<Array1<u32>> {
    array.slice(s![.., 7]).host().map(|host| host.to_owned())
}

/// The device dies at some call or work, which is noticed at the next if it allocates or frees a
/// block. The device has the newest contents of one array, and of the other
/// only what the host has too.
fn program(device: &Device) {
    let stream = device.stream();
    let [mut there, mut here] = [(); 2].map(|()| SmartArray::from(contents()));
    for turn in 0..3 {
        expect_lost(there.gpu_mut_on(&stream).map(drop));
        if let Some(seen) = expect_lost(column(&there)) {
            assert_eq!(seen, contents().column(7));
        }
        expect_lost(here.prefetch(&stream));
        here.slice_mut(s![.., 7]).host_mut().expect("the host has it").fill(turn);
    }
    expect_lost(here.prefetch(&stream));
    let mut expected = contents();
    expected.column_mut(7).fill(2);
    assert_eq!(*here.host().expect("the host has it"), expected);
    there.host_overwrite().expect("no contents are needed").fill(5);
    assert_eq!(column(&there).expect("the host wrote it"), Array1::from_elem(40, 5));
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
fn a_device_lost_at_any_point_of_packed_copies_loses_only_its_own_contents() {
    support::own_process!(PACKED);
    assert!(deaths(test_name!(dies_at_work), 1..12) > 8);
    assert!(deaths(test_name!(dies_at_a_call), 1..60) > 35);
}
