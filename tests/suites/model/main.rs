//! Random programs over the public API, compared with a reference.
//!
//! The reference (`model/contents.rs`) stores each element's value; for each array, a ledger
//! (`model/ledger.rs`) stores where each element is valid, and the traffic that its accesses must
//! have caused. After each step values, residency, traffic, hazards and the kind of error are
//! compared (`model/system.rs`). A few programs run by default; `RESIDENT_MODEL_CASES` sets the
//! number for a long run:
//!
//! ```text
//! RESIDENT_MODEL_CASES=5000 cargo test --test model
//! ```

mod arrays;
mod contents;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod cuda;
mod embedded;
mod ends;
#[cfg(all(target_os = "linux", feature = "hip"))]
mod hip;
mod kernels;
mod lab;
mod ledger;
mod step;
mod system;

use proptest::test_runner::Config;
use proptest_state_machine::prop_state_machine;
use system::Machine;

/// The number of programs of one test: `default`, unless `RESIDENT_MODEL_CASES` sets another
/// number.
fn config(default: u32) -> Config {
    let given = std::env::var("RESIDENT_MODEL_CASES").ok();
    let cases =
        given.map_or(default, |cases| cases.parse().expect("RESIDENT_MODEL_CASES is a number"));
    // A failing program is printed in full, so failures need not be saved in a file.
    Config { cases, failure_persistence: None, ..Config::default() }
}

type Seeded = Machine<embedded::Seeded>;
type Workers = Machine<embedded::Workers>;

prop_state_machine! {
    #![proptest_config(config(100))]

    #[test]
    fn programs_on_seeded_devices_do_what_the_reference_says(sequential 1..100 => Seeded);

    #[test]
    fn programs_on_devices_with_workers_do_what_the_reference_says(sequential 1..100 => Workers);
}
