//! The stand-ins for the CUDA driver, for NVRTC and for NCCL, called through the real cudarc, and
//! those for HIP and hiprtc.
//!
//! * `driver`: what tests of the CUDA backend expect of a driver and of its compiler. Run on the
//!   stand-ins, and with `RESIDENT_REAL_DRIVER=1` on the libraries of this machine
//! * `instruments`: the stand-in's record of calls, injected failures, checks and settings, which
//!   no driver has
//! * `kernels`, `shared`: the kernels as PTX and as host functions; what all tests use
//! * `nccl`: the stand-in for NCCL
//! * `hip`: the stand-ins for HIP and hiprtc

#![cfg(target_os = "linux")]
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one SAFETY comment covers several driver calls"
)]

#[cfg(feature = "cuda")]
mod driver;
#[cfg(feature = "hip")]
mod hip;
#[cfg(feature = "cuda")]
mod instruments;
#[cfg(feature = "cuda")]
mod kernels;
#[cfg(feature = "nccl")]
mod nccl;
#[cfg(feature = "cuda")]
mod shared;
