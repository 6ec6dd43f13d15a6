//! NVRTC without a GPU, for tests: its C functions, and the compiler of the library for the host.
//!
//! Like the stand-in driver it is built as two libraries: a shared object, which exports the
//! `nvrtc*` functions under NVRTC's SONAME, and a Rust library, which tests link to [`load`] it.
//!
//! A C++ compiler makes a shared library of the source. The PTX has the version, the target, and an
//! `.entry` with the size and alignment of each parameter; the bodies are empty, and the library is
//! in a comment, from which the stand-in driver takes it. The cubin is the same text. The log is
//! the C++ compiler's, with places as NVRTC writes them.
//!
//! * `kernels`, `kernels.hpp`: the source, so that the library lists its kernels
//! * `options`, `compiler`, `image`, `log`: from options and source to the library, the PTX and the
//!   log
//!
//! All `__global__` functions are compiled, but for templates: of these those that name expressions
//! name. Headers are files. As with NVRTC, there is no cubin for a virtual architecture, and no
//! loadable code with `-dlto` or `--optix-ir`; unknown options and architectures are rejected.
//! Libraries are kept in `stand_in_code` beside the program, for later runs. Without a C++
//! compiler, each compilation fails, and the log says so.

#![deny(missing_docs)]

mod client;
#[cfg(target_os = "linux")]
#[path = "../../driver/src/code_library.rs"]
mod code_library;
#[cfg(target_os = "linux")]
mod compiler;
#[cfg(target_os = "linux")]
mod functions;
#[cfg(target_os = "linux")]
mod image;
#[cfg(target_os = "linux")]
mod kernels;
#[path = "../../driver/src/library.rs"]
mod library;
#[cfg(target_os = "linux")]
mod log;
#[cfg(target_os = "linux")]
mod options;
#[cfg(target_os = "linux")]
mod programs;

/// The shared object, which cargo builds beside the test.
const FILE: &str = "libresident_stand_in_nvrtc.so";
/// The function by which the client gets the number of compilations.
const COMPILATIONS: &str = "resident_stand_in_nvrtc_compilations";
/// The variable from which `resident` takes the path of NVRTC.
const VARIABLE: &str = "RESIDENT_NVRTC";

pub use client::{compilations, compiles, file, load};

/// Sets the version that the compiler reports, 13.0 at first. It determines the PTX version.
///
/// # Panics
///
/// If the compiler is not loaded.
pub fn set_version(major: i32, minor: i32) {
    let set: extern "C" fn(i32, i32) = client::function_of("resident_stand_in_nvrtc_set_version");
    set(major, minor);
}
