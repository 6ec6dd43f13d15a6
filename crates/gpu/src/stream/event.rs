//! A recorded event: a point in a stream.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::driver_event::DriverEvent;
use super::gpu_stream::GpuStream;
use resident_backend::{BackendError, NoTime, Position, RawEvent, StreamId};

pub(super) struct GpuEvent {
    pub(super) stream: Arc<GpuStream>,
    pub(super) position: Position,
    pub(super) event: Arc<DriverEvent>,
}

impl GpuEvent {
    /// Whether the event has a time. The error is the driver's.
    fn check_time(&self) -> Result<Result<(), NoTime>, BackendError> {
        if !self.event.has_timing() {
            return Ok(Err(NoTime::NotTaken));
        }
        Ok(if self.is_complete()? { Ok(()) } else { Err(NoTime::NotComplete) })
    }
}

impl RawEvent for GpuEvent {
    fn stream(&self) -> StreamId {
        self.stream.id
    }

    fn position(&self) -> Position {
        self.position
    }

    fn is_complete(&self) -> Result<bool, BackendError> {
        self.stream.poll_event(self.position, &self.event)
    }

    fn synchronize(&self) -> Result<(), BackendError> {
        self.stream.wait_for(self.position)
    }

    fn elapsed_since(&self, earlier: &dyn RawEvent) -> Result<Duration, BackendError> {
        let Some(earlier) = earlier.downcast_ref::<Self>() else {
            return Err(BackendError::different_clocks());
        };
        NoTime::or_both(earlier.check_time()?, self.check_time()?)?;
        let milliseconds = self.event.milliseconds_since(&earlier.event)?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1e3))
    }
}

impl fmt::Debug for GpuEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GpuEvent({:?}, position {})", self.stream.id, self.position.0)
    }
}
