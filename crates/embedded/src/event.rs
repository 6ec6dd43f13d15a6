//! Events: a position of a stream, with an optional time.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::engine::{StreamPoint, Streams};
use super::race_check::VectorClock;
use resident_backend::{BackendError, EventTiming, NoTime, Position, RawEvent, StreamId};

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
    /// The event's time.
    fn time_ns(&self) -> Result<u64, NoTime> {
        let has_timing = self.timing == EventTiming::Enabled;
        let timestamp = self.point.timestamp.as_ref().filter(|_| has_timing);
        let timestamp = timestamp.ok_or(NoTime::NotTaken)?;
        if self.point.is_complete() { Ok(timestamp.get()) } else { Err(NoTime::NotComplete) }
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
            .ok_or_else(BackendError::different_clocks)?;
        let (earlier_ns, later_ns) = NoTime::or_both(earlier.time_ns(), self.time_ns())?;
        Ok(Duration::from_nanos(later_ns.saturating_sub(earlier_ns)))
    }
}

impl fmt::Debug for EmbeddedEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (stream, position) = (&self.point.stream, self.point.position.0);
        let (device, number) = (stream.device.ordinal, stream.number);
        write!(f, "EmbeddedEvent({device}.{number}, position {position})")
    }
}
