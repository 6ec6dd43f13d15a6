//! Chains of rearrangements on arrays of both kinds and on fields of records, beside ndarray's.
#![no_main]

use resident_programs::views::Program;

libfuzzer_sys::fuzz_target!(|program: Program| program.run());
