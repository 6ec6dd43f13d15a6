//! Runs the fuzzer's programs without a fuzzer: inputs that once failed, and a few random ones.
//! `crates/core/src/programs` replays the inputs of the core.

#[path = "../../../fuzz/operations/arrays/mod.rs"]
mod operations;

use operations::Program;
use resident_core::programs::replay;

#[test]
fn kept_programs_over_arrays_go_well() {
    replay::kept("array_ops", Program::run);
}

#[test]
fn random_programs_over_arrays_go_well() {
    replay::random(1_500, 600, Program::run);
}
