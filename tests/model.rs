//! Random programs over the public API beside a reference.
//!
//! The reference (`model/contents.rs`) remembers what each element's value is; a ledger beside each
//! array (`model/ledger.rs`) remembers where each element is valid and what its accesses must have
//! moved. After each step values, residency, traffic, hazards and the kind of error are compared
//! (`model/system.rs`). A few programs run by default; `RESIDENT_MODEL_CASES` sets the number for a
//! long run:
//!
//! ```text
//! RESIDENT_MODEL_CASES=5000 cargo test --test model
//! ```

#[path = "model/contents.rs"]
mod contents;
#[path = "model/ends.rs"]
mod ends;
#[path = "model/kernels.rs"]
mod kernels;
#[path = "model/embedded.rs"]
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

/// Programs of one test.
fn config() -> Config {
    let given = std::env::var("RESIDENT_MODEL_CASES").ok();
    let cases = given.map_or(100, |cases| cases.parse().expect("RESIDENT_MODEL_CASES is a number"));
    // A failing program is printed whole; there is no file of them to keep.
    Config { cases, failure_persistence: None, ..Config::default() }
}

prop_state_machine! {
    #![proptest_config(config())]

    #[test]
    fn programs_on_seeded_devices_do_what_the_reference_says(sequential 1..100 => Seeded);

    #[test]
    fn programs_on_devices_with_workers_do_what_the_reference_says(sequential 1..100 => Workers);
}

type Seeded = Machine<true>;
type Workers = Machine<false>;
