//! A run-time compiler of CUDA C that compiles nothing, for tests: NVRTC's C functions over a scan
//! of the source.
//!
//! Like the stand-in driver it is built twice at once: as a shared object, which exports the
//! `nvrtc*` functions under NVRTC's SONAME, and as a Rust library, which tests link to [`load`] it.
//!
//! What it does: it reads `#include "..."` (headers passed along, and include paths), `#line`,
//! `#define NAME text` and `-D`, finds each `__global__ void name(parameters)`, and writes a text
//! as PTX has it: version, target, and an `.entry` with the size and alignment of each parameter.
//! Its cubin is the same text. Bodies are not read. Names are mangled as C++ compilers do, without
//! their abbreviations, unless they are `extern "C"`; templates are entries for each name
//! expression that asks for one. It knows scalars, pointers, `resident::ViewN<..>`, and structs,
//! typedefs and aliases of the source made of those. Conditions (`#if`) are not looked at: all
//! branches count.
//!
//! Of a virtual architecture there is no cubin; with `-dlto` and `--optix-ir` there is nothing that
//! a driver loads, as with NVRTC.
//!
//! What it refuses: a line `#error ...`, a line `not C`, an include that is not found, a parameter
//! of an unknown type, an unknown option or architecture.

#![deny(missing_docs)]

mod client;
#[cfg(target_os = "linux")]
mod compiler;
#[cfg(target_os = "linux")]
mod functions;
#[path = "../../driver/src/library.rs"]
mod library;
#[cfg(target_os = "linux")]
mod names;
#[cfg(target_os = "linux")]
mod preprocess;
#[cfg(target_os = "linux")]
mod source;
#[cfg(target_os = "linux")]
mod types;

pub use client::{compilations, file, load, set_version};
