//! Programs over the public API, on seeded devices whose calls fail where the input says so.
#![no_main]

use resident_programs::arrays::{Program, lab::Lab};

libfuzzer_sys::fuzz_target!(|program: Program| program.run(&Lab::SEEDED));
