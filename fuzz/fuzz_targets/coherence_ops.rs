//! Programs over the coherence core, whose sources are included here: it is pure, and uses nothing
//! else of the library.
#![no_main]

#[allow(dead_code, reason = "programs use a part of it")]
#[path = "../../src/access.rs"]
mod access;
#[allow(dead_code, unused_imports, reason = "programs use a part of it")]
#[path = "../../src/coherence/mod.rs"]
mod coherence;
#[path = "../operations/coherence/mod.rs"]
mod operations;

libfuzzer_sys::fuzz_target!(|program: operations::Program| program.run());
