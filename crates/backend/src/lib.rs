//! The interface to devices and their streams.
//!
//! [`Backend`] is one device and [`RawStream`] is one of its in-order streams. All other modules
//! use devices only through these traits, and pass plain data: addresses, footprints in bytes,
//! positions. A backend makes no decision about coherence or order. The embedded device checks
//! calls, so that tests find bugs in those modules; the modules must not rely on these checks.
//!
//! Every backend keeps this contract:
//!
//! * Work of one stream runs one operation at a time, in the order of submission. Only events order
//!   streams against each other. If the host must finish an operation after the device has run it,
//!   this step is part of the operation and runs before later operations.
//! * A call that queues work assigns the position in the same step, under the stream's lock.
//!   Positions start at 1 and rise by one.
//! * A call that returns `Err` has queued nothing. Queued work that fails is recorded in
//!   [`failure`] under its position and counts as completed, so a failure changes no order.
//! * Work that depends on a failed (stream, position) does not run. The same failure is recorded
//!   for it.
//! * Memory is named by its [`Address`]. The caller orders a free after all uses of the address.
//!   Work keeps alive the host memory that it accesses.
//! * No call waits for another thread of this process that may hold a lock of this library. The
//!   exceptions are `synchronize_to`, `trim`, and `allocate` and `commit` when they find no free
//!   memory: their callers hold no lock.
//!
//! To add a kind of GPU:
//!
//! 1. if its driver mirrors CUDA's, as HIP does, add its names to the table in `crates/gpu`,
//!    `driver`, and a `CudaLikeVendor` beside `cuda` and `hip` there; else add a crate beside it
//!    that implements [`Backend`] and [`RawStream`]. Give it a feature;
//! 2. add a variant to [`DeviceKind`] if it has none, and let `DeviceKind::COUNT` follow it;
//! 3. open its devices in `device/gpu.rs`, and parse their names in `device/current.rs`;
//! 4. if it runs neither host bodies nor CUDA C, add a variant to [`BodyKind`], a form to
//!    [`GpuSource`], and to `launch/kernel.rs` the method that takes it;
//! 5. run the conformance suite on it (`tests/fast/conformance`).

pub mod call_site;
pub mod chain;
mod chain_call;
pub mod environment;
pub mod failure;
pub mod fork;
mod gpu_source;
pub mod grid;
pub mod host_allocation;
pub mod host_copy;
pub mod huge_pages;
mod identifiers;
pub mod imports;
mod kernel_attributes;
mod label;
mod macro_value;
pub mod panic_message;
pub mod parallel;
pub mod program;
pub mod remembered_parts;
pub mod reserved_memory;
pub mod scope;
mod staged_bytes;
pub mod sync;
mod task_waker;
pub mod thread_list;
pub mod thread_pools;
pub mod timeline;
pub mod unwinding;
mod waiting_tasks;
pub mod work;

use std::any::Any;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use resident_core::Access;

use crate::grid::GridLimits;

pub use chain_call::{ChainCall, ChainInstance, ChainStep};
pub use failure::{BackendError, BackendErrorKind, FailureKind, FailureRecord, LeftOut, NoTime};
pub use gpu_source::{CudaSource, Entries, GpuCode, GpuSource};
pub use host_allocation::PinnedOptions;
pub use identifiers::DeviceKind;
pub use identifiers::{Address, StreamId};
pub use kernel_attributes::KernelAttributes;
pub use label::{AutomaticName, Label, LabelText, short_type};
pub use macro_value::MacroValue;
pub use program::{
    BodyKind, ElementLayout, KernelBody, KernelCode, LoadError, LoadedKernel, ModuleVariable,
    ParameterLayout, Program, rust_body, rust_body_that_may_leave_out,
};
pub use staged_bytes::{StagedBytes, StagingOwner};
pub use task_waker::TaskWaker;
pub use waiting_tasks::{Tasks, WaitingTasks};
pub use work::{
    Bytes, CopyWork, Copying, Dependencies, FillWork, HostMemory, LaunchCall, LaunchWork, Maker,
    Memory, OwnCopy, PackedArguments, PackedArray, SourceDevice, Work,
};

pub use resident_core::Position;
pub use resident_core::layout::{CopyBox, Footprint};

/// The memory of a device as its driver reports it, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capacity {
    /// All memory of the device.
    pub total: u64,
    /// Memory that can be allocated now.
    pub free: u64,
}

