//! A stream without its handle: the raw stream, and which of its failures were reported. `waits`
//! has its events and its waits for other streams.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use super::host_thread::{HostThread, Waiting};
use super::wait_span;
use resident_backend::call_site::CallSite;
use resident_backend::fork::{ForkMark, refusal_text};
use resident_backend::sync::{self, Mutex, StreamLevel};
use resident_backend::timeline::{Awaited, WaitReason};
use resident_backend::{
    BackendError, DeviceProperties, FailureKind, FailureRecord, Position, RawEvent, RawStream,
    failure,
};
use resident_core::ordering::UseEnd;

/// A stream's number, unique in the process.
pub(crate) use resident_backend::StreamId;

/// A stream without its device, which owns its default stream: a reference back would be a cycle.
pub(crate) struct StreamCore {
    id: StreamId,
    raw: Arc<dyn RawStream>,
    number: u32,
    pub(super) log: Mutex<StreamLog, StreamLevel>,
    host_thread: OnceLock<Arc<HostThread>>,
    /// Of the process with the thread that runs the stream.
    process: ForkMark,
}

// As of `DeviceShared`.
impl std::panic::RefUnwindSafe for StreamCore {}

/// The history of a stream.
#[derive(Default)]
pub(super) struct StreamLog {
    /// Events recorded here, the oldest first.
    pub(super) events: VecDeque<KeptEvent>,
    /// How many events were recorded on a guess since a wait last used one of them.
    pub(super) unused_guesses: u8,
    /// The last streams that this one waited for, and the positions that its later work is ordered
    /// after.
    pub(super) waits: SmallVec<[(StreamId, Position); 4]>,
    /// A `synchronize` has returned the failures up to this position.
    reported_upto: Position,
    /// Failures at later positions that another call has already returned.
    reported: BTreeSet<Position>,
}

/// A recorded event.
#[derive(Clone)]
pub(super) struct KeptEvent {
    pub(super) event: Arc<dyn RawEvent>,
    pub(super) position: Position,
    /// Whether it was recorded by [`StreamCore::guess_event_at_tail`].
    pub(super) is_guess: bool,
}

impl StreamCore {
    pub(super) fn new(raw: Arc<dyn RawStream>, number: u32) -> Self {
        let (log, host_thread) = (Mutex::new(StreamLog::default()), OnceLock::new());
        let process = ForkMark::new();
        Self { id: raw.id(), raw, number, log, host_thread, process }
    }

    /// Runs a function of the host after the work up to `position`. If the system refuses a thread,
    /// or this process is a forked child of the one that made the stream, the function is dropped.
    pub(super) fn add_host_function(
        &self,
        position: Position,
        properties: &DeviceProperties,
        run: Box<dyn FnOnce() + Send>,
    ) -> io::Result<()> {
        if !self.process.is_own() {
            sync::assert_none_held();
            drop(run);
            return Err(io::Error::other(refusal_text("this stream")));
        }
        let runs_by_itself = properties.runs_by_itself;
        let waiting = Waiting { raw: Arc::clone(&self.raw), position, runs_by_itself, run };
        self.host_thread.get_or_init(Arc::default).add(waiting)
    }

    #[inline]
    pub(crate) fn raw(&self) -> &dyn RawStream {
        &*self.raw
    }

    #[inline]
    pub(crate) fn id(&self) -> StreamId {
        self.id
    }

    /// The stream's number on its device.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Whether a use on this stream is known to be complete.
    #[inline]
    pub(crate) fn is_done(&self, end: UseEnd) -> bool {
        self.raw.completed() >= self.position_of(end)
    }

    /// Blocks until the work up to `position` is complete.
    pub(super) fn wait_until(
        &self,
        device: &str,
        position: Position,
        site: CallSite,
        reason: WaitReason,
    ) -> Result<(), BackendError> {
        sync::assert_none_held();
        let is_over = || self.raw.completed() >= position;
        let awaited = Awaited { device, stream: self.number, site, reason };
        wait_span::waiting(awaited, is_over, || self.raw.synchronize_to(position))
    }

    /// The position at which a use is complete; for an open use, a position after all work queued
    /// so far.
    #[inline]
    fn position_of(&self, end: UseEnd) -> Position {
        end.position().unwrap_or_else(|| self.raw.reserve_position())
    }

    /// Marks the first unreported failure up to `position` as reported, and returns it.
    pub(super) fn take_failure(&self, position: Position) -> Option<Arc<FailureRecord>> {
        let mut log = self.log.lock();
        while let Some((failed, record)) =
            failure::first_between(self.id(), log.reported_upto, position)
        {
            log.reported_upto = failed;
            if log.must_report(failed, &record) {
                return Some(record);
            }
        }
        None
    }

    /// Marks failures up to `position` as reported, up to the first that is no death of a device.
    pub(super) fn skip_device_deaths(&self, position: Position) {
        let mut log = self.log.lock();
        while let Some((failed, record)) =
            failure::first_between(self.id(), log.reported_upto, position)
            && record.kind == FailureKind::Device
        {
            log.reported_upto = failed;
        }
    }

    /// Whether all queued work is known to be complete.
    pub(super) fn is_finished(&self) -> bool {
        self.raw.completed() >= self.raw.tail()
    }

    /// Marks a failure as reported, because another call returns it: `synchronize` does not return
    /// it again.
    pub(crate) fn mark_reported(&self, position: Position) {
        let mut log = self.log.lock();
        if position > log.reported_upto {
            log.reported.insert(position);
        }
    }

    /// The first failures that `synchronize` has not returned, at most `max`.
    pub(crate) fn unreported_failures(&self, max: usize) -> Vec<Position> {
        let log = self.log.lock();
        let mut after = log.reported_upto;
        let mut unreported = Vec::new();
        while unreported.len() < max
            && let Some((failed, record)) =
                failure::first_between(self.id(), after, self.raw.tail())
        {
            after = failed;
            if log.must_report(failed, &record) {
                unreported.push(failed);
            }
        }
        unreported
    }

    /// Removes the marks of reported failures whose records were removed.
    pub(crate) fn forget_reported(&self) {
        let mut log = self.log.lock();
        let upto = log.reported_upto;
        log.reported
            .retain(|position| *position > upto && failure::at(self.id(), *position).is_some());
    }
}

impl StreamLog {
    /// Whether `synchronize` must return this failure. It returns only the origin of a failure, not
    /// the work that failed because of it.
    fn must_report(&self, position: Position, record: &FailureRecord) -> bool {
        !record.inherited && !is_silent(record) && !self.reported.contains(&position)
    }
}

/// Whether a failure is never reported: a failed fill with poison bytes damages no contents.
fn is_silent(record: &FailureRecord) -> bool {
    record.kind == FailureKind::Poison
}
