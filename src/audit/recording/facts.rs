//! What is recorded of single copies, launches and allocations: for the logs of threads, and for
//! `tracing` events.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use smallvec::SmallVec;

use super::cause::Cause;
use crate::device::{Device, Stream};
use crate::storage::Storage;
use crate::traffic::{Direction, Flow};
use resident_backend::call_site::CallSite;
use resident_backend::timeline;
use resident_core::Access;

/// One copy that is being queued.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copied<'a> {
    /// When its first operation was queued; 0 for now.
    pub(crate) queued_ns: u64,
    /// How long the calling thread was busy with it, if that is known.
    pub(crate) host_ns: Option<u64>,
    /// Whether it is between a GPU and pageable memory of the host.
    pub(crate) is_pageable: bool,
    /// Whether the array is an explicit one.
    pub(crate) is_explicit: bool,
    /// How many of the bytes have other values than before at the destination, if that is known.
    pub(crate) changed_bytes: Option<u64>,
    /// A hash of the bytes, if contents are compared and it is an upload of a whole array.
    pub(crate) contents_hash: Option<u64>,
    pub(crate) storage: &'a Storage,
    pub(crate) direction: Direction,
    pub(crate) bytes: u64,
    /// How many of the bytes were up to date at the destination before elements between stale
    /// parts were made stale there.
    pub(crate) padding: u64,
    /// The stream that runs the copy; for a copy between two devices, of the destination.
    pub(crate) stream: &'a Stream,
    /// The source device of a copy between two devices.
    pub(crate) source: Option<&'a Device>,
    /// The first and the last position in the stream.
    pub(crate) positions: (u64, u64),
    pub(crate) cause: Cause,
    /// The call that needed the bytes.
    pub(crate) site: CallSite,
    pub(crate) staleness: Staleness,
}

impl Copied<'_> {
    pub(in crate::audit) fn queued_at_ns(&self) -> u64 {
        if self.queued_ns > 0 { self.queued_ns } else { timeline::now_ns() }
    }
}

/// One launch that was queued.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Launched<'a> {
    /// `kernel "blur"`.
    pub(crate) title: &'a Arc<str>,
    pub(crate) stream: &'a Stream,
    pub(crate) position: u64,
    pub(crate) site: CallSite,
    /// The copies of a launcher that copies each array argument in and out.
    pub(crate) launcher: Flow,
}

/// An access that is no launch: of a guard, of a copy within a device, of a fill.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accessed<'a> {
    pub(crate) storage: &'a Storage,
    /// `None` for the host's copy.
    pub(crate) device: Option<&'a Device>,
    pub(crate) access: Access,
    pub(crate) is_whole: bool,
    pub(crate) site: CallSite,
}

/// An allocation of device memory for an array, or an eviction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryUse<'a> {
    pub(crate) kind: MemoryChange,
    pub(crate) storage: &'a Storage,
    pub(crate) device: &'a Device,
    pub(crate) bytes: u64,
    pub(crate) site: CallSite,
}

/// An array, as it was when an event named it.
#[derive(Clone, Debug)]
pub(in crate::audit) struct ArrayEntry {
    /// The array's number, unique in the process.
    pub(in crate::audit) id: u64,
    pub(in crate::audit) name: Arc<str>,
    /// The type of the elements, with its path.
    pub(in crate::audit) element: &'static str,
    pub(in crate::audit) shape: SmallVec<[usize; 4]>,
}

impl ArrayEntry {
    pub(in crate::audit) fn of(storage: &Storage) -> Self {
        Self {
            id: storage.number(),
            name: storage.name(),
            element: storage.element_path(),
            shape: SmallVec::from_slice(&storage.shape()),
        }
    }
}

/// A stream.
#[derive(Clone, Debug)]
pub(in crate::audit) struct StreamEntry {
    /// Its number, unique in the process.
    pub(in crate::audit) stream_id: u64,
    /// Its number on its device.
    pub(in crate::audit) number: u32,
    pub(in crate::audit) device: Arc<str>,
}

impl StreamEntry {
    pub(in crate::audit) fn of(stream: &Stream) -> Self {
        Self {
            stream_id: stream.id().0,
            number: stream.number(),
            device: stream.device_ref().name_shared(),
        }
    }
}

/// A copy for subscribers of `tracing`, and the launch that needed it, or 0.
#[derive(Clone, Debug)]
pub(in crate::audit) struct Record {
    pub(in crate::audit) queued_ns: u64,
    pub(in crate::audit) thread: Arc<str>,
    pub(in crate::audit) array: ArrayEntry,
    pub(in crate::audit) stream: StreamEntry,
    pub(in crate::audit) source: Option<Arc<str>>,
    pub(in crate::audit) direction: Direction,
    pub(in crate::audit) bytes: u64,
    pub(in crate::audit) padding: u64,
    pub(in crate::audit) positions: (u64, u64),
    pub(in crate::audit) cause: Cause,
    pub(in crate::audit) site: CallSite,
    pub(in crate::audit) staleness: Staleness,
    pub(in crate::audit) launch: u64,
}

