//! Arrays that stay where they are used.
//!
//! A [`SmartArray`] is an n-dimensional array with one copy on the host and one on each device that
//! used it. [`Kernel`]s say in their type what they read and write. The library brings to a device
//! what is missing there when a kernel needs it, brings to the host what is looked at when it is
//! looked at, part by part and never twice, orders the work of all [`Stream`]s by the bytes it
//! touches, and remembers at which line of the program each byte became necessary.
//!
//! ```
//! use resident::{Device, Grid, In, Kernel, Out, Result, SmartArray, audit, ndarray::{Array2, Ix2, s}};
//!
//! # fn main() -> Result<()> {
//! let _here = Device::cpu().enter();
//! let transpose = Kernel::<(In<f32, Ix2>, Out<f32, Ix2>)>::new("transpose")
//!     .require("rows and columns change places", |_grid, (a, b)| a.shape()[0] == b.shape()[1] && a.shape()[1] == b.shape()[0])
//!     .host(|_grid, (a, mut b)| b.assign(&a.t()));
//!
//! let a = SmartArray::from(Array2::from_shape_fn((300, 200), |(row, column)| (row * 200 + column) as f32));
//! let mut b = SmartArray::<f32, _>::uninit((200, 300));
//! let (row, report) = audit::capture(|| -> Result<f32> {
//!     transpose.launch(Grid::cover_2d((200, 300), (8, 32)), (&a, &mut b))?;      // `a` goes up; `b` does not
//!     Ok(b.slice(s![7, ..]).host()?.sum())                                       // one row comes down
//! });
//! assert_eq!(row?, (0..300).map(|index| (index * 200 + 7) as f32).sum::<f32>());
//! assert_eq!((report.traffic().to_device.bytes, report.traffic().to_host.bytes), (300 * 200 * 4, 300 * 4));
//! # Ok(()) }
//! ```
//!
//! # Where to begin
//!
//! | for | see |
//! |---|---|
//! | arrays, and what each access moves | [`SmartArray`] |
//! | parts of arrays, coherent with the whole | [`SmartArray::slice`], [`SmartView`], [`SmartViewMut`] |
//! | kernels and launches | [`Kernel`], [`In`], [`InOut`], [`Out`], [`Grid`] |
//! | devices and streams | [`Device`], [`Stream`], [`Event`] |
//! | memory of devices | [`Device::set_memory_limit`], [`SmartArray::page_lock`], [`SmartArray::release_on`] |
//! | cudarc, and what is built on it, over the same arrays | `Device::cuda_context`, `Stream::cudarc`, `Stream::adopt`, `SmartArray::from_cuda_slice` |
//! | what moved, and why | [`audit`] |
//! | tests without a GPU: seeds, faults, limits, hazards | [`Emulation`], [`emulation`] |
//! | what can go wrong | [`Error`] |
//!
//! # GPUs
//!
//! With feature `cuda`, which is on by default and needs no toolkit to build, [`Device::cuda`]
//! opens an NVIDIA GPU; [`Device::current`] is the first one where nothing else was asked for. The
//! driver is looked for when a program runs, NVRTC when a kernel's CUDA C is first compiled.
//! Kernels run there by their [`cuda`](Kernel::cuda) bodies; arrays, order, failures and audit are
//! the same as on the embedded device.
//!
//! | variable | what it does |
//! |---|---|
//! | `RESIDENT_DEVICE` | the device that threads start on: `cpu`, `cuda:0` |
//! | `RESIDENT_CACHE` | a folder for compiled kernels, or `off`; by default the user's cache folder |
//! | `RESIDENT_NVRTC` | the file of NVRTC to be used, and no other; by default that of the driver's own major version of CUDA, else an older one, else a newer |
//! | `RESIDENT_PINNED_MAX` | the most page-locked memory for staging, in bytes (`512M`, `4G`); by default an eighth of the machine's memory, or of its container's |
//! | `RESIDENT_STAGING_THREADS` | how many threads help to pack and unpack large copies; by default so many that half of the processors copy, seven at most |
//! | `CUDARC_CUDA_VERSION` | when building: the CUDA version whose functions cudarc binds (`12080` for 12.8); by default the toolkit's, else the newest |
//!
//! # The embedded device
//!
//! Without a GPU everything runs on [`Device::cpu`], a real backend with memory and asynchronous
//! streams of its own. [`Device::emulated`] makes fresh ones for tests: with a seed nothing runs by
//! itself and one test tries thousands of legal orders; a fault fails any chosen call; and work
//! that touches the same bytes unordered is reported.

mod access;
mod array;
pub mod audit;
mod backend;
mod call_site;
mod coherence;
mod device;
mod element;
mod error;
mod grid;
#[cfg(feature = "cuda")]
mod interop;
mod launch;
mod live_arrays;
mod ordering;
mod storage;
mod sync;
mod traffic;
mod transfer;

pub use array::{
    AnyView, AnyViewMut, AsView, AsViewMut, DeviceMut, DeviceRef, HostMut, HostRef, MultiSlice,
    Pending, SmartArray, SmartView, SmartViewMut,
};
pub use audit::{Flow, Residency, Traffic, Validity};
pub use backend::embedded::{Emulation, Fault, Link};
/// What an emulated device remembers: the calls that were made, and hazards, work that touched the
/// same bytes unordered.
pub mod emulation {
    pub use crate::backend::embedded::{
        Call, CallKind, EmulationLog, Hazard, HazardKind, HazardOperation, Outcome, Touch,
    };
}
pub use backend::{Capacity, CudaSource, DeviceKind, KernelAttributes, MemoryUsage as Memory};
pub use bytemuck;
#[cfg(feature = "cuda")]
pub use cudarc;
pub use device::{AutoSynchronize, Device, Entered, Event, Stream};
pub use element::Element;
pub use error::{Error, Result, Shortage, Text};
pub use grid::{Extent3, Grid};
pub use launch::{
    Argument, Arguments, Described, Difference, Flat, In, InOut, Kernel, Out, Parameter, Signature,
};
pub use ndarray;

/// What most programs name: `use resident::prelude::*;`.
pub mod prelude {
    pub use crate::{
        Device, Element, Event, Grid, In, InOut, Kernel, Out, Pending, SmartArray, SmartView,
        SmartViewMut, Stream, audit,
    };
}
