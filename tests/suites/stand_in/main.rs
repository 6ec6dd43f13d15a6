//! The stand-ins for the CUDA driver and for NVRTC, called through the real cudarc: the behaviour
//! that tests of the CUDA backend rely on.
//!
//! One process, thirteen devices, a thread for each stream. A test that loses a device uses a
//! device that no other test uses.

#![cfg(all(target_os = "linux", feature = "cuda"))]
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one SAFETY comment covers several driver calls"
)]

mod boxes;
mod compiler;
mod holes;
mod lost;
mod memory;
mod no_device;
mod programs;
mod record;
mod seeded;
mod shared;
mod small;
