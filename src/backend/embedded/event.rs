//! Events: a position of a lane, and perhaps a time.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::operation::Point;
use super::order::Order;
use super::queue;
use super::seeded::World;
use crate::backend::{BackendError, BackendErrorKind, Position, QueueId, RawEvent};

/// A recorded event.
pub(crate) struct EmbeddedEvent {
    point: Point,
    timing: bool,
    /// What comes before it, for the check of ordering.
    order: Option<Order>,
    /// Keeps the world alive, so that the event can still be waited for when it is the last handle.
    _world: Option<Arc<World>>,
}

impl EmbeddedEvent {
    /// The event at `point`.
    pub(super) fn new(
        point: Point,
        timing: bool,
        order: Option<Order>,
        world: Option<Arc<World>>,
    ) -> Self {
        Self { point, timing, order, _world: world }
    }

    /// What comes before it, on emulated devices.
    pub(super) fn order(&self) -> Option<&Order> {
        self.order.as_ref()
    }

    /// What is waited for.
    pub(super) fn point(&self) -> &Point {
        &self.point
    }

    /// Its time, if it was recorded with one and is complete.
    fn time_ns(&self) -> Option<u64> {
        let stamp = self.point.stamp.as_ref().filter(|_| self.timing)?;
        self.point.is_complete().then(|| stamp.get())
    }
}

impl RawEvent for EmbeddedEvent {
    fn queue(&self) -> QueueId {
        self.point.lane.progress().id()
    }

    fn position(&self) -> Position {
        self.point.position
    }

    fn is_complete(&self) -> Result<bool, BackendError> {
        Ok(queue::poll_in(&self.point.lane, self.point.position))
    }

    fn synchronize(&self) -> Result<(), BackendError> {
        if self.point.is_complete() {
            Ok(())
        } else {
            queue::wait_in(&self.point.lane, self.point.position)
        }
    }

    fn elapsed_since(&self, earlier: &dyn RawEvent) -> Result<Duration, BackendError> {
        let earlier = earlier
            .downcast_ref::<Self>()
            .filter(|earlier| earlier.point.lane.is_seeded() == self.point.lane.is_seeded());
        let earlier =
            earlier.ok_or_else(|| no_timing("the two events are timed by different clocks"))?;
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
        let lane = &self.point.lane;
        write!(
            f,
            "EmbeddedEvent({}.{}, position {})",
            lane.device().ordinal,
            lane.number(),
            self.point.position.0
        )
    }
}

fn no_timing(detail: &str) -> BackendError {
    BackendError {
        kind: BackendErrorKind::NoTiming,
        call: "elapsed_since",
        detail: detail.to_owned(),
    }
}
