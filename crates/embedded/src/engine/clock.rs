//! The times of events.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Whole nanoseconds, saturating at 64 bits.
pub(super) fn whole_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// The time of a recorded event in nanoseconds, 0 until it is set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timestamp(Arc<AtomicU64>);

impl Timestamp {
    /// Sets the time. The event's position is published after the time is set, so a thread that
    /// sees the event as completed also sees the time.
    pub(super) fn set(&self, time_ns: u64) {
        self.0.store(time_ns, Ordering::Relaxed);
    }

    /// The time, or 0.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
