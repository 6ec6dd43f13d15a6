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
//! # The guide
//!
//! | page | for |
//! |---|---|
//! | [From a loop to a GPU](guide::from_a_loop_to_a_gpu) | a first kernel, tested and checked without a GPU |
//! | [Read a report](guide::read_a_report) | what a program copies, what it need not, how to mend that |
//! | [Budgets in tests](guide::budgets_in_tests) | tests that fail if more is copied |
//! | [Several streams](guide::several_streams) | copies and kernels that overlap |
//! | [Programs that run for long](guide::programs_that_run_for_long) | numbers for monitoring, reports, memory |
//! | [Threads that wait](guide::threads_that_wait) | rayon, async executors, bodies that wait |
//! | [Numba, CuPy and cudarc](guide::from_numba_cupy_and_cudarc) | what differs; all names of [Numba](guide::from_numba), [CuPy](guide::from_cupy), [cudarc](guide::from_cudarc) |
//! | [kernels in Rust](guide::kernels_in_rust) | PTX that rustc makes of the function that the host runs too |
//! | [cuda-core and cuda-oxide](guide::from_cuda_core_and_cuda_oxide) | names of NVIDIA's Rust crates, and kernels written in Rust |
//! | [AMD GPUs](guide::amd_gpus) | packages, kernels, what was tried |
//! | [Tensors of Python](guide::tensors_of_python) | NumPy, PyTorch and CuPy without a copy |
//! | More than one machine: `resident_mpi::more_than_one_machine` | the crate `resident-mpi`, beside this one |
//!
//! # Where to find what
//!
//! - Arrays, and what each access copies: [`SmartArray`].
//! - Parts of arrays, coherent with the whole: [`SmartArray::slice`], [`SmartView`],
//!   [`SmartViewMut`].
//! - One field of each record: [`field!`], [`field_mut!`].
//! - Arrays on one device, which move only when the program copies them: [`DeviceArray`],
//!   [`DeviceView`], [`DeviceViewMut`].
//! - Kernels and launches: [`Kernel`], [`In`], [`InOut`], [`Out`], [`Grid`].
//! - Sums, products, copies of any layout and their kin, without kernels of your own: [`ops`].
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
//! # GPUs
//!
//! [`Device::cuda`] opens an NVIDIA GPU, `Device::hip` an AMD GPU, and [`Device::current`] is the
//! first GPU unless the program chooses another device. Kernels run there by their
//! [`cuda`](Kernel::cuda) bodies; arrays, ordering, failures and the audit work in the same way
//! with and without a GPU. Building needs no CUDA toolkit and no ROCm: the program looks for the
//! driver when it starts to use GPUs, and for NVRTC or hiprtc when it first compiles CUDA C.
//!
//! **Nothing has run on a real GPU yet**, only on stand-ins for the drivers.
//!
//! # Features
//!
//! | feature | adds | when the program runs it needs |
//! |---|---|---|
//! | `cuda` (on by default) | NVIDIA GPUs by [`Device::cuda`]; cudarc's objects; `resident::cudarc` | a driver, and NVRTC for CUDA C |
//! | `hip` | AMD GPUs by `Device::hip`, bodies by `Kernel::hip` | HIP's runtime, and hiprtc for CUDA C |
//! | `cublas` (with `cuda`) | [`ops::matmul`] by cuBLAS; cudarc's cuBLAS | cuBLAS |
//! | `dlpack` | device arrays to and from [tensors of Python](guide::tensors_of_python) | |
//! | `serde` | views of guards and [`audit::Document`] serialise | |
//! | `schema` (with `serde`) | the JSON schema of [`audit::Document`] | |
//!
//! Features only add. Without any, the embedded and emulated devices are left.
//!
//! # Environment variables
//!
//! A word or number that is not known is an error of the first call that would need it, which says
//! what is. A variable that is empty is not set. Switches are `1`, `true`, `yes` or `on`, or else
//! `0`, `false`, `no` or `off`. Case and spaces around words and numbers do not matter. Standard
//! error is told once of a variable that starts with `RESIDENT_` and is none of the library's.
//!
//! | variable | what it is | by default |
//! |---|---|---|
//! | `RESIDENT_AUDIT` | reports that are written when the process ends, now and then, or at signals: [its words](audit#the-words-of-resident_audit) | none |
//! | `RESIDENT_DEVICE` | the device on which threads start: `cpu`, `cuda:0`, `hip:0` | the first GPU, else `cpu` |
//! | `RESIDENT_CACHE` | the folder for compiled kernels, or `off` | in the user's cache folder (`XDG_CACHE_HOME`, else below `HOME`) |
//! | `RESIDENT_SANITIZE` | switch: embedded devices check the CUDA C that they run ([`Emulation::sanitize`]) | off |
//! | `RESIDENT_CPU_KERNELS` | `cuda`: embedded devices run CUDA C even where there is a `host` body | `host` |
//! | `RESIDENT_LAUNCH_TIMEOUT` | how many seconds CUDA C may take on an embedded device | no limit |
//! | `RESIDENT_COMPILE_FOR` | architectures, as in `sm_80,gfx90a`: CUDA C that embedded devices load is compiled for these GPUs first ([`Kernel::compile_for`]) | none |
//! | `RESIDENT_CXX` | the C++ compiler of embedded devices | `c++`, `clang++` or `g++` |
//! | `RESIDENT_COMPILE_TIMEOUT` | how many seconds it may take for a source; its memory is limited to 4 GiB (on Linux) | 300 |
//! | `TMPDIR` | the folder for the compilers' temporary files | the system's |
//! | `RESIDENT_NVRTC` | the only NVRTC library file to use | that of the driver's CUDA major version, else an older one, else a newer one |
//! | `RESIDENT_HIP`, `RESIDENT_HIPRTC` | the only files of AMD's runtime and compiler to use | [found by their names](guide::amd_gpus) |
//! | `RESIDENT_HIP_CHECK` | switch: the first AMD GPU that is opened tests [promises of the runtime](guide::amd_gpus) | off |
//! | `CUDARC_CUDA_VERSION` | when building: the CUDA version whose functions cudarc binds, `12080` for 12.8 | the toolkit's, else the newest |
//!
//! These tune copies between ordinary memory and GPUs. Bytes may be written as `512M` or `4G`.
//!
//! | variable | what it is | by default |
//! |---|---|---|
//! | `RESIDENT_PINNED_MAX` | the most pinned (page-locked) staging memory, in bytes | an eighth of the memory of the machine or container |
//! | `RESIDENT_STAGING_THREADS` | how many threads help to pack and unpack large copies | half of the processors copy, the calling thread included; at most seven help |
//! | `RESIDENT_CHUNK_BYTES` | the most bytes of pageable memory that one operation copies | `4M` |
//! | `RESIDENT_CHUNKS_MAX` | how many such operations of a call may be in flight; threads pack half of them while the GPU copies the others | 8 |
//! | `RESIDENT_COPY_CALL_BYTES` | what a driver call costs a download, in bytes that the link transfers in the same time | 150000 |
//! | `RESIDENT_COPY_ROW_BYTES` | what each short row of a copy costs, likewise: where separate copies cost more, the bytes between are copied too | 256 |
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
//! # Forked children
//!
//! A child of `fork` has none of its parent's threads, so a device belongs to the process that
//! opened it: in a child, calls that queue work there or wait for it are [`Error::Backend`].
//! Contents that are on the host can be read, anything can be dropped, and devices that the child
//! opens work. Fork while no other thread is in a call of the library, which may hold a lock. Where
//! the parent uses devices, start other processes by [`std::process::Command`], which no such limit
//! concerns; in Python by multiprocessing's method "spawn".

