//! The self-test of a runtime that `RESIDENT_HIP_CHECK` asks for.

use resident::Device;
use resident_stand_in_hip::{self as driver, Settings};
use support::{assert_says, own_process};

use super::{open, refused};

const CHECK: (&str, &str) = ("RESIDENT_HIP_CHECK", "1");

const BROKEN: &str = "HIP 6.3 breaks a promise";

/// Opens the first device twice, and returns the error: the runtime is tested once in a process.
fn refusal(settings: Settings) -> String {
    resident_stand_in_hip::load(settings).expect("the stand-in for HIP loads");
    resident_stand_in_hiprtc::load().expect("the stand-in for hiprtc loads");
    let opened = || refused(Device::hip(0));
    let (first, count) = (opened(), launches());
    assert_eq!((opened(), launches()), (first.clone(), count), "the runtime is tested again");
    first
}

fn launches() -> usize {
    driver::calls().iter().filter(|call| call.name == "hipModuleLaunchKernel").count()
}

#[test]
fn a_runtime_that_keeps_its_promises_is_used() {
    own_process!([CHECK]);
    let device = open(Settings::new().devices(2));
    assert!(launches() > 1, "nothing was tested");
    assert_eq!((device.memory().in_use, driver::memory_in_use(0)), (0, 0));
    assert_eq!((driver::take_hazards(), driver::take_notes()), (vec![], vec![]));
    driver::take_calls();
    Device::hip(1).expect("it opens");
    assert_eq!(launches(), 0, "the runtime is tested once");
}

#[test]
fn a_runtime_that_differs_where_it_may_is_used() {
    own_process!([CHECK]);
    open(Settings::new().sparse().without_pools().seed(3));
    assert!(launches() > 1, "nothing was tested");
}

#[test]
fn a_runtime_whose_events_hold_nothing_back_is_refused() {
    own_process!([CHECK]);
    let text = refusal(Settings::new().ignores_waits());
    assert_says(&text, &[BROKEN, "hipStreamWaitEvent", "HIP_CHECK"]);
}

#[test]
fn a_runtime_that_copies_registered_memory_back_is_refused() {
    own_process!([CHECK]);
    let text = refusal(Settings::new().restores_registered_memory());
    assert_says(&text, &[BROKEN, "hipHostRegister", "HIP_CHECK"]);
}

#[test]
fn a_runtime_that_never_says_that_work_is_over_is_refused() {
    own_process!([CHECK]);
    let text = refusal(Settings::new().never_says_idle());
    assert_says(&text, &[BROKEN, "hipStreamQuery", "HIP_CHECK"]);
}

#[test]
fn without_a_compiler_the_test_says_what_it_needs() {
    own_process!([CHECK, ("RESIDENT_HIPRTC", "/nonexistent/libhiprtc.so")]);
    resident_stand_in_hip::load(Settings::new()).expect("the stand-in for HIP loads");
    let text = refused(Device::hip(0));
    assert_says(&text, &["RESIDENT_HIP_CHECK asks for cannot be made", "RESIDENT_HIPRTC"]);
}

#[test]
fn nothing_is_tested_unless_it_is_asked_for() {
    own_process!();
    open(Settings::new().ignores_waits());
    assert_eq!(launches(), 0);
}

#[test]
fn another_word_is_an_error() {
    own_process!([("RESIDENT_HIP_CHECK", "perhaps")]);
    resident_stand_in_hip::load(Settings::new()).expect("the stand-in for HIP loads");
    let text = refused(Device::hip(0));
    assert_says(&text, &["RESIDENT_HIP_CHECK=perhaps", "unset it"]);
}
