//! hiprtc without a GPU, for tests: its C functions, and the compiler of the library for the host.
//!
//! It is made of files of the [stand-in for NVRTC](../resident_stand_in_nvrtc), and like it a
//! shared object, which exports the `hiprtc*` functions under hiprtc's SONAME, and a Rust library,
//! which tests link to [`load`] it.
//!
//! A C++ compiler makes a shared library of the source. The code is a code object for the
//! architecture that `--offload-arch` names, with the kernels' names and parameters described as by
//! AMD's compiler, and with the library in place of machine code. The stand-in for HIP runs it.
//!
//! * `programs`, `compiler`, `kernels`, `client`: files of the stand-in for NVRTC
//! * `options`, `image`, `log`: what differs: options and logs as with clang, and code objects
//!
//! The source is compiled as CUDA C: no macro of HIP is defined, and a warp has 32 threads. Headers
//! that a program brings along are ignored if the compiler for the host has its own, as it has for
//! the header of half-precision numbers; other headers are rejected. Which kernels are compiled,
//! and where libraries are kept, is as with the stand-in for NVRTC.

#![deny(missing_docs)]

#[path = "../../nvrtc/src/client.rs"]
mod client;
#[cfg(target_os = "linux")]
#[allow(dead_code, reason = "the driver uses more of it")]
#[path = "../../driver/src/code_library.rs"]
mod code_library;
#[cfg(target_os = "linux")]
#[allow(unreachable_pub, reason = "the stand-in for HIP exports it")]
#[path = "../../hip/src/code_object.rs"]
mod code_object;
#[cfg(target_os = "linux")]
#[allow(dead_code, reason = "the stand-in for NVRTC uses more of it")]
#[path = "../../nvrtc/src/compiler.rs"]
mod compiler;
#[cfg(target_os = "linux")]
mod functions;
#[cfg(target_os = "linux")]
mod image;
#[cfg(target_os = "linux")]
#[path = "../../nvrtc/src/kernels.rs"]
mod kernels;
#[allow(dead_code, reason = "the drivers use more of it")]
#[path = "../../driver/src/library.rs"]
mod library;
#[cfg(target_os = "linux")]
mod log;
#[cfg(target_os = "linux")]
mod options;
#[cfg(target_os = "linux")]
#[allow(dead_code, reason = "the stand-in for NVRTC uses more of it")]
#[path = "../../nvrtc/src/programs.rs"]
mod programs;

/// The shared object, which cargo builds beside the test.
const FILE: &str = "libresident_stand_in_hiprtc.so";
/// The function by which the client gets the number of compilations.
const COMPILATIONS: &str = "resident_stand_in_hiprtc_compilations";
/// The variable from which `resident` takes the path of hiprtc.
const VARIABLE: &str = "RESIDENT_HIPRTC";

pub use client::{compilations, compiles, file, load};
