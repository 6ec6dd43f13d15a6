//! Programs over the pure core, compared with models that contain only cells and bytes.
#![no_main]

use resident_programs::coherence::Program;

libfuzzer_sys::fuzz_target!(|program: Program| program.run());
