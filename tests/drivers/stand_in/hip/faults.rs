//! The record of calls, and failures that a test requests.

use resident_stand_in_hip::{
    Settings, fail_any, fail_late, fail_nth, forget_faults, take_calls, take_notes,
};
use support::in_own_process;

use super::api::{at, get, load, ok, with_stream};

const OUT_OF_MEMORY: u32 = 2;
const ILLEGAL_ADDRESS: u32 = 700;
const NOT_SUPPORTED: u32 = 801;

#[test]
fn calls_are_recorded_under_hips_names() {
    let (hip, stream) = in_own_process!(with_stream(Settings::new()));
    take_calls();
    let memory = hip.upload(&[1_u32, 2], stream);
    ok((hip.hipFree)(memory));
    let calls = take_calls();
    let names: Vec<String> = calls.iter().map(ToString::to_string).collect();
    let expected = [
        "hipMalloc, 8 bytes",
        "hipMemcpyHtoDAsync, 8 bytes",
        "hipStreamSynchronize",
        "hipFree, 8 bytes",
    ];
    assert_eq!(names, expected);
    assert_eq!(calls[1].stream, stream);
}

#[test]
fn the_nth_call_fails_once() {
    let hip = in_own_process!(load(Settings::new()));
    fail_nth("hipMalloc", 2, OUT_OF_MEMORY);
    let codes = [(); 3].map(|()| (hip.hipMalloc)(&mut 0, 8));
    assert_eq!(codes, [0, OUT_OF_MEMORY, 0]);
    fail_any(1, OUT_OF_MEMORY);
    ok((hip.hipThreadExchangeStreamCaptureMode)(&mut 0));
    ok((hip.hipGetLastError)());
    assert_eq!((hip.hipGetDevice)(&mut 0), OUT_OF_MEMORY);
    fail_any(1, OUT_OF_MEMORY);
    forget_faults();
    hip.memory(8);
}

#[test]
fn work_that_fails_late_loses_the_device() {
    let (hip, stream) = in_own_process!(with_stream(Settings::new().devices(2)));
    let memory = hip.upload(&[1_u32], stream);
    fail_late(1, ILLEGAL_ADDRESS);
    ok((hip.hipMemsetD32Async)(memory, 2, 1, stream));
    assert_eq!((hip.hipStreamSynchronize)(stream), ILLEGAL_ADDRESS);
    assert_eq!((hip.hipMalloc)(&mut 0, 8), ILLEGAL_ADDRESS);
    ok((hip.hipStreamDestroy)(stream));
    ok((hip.hipSetDevice)(1));
    hip.memory(8);
}

#[test]
fn freed_memory_makes_work_fail() {
    let (hip, stream) = in_own_process!(with_stream(Settings::new()));
    let memory = hip.upload(&[1_u32], stream);
    // SAFETY: the stand-in looks addresses up.
    unsafe {
        ok((hip.hipFree)(memory));
        ok((hip.hipMemcpyHtoDAsync)(memory, at(&[2_u32]), 4, stream));
        assert_eq!((hip.hipStreamSynchronize)(stream), ILLEGAL_ADDRESS);
    }
}

#[test]
fn seeds_run_work_only_while_something_waits() {
    let (hip, stream) = in_own_process!(with_stream(Settings::new().seed(3)));
    let memory = hip.upload(&[1_u32], stream);
    ok((hip.hipMemsetD32Async)(memory, 9, 1, stream));
    let event = get(|event| (hip.hipEventCreateWithFlags)(event, 2));
    ok((hip.hipEventRecord)(event, stream));
    ok((hip.hipEventSynchronize)(event));
    assert_eq!(hip.download::<u32>(memory, 1, stream), [9]);
}

#[test]
fn what_is_not_supported_is_noted() {
    in_own_process!(load(Settings::new()));
    let clone: unsafe extern "C" fn() -> u32 = super::api::function("hipGraphClone");
    // SAFETY: the stand-in's function takes no arguments.
    assert_eq!(unsafe { clone() }, NOT_SUPPORTED);
    assert_eq!(take_notes(), ["hipGraphClone is not supported by the stand-in driver"]);
}
