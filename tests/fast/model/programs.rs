//! Random programs over the public API, compared with a reference (`tests/programs`): some in which
//! no call fails, with ledgers of residency and traffic, and some on devices with room for a few of
//! the arrays, in which calls may fail. A few programs run by default; `RESIDENT_MODEL_CASES` sets
//! the number for a long run:
//!
//! ```text
//! RESIDENT_MODEL_CASES=5000 cargo test --test model
//! ```

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use proptest::test_runner::{Config, TestRunner};
use resident_programs::arrays::lab::Lab;
use resident_programs::arrays::{Operation, Program};

/// The bytes of an operation. The first four choose its kind: most are operations on one part. A
/// byte is often 0, so that operations often use the first array and the first stream.
fn operation() -> impl Strategy<Value = [u8; Operation::BYTES_MAX]> {
    let kind = prop_oneof![3 => Just([0; 4]), 2 => any::<[u8; 4]>()];
    (kind, any::<[u8; Operation::BYTES_MAX]>()).prop_map(|(kind, mut bytes)| {
        bytes.iter_mut().filter(|byte| **byte < 40).for_each(|byte| *byte = 0);
        bytes[..4].copy_from_slice(&kind);
        bytes
    })
}

/// A program that is made of the bytes of its world, which end with those of its faults, and of its
/// operations.
fn programs(
    make: impl Fn(&[u8], &[[u8; Operation::BYTES_MAX]]) -> Program,
) -> impl Strategy<Value = Program> {
    (any::<[u8; 32]>(), vec(operation(), 1..100))
        .prop_map(move |(world, operations)| make(&world, &operations))
}

/// Runs this number of programs, unless `RESIDENT_MODEL_CASES` sets another number.
pub(crate) fn run(lab: &Lab, default: u32) {
    run_made(lab, default, Program::counted);
}

/// As [`run`], on full devices.
#[allow(dead_code, reason = "the models of GPUs have no code for all operations")]
pub(crate) fn run_full(lab: &Lab, default: u32, large: bool, is_faulty: bool) {
    run_made(lab, default, |world, operations| Program::full(world, operations, large, is_faulty));
}

/// As [`run`], of programs that are made so.
pub(crate) fn run_made(
    lab: &Lab,
    default: u32,
    make: impl Fn(&[u8], &[[u8; Operation::BYTES_MAX]]) -> Program,
) {
    let given = std::env::var("RESIDENT_MODEL_CASES").ok();
    let cases =
        given.map_or(default, |cases| cases.parse().expect("RESIDENT_MODEL_CASES is a number"));
    // A failing program is printed in full, so failures need not be saved in a file.
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&programs(make), |program| {
        program.run(lab);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}
