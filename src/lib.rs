//! `resident` is a Rust library for arrays that live on the host and on GPUs. A [`SmartArray`] is
//! an ndarray plus a copy on each device that uses it. [`Kernel`]s declare which arguments they
//! read and which they write. The library copies only out-of-date regions, only when they are
//! needed, and orders work across [`Stream`]s by the memory it touches. Every transfer is
//! attributed to the source line that triggered it. Safe code cannot cause data races, read
//! uninitialised elements, or silently lose an update.
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
//!     transpose.launch(Grid::cover_2d((200, 300), (8, 32)), (&a, &mut b))?;  // uploads `a` only
//!     Ok(b.slice(s![7, ..]).host()?.sum())                                   // downloads one row
//! });
//! assert_eq!(row?, (0..300).map(|index| (index * 200 + 7) as f32).sum::<f32>());
//! let traffic = report.traffic();
//! assert_eq!((traffic.to_device.bytes, traffic.to_host.bytes), (300 * 200 * 4, 300 * 4));
//! # Ok(()) }
//! ```
//!
//! # Where to begin
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
//! - The names that you know from Numba, CuPy and cudarc: [`from_numba_cupy_and_cudarc`].
//!
//! # GPUs
//!
//! With feature `cuda` (on by default), [`Device::cuda`] opens an NVIDIA GPU, with feature `hip`
//! [`Device::hip`] an AMD GPU (see [`amd_gpus`]), and [`Device::current`] is the first GPU unless
//! the program chooses another device. Kernels run there by their [`cuda`](Kernel::cuda) bodies;
//! arrays, ordering, failures and the audit work in the same way with and without a GPU. Building
//! needs no CUDA toolkit and no ROCm: the program looks for the driver when it starts to use GPUs,
//! and for NVRTC or hiprtc when it first compiles CUDA C.
//!
//! These environment variables have an effect. A word or number that is not known is an error of
//! the first call that would need it, which says what is.
//!
//! - `RESIDENT_DEVICE`: the device on which threads start, such as `cpu`, `cuda:0` or `hip:0`.
//! - `RESIDENT_CACHE`: the folder for compiled kernels, or `off`; by default in the user's cache
//!   folder.
//! - `RESIDENT_NVRTC`: the only NVRTC library file to use; by default the NVRTC of the driver's
//!   CUDA major version, else an older one, else a newer one.
//! - `RESIDENT_HIP` and `RESIDENT_HIPRTC`: the only files of AMD's runtime and compiler to use.
//! - `RESIDENT_HIP_CHECK` (`1`, `true`, `yes` or `on`): the first AMD GPU that is opened tests
//!   promises of the runtime; see [`amd_gpus`].
//! - `RESIDENT_PINNED_MAX`: the largest amount of pinned (page-locked) staging memory, in bytes
//!   (`512M`, `4G`); by default an eighth of the memory of the machine or of the container.
//! - `RESIDENT_CHUNK_BYTES`: the largest number of bytes of ordinary (pageable) memory that are
//!   copied to or from a GPU as one operation; by default `4M`.
//! - `RESIDENT_CHUNKS_MAX`: how many of these operations of one call may be in flight; by default
//!   8. Several threads pack half of them while the GPU copies the other half.
//! - `RESIDENT_STAGING_THREADS`: the number of threads that help to pack and unpack large copies;
//!   by default half of the processors copy, including that of the calling thread, and at most
//!   seven threads help.
//! - `RESIDENT_COPY_CALL_BYTES` and `RESIDENT_COPY_ROW_BYTES`: what a driver call, and each short
//!   row of a copy, costs a download from a GPU, in bytes that the link transfers in the same time;
//!   by default 150000 and 256. Where separate copies cost more, the bytes between are copied too.
//! - `RESIDENT_SANITIZE` (`1`, `true`, `yes` or `on`): embedded devices check the CUDA C that they
//!   run; see [`Emulation::sanitize`]. `RESIDENT_CPU_KERNELS=cuda`: they run it even where there is
//!   a `host` body. `RESIDENT_LAUNCH_TIMEOUT`: how many seconds it may take. `RESIDENT_CXX`: its
//!   compiler.
//! - `TMPDIR`: the folder for the compilers' temporary files.
//! - `RESIDENT_AUDIT`: reports that are written when the process ends; see [`audit`].
//! - `CUDARC_CUDA_VERSION`, when building: the CUDA version whose functions cudarc binds (`12080`
//!   for 12.8); by default the toolkit's version, else the newest.
//!
//! # The embedded device
//!
//! Without a GPU, kernels run on the *embedded device* ([`Device::cpu`]), an asynchronous device
//! that this library makes of the process's own memory and threads. [`Device::emulated`] makes more
//! such devices for tests: seeds select among thousands of legal execution orders, faults make
//! chosen calls fail, and unordered accesses to the same bytes are reported as hazards.
//!
//! A library that runs on the CPU may use an array's memory on [`Device::cpu`] in place:
//! [`DeviceRef::address`] and [`DeviceMut::address`] are pointers there, and say when they may be
//! followed. On emulated devices they are not.
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
#[cfg(any(feature = "cuda", feature = "dlpack"))]
mod interop;
mod launch;
mod live_arrays;
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
#[doc(hidden)]
pub use array::__field;
pub use audit::{Budget, Flow, Residency, Traffic, Validity};
pub use resident_embedded::{Emulation, Fault, Link};
/// What an emulated device records: its calls, and hazards, which are unordered accesses to the
/// same bytes.
pub mod emulation {
    pub use resident_embedded::{
        Call, CallKind, EmulationLog, Hazard, HazardKind, HazardOperation, Outcome, Touch,
    };
    pub use resident_host_code::{Finding, FindingKind, OtherThread, SourceLine};
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
pub use launch::{
    Argument, Arguments, Described, Difference, Flat, In, InOut, Kernel, Out, Parameter, Signature,
};
pub use ndarray;
pub use resident_backend::grid::{Extent3, Grid, GridLimits};
pub use resident_backend::{
    Capacity, CudaSource, DeviceKind, GpuSource, KernelAttributes, MemoryUsage as Memory,
    PinnedOptions,
};
pub use resident_macros::budget;

#[cfg_attr(
    not(all(feature = "cuda", feature = "dlpack")),
    allow(rustdoc::broken_intra_doc_links, reason = "some items exist only with the features")
)]
#[doc = include_str!("../docs/guide/from_numba_cupy_and_cudarc/introduction.md")]
#[doc = include_str!("../docs/guide/from_numba_cupy_and_cudarc/numba.md")]
#[doc = include_str!("../docs/guide/from_numba_cupy_and_cudarc/cupy.md")]
#[doc = include_str!("../docs/guide/from_numba_cupy_and_cudarc/cudarc.md")]
pub mod from_numba_cupy_and_cudarc {}

#[doc = include_str!("../docs/guide/from_a_loop_to_a_gpu.md")]
pub mod from_a_loop_to_a_gpu {
    #[allow(unused_imports, reason = "for links")]
    use crate::{CudaSource, Emulation, Kernel};
}

/// The names that most programs use: `use resident::prelude::*;`.
pub mod prelude {
    pub use ndarray::s;

    pub use crate::{
        Device, DeviceArray, DeviceView, DeviceViewMut, Element, Error, Event, Grid, In, InOut,
        Kernel, ManagedArray, MappedArray, Out, Pending, PinnedArray, Result, SmartArray,
        SmartView, SmartViewMut, Stream, Watch, audit, field, field_mut,
    };
}

#[cfg(feature = "dlpack")]
#[doc = include_str!("../docs/guide/tensors_of_python.md")]
pub mod tensors_of_python {
    #[allow(unused_imports, reason = "for links")]
    use crate::{DeviceArray, ReadOnlyDeviceArray, Stream};
}

#[doc = include_str!("../docs/guide/amd_gpus.md")]
pub mod amd_gpus {}
