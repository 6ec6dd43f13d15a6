//! Runs the fuzzer's programs without a fuzzer: inputs that once failed, and a few random ones.
//! `crates/core/src/programs` replays the inputs of the core.

use resident_core::programs::replay;
use resident_programs::arrays::{Program, lab::Lab};

fn run(program: &Program) {
    program.run(&Lab::SEEDED);
}

#[test]
fn kept_programs_over_arrays_go_well() {
    replay::kept("array_ops", run);
}

#[test]
fn random_programs_over_arrays_go_well() {
    replay::random(1_500, 600, run);
}