/// The memory that this library holds on a device or through it, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryUsage {
    /// Memory of live arrays. Managed memory counts, wherever its pages are.
    pub in_use: u64,
    /// Memory that is kept for reuse, or that is freed but still used by queued work.
    pub pooled: u64,
    /// Host memory that this library pinned (page-locked) for arrays through this device: pinned
    /// and mapped arrays, and arrays that are page-locked or lent. It is no memory of the device.
    /// Staging memory is not included.
    pub pinned: u64,
    /// The most that live arrays took at one time so far.
    pub peak: u64,
}

/// Memory that other code allocated, and the object that keeps it. Dropping the object runs the
/// other code's deleter, and may happen on any thread, with no lock held.
pub struct ForeignMemory {
    pub start: *mut u8,
    pub len_bytes: u64,
    pub owner: Box<dyn Any + Send + Sync>,
}

/// What does not change about a device while it is open.
#[derive(Clone, Copy, Debug)]
pub struct DeviceProperties {
    /// The bodies of kernels that it runs.
    pub body_kind: BodyKind,
    /// The largest grids of launches of host bodies. Loaded kernels have limits of their own.
    pub grid_limits: GridLimits,
    /// The poison byte, if the device uses one: `transfer` fills stale copies with it, so that
    /// tests detect reads of them.
    pub poison_byte: Option<u8>,
    /// The largest copy between pageable host memory and the device that should be one operation,
    /// in bytes. The caller splits larger copies.
    pub chunk_bytes_max: u64,
    /// The largest number of such operations of one call that should be in flight. The first half
    /// of them is on its way while the host packs the second half.
    pub chunks_in_flight_max: usize,
    /// The unit in which memory is committed to reserved addresses ([`Backend::reserve`]), in
    /// bytes; `None` if the device has no such memory.
    pub page_bytes: Option<u64>,
    /// The bytes that the device was made with, if it is emulated with a size.
    pub emulated_bytes: Option<u64>,
    /// Whether arrays use host memory in its place on the device ([`Backend::share`]).
    pub reaches_host_memory: bool,
    /// Whether a copy may be cheaper if it also reads what lies between its parts
    /// ([`CopyWork::may_read_between`]).
    pub reads_between_parts: bool,
    /// Whether queued work runs without a thread that waits for it or polls. In a simulation it
    /// does not.
    pub runs_by_itself: bool,
    /// Whether the device checks kernels, and so knows what launches left out of their outputs.
    pub knows_left_out: bool,
}

