//! Random programs on embedded devices.

mod programs;

use programs::{run, run_full, run_made};
use resident_programs::arrays::Program;
use resident_programs::arrays::lab::Lab;

#[test]
fn programs_on_seeded_devices_do_what_the_reference_says() {
    run(&Lab::SEEDED, 100);
}

#[test]
fn programs_on_devices_with_workers_do_what_the_reference_says() {
    run(&Lab::WORKERS, 100);
}

#[test]
fn programs_on_full_seeded_devices_do_what_the_reference_says() {
    run_full(&Lab::SEEDED, 100, false, false);
}

#[test]
fn programs_with_failures_on_full_devices_lose_only_what_the_reference_says() {
    run_full(&Lab::SEEDED, 100, false, true);
}

#[test]
fn programs_on_full_devices_with_workers_do_what_the_reference_says() {
    run_full(&Lab::WORKERS, 50, false, false);
}

#[test]
fn programs_over_large_elements_on_full_devices_do_what_the_reference_says() {
    run_full(&Lab::SEEDED, 30, true, false);
    run_full(&Lab::WORKERS, 10, true, false);
}

/// On devices that reach the host's memory; where it is, is not compared.
#[test]
fn programs_on_one_memory_do_what_the_reference_says() {
    support::own_process!([("RESIDENT_COHERENT", "1")]);
    run_made(&Lab::SEEDED, 100, Program::with_faults);
    run_made(&Lab::WORKERS, 50, Program::without_faults);
}