/// The operations of one copy or launch: the stream's number in the process, and the first and the
/// last position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::audit) struct StreamSpan {
    pub(in crate::audit) stream_id: u64,
    pub(in crate::audit) first: u64,
    pub(in crate::audit) last: u64,
}

/// An array argument of a launch, and what the kernel declares to do with it, in one word: the
/// array's number, unique in the process, the number of the use, and four bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ArgumentRecord(u64);

impl ArgumentRecord {
    const WHOLE: u64 = 4;
    const EXPLICIT: u64 = 8;
    const BITS: u32 = 4;
    const USE_BITS: u32 = 16;

    /// Explicit arrays have a device that is their `home`.
    #[inline]
    pub(crate) fn new(
        storage: &Storage,
        access: Access,
        is_whole: bool,
        home: Option<&Device>,
    ) -> Self {
        let use_number = u64::from(storage.next_use()) << Self::BITS;
        let access = match access {
            Access::Read => 0,
            Access::ReadWrite => 1,
            Access::Overwrite => 2,
        };
        let array_id = storage.number() << (Self::USE_BITS + Self::BITS);
        let is_whole = if is_whole { Self::WHOLE } else { 0 };
        let is_explicit = if home.is_some() { Self::EXPLICIT } else { 0 };
        Self(array_id | use_number | is_explicit | is_whole | access)
    }

    pub(in crate::audit) fn array_id(self) -> u64 {
        self.0 >> (Self::USE_BITS + Self::BITS)
    }

    /// Which use of the array it is: see `Storage::next_use`.
    pub(in crate::audit) fn use_number(self) -> u16 {
        (self.0 >> Self::BITS) as u16
    }

    pub(in crate::audit) fn access(self) -> Access {
        match self.0 & (Self::WHOLE - 1) {
            0 => Access::Read,
            1 => Access::ReadWrite,
            _ => Access::Overwrite,
        }
    }

    /// Whether it is an explicit array, which no launcher copies.
    pub(in crate::audit) fn is_explicit(self) -> bool {
        self.0 & Self::EXPLICIT != 0
    }

    pub(in crate::audit) fn is_whole(self) -> bool {
        self.0 & Self::WHOLE != 0
    }
}

/// A copy to memory outside its array that was dropped before anybody took it.
#[derive(Clone, Debug)]
pub(crate) struct Discarded {
    pub(in crate::audit) array: ArrayEntry,
    pub(in crate::audit) device: Arc<str>,
    pub(in crate::audit) bytes: u64,
    /// The call that asked for it.
    pub(in crate::audit) site: CallSite,
}

/// A message that another crate sent to another process, or received from one.
#[derive(Clone, Debug)]
pub(in crate::audit) struct MessageRecord {
    pub(in crate::audit) thread: Arc<str>,
    /// The array's name.
    pub(in crate::audit) array: Arc<str>,
    /// Whose memory the message was in.
    pub(in crate::audit) device: Arc<str>,
    pub(in crate::audit) direction: Direction,
    pub(in crate::audit) bytes: u64,
    /// The rank of the other process.
    pub(in crate::audit) peer: Option<u32>,
    pub(in crate::audit) site: CallSite,
    /// When it was recorded.
    pub(in crate::audit) recorded_ns: u64,
    /// How long the calling thread had waited for it.
    pub(in crate::audit) waited_ns: u64,
}

/// A barrier of all processes, which this one has left.
#[derive(Clone, Copy, Debug)]
pub(in crate::audit) struct BarrierRecord {
    /// How many this process had left before.
    pub(in crate::audit) number: u64,
    pub(in crate::audit) left_ns: u64,
    pub(in crate::audit) waited_ns: u64,
    pub(in crate::audit) site: CallSite,
}

/// What happened to an array's memory on a device, for subscribers of `tracing`.
#[derive(Clone, Debug)]
pub(in crate::audit) struct MemoryRecord {
    pub(in crate::audit) notice: MemoryNotice,
    pub(in crate::audit) bytes: u64,
    /// The array's name.
    pub(in crate::audit) array: Arc<str>,
    pub(in crate::audit) device: Arc<str>,
    /// `None` if the array was dropped.
    pub(in crate::audit) site: Option<CallSite>,
}

impl MemoryRecord {
    pub(in crate::audit) fn of(
        notice: MemoryNotice,
        storage: &Storage,
        device: &Device,
        bytes: u64,
        site: CallSite,
    ) -> Self {
        let (array, device) = (storage.name(), device.name_shared());
        Self { notice, bytes, array, device, site: Some(site) }
    }
}

/// The changes of an array's memory on a device that are reported to subscribers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MemoryNotice {
    /// The array has got memory, or taken it over from others.
    Allocation,
    /// The array has given its memory back, or to others.
    Free,
    Eviction,
}

