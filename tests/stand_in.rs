//! The stand-ins for the CUDA driver and for NVRTC, by the real cudarc: what a test may rely on
//! when our backend runs against them.
//!
//! One process, thirteen devices, a thread for each stream. Tests that lose a device have one of
//! their own.

#![cfg(all(target_os = "linux", feature = "cuda"))]
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "calls of the driver in a row are safe for one reason"
)]

#[path = "stand_in_parts/boxes.rs"]
mod boxes;
#[path = "stand_in_parts/compiler.rs"]
mod compiler;
#[path = "stand_in_parts/holes.rs"]
mod holes;
#[path = "stand_in_parts/lost.rs"]
mod lost;
#[path = "stand_in_parts/memory.rs"]
mod memory;
#[path = "stand_in_parts/programs.rs"]
mod programs;
#[path = "stand_in_parts/shared.rs"]
mod shared;
