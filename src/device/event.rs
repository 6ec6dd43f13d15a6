//! Events: points in a stream, with a time stamp, for which streams and the host can wait.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use super::{Stream, call_error};
use crate::error::{AtCall, Result};
use resident_backend::RawEvent;
use resident_backend::call_site::call_site;

/// A point in a stream, made by [`Stream::record`]. It is complete once all work queued before it
/// has completed; unlike CUDA's it does not wait for functions of the host
/// ([`Stream::launch_host_function`]), which may wait for it themselves. Cheap to clone; two
/// handles are equal if they refer to the same point.
///
/// ```
/// use resident::{Device, Grid, InOut, Kernel, SmartArray};
///
/// # fn main() -> resident::Result<()> {
/// let double = Kernel::<(InOut<f32>,)>::new("double")
///     .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0));
/// let stream = Device::cpu().new_stream()?;
/// let mut array = SmartArray::<f32, _>::ones(1 << 16);
/// let start = stream.record()?;
/// double.launch_on(&stream, Grid::cover(array.len()), (&mut array,))?;
/// let end = stream.record()?;
/// end.synchronize()?;
/// assert!(start.is_complete()?);
/// println!("the launch took {:?}", end.elapsed_since(&start)?);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Event {
    raw: Arc<dyn RawEvent>,
    stream: Stream,
}

// As of `DeviceShared`: a panic leaves it usable.
impl std::panic::UnwindSafe for Event {}
impl std::panic::RefUnwindSafe for Event {}

impl Event {
    pub(super) fn new(raw: Arc<dyn RawEvent>, stream: Stream) -> Self {
        Self { raw, stream }
    }

    /// Whether all work before the event has completed or failed: `cuEventQuery`. Does not wait. On
    /// a seeded device each call runs one ready operation.
    ///
    /// # Errors
    ///
    /// [`Error::Backend`](crate::Error::Backend) if the query fails;
    /// [`Error::DeviceLost`](crate::Error::DeviceLost) if the device died.
    #[track_caller]
    pub fn is_complete(&self) -> Result<bool> {
        self.raw
            .is_complete()
            .map_err(|error| {
                call_error(self.stream.device_ref(), "this", "querying an event", &error)
            })
            .at(call_site())
    }

    /// Waits until all work before the event has completed, as `cuEventSynchronize` does.
    ///
    /// # Errors
    ///
    /// As [`Stream::synchronize`], for the work before the event.
    #[track_caller]
    pub fn synchronize(&self) -> Result<()> {
        let (core, device) = (self.stream.core(), self.stream.device_ref());
        let site = call_site();
        device.synchronize_to(core, self.raw.position(), site).at(site)
    }

    /// The device time between an earlier event and this one, both complete: `cuEventElapsedTime`,
    /// with a resolution of about half a microsecond. A seeded device returns simulated time, and
    /// another embedded or emulated device (made of this process's memory and threads) the time of
    /// the host's clock. The result is zero if `earlier` is in fact the later event.
    ///
    /// # Errors
    ///
    /// [`Error::Backend`](crate::Error::Backend) if one of them is not complete (the error says
    /// which), or they use different clocks: different kinds of devices, or one device is seeded
    /// and the other is not.
    /// [`Error::DeviceLost`](crate::Error::DeviceLost) if the device died.
    #[track_caller]
    pub fn elapsed_since(&self, earlier: &Self) -> Result<Duration> {
        self.raw
            .elapsed_since(&*earlier.raw)
            .map_err(|error| {
                let operation = format!("timing from {earlier} to {self}");
                call_error(self.stream.device_ref(), "this", &operation, &error)
            })
            .at(call_site())
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
        self.raw.stream() == other.raw.stream() && self.raw.position() == other.raw.position()
    }
}

impl Eq for Event {}

impl Hash for Event {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.raw.stream(), self.raw.position()).hash(state);
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
