//! What a device must be able to do, and nothing about when or why.
//!
//! Two traits: [`Backend`] is one device, [`Queue`] is one of its in-order streams. Everything
//! above speaks to devices through them, with plain data: addresses, footprints in bytes,
//! positions. A backend obeys; it takes no decision about coherence or order, and the checks that
//! it makes on its own (see `embedded`) are there to find bugs of the layers above, never to be
//! relied on.
//!
//! Contract, stated once for all backends:
//!
//! * Work of one queue runs in the order of submission, one piece after the other. Queues are
//!   ordered against each other by events alone. Whatever a backend leaves for the host to do
//!   behind work of a device is part of that work, and keeps the same order.
//! * `submit` and its like draw the position and queue the work in one step, under the queue's own
//!   lock; positions start at 1 and rise by one.
//! * `Err` from a call means that nothing was queued. Work that was queued and fails is reported
//!   through [`failure`] under its position, and counts as completed: order is kept whatever fails.
//! * Work that names a dependency (queue, position) which failed does not run; it fails with the
//!   same root cause.
//! * Memory is named by [`Address`]; whoever frees an address orders the free behind all uses. Host
//!   memory is kept alive by the work itself.
//! * No call waits for another thread of this process that may hold a lock of this library,
//!   `synchronize_to`, `trim` and an `allocate` that finds no room aside, which are called with no
//!   lock held.

pub(crate) mod bytes;
#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "for devices with memory of their own")
)]
pub(crate) mod copy_pool;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
pub(crate) mod embedded;
pub(crate) mod failure;
#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "device code is for backends that a build may lack")
)]
pub(crate) mod program;
#[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "as for `program`"))]
pub(crate) mod prototype;
pub(crate) mod scope;
pub(crate) mod work;

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::time::Duration;

pub(crate) use failure::{BackendError, BackendErrorKind, FailureKind, FailureRecord};
pub(crate) use program::{
    BodyKind, Code, ElementLayout, LoadError, Loaded, ParameterLayout, Program,
};
pub use program::{CudaSource, KernelAttributes};
pub(crate) use work::{
    Arguments, ArrayArgument, Body, Bytes, CopyWork, Dependencies, FillWork, HostMemory, Label,
    LaunchWork, Memory, Work,
};

pub(crate) use crate::layout::{CopyBox, Footprint};

/// Which family a device belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum DeviceKind {
    /// The embedded device: memory and streams of this process.
    Cpu,
    /// An NVIDIA GPU through the CUDA driver.
    Cuda,
    /// An AMD GPU through HIP.
    Hip,
}

/// A place in a queue: the n-th piece of work submitted to it. 0 is "before everything", and is
/// always completed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct Position(pub(crate) u64);

impl Position {
    /// Before any work: complete from the start.
    pub(crate) const START: Self = Self(0);
}

/// A queue's number, unique in the process and never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct QueueId(pub(crate) u64);

impl QueueId {
    /// The next number, for whichever backend makes a queue.
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A device address: the device's own number space, never dereferenced on the host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Address(pub(crate) u64);

/// What a device's driver says of its memory, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capacity {
    /// All memory of the device.
    pub total: u64,
    /// What can be allocated now.
    pub free: u64,
}

/// What this library holds on a device, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryUsage {
    /// Held by live arrays.
    pub in_use: u64,
    /// Kept for reuse, or freed but still draining behind work in flight.
    pub pooled: u64,
}

/// One device.
pub(crate) trait Backend: Debug + Send + Sync + 'static {
    fn kind(&self) -> DeviceKind;
    /// Number within its kind.
    fn ordinal(&self) -> usize;
    fn name(&self) -> String;
    /// What the driver reports.
    fn capacity(&self) -> Result<Capacity, BackendError>;
    /// Bytes handed out by `allocate` and not yet given to `free` are in use; freed bytes still
    /// draining or kept are pooled.
    fn memory(&self) -> MemoryUsage;
    /// The queue of the device's default stream, made once by whoever makes the device. Not a call
    /// that an emulation counts or fails.
    fn default_queue(&self) -> Result<Arc<dyn Queue>, BackendError>;
    /// Makes another in-order queue.
    fn new_queue(&self) -> Result<Arc<dyn Queue>, BackendError>;
    /// Clears up what is over, and lets go of streams that nobody has any more; does not wait. It
    /// may let go of anything, and so is asked for with no lock held.
    fn reap(&self);
    /// Gives back what is kept for reuse, waiting for queued frees first. Called when an allocation
    /// found no room.
    fn trim(&self) -> Result<(), BackendError>;
    /// Allocations that would bring the bytes in use above this are refused from now on. What is in
    /// use stays.
    fn set_memory_limit(&self, len_bytes: u64);
    /// What allocations are bounded by, where they are.
    fn memory_limit(&self) -> Option<u64>;
    /// What the device calls itself, as in `NVIDIA H200`.
    fn model(&self) -> String;
    /// The byte pattern with which the layers above fill copies that became stale, if this device
    /// wants that.
    fn poison(&self) -> Option<u8>;
    /// Whether copies between this device and `peer` run directly; otherwise they are staged
    /// through the host.
    fn can_access_peer(&self, peer: &dyn Backend) -> bool;
    /// Page-locked memory to pack an upload into, its contents unspecified; `None` where ordinary
    /// memory does as well, or there is no room for it.
    fn staging(&self, len_bytes: u64) -> Option<Arc<dyn HostMemory>>;
    /// Copies of so many bytes each are about to come down to ordinary memory, all at once: what
    /// takes long the first time is done now, under no lock.
    fn prepare_downloads(&self, lens_bytes: &[u64]);
    /// The most bytes that one copy between ordinary memory of the host and this device should
    /// take: larger ones go in pieces.
    fn chunk_bytes_max(&self) -> u64;
    /// Lets the device reach host memory by itself, until what is returned drops.
    fn page_lock(
        &self,
        start: *mut u8,
        len_bytes: usize,
    ) -> Result<Box<dyn PinnedRegistration>, BackendError>;
    /// Which bodies of a kernel run here.
    fn runs(&self) -> BodyKind;
    /// Compiles device code if need be, and loads it. Only for devices that run such; slow the
    /// first time.
    fn load(&self, program: &Program) -> Result<Arc<dyn Loaded>, LoadError>;
    /// The concrete backend, for the backend's own public face (`Device::emulation`).
    fn as_any(&self) -> &dyn Any;
}