/// One device.
pub trait Backend: SourceDevice {
    fn kind(&self) -> DeviceKind;
    fn properties(&self) -> DeviceProperties;
    /// The device's number within its kind.
    fn ordinal(&self) -> usize;
    /// The device's name in messages, as in `cuda:0`.
    fn name(&self) -> String;
    /// The vendor's name of the device, as in `NVIDIA H200`.
    fn model(&self) -> String;
    fn capacity(&self) -> Result<Capacity, BackendError>;
    /// Bytes are in use from `allocate` until `free`. Freed bytes that queued work still uses, or
    /// that are kept for reuse, count as pooled.
    fn memory(&self) -> MemoryUsage;
    /// From now on, refuses an allocation that would bring the bytes in use above this limit, and
    /// keeps no more memory for reuse than the limit leaves; `None` removes it. Existing
    /// allocations stay.
    fn set_memory_limit(&self, len_bytes: Option<u64>);
    /// The most bytes that can be in use, if that is less than the driver has.
    fn memory_limit(&self) -> Option<u64>;
    /// Reserves addresses for this number of bytes, without memory. [`RawStream::free`] frees them
    /// with the memory that is committed to them then. Called only if there are `page_bytes`.
    fn reserve(&self, len_bytes: u64, label: &Label) -> Result<Address, BackendError>;
    /// Commits memory to pages of a reservation that have none. Work of all streams may use it from
    /// now on. Its contents are initialised but unspecified, as those of [`RawStream::allocate`].
    /// It counts as in use, and is refused as an allocation is; then none of the pages get any.
    /// Waits for queued work that decommits any of these pages. The caller holds no lock.
    fn commit(&self, pages: &PageRange, label: &Label) -> Result<(), BackendError>;
    /// The default stream. Called once, when the device is opened; an emulation does
    /// not count this call and cannot fail it.
    fn default_stream(&self) -> Result<Arc<dyn RawStream>, BackendError>;
    /// Creates another in-order stream, with one of `priorities` or the default one.
    fn new_stream(&self, priority: Option<i32>) -> Result<Arc<dyn RawStream>, BackendError>;
    /// The numbers of the least and of the greatest priority of a stream. A greater priority has a
    /// lower number, as in CUDA. Both are 0 if the device has no priorities.
    fn priorities(&self) -> Result<(i32, i32), BackendError>;
    /// Runs the completion actions of finished work and releases streams without handles. Does not
    /// wait. Call it with no lock held: it may drop any object.
    fn reap(&self);
    /// Waits for queued frees, then returns the memory kept for reuse to the driver. Called after
    /// an allocation failed.
    fn trim(&self) -> Result<(), BackendError>;
    /// Whether copies between this device and `peer` are direct. Copies that are not direct go
    /// through the host.
    fn can_access_peer(&self, peer: &dyn Backend) -> bool;
    /// Memory into which the caller packs an upload, pinned if the device needs that; its initial
    /// contents are unspecified. `None` if staging memory is used up, or ordinary memory will do.
    /// Memory of finished uploads is used again, first of those on `stream`, which gets the upload.
    /// The caller holds no lock.
    fn allocate_staging(&self, stream: &dyn RawStream, len_bytes: u64) -> Option<StagedBytes>;
    /// Called before simultaneous downloads of these lengths to pageable memory. Allocates their
    /// staging memory, while no lock is held.
    fn prepare_downloads(&self, lens_bytes: &[u64]);
    /// The length of the staging memory for a download of these parts that may also read what lies
    /// between them: that of the parts, or more if it reads more.
    fn staged_bytes(&self, parts: &[CopyBox]) -> u64;
    /// Pins host memory for this device until the returned value drops. `access` is that of the
    /// device: memory that it only reads may be mapped so that the process cannot write it.
    fn pin_host_memory(
        &self,
        start: *mut u8,
        len_bytes: usize,
        access: Access,
    ) -> Result<Box<dyn PinnedRegistration>, BackendError>;
    /// Whether this library pinned all of this host memory for this device, so that copies of it
    /// need no staging. It stays pinned while the caller borrows it.
    fn is_pinned(&self, start: *const u8, len_bytes: usize) -> bool;
    /// What is wrong with memory of other code that is to be taken over, if the driver knows: that
    /// it is of another device or of none, or shorter.
    fn foreign_fault(&self, address: u64, len_bytes: u64) -> Result<Option<String>, BackendError>;
    /// Takes over memory that this device's work can access, until a stream frees its address.
    /// Refuses memory that an array uses, unless it lies in memory that was handed out, which
    /// counts as in use already.
    ///
    /// # Safety
    ///
    /// The memory has initialised bytes, and is valid for reads of its length while its owner
    /// lives. So it is for writes if work writes it. Meanwhile nothing else writes it, and nothing
    /// else reads what work writes.
    unsafe fn take_over(&self, memory: ForeignMemory) -> Result<Address, BackendError>;
    /// The first element without contents in these parts of the memory at an address, if the device
    /// knows what launches left out. The work that writes the parts is complete.
    fn left_out(&self, address: Address, parts: &[Footprint]) -> Option<LeftOut>;
    /// Hands the memory that was allocated at this address to other code, until it is freed: a
    /// pointer to it; null if there is none.
    fn hand_out(&self, address: Address) -> *mut u8;
    /// The number by which other code finds the memory at an address that is allocated: a pointer
    /// to it where work runs in this process on this process's memory; 0 if there is no memory.
    fn external_address(&self, address: Address) -> u64;
    /// Whether the memory at an address may hold bytes of an array that was freed, which a guard
    /// must not show if nothing is written.
    fn may_have_leftovers(&self, address: Address) -> bool;
    /// Allocates pinned host memory for an array, at least one byte, all zeros.
    fn allocate_pinned(
        &self,
        len_bytes: usize,
        options: PinnedOptions,
    ) -> Result<Arc<dyn HostMemory>, BackendError>;
    /// Allocates pinned host memory that this device accesses itself, at least one byte, all zeros.
    /// It does not count as in use.
    fn allocate_mapped(
        &self,
        len_bytes: usize,
        options: PinnedOptions,
    ) -> Result<MappedMemory, BackendError>;
    /// Allocates managed memory, at least one byte: it moves between the host and this device,
    /// which both access it. Its contents are unspecified. It counts as in use, and is refused
    /// beyond what the device has free. The host accesses it also while the device does.
    fn allocate_managed(&self, len_bytes: usize) -> Result<MappedMemory, BackendError>;
    /// Pins host memory, which this device accesses itself, until the returned value drops.
    ///
    /// # Safety
    ///
    /// The bytes are initialised, and stay allocated until the returned value has dropped, which is
    /// after all work that uses them.
    unsafe fn map_host_memory(
        &self,
        start: *mut u8,
        len_bytes: usize,
    ) -> Result<(Address, Box<dyn PinnedRegistration>), BackendError>;
    /// Gives ordinary host memory, of at least one byte, an address on this device, until a stream
    /// frees it. It does not count as in use. Makes no driver call. Called only if the device
    /// `reaches_host_memory`.
    fn share(&self, memory: Arc<dyn HostMemory>) -> Result<Address, BackendError>;
    /// Takes the address back at once: no work uses it, and none is queued that does. Returns
    /// `false` if the memory stays in use, because the device died or belongs to a parent process.
    fn unshare(&self, address: Address) -> bool;
    /// Tells the driver at once how managed memory will be used, or that it will not be any more.
    fn advise(
        &self,
        managed: ManagedRange,
        advice: MemoryAdvice,
        change: AdviceChange,
    ) -> Result<(), BackendError>;
    /// Compiles device code if necessary, and loads it. The first call for a program is slow.
    fn load(&self, program: &Program) -> Result<KernelCode, LoadError>;
    /// A variable of the module that kernels of a program's source share. Compiles and loads the
    /// module if necessary; the program's parameters do not matter.
    fn variable(&self, program: &Program, name: &str)
    -> Result<Arc<dyn ModuleVariable>, LoadError>;
}

