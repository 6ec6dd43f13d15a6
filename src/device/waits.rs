//! When a stream records an event, and which waits between streams it spares.

use std::sync::Arc;

use super::Stream;
use super::stream_core::{KeptEvent, StreamCore, StreamId, StreamLog};
use resident_backend::call_site::{CallSite, call_site};
use resident_backend::timeline::WaitReason;
use resident_backend::{BackendError, EventTiming, Position, RawEvent};
use resident_core::ordering::UseEnd;

/// The number of recorded events that are kept for later waits. Without an old event, a later wait
/// uses a newer one, which covers more.
const EVENTS_KEPT: usize = 32;

/// After so many guesses that no wait used, a stream records no more events on a guess.
const UNUSED_GUESSES_MAX: u8 = 8;

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
            let mut log = self.log.lock();
            let is_after = |kept: &&KeptEvent| kept.position >= position;
            let found = log.events.iter().rev().take_while(is_after).last().cloned();
            // A wait that covers more than it needs is a reason to guess again.
            let is_late = found.is_none() && self.raw().tail() > position;
            if is_late || found.as_ref().is_some_and(|kept| kept.is_guess) {
                log.unused_guesses = 0;
            }
            if let Some(KeptEvent { event, .. }) = found {
                return Ok(event);
            }
        }
        let event = self.raw().record(EventTiming::Disabled)?;
        self.keep_event(Arc::clone(&event));
        Ok(event)
    }

    /// Keeps an event for later waits. Two threads may keep events in the wrong order: then
    /// `event_covering` may find a later one than it could.
    pub(super) fn keep_event(&self, event: Arc<dyn RawEvent>) {
        self.log.lock().keep(KeptEvent::needed(event));
    }

    /// Records an event for the work queued so far, if there is none yet, so that a later wait for
    /// that work does not wait for later work. If this fails, that wait records an event itself.
    pub(super) fn ensure_event_at_tail(&self) {
        let tail = self.raw().tail();
        if self.log.lock().has_event_at(tail) {
            return;
        }
        if let Ok(event) = self.raw().record(EventTiming::Disabled) {
            self.keep_event(event);
        }
    }

    /// As [`ensure_event_at_tail`](Self::ensure_event_at_tail), on the guess that another stream
    /// will wait: the last work follows work of another stream, so it may be one stage of several.
    /// Does nothing once such guesses were often wrong.
    fn guess_event_at_tail(&self) {
        let tail = self.raw().tail();
        let is_useless = {
            let log = self.log.lock();
            log.unused_guesses >= UNUSED_GUESSES_MAX || log.has_event_at(tail)
        };
        if is_useless {
            return;
        }
        if let Ok(event) = self.raw().record(EventTiming::Disabled) {
            let mut log = self.log.lock();
            log.unused_guesses += 1;
            log.keep(KeptEvent { is_guess: true, ..KeptEvent::needed(event) });
        }
    }
}

impl KeptEvent {
    /// An event for which something waits, or is expected to.
    fn needed(event: Arc<dyn RawEvent>) -> Self {
        let position = event.position();
        Self { event, position, is_guess: false }
    }
}

impl StreamLog {
    fn keep(&mut self, event: KeptEvent) {
        if self.events.len() == EVENTS_KEPT {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    fn has_event_at(&self, position: Position) -> bool {
        self.events.back().is_some_and(|kept| kept.position >= position)
    }
}

impl Stream {
    /// Orders later work of this stream after a use on `other`. Returns whether it had to wait:
    /// makes no driver call if the library knows that it is ordered already.
    pub(crate) fn order_after(&self, other: &Self, end: UseEnd) -> Result<bool, BackendError> {
        if self.is_ordered_after(other, end) {
            return Ok(false);
        }
        let event = other.core().event_covering(end)?;
        self.wait_for_event(other, &event, call_site()).map(|()| true)
    }

    /// Whether the library knows that later work of this stream comes after a use on `other`.
    pub(crate) fn is_ordered_after(&self, other: &Self, end: UseEnd) -> bool {
        self.id() == other.id()
            || other.core().is_done(end)
            || self.core().has_waited_for(other.id(), end)
    }

    /// Whether the driver of this stream can wait for events of `other`.
    pub(crate) fn is_of_kind_of(&self, other: &Self) -> bool {
        self.device == other.device || self.device.kind() == other.device.kind()
    }

    /// The last position of `other` up to which work may fail and this stream's later work run all
    /// the same. What fails at later positions takes this stream's device with it.
    pub(crate) fn survives_work_upto(&self, other: &Self) -> Position {
        if self.device == other.device { other.raw().fallible_upto() } else { Position(u64::MAX) }
    }

    /// Whether none of the stream's work can fail without all later work of it.
    #[inline]
    pub(crate) fn work_fails_as_one(&self) -> bool {
        let raw = self.raw();
        if raw.fallible_upto() == Position::START {
            return true;
        }
        // What is complete has not failed: else asking again would yield another answer.
        let completed = raw.completed();
        raw.fallible_upto() <= completed
    }

    /// As [`StreamCore::ensure_event_at_tail`].
    pub(crate) fn ensure_event_at_tail(&self) {
        self.core().ensure_event_at_tail();
    }

    /// As [`StreamCore::guess_event_at_tail`].
    pub(crate) fn guess_event_at_tail(&self) {
        self.core().guess_event_at_tail();
    }

    /// A position after all work so far, for a task or a thread that is woken when the work is
    /// complete, however much is queued behind it meanwhile.
    pub(super) fn position_to_await(&self) -> Position {
        if self.device.body_kind().is_on_host() {
            return self.raw().tail();
        }
        // Without an event only the whole stream can be asked, with what is queued behind. If the
        // driver refuses one, the first look at the position says why.
        let recorded = self.raw().record(EventTiming::Disabled);
        recorded.map_or_else(|_| self.raw().reserve_position(), |event| event.position())
    }

    /// Whether this thread can make a copy at once instead of the stream: threads of this process
    /// run the stream, and it is idle.
    pub(crate) fn is_idle_on_host(&self) -> bool {
        self.device.body_kind().is_on_host() && self.core().is_finished()
    }

    pub(super) fn wait_for_event(
        &self,
        other: &Self,
        event: &Arc<dyn RawEvent>,
        site: CallSite,
    ) -> Result<(), BackendError> {
        if self.is_of_kind_of(other) {
            self.raw().wait(&**event)?;
        } else {
            // No driver can wait for events of another driver, so the host waits. The work before
            // the event may be user code, which may take any lock.
            let (device, reason) = (&other.device.0.name, WaitReason::OtherKind);
            other.core().wait_until(device, event.position(), site, reason)?;
        }
        self.core().record_wait(other.id(), event.position());
        Ok(())
    }
}
