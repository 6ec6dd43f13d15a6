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
//! * `options`, `image`, `log`: what is NVRTC's own: its options, PTX and logs
//! * `functions`: its C functions, over programs of the crate `resident_stand_in_compiler`
//!
//! All `__global__` functions are compiled, but for templates: of these those that name expressions
//! name. Headers are files. As with NVRTC, there is no cubin for a virtual architecture, and no
//! loadable code with `-dlto` or `--optix-ir`; unknown options and architectures are rejected.

#![deny(missing_docs)]

#[cfg(target_os = "linux")]
mod functions;
#[cfg(target_os = "linux")]
mod image;
#[cfg(target_os = "linux")]
mod log;
#[cfg(target_os = "linux")]
mod options;

use resident_stand_in_compiler::client::Client;

static CLIENT: Client = Client::new("libresident_stand_in_nvrtc.so", "RESIDENT_NVRTC");

resident_stand_in_compiler::compiler_client_functions! {
    CLIENT, "resident_stand_in_nvrtc_compilations"
}

/// Sets the version that the compiler reports, 13.0 at first. It determines the PTX version.
///
/// # Panics
///
/// If the compiler is not loaded.
pub fn set_version(major: i32, minor: i32) {
    let set: extern "C" fn(i32, i32) = CLIENT.function("resident_stand_in_nvrtc_set_version");
    set(major, minor);
}
