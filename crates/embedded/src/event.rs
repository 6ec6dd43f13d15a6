//! Events: a position of a stream, with an optional time.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::engine::{StreamPoint, Streams};
use super::race_check::VectorClock;
use resident_backend::{BackendError, BackendErrorKind, EventTiming, Position, RawEvent, StreamId};

/// A recorded event.
pub(crate) struct EmbeddedEvent {
    pub(super) point: StreamPoint,
    pub(super) timing: EventTiming,
    /// The operations of emulated devices that happen before the event.
    pub(super) clock: VectorClock,
    /// Keeps the simulation alive, so that a thread can wait for the event after all other handles
    /// have dropped.
    pub(super) _streams: Arc<Streams>,
}

impl EmbeddedEvent {
    /// The event's time, if it was recorded with timing and is complete.
    fn time_ns(&self) -> Option<u64> {
        let has_timing = self.timing == EventTiming::Enabled;
        let timestamp = self.point.timestamp.as_ref().filter(|_| has_timing)?;
        self.point.is_complete().then(|| timestamp.get())
    }
}

impl RawEvent for EmbeddedEvent {
    fn stream(&self) -> StreamId {
        self.point.stream.progress.id()
    }

    fn position(&self) -> Position {
        self.point.position
    }

    fn is_complete(&self) -> Result<bool, BackendError> {
        self.point.stream.device.check_usable("is_complete")?;
        Ok(self.point.stream.poll(self.point.position))
    }

    fn synchronize(&self) -> Result<(), BackendError> {
        self.point.stream.device.check_usable("synchronize")?;
        self.point.stream.synchronize(self.point.position)
    }

    fn elapsed_since(&self, earlier: &dyn RawEvent) -> Result<Duration, BackendError> {
        let is_seeded = self.point.stream.is_seeded();
        let earlier = earlier
            .downcast_ref::<Self>()
            .filter(|earlier| earlier.point.stream.is_seeded() == is_seeded)
            .ok_or_else(|| no_timing("the two events are timed by different clocks"))?;
        match (self.time_ns(), earlier.time_ns()) {
            (Some(later_ns), Some(earlier_ns)) => {
                Ok(Duration::from_nanos(later_ns.saturating_sub(earlier_ns)))
            }
            _ => Err(no_timing("both events must be recorded with timing, and be complete")),
        }
    }
}

impl fmt::Debug for EmbeddedEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (stream, position) = (&self.point.stream, self.point.position.0);
        let (device, number) = (stream.device.ordinal, stream.number);
        write!(f, "EmbeddedEvent({device}.{number}, position {position})")
    }
}

fn no_timing(detail: &str) -> BackendError {
    BackendError {
        kind: BackendErrorKind::NoTiming,
        call: "elapsed_since",
        detail: detail.to_owned(),
    }
}
