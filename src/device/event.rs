//! Events: points in a stream that can be waited for and timed.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use super::{Stream, call_error};
use crate::backend::RawEvent;
use crate::error::Result;

/// A point in a stream, complete once everything queued before it is. Cheap to clone; equal if it is the same point.
///
/// ```
/// # fn main() -> resident::Result<()> {
/// let stream = resident::Device::cpu().new_stream()?;
/// let start = stream.record()?;
/// let end = stream.record()?;
/// end.synchronize()?;
/// assert!(end.elapsed_since(&start)? < std::time::Duration::from_secs(1));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Event {
    raw: Arc<dyn RawEvent>,
    stream: Stream,
}

impl Event {
    pub(super) fn new(raw: Arc<dyn RawEvent>, stream: Stream) -> Self {
        Self { raw, stream }
    }

    /// Whether everything before it has completed.
    ///
    /// # Errors
    ///
    /// [`Error::Backend`](crate::Error::Backend) if the driver does not answer.
    pub fn is_complete(&self) -> Result<bool> {
        self.raw.is_complete().map_err(|refusal| call_error(self.stream.device_ref(), "this", "asking for an event", &refusal))
    }

    /// Waits for it.
    ///
    /// # Errors
    ///
    /// The first failure of the work before it which no earlier call returned; [`Error::InsideKernel`](crate::Error::InsideKernel) inside a kernel
    /// body.
    pub fn synchronize(&self) -> Result<()> {
        self.stream.core().synchronize_to(self.stream.device_ref(), self.raw.position())
    }

    /// Device time between an earlier event and this one, both complete. On a seeded device this is modelled time.
    ///
    /// # Errors
    ///
    /// [`Error::Backend`](crate::Error::Backend) if one of them is not complete, or they belong to different kinds of devices.
    pub fn elapsed_since(&self, earlier: &Self) -> Result<Duration> {
        self.raw
            .elapsed_since(&*earlier.raw)
            .map_err(|refusal| call_error(self.stream.device_ref(), "this", "timing between two events", &refusal))
    }

    pub(super) fn raw(&self) -> &Arc<dyn RawEvent> {
        &self.raw
    }

    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.raw.queue() == other.raw.queue() && self.raw.position() == other.raw.position()
    }
}

impl Eq for Event {}

impl Hash for Event {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.raw.queue(), self.raw.position()).hash(state);
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event({} of {})", self.raw.position().0, self.stream)
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event {} of {}", self.raw.position().0, self.stream)
    }
}
