//! `resident` is a Rust library for arrays that live on the host and on GPUs. A [`SmartArray`] is
//! an ndarray plus a copy on each device that uses it. [`Kernel`]s declare which arguments they
//! read and which they write. The library copies only out-of-date regions, only when they are
//! needed, and orders work across [`Stream`]s by the memory it touches. Every transfer is
//! attributed to the source line that triggered it. Safe code cannot cause data races, silently
//! lose an update, or read elements that were never written; [`Out`] says what bodies leave out.
//!
//! ```
//! use resident::ndarray::{Array2, Ix2, s};
//! use resident::{Device, Grid, In, Kernel, Out, Result, SmartArray, audit};
//!
//! # fn main() -> Result<()> {
//! let _here = Device::cpu().enter();
//! let transpose = Kernel::<(In<f32, Ix2>, Out<f32, Ix2>)>::new("transpose")
//!     .require("`b` has the shape of `a` transposed", |_grid, (a, b)| {
//!         a.shape()[0] == b.shape()[1] && a.shape()[1] == b.shape()[0]
//!     })
//!     .host(|_grid, (a, mut b)| b.assign(&a.t()));
//!
//! let a = SmartArray::from(Array2::from_shape_fn((300, 200), |(i, j)| (i * 200 + j) as f32));
//! let mut b = SmartArray::<f32, _>::uninit((200, 300));
//! let (row, report) = audit::capture(|| -> Result<f32> {
//!     transpose.launch(Grid::cover_2d((200, 300), (8, 32)), (&a, &mut b))?; // uploads `a`
//!     Ok(b.slice(s![7, ..]).host()?.sum())                                  // downloads a row
//! });
//! assert_eq!(row?, (0..300).map(|index| (index * 200 + 7) as f32).sum::<f32>());
//! let traffic = report.traffic();
//! assert_eq!((traffic.to_device.bytes, traffic.to_host.bytes), (300 * 200 * 4, 300 * 4));
//! # Ok(()) }
//! ```
//!
//! # Items by task
//!
//! - Arrays, and what each access copies: [`SmartArray`]. Parts that are coherent with the whole:
//!   [`SmartArray::slice`], [`SmartView`], [`SmartViewMut`]. One field of each record: [`field!`],
//!   [`field_mut!`].
//! - Arrays on one device, which move only when the program copies them: [`DeviceArray`],
//!   [`DeviceView`], [`DeviceViewMut`].
//! - Kernels and launches: [`Kernel`], [`In`], [`InOut`], [`Out`], [`Grid`].
//! - Launches that repeat, recorded once and queued as one operation: [`Chain`], [`Temp`].
//! - Arithmetic, sums, products, sorts, random numbers and their kin, without kernels of your own:
//!   [`ops`].
//! - Devices, streams and events: [`Device`], [`Stream`], [`Event`].
//! - Device memory: [`Device::set_memory_limit`], [`SmartArray::release_on`].
//! - Kinds of host memory: [`PinnedArray`], [`MappedArray`], [`ManagedArray`], [`with_pinned`],
//!   [`with_mapped`], [`SmartArray::page_lock`].
//! - cudarc and libraries built on it, with the same arrays: `Device::cuda_context`,
//!   `Stream::cudarc`, `Stream::adopt`, `SmartArray::from_cuda_slice`. Messages and reductions
//!   between GPUs by NCCL: module `nccl` (feature `nccl`).
//! - What was copied, and why: [`audit`].
//! - Tests without a GPU, with random order (seeds), injected faults, memory limits, and a check
//!   for unordered accesses (hazards): [`Emulation`], [`emulation`].
//! - Errors: [`Error`].
//!
//! # The guide
//!
//! | page | for |
//! |---|---|
//! | [From ndarray](guide::from_ndarray) | ndarray's names here, and what each copies |
//! | [From a loop to a GPU](guide::from_a_loop_to_a_gpu) | a first kernel, tested and checked without a GPU |
//! | [Kernels on two and three dimensions](guide::kernels_on_two_and_three_dimensions) | views, grids, edges, halos, shared memory |
//! | [Operations](guide::operations) | what there is without kernels of your own |
//! | [Read a report](guide::read_a_report) | what a program copies, what it need not, how to mend that |
//! | [Budgets in tests](guide::budgets_in_tests) | tests that fail if more is copied |
//! | [Several streams](guide::several_streams) | copies and kernels that overlap |
//! | [Programs that run for long](guide::programs_that_run_for_long) | numbers for monitoring, reports, memory, forked processes |
//! | [Threads that wait](guide::threads_that_wait) | rayon, async executors, bodies that wait |
//! | [First hour on a GPU](guide::first_hour_on_a_gpu) | driver, compiler, first checks, common errors |
//! | [Configuration](guide::configuration) | all environment variables |
//! | [When not to use it](guide::when_not_to_use_it) | what else fits better |
//! | [Numba, CuPy and cudarc](guide::from_numba_cupy_and_cudarc) | what differs; all names of [Numba](guide::from_numba), [CuPy](guide::from_cupy), [cudarc](guide::from_cudarc) |
//! | [cuda-core and cuda-oxide](guide::from_cuda_core_and_cuda_oxide) | names of NVIDIA's Rust crates, and kernels written in Rust |
//! | [Kernels in Rust](guide::kernels_in_rust) | PTX that rustc makes of the function that the host runs too |
//! | [AMD GPUs](guide::amd_gpus) | packages, kernels, memory, what differs from CUDA |
//! | [Tensors of Python](guide::tensors_of_python) | NumPy, PyTorch and CuPy without a copy |
//! | More than one machine: `resident_mpi::more_than_one_machine` | the crate `resident-mpi`, beside this one |
//!
//! # GPUs
//!
//! [`Device::cuda`] opens an NVIDIA GPU, `Device::hip` an AMD GPU, and [`Device::current`] is the
//! first GPU unless the program or [the environment](guide::configuration) chooses another device.
//! Kernels run there by their [`cuda`](Kernel::cuda) bodies; arrays, ordering, failures and the
//! audit work in the same way with and without a GPU. Building needs no CUDA toolkit and no ROCm:
//! the program looks for the driver when it starts to use GPUs, and for NVRTC or hiprtc when it
//! first compiles CUDA C.
//!
//! **Nothing has run on a real GPU yet**, only on stand-ins for the drivers.
//!
//! # The embedded device
//!
//! Without a GPU, kernels run on the *embedded device* ([`Device::cpu`]), an asynchronous device
//! that this library makes of the process's own memory and threads. [`Device::emulated`] makes more
//! such devices for tests: seeds select among thousands of legal execution orders, faults make
//! chosen calls fail, and unordered accesses to the same bytes are reported as hazards.
//!
//! A library that runs on the CPU may use an array's memory on [`Device::cpu`] in place:
//! [`DeviceRef::address`], which a [`DeviceMut`] has too, is a pointer there, and says when it may
//! be followed. On emulated devices it is not.
//!
//! # Features
//!
//! | feature | adds | when the program runs it needs |
//! |---|---|---|
//! | `cuda` (on by default) | NVIDIA GPUs by [`Device::cuda`]; cudarc's objects; `resident::cudarc` | a driver, and NVRTC for CUDA C |
//! | `hip` | AMD GPUs by `Device::hip`, bodies by `Kernel::hip` | HIP's runtime, and hiprtc for CUDA C |
//! | `cublas` (with `cuda`) | [`ops::matmul`] by cuBLAS; cudarc's cuBLAS | cuBLAS |
//! | `nccl` (with `cuda`) | module `nccl` | NCCL |
//! | `dlpack` | device arrays to and from [tensors of Python](guide::tensors_of_python) | |
//! | `serde` | views of guards and [`audit::Document`] serialise | |
//! | `schema` (with `serde`) | the JSON schema of [`audit::Document`] | |
//!
//! Features only add. Without any, the embedded and emulated devices are left.

