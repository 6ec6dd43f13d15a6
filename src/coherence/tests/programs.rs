//! Runs the fuzzer's programs without a fuzzer: inputs that once failed, and a few random ones.

#[path = "../../../fuzz/operations/coherence/mod.rs"]
mod operations;
#[path = "../../../fuzz/operations/replay.rs"]
mod replay;

use operations::Program;

#[test]
fn kept_programs_over_the_core_go_well() {
    replay::kept("coherence_ops", Program::run);
}

#[test]
fn random_programs_over_the_core_go_well() {
    replay::random(1_500, 400, Program::run);
}
