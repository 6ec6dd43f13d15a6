//! Calls that work with borrowed or freed memory, while user code panics, on the GPU backend.

use super::{assert_no_complaint, driver, kernels};
use crate::unwinding::{self, CALLS, Place, TASKS};
use support::prelude::*;

fn sweep(settings: driver::Settings, lists: &'static [&'static [Place]]) {
    let devices: [Device; 2] = kernels::open(settings.devices(2), 2).try_into().expect("two");
    without_deadlock(move || {
        let check = |devices: &[Device; 2], what: &str| {
            assert_no_complaint(what);
            for device in devices {
                assert_eq!(device.memory().in_use, 0, "{what}: bytes on {device}");
            }
        };
        lists.iter().for_each(|places| unwinding::sweep(places, |_| devices.clone(), check));
    });
}

#[test]
fn user_code_that_panics_leaves_no_work_on_returned_memory() {
    support::own_process!();
    sweep(driver::settings(), &[CALLS, TASKS]);
}

#[test]
fn user_code_that_panics_leaves_no_work_on_returned_memory_in_the_order_of_a_seed() {
    support::own_process!();
    sweep(driver::settings().page_bytes(16).seed(5), &[CALLS]);
}
