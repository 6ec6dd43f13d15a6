//! The records of one stream: events, waits for other streams, and reported failures.

use std::collections::VecDeque;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::backend::{
    BackendError, FailureKind, FailureRecord, Position, Queue, QueueId, RawEvent, failure,
};
use crate::ordering::UseEnd;
use crate::sync::{self, Mutex, StreamLevel};

/// A stream's number, unique in the process.
pub(crate) type StreamId = QueueId;

/// The number of recorded events that are kept for later waits. When an old event has been
/// discarded, a wait uses a newer event, which covers more work.
const EVENTS_KEPT: usize = 32;

/// A stream without its device. The device is not included, because a device owns its default
/// stream, and the two would keep each other alive.
pub(crate) struct StreamCore {
    id: StreamId,
    queue: Arc<dyn Queue>,
    number: u32,
    log: Mutex<StreamLog, StreamLevel>,
}

/// The history of a stream.
#[derive(Default)]
struct StreamLog {
    /// Events recorded here, the oldest first.
    events: VecDeque<Arc<dyn RawEvent>>,
    /// Other streams, with the position up to which their work runs before later work of this
    /// stream.
    waits: SmallVec<[(StreamId, Position); 4]>,
    /// A `synchronize` has returned the failures up to this position.
    reported_upto: Position,
    /// Failures at later positions that another call has already returned.
    reported: SmallVec<[Position; 2]>,
}

impl StreamCore {
    pub(super) fn new(queue: Arc<dyn Queue>, number: u32) -> Self {
        Self { id: queue.id(), queue, number, log: Mutex::new(StreamLog::default()) }
    }

    #[inline]
    pub(crate) fn queue(&self) -> &dyn Queue {
        &*self.queue
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
        self.queue.completed() >= self.position_of(end)
    }

    /// Blocks until a use on this stream is complete.
    pub(crate) fn wait_until_done(&self, end: UseEnd) -> Result<(), BackendError> {
        sync::assert_none_held();
        self.queue.synchronize_to(self.position_of(end))
    }

    /// The position at which a use is complete; for an open use, a position after all work queued
    /// so far.
    #[inline]
    fn position_of(&self, end: UseEnd) -> Position {
        end.position().unwrap_or_else(|| self.queue.reserve_position())
    }

    /// Whether an earlier wait ensures that later work of this stream runs after `end` of `other`.
    pub(super) fn has_waited_for(&self, other: StreamId, end: UseEnd) -> bool {
        let Some(position) = end.position() else { return false };
        self.log.lock().waits.iter().any(|(stream, upto)| *stream == other && *upto >= position)
    }

    pub(super) fn record_wait(&self, other: StreamId, upto: Position) {
        let mut log = self.log.lock();
        match log.waits.iter_mut().find(|(stream, _)| *stream == other) {
            Some((_, known)) => *known = (*known).max(upto),
            None => log.waits.push((other, upto)),
        }
    }

    /// The earliest kept event that covers `end`, or a new event, which covers all work so far.
    pub(super) fn event_covering(&self, end: UseEnd) -> Result<Arc<dyn RawEvent>, BackendError> {
        if let Some(position) = end.position() {
            let log = self.log.lock();
            if let Some(event) = log.events.iter().find(|event| event.position() >= position) {
                return Ok(Arc::clone(event));
            }
        }
        let event = self.queue.record(false)?;
        self.keep_event(Arc::clone(&event));
        Ok(event)
    }

    /// Keeps an event for later waits. Two threads may keep events in the wrong order;
    /// `event_covering` tolerates this.
    pub(super) fn keep_event(&self, event: Arc<dyn RawEvent>) {
        let mut log = self.log.lock();
        if log.events.len() == EVENTS_KEPT {
            log.events.pop_front();
        }
        log.events.push_back(event);
    }

    /// Records an event for the work queued so far, if there is none yet, so that a later wait for
    /// that work covers only that work. If this fails, the later wait records an event itself.
    pub(super) fn ensure_event_at_tail(&self) {
        let tail = self.queue.tail();
        if self.log.lock().events.back().is_some_and(|event| event.position() >= tail) {
            return;
        }
        if let Ok(event) = self.queue.record(false) {
            self.keep_event(event);
        }
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

    /// Marks failures up to `position` as reported, up to the first that is not a device loss.
    pub(super) fn skip_device_losses(&self, position: Position) {
        let mut log = self.log.lock();
        while let Some((failed, record)) =
            failure::first_between(self.id(), log.reported_upto, position)
            && record.kind == FailureKind::Device
        {
            log.reported_upto = failed;
        }
    }

    /// Whether all queued work is complete and all its failures are reported.
    pub(super) fn is_finished(&self) -> bool {
        let tail = self.queue.tail();
        if self.queue.completed() < tail {
            return false;
        }
        let log = self.log.lock();
        let mut after = log.reported_upto;
        while let Some((position, record)) = failure::first_between(self.id(), after, tail) {
            if log.must_report(position, &record) {
                return false;
            }
            after = position;
        }
        true
    }

    /// Marks a failure as reported, because another call returns it: `synchronize` does not return
    /// it again.
    pub(crate) fn mark_reported(&self, position: Position) {
        let mut log = self.log.lock();
        if position > log.reported_upto && !log.reported.contains(&position) {
            log.reported.push(position);
        }
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
