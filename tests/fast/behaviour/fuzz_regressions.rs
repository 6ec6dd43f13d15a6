//! Runs the fuzzer's programs without a fuzzer: inputs that once failed, and a few random ones.

use resident_programs::arrays::{Program, lab::Lab};
use resident_programs::{coherence, replay};
use support::cases::sampled;

fn run(program: &Program) {
    program.run(&Lab::SEEDED);
}

#[test]
fn kept_programs_over_the_core_go_well() {
    replay::kept("coherence_ops", coherence::Program::run);
}

#[test]
fn random_programs_over_the_core_go_well() {
    replay::random(1_500, 400, coherence::Program::run);
}

#[test]
fn kept_programs_over_arrays_go_well() {
    replay::kept("array_ops", run);
}

#[test]
fn random_programs_over_arrays_go_well() {
    replay::random(sampled(200, 1_500), 600, run);
}

#[cfg(feature = "dlpack")]
#[test]
fn kept_tensors_are_taken_over_or_refused() {
    replay::kept("tensor_ops", resident_programs::tensors::Program::run);
}

#[cfg(feature = "dlpack")]
#[test]
fn random_tensors_are_taken_over_or_refused() {
    replay::random(sampled(1_000, 5_000), 300, resident_programs::tensors::Program::run);
}