impl MemoryNotice {
    pub(in crate::audit) fn as_str(self) -> &'static str {
        match self {
            Self::Allocation => "allocation",
            Self::Free => "free",
            Self::Eviction => "eviction",
        }
    }
}

/// What happened to an array's memory on a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MemoryChange {
    Allocation,
    /// Its copy there was freed to make room for another array.
    Eviction,
    /// A copy of it to other memory was dropped before anybody took it.
    Discard,
}

/// Why the bytes of a copy were not valid at its destination.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Staleness {
    /// The bytes were never valid there.
    NeverThere,
    /// Unknown, or irrelevant because the copy overwrites its destination.
    Unreported,
    /// The last call that made any of the bytes stale at the destination.
    Since(CallSite),
}

impl Staleness {
    pub(in crate::audit) fn since(self) -> Option<CallSite> {
        match self {
            Self::Since(site) => Some(site),
            Self::NeverThere | Self::Unreported => None,
        }
    }
}

thread_local! {
    /// The name of this thread in records, once it is needed.
    static THREAD: Cell<Option<Arc<str>>> = const { Cell::new(None) };
    /// The launch that this thread prepares, once a copy needs its number; else 0.
    static LAUNCH: Cell<u64> = const { Cell::new(0) };
    /// When this thread called the launch that it prepares; 0 if it was not noted.
    static CALLED_NS: Cell<u64> = const { Cell::new(0) };
    /// The number of this thread's next launch; a multiple of the reserve if none is reserved.
    static NEXT_LAUNCH: Cell<u64> = const { Cell::new(0) };
}

impl Record {
    pub(in crate::audit) fn of(copied: &Copied<'_>, launch: u64) -> Self {
        let Copied { direction, bytes, padding, positions, cause, site, staleness, .. } = *copied;
        Self {
            queued_ns: copied.queued_at_ns(),
            thread: thread_name(),
            array: ArrayEntry::of(copied.storage),
            stream: StreamEntry::of(copied.stream),
            source: copied.source.map(Device::name_shared),
            direction,
            bytes,
            padding,
            positions,
            cause,
            site,
            staleness,
            launch,
        }
    }
}

/// The number of launches that a thread reserves at a time.
const LAUNCHES_RESERVED: u64 = 1 << 10;

/// The number of the launch that this thread prepares, unique in the process. While the thread's
/// thread-locals are being destroyed each call gets a number of its own.
pub(in crate::audit) fn launch_of_thread() -> u64 {
    let assigned = LAUNCH.try_with(|launch| {
        if launch.get() == 0 {
            launch.set(next_launch());
        }
        launch.get()
    });
    assigned.unwrap_or_else(|_| reserve_launches())
}

fn next_launch() -> u64 {
    let next = NEXT_LAUNCH.try_with(|next| {
        if next.get().is_multiple_of(LAUNCHES_RESERVED) {
            next.set(reserve_launches());
        }
        next.replace(next.get() + 1)
    });
    next.unwrap_or_else(|_| reserve_launches())
}

/// The first of some numbers that no other launch gets.
#[cold]
fn reserve_launches() -> u64 {
    static RESERVED: AtomicU64 = AtomicU64::new(0);
    1 + RESERVED.fetch_add(LAUNCHES_RESERVED, Ordering::Relaxed)
}

/// Notes that this thread calls a launch.
pub(in crate::audit) fn note_call() {
    let _ = CALLED_NS.try_with(|called_ns| called_ns.set(timeline::now_ns()));
}

/// When this thread called the launch that it prepares; 0 if it was not noted.
pub(in crate::audit) fn called_ns() -> u64 {
    CALLED_NS.try_with(Cell::get).unwrap_or(0)
}

/// This thread's next launch is another one.
pub(in crate::audit) fn forget_launch() {
    let _ = LAUNCH.try_with(|launch| launch.set(0));
}

/// The kernel's name, which is in quotation marks in its title: `kernel "blur"`. Of other titles,
/// such as `chain "two steps"`, all.
pub(in crate::audit) fn kernel_name(title: &str) -> &str {
    let quoted = title.strip_prefix("kernel \"");
    quoted.and_then(|quoted| quoted.strip_suffix('"')).unwrap_or(title)
}

/// The thread's name and its number.
pub(in crate::audit) fn thread_name() -> Arc<str> {
    let known = THREAD.try_with(|name| {
        let known = name.take().unwrap_or_else(new_thread_name);
        name.set(Some(Arc::clone(&known)));
        known
    });
    known.unwrap_or_else(|_| "an ending thread".into())
}

fn new_thread_name() -> Arc<str> {
    let thread = thread::current();
    let number = format!("{:?}", thread.id()).replace("ThreadId(", "thread ").replace(')', "");
    match thread.name() {
        None => number.into(),
        Some("main") => "main".into(),
        // The threads of a pool often have one name.
        Some(name) => format!("{name} ({number})").into(),
    }
}