/// Host memory whose pages are locked, until this drops: before the memory goes.
pub(crate) trait PinnedRegistration: Debug + Send + Sync + 'static {
    /// Unlocks them: nothing uses the memory any more. `false` if a device may still have the
    /// pages; then the memory has to stay allocated, and goes to `keep`. May be called again.
    fn unlock(&mut self) -> bool {
        true
    }

    /// Takes memory that could not be unlocked, and drops it once it is; never, if that never
    /// comes.
    fn keep(&mut self, _memory: Arc<dyn Any + Send + Sync>) {}

    /// Where in the memory one copy may not go on, ascending: what lies on either side was locked
    /// apart.
    fn boundaries_bytes(&self) -> &[u64] {
        &[]
    }
}

/// One in-order queue of a device. Dropping the last handle lets queued work finish; it never
/// waits.
pub(crate) trait Queue: Debug + Send + Sync + 'static {
    fn id(&self) -> QueueId;
    /// Takes memory, usable by work submitted to this queue from now on, and by other queues that
    /// wait for an event recorded here afterwards. `len_bytes` is above zero. Its contents are
    /// unspecified: zeros, poison, or what stood there before, of this process. They are plain
    /// bytes to any code on the host.
    fn allocate(&self, len_bytes: u64, label: &Label) -> Result<Address, BackendError>;
    /// Gives memory back behind everything queued here so far.
    fn free(&self, address: Address) -> Result<Position, BackendError>;
    /// Queues work.
    fn submit(&self, work: Work) -> Result<Position, BackendError>;
    /// Queues an event: complete when everything before it is.
    fn record(&self, timing: bool) -> Result<Arc<dyn RawEvent>, BackendError>;
    /// Later work of this queue starts after `event`, which may be of another queue or device of
    /// the same kind.
    fn wait(&self, event: &dyn RawEvent) -> Result<(), BackendError>;
    /// The position drawn last.
    fn tail(&self) -> Position;
    /// A position behind everything on the stream so far, also behind what others queued there past
    /// this library: guards hand out a GPU's streams, and streams of others are adopted. Backends
    /// whose streams nobody else reaches have that in `tail`.
    fn reserve_position(&self) -> Position {
        self.tail()
    }
    /// Everything up to here is known to have completed. Cheap; a lower bound for backends which
    /// must ask the driver.
    fn completed(&self) -> Position;
    /// Blocks until everything up to `position` has completed, well or not. For seeded devices this
    /// runs ready work. Fails without waiting (`BackendErrorKind::InsideKernel`) on a thread that
    /// runs a kernel body.
    fn synchronize_to(&self, position: Position) -> Result<(), BackendError>;
    /// Like `completed`, but asks the driver; for seeded devices a poll runs one piece of ready
    /// work.
    fn poll(&self, position: Position) -> Result<bool, BackendError>;
    /// Wakes `waker` once everything queued so far has completed.
    fn notify(&self, waker: Waker) -> Result<(), BackendError>;
    /// The concrete queue, for the backend's own public face.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "no backend with one is built"))]
    fn as_any(&self) -> &dyn Any;
}

/// A recorded event.
pub(crate) trait RawEvent: Debug + Send + Sync + 'static {
    fn queue(&self) -> QueueId;
    /// Its position in that queue.
    fn position(&self) -> Position;
    fn is_complete(&self) -> Result<bool, BackendError>;
    fn synchronize(&self) -> Result<(), BackendError>;
    /// Device time between two events recorded with timing; an error if either was not, or is not
    /// complete.
    fn elapsed_since(&self, earlier: &dyn RawEvent) -> Result<Duration, BackendError>;
    fn as_any(&self) -> &dyn Any;
}
