//! hiprtc without a GPU, for tests: its C functions, and the compiler of the library for the host.
//!
//! Like the [stand-in for NVRTC](../resident_stand_in_nvrtc) it is a shared object, which exports
//! the `hiprtc*` functions under hiprtc's SONAME, and a Rust library, which tests link to [`load`]
//! it.
//!
//! A C++ compiler makes a shared library of the source. The code is a code object for the
//! architecture that `--offload-arch` names, with the kernels' names and parameters described as by
//! AMD's compiler, and with the library in place of machine code. The stand-in for HIP runs it.
//!
//! * `options`, `image`, `log`: what is hiprtc's own: options and logs as with clang, and code
//!   objects
//! * `functions`: its C functions, over programs of the crate `resident_stand_in_compiler`
//!
//! The source is compiled as CUDA C: no macro of HIP is defined, and a warp has 32 threads. Headers
//! that a program brings along are ignored if the compiler for the host has its own, as it has for
//! the header of half-precision numbers; other headers are rejected. Which kernels are compiled
//! is as with the stand-in for NVRTC.

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

static CLIENT: Client = Client::new("libresident_stand_in_hiprtc.so", "RESIDENT_HIPRTC");

resident_stand_in_compiler::compiler_client_functions! {
    CLIENT, "resident_stand_in_hiprtc_compilations"
}