#![deny(missing_docs)]

mod array;
pub mod audit;
mod device;
mod element;
mod error;
pub mod guide;
mod interop;
pub mod launch;
mod live_arrays;
mod memory_use;
pub mod ops;
mod storage;
mod traffic;
mod transfer;

pub use array::{
    Advice, AnyView, AnyViewMut, AsDeviceView, AsView, AsViewMut, Changed, Coherent, DeviceArray,
    DeviceMut, DeviceRef, DeviceView, DeviceViewMut, HostMut, HostRef, ManagedArray, MappedArray,
    MemoryLocation, MultiSlice, Pending, PinnedArray, SmartArray, SmartView, SmartViewMut, View,
    Watch, WatchState, WithDimension, with_mapped, with_pinned,
};
/// Iterators over the parts of an array.
pub mod iter {
    pub use crate::array::{
        AxisChunks, AxisChunksIter, AxisChunksIterMut, AxisIter, AxisIterMut, AxisParts,
    };
}
pub use audit::{Budget, Flow, Residency, Traffic, Validity};
pub use resident_embedded::{Emulation, Fault, Link};
/// What an emulated device records: its calls, and hazards, which are unordered accesses to the
/// same bytes.
pub mod emulation {
    pub use resident_embedded::{
        Call, CallKind, EmulationLog, Hazard, HazardKind, HazardOperation, Outcome, Touch,
    };
    pub use resident_host_code::{Checked, Finding, FindingKind, OtherThread, SourceLine};
}
#[cfg(feature = "dlpack")]
pub use array::ReadOnlyDeviceArray;
pub use bytemuck;
#[cfg(feature = "cuda")]
pub use cudarc;
pub use device::{
    AutoSynchronize, Device, Done, Entered, Event, HostFunction, Stream, StreamPriorities,
};
#[cfg(feature = "dlpack")]
pub use dlpark;
pub use element::Element;
pub use error::{CalledAt, Error, QueuedAt, Result, Shortage};
pub use half;
#[cfg(all(feature = "cuda", feature = "dlpack"))]
pub use interop::CudaArrayInterface;
#[cfg(feature = "dlpack")]
pub use interop::TensorElement;
#[cfg(feature = "nccl")]
pub use interop::nccl;
#[doc(inline)]
pub use launch::{
    Argument, Arguments, Chain, Compiled, CudaSource, Described, Difference, Flat, GpuSource, In,
    InOut, Kernel, Out, Parameter, Signature, Temp, Variable,
};
pub use ndarray;
pub use num_complex;
pub use resident_backend::grid::{Extent3, Grid, GridLimits};
pub use resident_backend::{
    Capacity, DeviceKind, KernelAttributes, MacroValue, MemoryUsage as Memory, PinnedOptions,
};
pub use resident_macros::{Element, budget};

/// What the macros, and other packages of this repository, use. No stable interface.
#[doc(hidden)]
pub mod internal {
    pub use resident_backend::environment;

    pub use crate::array::{Disjoint, Field, FieldTuple};
    pub use crate::audit::recording::messages::{Transfer, mark_barrier, record_transfer};
    pub use crate::audit::reports::process::set_rank;
    pub use crate::element::is_element;
}

/// The names that most programs use: `use resident::prelude::*;`.
pub mod prelude {
    #[doc(no_inline)]
    pub use ndarray::s;

    #[doc(no_inline)]
    pub use crate::{
        Chain, Device, DeviceArray, DeviceView, DeviceViewMut, Element, Error, Event, Grid, In,
        InOut, Kernel, ManagedArray, MappedArray, Out, Pending, PinnedArray, Result, SmartArray,
        SmartView, SmartViewMut, Stream, Temp, Watch, audit, field, field_mut,
    };
}
