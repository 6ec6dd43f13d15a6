//! When a stream records an event, and which waits between streams it spares.

use std::sync::Arc;

use super::Stream;
use super::stream_core::{StreamCore, StreamId};
use crate::backend::{BackendError, Position, RawEvent};
use crate::ordering::UseEnd;
use crate::sync;

/// The number of recorded events that are kept for later waits. Without an old event, a later wait
/// uses a newer one, which covers more.
const EVENTS_KEPT: usize = 32;

/// The number of streams whose waits are remembered. A forgotten wait may be made again.
const WAITS_KEPT: usize = 32;

impl StreamCore {
    /// Whether later work of this stream is known to come after `end` of `other`, because of an
    /// earlier wait.
    pub(super) fn has_waited_for(&self, other: StreamId, end: UseEnd) -> bool {
        let Some(position) = end.position() else { return false };
        self.log.lock().waits.iter().any(|(stream, upto)| *stream == other && *upto >= position)
    }

    pub(super) fn record_wait(&self, other: StreamId, upto: Position) {
        let mut log = self.log.lock();
        match log.waits.iter_mut().find(|(stream, _)| *stream == other) {
            Some((_, known)) => *known = (*known).max(upto),
            None => {
                if log.waits.len() == WAITS_KEPT {
                    log.waits.remove(0);
                }
                log.waits.push((other, upto));
            }
        }
    }

    /// The earliest kept event that covers `end`, or a new one, which covers all work so far.
    fn event_covering(&self, end: UseEnd) -> Result<Arc<dyn RawEvent>, BackendError> {
        if let Some(position) = end.position() {
            let log = self.log.lock();
            if let Some(event) = log.events.iter().find(|event| event.position() >= position) {
                return Ok(Arc::clone(event));
            }
        }
        let event = self.queue().record(false)?;
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
    /// that work does not wait for later work. If this fails, that wait records an event itself.
    pub(super) fn ensure_event_at_tail(&self) {
        let tail = self.queue().tail();
        if self.log.lock().events.back().is_some_and(|event| event.position() >= tail) {
            return;
        }
        if let Ok(event) = self.queue().record(false) {
            self.keep_event(event);
        }
    }
}

impl Stream {
    /// Orders later work of this stream after a use on `other`. Makes no driver call if the library
    /// knows that it is ordered already.
    pub(crate) fn order_after(&self, other: &Self, end: UseEnd) -> Result<(), BackendError> {
        if self.is_ordered_after(other, end) {
            return Ok(());
        }
        let event = other.core().event_covering(end)?;
        self.wait_for_event(other, &event)
    }

    /// Whether the library knows that later work of this stream comes after a use on `other`.
    pub(crate) fn is_ordered_after(&self, other: &Self, end: UseEnd) -> bool {
        self.id() == other.id()
            || other.core().is_done(end)
            || self.core().has_waited_for(other.id(), end)
    }

    /// As [`StreamCore::ensure_event_at_tail`].
    pub(crate) fn ensure_event_at_tail(&self) {
        self.core().ensure_event_at_tail();
    }

    pub(super) fn wait_for_event(
        &self,
        other: &Self,
        event: &Arc<dyn RawEvent>,
    ) -> Result<(), BackendError> {
        if self.device.kind() == other.device.kind() {
            self.queue().wait(&**event)?;
        } else {
            // No driver can wait for events of another driver, so the host waits. The work before
            // the event may be user code, which may take any lock.
            sync::assert_none_held();
            event.synchronize()?;
        }
        self.core().record_wait(other.id(), event.position());
        Ok(())
    }
}
