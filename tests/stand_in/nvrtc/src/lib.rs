//! NVRTC without a compiler, for tests: its C functions, based on a scan of the source.
//!
//! Like the stand-in driver it is built as two libraries: a shared object, which exports the
//! `nvrtc*` functions under NVRTC's SONAME, and a Rust library, which tests link to [`load`] it.
//!
//! It reads `#include "..."` (passed headers and include paths), `#line`, `#define NAME text` and
//! `-D`, and finds each `__global__ void name(parameters)`. It writes PTX with the version, the
//! target, and an `.entry` with the size and alignment of each parameter. The cubin is the same
//! text. Bodies are not read. Names are mangled as in C++, without its abbreviations, unless they
//! are `extern "C"`. A template gets an entry for each name expression that instantiates it. Known
//! types are scalars, pointers, `resident::ViewN<..>`, and the source's structs, typedefs and
//! aliases of these. Conditions (`#if`) are ignored: all branches are read.
//!
//! As with NVRTC, there is no cubin for a virtual architecture, and no loadable code with `-dlto`
//! or `--optix-ir`.
//!
//! It rejects a line `#error ...`, a line `not C`, a missing include, a parameter of an unknown
//! type, and an unknown option or architecture.

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
