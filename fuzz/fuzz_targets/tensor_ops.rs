//! DLPack tensors, most of them malformed, which a device takes over or refuses.
#![no_main]

use resident_programs::tensors::Program;

libfuzzer_sys::fuzz_target!(|program: Program| program.run());
