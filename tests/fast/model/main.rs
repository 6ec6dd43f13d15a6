//! Random programs on embedded devices.

mod programs;

use programs::run;
use resident_programs::arrays::lab::Lab;

#[test]
fn programs_on_seeded_devices_do_what_the_reference_says() {
    run(&Lab::SEEDED, 100);
}

#[test]
fn programs_on_devices_with_workers_do_what_the_reference_says() {
    run(&Lab::WORKERS, 100);
}
