//! Random programs on the CUDA backend over the stand-in driver, beside the reference of
//! `model.rs`. Fewer of them run by default; `RESIDENT_MODEL_CASES` sets the number.
#![cfg(all(target_os = "linux", feature = "cuda"))]

#[path = "model/contents.rs"]
mod contents;
#[path = "model/ends.rs"]
mod ends;
#[path = "model/kernels.rs"]
mod kernels;
#[path = "model/stand_in.rs"]
mod lab;
#[path = "model/ledger.rs"]
mod ledger;
#[path = "model/step.rs"]
mod step;
#[path = "model/system.rs"]
mod system;

use proptest::test_runner::Config;
use proptest_state_machine::prop_state_machine;
use system::Machine;

/// Programs of the test.
fn config() -> Config {
    let given = std::env::var("RESIDENT_MODEL_CASES").ok();
    let cases = given.map_or(60, |cases| cases.parse().expect("RESIDENT_MODEL_CASES is a number"));
    Config { cases, failure_persistence: None, ..Config::default() }
}

/// The devices are those of the process, whatever seed a program draws.
type OnDriver = Machine<false>;

prop_state_machine! {
    #![proptest_config(config())]

    #[test]
    fn programs_on_the_stand_in_driver_do_what_the_reference_says(sequential 1..100 => OnDriver);
}
