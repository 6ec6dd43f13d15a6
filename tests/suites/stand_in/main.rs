//! The stand-ins for the CUDA driver and for NVRTC, called through the real cudarc.
//!
//! * `driver`: what tests of the CUDA backend expect of a driver and of its compiler. Run on the
//!   stand-ins, and with `RESIDENT_REAL_DRIVER=1` on the libraries of this machine
//! * `instruments`: the stand-in's record of calls, injected failures, checks and settings, which
//!   no driver has
//! * `kernels`, `shared`: the kernels as PTX and as host functions; what all tests use

#![cfg(all(target_os = "linux", feature = "cuda"))]
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one SAFETY comment covers several driver calls"
)]

mod driver;
mod instruments;
mod kernels;
mod shared;
