//! The logs of threads: what a thread has recorded that its captures have not taken yet.
//!
//! A log has one open block, whose events count to the same captures: when these change, when the
//! block is full, when the thread ends and when a report is read, the block is closed and
//! passed to them. The thread takes a short lock for each event, for which only readers of reports
//! compete with it, once for each report.

use std::sync::Arc;

use super::block::open::OpenBlock;
use super::facts::thread_name;
use super::listeners::{self, Captures};
use resident_backend::sync::{AuditLevel, Mutex, ShortLock};

/// The logs of all threads that have one.
static LOGS: Mutex<Vec<Arc<Log>>> = Mutex::new(Vec::new());

/// Says that the captures of a log are unknown.
const UNKNOWN: u64 = u64::MAX;

/// What a thread has recorded.
#[derive(Debug)]
struct Log {
    events: ShortLock<Events>,
    /// Held while a block is taken from `events` and passed on, so that a reader that finds no
    /// events has waited until the captures have those that were there before.
    passing_on: Mutex<(), AuditLevel>,
}

/// What is in a log.
#[derive(Debug)]
struct Events {
    open: OpenBlock,
    /// To which captures the events count.
    captures: Captures,
    /// The generation of the captures of all threads to which `captures` belongs.
    generation: u64,
}

/// The log of a thread, which ends with it.
struct Own(Arc<Log>);

thread_local! {
    static OWN: Own = Own::new();
}

impl Own {
    fn new() -> Self {
        let log = Arc::new(Log::new());
        LOGS.lock().push(Arc::clone(&log));
        Self(log)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        self.0.settle();
        LOGS.lock().retain(|log| !Arc::ptr_eq(log, &self.0));
    }
}

impl Log {
    fn new() -> Self {
        let open = OpenBlock::new(thread_name());
        let events = Events { open, captures: Captures::new(), generation: UNKNOWN };
        Self { events: ShortLock::new(events), passing_on: Mutex::new(()) }
    }

    /// Appends events, if a capture wants them. Called on the log's thread.
    #[inline]
    fn append(&self, add: impl FnOnce(&mut OpenBlock)) {
        let generation = listeners::generation();
        let mut events = self.events.lock();
        if events.generation != generation {
            drop(events);
            self.settle();
            // Only the log's own thread finds out its captures.
            let captures = listeners::of_thread();
            events = self.events.lock();
            (events.captures, events.generation) = (captures, generation);
        }
        if events.captures.is_empty() {
            return;
        }
        add(&mut events.open);
        if events.open.is_full() {
            drop(events);
            self.settle();
        }
    }

    /// Passes the events to their captures, which may end then.
    #[cold]
    fn settle(&self) {
        let _passing_on = self.passing_on.lock();
        let (block, captures) = {
            let mut events = self.events.lock();
            events.generation = UNKNOWN;
            (events.open.close(), std::mem::take(&mut events.captures))
        };
        if let Some(block) = block.map(Arc::new) {
            captures.iter().for_each(|capture| capture.add(&block));
        }
    }
}

/// Appends events to this thread's log. While the thread's thread-locals are being destroyed, they
/// are passed on at once. May be called with the locks of arrays, devices and streams held.
#[inline]
pub(in crate::audit) fn append(add: impl FnOnce(&mut OpenBlock)) {
    let mut add = Some(add);
    let mut append = |log: &Log| add.take().into_iter().for_each(|add| log.append(add));
    if OWN.try_with(|own| append(&own.0)).is_err() {
        let log = Log::new();
        append(&log);
        log.settle();
    }
}

/// Passes this thread's events to the captures to which it counts until now.
pub(in crate::audit) fn settle_own() {
    // A log that ends has passed on its events.
    let _ = OWN.try_with(|own| own.0.settle());
}

/// Passes the events of all threads to their captures: what was queued before the call is in their
/// reports after it. If another reader passes events on, waits for it.
pub(in crate::audit) fn settle_all() {
    let logs = LOGS.lock().clone();
    logs.iter().for_each(|log| log.settle());
}
