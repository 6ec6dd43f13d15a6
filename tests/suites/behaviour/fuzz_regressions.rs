//! Runs the fuzzer's programs without a fuzzer: inputs that once failed, and a few random ones.
//! `src/coherence/tests/programs.rs` replays the inputs of the coherence core.

#[path = "../../../fuzz/operations/arrays/mod.rs"]
mod operations;
#[path = "../../../fuzz/operations/replay.rs"]
mod replay;

use operations::Program;

#[test]
fn kept_programs_over_arrays_go_well() {
    replay::kept("array_ops", Program::run);
}

#[test]
fn random_programs_over_arrays_go_well() {
    replay::random(1_500, 600, Program::run);
}
