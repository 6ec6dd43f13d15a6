//! The cases of refused writes on the GPU backend, whose work may be several driver calls: each of
//! them fails.

use std::cell::Cell;

use super::{UNKNOWN, assert_no_complaint, driver, take_calls, two_devices};
use crate::refused_writes::{cases, run};

#[test]
fn an_error_of_a_write_refused_by_the_driver_says_what_is_written() {
    support::own_process!();
    let devices = two_devices();
    let (mut runs, mut told, mut partial) = (0, 0, 0);
    for case in &cases() {
        for nth in 1.. {
            let failed = Cell::new(None);
            let around = |is_before| {
                let calls = take_calls();
                if is_before {
                    return driver::fail_any(nth, UNKNOWN);
                }
                driver::forget_faults();
                failed.set(calls.get(nth as usize - 1).map(|call| call.code));
            };
            let outcome = run(case, &devices, (false, false), &around, format!("call {nth} fails"));
            assert_no_complaint(&format!("{}, call {nth}", case.0));
            if failed.get().is_none() {
                assert_eq!(outcome.told, 0, "{}: no call fails", case.0);
                break;
            }
            assert_eq!(failed.get(), Some(UNKNOWN), "{}, call {nth}", case.0);
            runs += 1;
            told += outcome.told;
            partial += outcome.partial;
        }
    }
    assert!(told > runs / 2 && partial > 100, "{told} errors, {partial} partial, {runs} runs");
}