impl dyn Backend {
    /// This backend as a `T`, if that is its type.
    pub fn downcast_ref<T: Backend>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}

/// Memory that a device and the host access: its address on the device, which is freed as memory of
/// [`RawStream::allocate`] is, and the memory. It lives until the free has run and the handle has
/// dropped.
pub type MappedMemory = (Address, Arc<dyn HostMemory>);

/// Managed memory, from the start of its allocation.
#[derive(Clone, Copy, Debug)]
pub struct ManagedRange {
    pub address: Address,
    pub len_bytes: usize,
}

/// Pages of reserved addresses: bytes from a multiple of the device's `page_bytes` to another one,
/// or to the end of the reservation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PageRange {
    /// The address that was reserved.
    pub reservation: Address,
    /// Offsets from it.
    pub bytes: Range<u64>,
}

impl PageRange {
    pub fn len_bytes(&self) -> u64 {
        self.bytes.end.saturating_sub(self.bytes.start)
    }
}

/// CUDA's advice for managed memory (`CUmem_advise`). A place is the number of a device of the
/// backend's kind, or the host (`None`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryAdvice {
    ReadMostly,
    PreferredLocation(Option<usize>),
    AccessedBy(Option<usize>),
}

/// What happens to a piece of advice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AdviceChange {
    Set,
    Unset,
}

/// Where managed memory moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrefetchTarget {
    /// To the stream's device.
    Device,
    Host,
}

/// Whether an event measures time. Events that do cost more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventTiming {
    Disabled,
    Enabled,
}

/// Host memory that is registered with a driver (pinned) until this value drops. The memory must
/// outlive this value.
pub trait PinnedRegistration: Debug + Send + Sync + 'static {
    /// Unregisters the memory, which no queued work uses any more. Returns `false` if a device may
    /// still access it: the caller then passes the memory to `keep_until_unregistered`. May be
    /// called again.
    fn unregister(&mut self) -> bool;

    /// Takes ownership of memory that `unregister` could not unregister. Drops the memory once
    /// unregistering succeeds, or never.
    fn keep_until_unregistered(&mut self, memory: Arc<dyn Any + Send + Sync>);
}

