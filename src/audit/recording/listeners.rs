//! The captures to which the calls of a thread count: its own, and those of all threads.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use super::block::RecordBlock;
use crate::audit::captures::timed::Times;
use crate::audit::reports::report::Report;
use crate::device::Device;
use crate::memory_use::{MemoryLog, PINNED_MEMORY};
use resident_backend::sync::{Mutex, ThreadList};
use resident_documents::DocumentMemoryUse;

/// The captures to which the calls of a thread count.
pub(super) type Captures = SmallVec<[Arc<Capture>; 2]>;

/// The running captures of all threads, how many they are, and how often they have changed.
static OF_ALL_THREADS: Mutex<Captures> = Mutex::new(Captures::new_const());
static OF_ALL_THREADS_COUNT: AtomicUsize = AtomicUsize::new(0);
static GENERATION: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The length of `CAPTURES`.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
    /// The captures of this thread, the outermost first.
    static CAPTURES: ThreadList<Arc<Capture>> = const { ThreadList::new() };
}

/// The report of a capture, without what is still in the logs of threads. It is shared with the
/// threads that count to the capture.
#[derive(Debug, Default)]
pub(in crate::audit) struct Capture {
    pub(in crate::audit) report: Mutex<Report>,
    /// Whether other threads than the one that made it may count to it.
    is_shared: AtomicBool,
    /// Of a capture of all threads: the captures of threads that count to it nevertheless. Threads
    /// in others work for other callers. `None` if all threads count.
    known: Option<Vec<Arc<Self>>>,
    /// Of a capture that has run.
    memory: OnceLock<MemoryLog>,
}

impl Capture {
    /// A capture of this thread and of all threads that are in no capture but those in which this
    /// one is now.
    pub(in crate::audit) fn of_work() -> Self {
        let known = CAPTURES.with(|captures| captures.read(<[_]>::to_vec));
        Self { known: Some(known), ..Self::default() }
    }

    /// Whether calls of a thread with these captures count, of a capture of all threads.
    fn counts(&self, own: &[Arc<Self>]) -> bool {
        let Some(known) = &self.known else { return true };
        let is_known = |one: &Arc<Self>| known.iter().any(|known| Arc::ptr_eq(known, one));
        own.iter().all(is_known)
    }

    pub(in crate::audit) fn add(&self, block: &Arc<RecordBlock>) {
        let operations = {
            let mut report = self.report.lock();
            report.add(block);
            let records = &report.records;
            records.are_too_many().then(|| records.oldest_operations())
        };
        if let Some(operations) = operations {
            let times = Times::of_operations(operations);
            self.report.lock().records.drop_oldest(&times);
        }
    }

    /// Begins to see what happens to memory.
    pub(in crate::audit) fn watch_memory(&self) {
        self.memory.get_or_init(MemoryLog::start);
    }

    /// What was in use of memory since the capture began. The caller holds no lock.
    pub(in crate::audit) fn memory(&self) -> Vec<DocumentMemoryUse> {
        let Some(log) = self.memory.get() else { return Vec::new() };
        let devices = Device::all_live();
        let places = devices.iter().map(|device| &**device.array_memory());
        log.uses(places.chain([&**PINNED_MEMORY]))
    }

    /// Forgets what happened to memory before.
    pub(in crate::audit) fn restart_memory(&self) {
        self.memory.get().into_iter().for_each(MemoryLog::restart);
    }

    /// As [`memory`](Self::memory), for the last time.
    pub(in crate::audit) fn end_memory(&self) -> Vec<DocumentMemoryUse> {
        let memory = self.memory();
        self.memory.get().into_iter().for_each(MemoryLog::end);
        memory
    }

    pub(in crate::audit) fn is_shared(&self) -> bool {
        self.is_shared.load(Ordering::Relaxed)
    }
}

/// This thread's own captures, for other threads too.
pub(in crate::audit) fn share_own() -> Vec<Arc<Capture>> {
    let captures = CAPTURES.with(|captures| captures.read(<[_]>::to_vec));
    captures.iter().for_each(|capture| capture.is_shared.store(true, Ordering::Relaxed));
    captures
}

/// Adds to this thread's own captures those that are not among them. Returns how many there were.
pub(in crate::audit) fn enter(captures: &[Arc<Capture>]) -> usize {
    CAPTURES.with(|own| {
        own.change(|own| {
            let depth = own.len();
            for capture in captures {
                if !own.iter().any(|known| Arc::ptr_eq(known, capture)) {
                    own.push(Arc::clone(capture));
                }
            }
            DEPTH.set(own.len());
            depth
        })
    })
}

/// Leaves only so many of this thread's own captures.
pub(in crate::audit) fn leave(depth: usize) {
    DEPTH.set(depth);
    let left: Captures = CAPTURES.with(|own| own.change(|own| own.drain(depth..).collect()));
    drop(left);
}

/// Lets the calls of all threads count to a capture.
pub(in crate::audit) fn attach(capture: &Arc<Capture>) {
    capture.is_shared.store(true, Ordering::Relaxed);
    let mut of_all = OF_ALL_THREADS.lock();
    of_all.push(Arc::clone(capture));
    note_change(&of_all);
}

pub(in crate::audit) fn detach(capture: &Arc<Capture>) {
    let mut of_all = OF_ALL_THREADS.lock();
    of_all.retain(|known| !Arc::ptr_eq(known, capture));
    note_change(&of_all);
}

/// Notes in the logs of threads that the captures of all threads have changed.
fn note_change(of_all: &Captures) {
    OF_ALL_THREADS_COUNT.store(of_all.len(), Ordering::Relaxed);
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// How often the captures of all threads have changed.
#[inline]
pub(super) fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

/// Whether calls of this thread count to any capture.
#[inline]
pub(in crate::audit) fn has_any() -> bool {
    OF_ALL_THREADS_COUNT.load(Ordering::Relaxed) > 0
        || DEPTH.try_with(|depth| depth.get() > 0).unwrap_or(false)
}

/// The captures to which calls of this thread count.
pub(in crate::audit) fn of_thread() -> Captures {
    let mut captures =
        CAPTURES.with(|own| own.read(|own| own.iter().cloned().collect::<Captures>()));
    let of_all: Captures = {
        let of_all = OF_ALL_THREADS.lock();
        of_all.iter().filter(|capture| capture.counts(&captures)).cloned().collect()
    };
    captures.extend(of_all);
    captures
}
