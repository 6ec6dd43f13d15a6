//! The cases of refused writes on the GPU backend, whose work may be several driver calls: each of
//! them fails.

use std::cell::Cell;

use resident::Device;

use super::face as driver;
use super::kernels;
use crate::refused_writes::{cases, run};

/// CUDA_ERROR_UNKNOWN, hipErrorUnknown.
const UNKNOWN: u32 = 999;

#[test]
fn an_error_of_a_write_refused_by_the_driver_says_what_is_written() {
    support::own_process!();
    let devices: [Device; 2] =
        kernels::open(driver::settings().devices(2), 2).try_into().expect("two");
    let (mut runs, mut told, mut partial) = (0, 0, 0);
    for case in &cases() {
        for nth in 1.. {
            let failed = Cell::new(None);
            let around = |is_before| {
                let mut calls = driver::take_calls();
                if is_before {
                    return driver::fail_any(nth, UNKNOWN);
                }
                driver::forget_faults();
                // `fail_any` leaves these out.
                calls.retain(|call| call.name != driver::CAPTURE_MODE);
                failed.set(calls.get(nth as usize - 1).map(|call| call.code));
            };
            let outcome = run(case, &devices, (false, false), &around, format!("call {nth} fails"));
            assert_eq!(driver::take_hazards(), Vec::<String>::new(), "{}, call {nth}", case.0);
            assert_eq!(driver::take_notes(), Vec::<String>::new(), "{}, call {nth}", case.0);
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