/// One in-order stream of a device. Dropping the last handle does not wait; queued work still runs.
pub trait RawStream: Any + Debug + Send + Sync {
    fn id(&self) -> StreamId;
    /// The stream's priority, one of `Backend::priorities`.
    fn priority(&self) -> Result<i32, BackendError>;
    /// Allocates memory. Work that is submitted to this stream from now on may use it. Other
    /// streams may use it after waiting for an event that is recorded on this stream after the
    /// call.
    /// `len_bytes` is not zero. The contents are initialised but unspecified: zeros, poison bytes,
    /// or old contents of this process.
    fn allocate(&self, len_bytes: u64, label: &Label) -> Result<Address, BackendError>;
    /// Frees memory after all work queued here so far.
    fn free(&self, address: Address) -> Result<Position, BackendError>;
    /// Frees the memory of pages that all have some, after all work queued here so far. Until then
    /// it counts as pooled. The addresses stay reserved.
    fn decommit(&self, pages: &PageRange) -> Result<Position, BackendError>;
    /// Queues a copy, or leaves it to the calling thread, as `maker` allows. A call that returns
    /// [`Copying::Declined`] has changed nothing.
    fn copy(&self, work: Box<CopyWork>, maker: Maker) -> Result<Copying, BackendError>;
    /// Queues a fill.
    fn fill(&self, work: Box<FillWork>) -> Result<Position, BackendError>;
    /// Queues a launch. The caller holds no lock.
    fn launch(&self, launch: &mut LaunchCall<'_>) -> Result<Position, BackendError>;
    /// Queues replays of a chain, one after the other, as one operation that takes a position for
    /// each of its steps. Returns the last position: of `n` steps, step `i` of the last replay has
    /// the position `n - 1 - i` before it. No other operation and no event comes between them, so
    /// who waits for one of these positions waits for all.
    ///
    /// A step that fails is recorded in [`failure`] under its position, and so is each later step,
    /// as inherited; a failure in an earlier replay, for all steps. If the driver refuses a step
    /// after it has queued others, that is such a failure. The caller holds no lock.
    fn run_chain(&self, call: &mut ChainCall<'_>) -> Result<Position, BackendError>;
    /// Queues a copy of staging memory, from [`Backend::allocate_staging`], to device memory. Its
    /// failure loses no contents. For a few bytes this is cheaper than `copy`.
    fn write(
        &self,
        from: StagedBytes,
        to: Address,
        label: &Label,
    ) -> Result<Position, BackendError>;
    /// Copies a few bytes of device memory after all work queued so far, and waits for the copy.
    /// Returns `false` if it did not: because there are too many bytes, or `copy` does as well, or
    /// a call was refused, or work failed. The caller then queues a copy. `label` is made only if
    /// the device dies. The caller holds no lock.
    fn read(&self, from: Address, to: &mut [u8], label: &dyn Fn() -> Label) -> bool;
    /// Queues a hint that managed memory should move.
    fn prefetch(&self, managed: ManagedRange, to: PrefetchTarget)
    -> Result<Position, BackendError>;
    /// Queues an event, which completes when all work before it has completed.
    fn record(&self, timing: EventTiming) -> Result<Arc<dyn RawEvent>, BackendError>;
    /// Makes later work of this stream wait for `event`, which belongs to a stream of a device of
    /// the same kind.
    fn wait(&self, event: &dyn RawEvent) -> Result<(), BackendError>;
    /// The position of the operation submitted last.
    fn tail(&self) -> Position;
    /// A position after all work on the stream so far. This includes foreign work: work that other
    /// code queues on the stream, which it got from a guard or which the library adopted. If there
    /// can be no foreign work, this is `tail`.
    fn reserve_position(&self) -> Position;
    /// The last position known to have completed. Makes no driver call, so more work may already
    /// have completed.
    fn completed(&self) -> Position;
    /// Work at later positions cannot fail unless its device is lost, with all that runs there. So
    /// work of the same device need not name it as what it depends on. `u64::MAX` if each piece of
    /// work may fail by itself. Makes no driver call.
    fn fallible_upto(&self) -> Position;
    /// Blocks until all work up to `position` has completed or failed. A seeded device runs ready
    /// work meanwhile. Called on a thread that runs a kernel body, it returns
    /// `BackendErrorKind::InsideKernel` at once.
    fn synchronize_to(&self, position: Position) -> Result<(), BackendError>;
    /// Whether all work up to `position` has completed. Asks the driver. A seeded device runs one
    /// ready operation per call.
    fn poll(&self, position: Position) -> Result<bool, BackendError>;
    /// Wakes a task once all work up to `position` has completed, however much is queued behind it.
    /// Registering a task again for the same position adds nothing. On a seeded device, the task is
    /// also woken at once, since each poll runs one operation.
    fn register_waker(&self, position: Position, task: &Arc<TaskWaker>)
    -> Result<(), BackendError>;
}

impl dyn RawStream {
    /// This stream as a `T`, if that is its type.
    pub fn downcast_ref<T: RawStream>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }

    /// Queues work of any kind.
    pub fn submit(&self, work: Work) -> Result<Position, BackendError> {
        match work {
            Work::Copy(work) => self.copy(work, Maker::Stream).map(|copying| copying.position()),
            Work::Fill(work) => self.fill(work),
            Work::Launch(mut work) => self.launch(&mut work.as_call()),
        }
    }
}

/// A recorded event.
pub trait RawEvent: Any + Debug + Send + Sync {
    fn stream(&self) -> StreamId;
    /// The event's position in its stream.
    fn position(&self) -> Position;
    fn is_complete(&self) -> Result<bool, BackendError>;
    fn synchronize(&self) -> Result<(), BackendError>;
    /// The device time between two completed events that were recorded with timing. Any other pair
    /// is an error.
    fn elapsed_since(&self, earlier: &dyn RawEvent) -> Result<Duration, BackendError>;
}

impl dyn RawEvent {
    /// This event as a `T`, if that is its type.
    pub fn downcast_ref<T: RawEvent>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }
}
