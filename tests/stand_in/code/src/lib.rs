//! What the stand-ins for NVRTC and hiprtc make of a source, and the stand-ins for CUDA's driver
//! and HIP run.
//!
//! * `library`: shared libraries with kernels for the host
//! * `object`: images of modules, as AMD's compiler writes them, with such a library

pub mod library;
pub mod object;
