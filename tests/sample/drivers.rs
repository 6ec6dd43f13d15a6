//! Arrays, kernels and cudarc's objects on the stand-in for NVIDIA's driver, without CUDA C.

#![cfg(all(target_os = "linux", feature = "cuda"))]

#[path = "../drivers/cuda/cudarc_interop/bench.rs"]
mod bench;
#[path = "../drivers/gpu_audit/body_on_gpu.rs"]
mod body_on_gpu;
#[path = "../drivers/cuda/cudarc_interop/captures.rs"]
mod captures;
#[path = "../drivers/cuda/deaths_and_races.rs"]
mod deaths_and_races;
#[path = "../drivers/cuda/full_devices.rs"]
mod full_devices;
#[path = "../drivers/gpu_audit/gpu_times.rs"]
mod gpu_times;
#[path = "../drivers/cuda/cudarc_interop/guards.rs"]
mod guards;
#[path = "../drivers/cuda/in_place.rs"]
mod in_place;
#[path = "../drivers/cuda/kernels.rs"]
mod kernels;
#[path = "../drivers/cuda/pinned_arrays.rs"]
mod pinned_arrays;
#[path = "../drivers/cuda/side_by_side.rs"]
mod side_by_side;
#[path = "../drivers/cuda/cudarc_interop/streams.rs"]
mod streams;

use support::audited::{document_of, ones, report_of};
use support::bodies::one as grid;
