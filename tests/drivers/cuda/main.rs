//! The CUDA backend: its errors, its compiler and its kernels, and arrays beside cudarc, on the
//! stand-in driver; and every CUDA source through a real compiler.
//!
//! Each test that loads the stand-in driver runs in a separate process, since a process has one
//! driver, one record of calls, and one set of kernels.

#![cfg(feature = "cuda")]

#[cfg(all(target_os = "linux", feature = "cuda"))]
mod bad_input;
#[cfg(target_os = "linux")]
mod chains;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod compile;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod compile_for;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod cudarc_interop;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod deaths_and_races;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod device_arrays;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod device_memory;
#[cfg(all(target_os = "linux", feature = "cuda", feature = "dlpack"))]
mod dlpack;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod events;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod full_devices;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod graphs;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod in_place;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod kernels;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod owners;
mod pages;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod parts;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod pinned_arrays;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod side_by_side;
mod sources;

/// What the tests of pages and parts, which run on both stand-ins, know of this one.
#[cfg(target_os = "linux")]
use support::cuda::{driver as matrices, face};
#[cfg(target_os = "linux")]
const KIND: resident_backend::DeviceKind = resident_backend::DeviceKind::Cuda;
/// How the names of its calls begin.
#[cfg(target_os = "linux")]
const PREFIX: &str = "cu";
