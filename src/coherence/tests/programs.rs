//! The programs that fuzzing makes, without a fuzzer: inputs that once went wrong, and a few at
//! random.

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
