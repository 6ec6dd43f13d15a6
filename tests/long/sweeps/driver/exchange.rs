//! The program that exchanges arrays by DLPack, on the GPU backend. In each run another driver call
//! fails.

use std::sync::Arc;

use super::face as driver;
use super::kernels;
use crate::exchange::{memory, run};

/// CUDA_ERROR_OUT_OF_MEMORY and CUDA_ERROR_UNKNOWN, and the same of hipError_t.
const OUT_OF_MEMORY: u32 = 2;
const UNKNOWN: u32 = 999;

#[test]
fn each_refused_driver_call_of_an_exchange_can_be_repeated() {
    support::own_process!();
    let device = kernels::open(driver::settings(), 1).remove(0);
    for code in [OUT_OF_MEMORY, UNKNOWN] {
        assert_eq!(run(&device, &memory(&device), false), 0, "without faults, no call is refused");
        let mut told_in_all = 0;
        for nth in 1.. {
            let memory = memory(&device);
            driver::take_calls();
            driver::fail_any(nth, code);
            let told = run(&device, &memory, false);
            driver::forget_faults();
            let mut calls = driver::take_calls();
            // `fail_any` leaves these out.
            calls.retain(|call| call.name != driver::CAPTURE_MODE);
            let Some(failed) = calls.get(nth as usize - 1) else {
                assert!(told_in_all > 20, "{told_in_all} errors in {nth} runs");
                break;
            };
            told_in_all += told;
            let what = format!("call {nth}, {failed}");
            assert!(told <= 1, "{what}: one fault, {told} errors");
            assert_eq!(Arc::strong_count(&memory), 1, "{what}");
            drop(memory);
            assert_eq!(driver::take_hazards(), Vec::<String>::new(), "{what}");
            assert_eq!(driver::take_notes(), Vec::<String>::new(), "{what}");
            assert_eq!(driver::memory_in_use(0), 0, "{what}");
        }
    }
}