#![deny(missing_docs)]

mod array;
pub mod audit;
mod device;
mod element;
mod error;
pub mod guide;
#[cfg(any(feature = "cuda", feature = "dlpack"))]
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
#[cfg(all(feature = "cuda", feature = "dlpack"))]
pub use interop::CudaArrayInterface;
#[cfg(feature = "dlpack")]
pub use interop::TensorElement;
#[cfg(feature = "nccl")]
pub use interop::nccl;
#[doc(inline)]
pub use launch::{
    Argument, Arguments, Compiled, CudaSource, Described, Difference, Flat, GpuSource, In, InOut,
    Kernel, Out, Parameter, Signature, Variable,
};
pub use ndarray;
pub use resident_backend::grid::{Extent3, Grid, GridLimits};
pub use resident_backend::{
    Capacity, DeviceKind, KernelAttributes, MemoryUsage as Memory, PinnedOptions,
};
pub use resident_macros::budget;

/// What the macros, and other packages of this repository, use. No stable interface.
#[doc(hidden)]
pub mod internal {
    pub use resident_backend::environment;

    pub use crate::array::{Disjoint, Field, FieldTuple};
    pub use crate::audit::recording::messages::{Transfer, mark_barrier, record_transfer};
    pub use crate::audit::reports::process::set_rank;
}

/// The names that most programs use: `use resident::prelude::*;`.
pub mod prelude {
    #[doc(no_inline)]
    pub use ndarray::s;

    #[doc(no_inline)]
    pub use crate::{
        Device, DeviceArray, DeviceView, DeviceViewMut, Element, Error, Event, Grid, In, InOut,
        Kernel, ManagedArray, MappedArray, Out, Pending, PinnedArray, Result, SmartArray,
        SmartView, SmartViewMut, Stream, Watch, audit, field, field_mut,
    };
}
