//! Records of single copies, launches, waits and allocations. Captures and `tracing` events are
//! made from them.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use smallvec::SmallVec;

use super::cause::Cause;
use crate::access::Access;
use crate::call_site::CallSite;
use crate::timeline::{self, WaitReason};
use crate::traffic::Direction;

/// Something that happened, when, and on which thread.
#[derive(Clone, Debug)]
pub(super) struct Record {
    /// When the host queued the work, or began to wait.
    pub(super) queued_ns: u64,
    pub(super) thread: Arc<str>,
    pub(super) event: Event,
}

/// What happened.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// A copy, and the launch that needed it.
    Copy {
        copy: CopyRecord,
        launch: Option<u64>,
    },
    Launch {
        launch: LaunchRecord,
        id: u64,
    },
    Wait(WaitRecord),
    Memory(MemoryRecord),
}

/// One copy that was queued.
#[derive(Clone, Debug)]
pub(crate) struct CopyRecord {
    pub(crate) direction: Direction,
    pub(crate) bytes: u64,
    /// How many of the bytes were up to date at the destination.
    pub(crate) padding: u64,
    /// The array's number, unique in the process.
    pub(crate) array_id: u64,
    pub(crate) array: Arc<str>,
    /// The type of the elements, with its path.
    pub(crate) element: &'static str,
    pub(crate) shape: SmallVec<[usize; 4]>,
    /// The device whose stream runs the copy; for a copy between two devices, the destination.
    pub(crate) device: Arc<str>,
    /// The source device of a copy between two devices.
    pub(crate) source: Option<Arc<str>>,
    pub(crate) stream: u32,
    pub(crate) span: QueueSpan,
    pub(crate) cause: Cause,
    /// The call that needed the bytes.
    pub(crate) site: CallSite,
    pub(crate) staleness: Staleness,
}

/// The operations of one copy or launch: the number of the stream's queue, and the first and the
/// last position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct QueueSpan {
    pub(crate) queue: u64,
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// One launch that was queued.
#[derive(Clone, Debug)]
pub(crate) struct LaunchRecord {
    /// `kernel "blur"`.
    pub(crate) title: Arc<str>,
    pub(crate) device: Arc<str>,
    pub(crate) stream: u32,
    pub(crate) span: QueueSpan,
    pub(crate) site: CallSite,
    pub(crate) arguments: SmallVec<[ArgumentRecord; 4]>,
}

/// An array argument of a launch, and what the kernel declares to do with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ArgumentRecord {
    pub(crate) array_id: u64,
    pub(crate) access: Access,
    pub(crate) is_whole: bool,
}

impl LaunchRecord {
    /// The kernel's name, which is in quotation marks in the title.
    pub(super) fn name(&self) -> &str {
        let quoted = self.title.strip_prefix("kernel \"").unwrap_or(&self.title);
        quoted.strip_suffix('"').unwrap_or(quoted)
    }
}

/// A wait of a thread for a stream.
#[derive(Clone, Debug)]
pub(super) struct WaitRecord {
    pub(super) device: Arc<str>,
    pub(super) stream: u32,
    pub(super) site: CallSite,
    pub(super) reason: WaitReason,
    pub(super) finished_ns: u64,
}

/// An allocation of device memory for an array, or an eviction.
#[derive(Clone, Debug)]
pub(crate) struct MemoryRecord {
    pub(crate) kind: MemoryEvent,
    pub(crate) bytes: u64,
    pub(crate) array_id: u64,
    pub(crate) array: Arc<str>,
    pub(crate) device: Arc<str>,
    pub(crate) site: CallSite,
}

/// What happened to an array's memory on a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MemoryEvent {
    Allocation,
    /// Its copy there was freed to make room for another array.
    Eviction,
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
    pub(super) fn since(self) -> Option<CallSite> {
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
}

impl Record {
    pub(super) fn copy(copy: CopyRecord) -> Self {
        let launch = (copy.cause == Cause::Launch).then(launch_of_thread);
        Self::now(Event::Copy { copy, launch })
    }

    pub(super) fn launch(launch: LaunchRecord) -> Self {
        let id = launch_of_thread();
        forget_launch();
        Self::now(Event::Launch { launch, id })
    }

    pub(super) fn wait(wait: &timeline::Wait<'_>) -> Self {
        let timeline::Wait { device, stream, site, reason, started_ns, finished_ns } = *wait;
        let event =
            Event::Wait(WaitRecord { device: device.into(), stream, site, reason, finished_ns });
        Self { queued_ns: started_ns, thread: thread_name(), event }
    }

    pub(super) fn now(event: Event) -> Self {
        Self { queued_ns: timeline::now_ns(), thread: thread_name(), event }
    }
}

/// The number of the launch that this thread prepares. While the thread's thread-locals are being
/// destroyed each call gets a number of its own.
fn launch_of_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let next = || NEXT.fetch_add(1, Ordering::Relaxed);
    let assigned = LAUNCH.try_with(|launch| {
        if launch.get() == 0 {
            launch.set(next());
        }
        launch.get()
    });
    assigned.unwrap_or_else(|_| next())
}

/// This thread's next launch is another one.
pub(super) fn forget_launch() {
    let _ = LAUNCH.try_with(|launch| launch.set(0));
}

/// The thread's name and its number.
fn thread_name() -> Arc<str> {
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
