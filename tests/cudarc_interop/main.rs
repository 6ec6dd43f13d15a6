//! Arrays beside cudarc: its context and streams, ours as its and its as ours, guards as its
//! slices. Run against the stand-in driver, whose check of ordering sees every copy and launch,
//! whoever queued it.

#![cfg(all(target_os = "linux", feature = "cuda"))]

mod bench;
#[cfg(feature = "cublas")]
mod cublas;
mod guards;
mod slices;
mod streams;
