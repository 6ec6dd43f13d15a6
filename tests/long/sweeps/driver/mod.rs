//! The sweeps on the GPU backend, over the stand-in for a driver, `super::face`. Each of the two
//! stand-ins has its own copy.

#[cfg(feature = "dlpack")]
mod exchange;
mod faults;
mod guards_in_place;
mod in_place;
mod interleavings;
mod refused_writes;
mod short_rows;
mod unwinding;

use support::prelude::*;

use super::face as driver;
use super::kernels;

/// CUDA_ERROR_OUT_OF_MEMORY, and the same of hipError_t.
const OUT_OF_MEMORY: u32 = 2;
/// CUDA_ERROR_UNKNOWN, hipErrorUnknown.
const UNKNOWN: u32 = 999;
/// CUDA_ERROR_ILLEGAL_ADDRESS, hipErrorIllegalAddress.
const ILLEGAL_ADDRESS: u32 = 700;

fn two_devices() -> [Device; 2] {
    kernels::open(driver::settings().devices(2).page_bytes(16), 2).try_into().expect("two")
}

#[track_caller]
fn assert_no_complaint(what: &str) {
    assert_eq!(driver::take_hazards(), Vec::<String>::new(), "{what}");
    assert_eq!(driver::take_notes(), Vec::<String>::new(), "{what}");
}

#[track_caller]
fn assert_nothing_left(what: &str) {
    assert_no_complaint(what);
    for device in 0..2 {
        assert_eq!(driver::memory_in_use(device), 0, "{what}: bytes on device {device}");
    }
}

/// Takes the calls, without those that `fail_any` leaves out.
fn take_calls() -> Vec<driver::Call> {
    let mut calls = driver::take_calls();
    calls.retain(|call| call.name != driver::CAPTURE_MODE);
    calls
}

/// What a sweep met.
struct Swept {
    /// The number of the first call that the program did not make.
    end: u64,
    runs: usize,
    /// The calls that returned an error, in all runs.
    told: usize,
}

/// Runs a program without a fault, and once for each driver call with one of these numbers, which
/// fails. The program returns the number of errors.
fn sweep(code: u32, numbers: impl Iterator<Item = u64>, run: impl Fn() -> usize) -> Swept {
    assert_eq!(run(), 0, "without faults, no call is refused");
    assert_nothing_left("without a fault");
    let (mut runs, mut told) = (0, 0);
    for nth in numbers {
        driver::take_calls();
        driver::fail_any(nth, code);
        let errors = run();
        driver::forget_faults();
        let calls = take_calls();
        let Some(failed) = calls.get(nth as usize - 1) else {
            return Swept { end: nth, runs, told };
        };
        (told, runs) = (told + errors, runs + 1);
        let what = format!("call {nth}, {failed}");
        assert_eq!(failed.code, code, "{what}");
        assert!(errors <= 1, "{what}: one fault, {errors} errors");
        assert_nothing_left(&what);
    }
    unreachable!("the numbers do not end")
}

/// This variable gives a child process the number of the operation or call at which the device
/// dies. A device that died stays dead for its whole process, so each death needs a process.
const NTH: &str = "RESIDENT_TEST_NTH";

fn nth() -> Option<u64> {
    std::env::var(NTH).ok()?.parse().ok()
}

/// Runs a test that dies in child processes, each with another number; returns in how many of them
/// the device was lost.
fn deaths(test: &str, numbers: impl Iterator<Item = u64>) -> usize {
    let died = |nth: &u64| {
        let output = own_process::run(test, &[(NTH, &nth.to_string())]);
        assert_success(&output, &format!("{test}, number {nth}"));
        String::from_utf8_lossy(&output.stdout).contains("lost: true")
    };
    numbers.filter(died).count()
}
