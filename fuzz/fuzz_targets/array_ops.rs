//! Programs over the public API, on seeded devices whose calls fail where the input says so.
#![no_main]

#[path = "../operations/arrays/mod.rs"]
mod operations;

libfuzzer_sys::fuzz_target!(|program: operations::Program| program.run());
