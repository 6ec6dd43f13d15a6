//! The programs that fuzzing makes, without a fuzzer: inputs that once went wrong, and a few at
//! random. Those over the coherence core are replayed beside it, in
//! `src/coherence/tests/programs.rs`.

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
