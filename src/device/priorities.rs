//! Priorities of streams.

use super::{Device, Stream, call_error};
use crate::error::{AtCall, Result};
use resident_backend::call_site::call_site;

/// The priorities that a device's streams may have: `cuCtxGetStreamPriorityRange`. As in CUDA, a
/// *greater* priority has a *lower* number, and 0 is the default; a HIP runtime that is not AMD's
/// may have another default within the range. Both numbers are 0 if the device has no priorities.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StreamPriorities {
    /// The number of the least priority: 0 on NVIDIA GPUs, 1 on AMD GPUs.
    pub least: i32,
    /// The number of the greatest priority: on most GPUs -5, and 0 on the embedded device.
    pub greatest: i32,
}

impl Device {
    /// The priorities that streams of this device may have.
    ///
    /// ```
    /// # fn main() -> resident::Result<()> {
    /// let priorities = resident::Device::cpu().stream_priorities()?;
    /// assert!(priorities.greatest <= priorities.least);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Backend`](crate::Error::Backend) if the driver refuses the question;
    /// [`Error::DeviceLost`](crate::Error::DeviceLost) if the device died.
    #[track_caller]
    pub fn stream_priorities(&self) -> Result<StreamPriorities> {
        let (least, greatest) = self
            .backend()
            .priorities()
            .map_err(|error| {
                call_error(self, "this", "asking for the priorities of streams", &error)
            })
            .at(call_site())?;
        Ok(StreamPriorities { least, greatest })
    }

    /// Makes another stream, with a priority: `cuStreamCreateWithPriority`, with
    /// `CU_STREAM_NON_BLOCKING` as in [`new_stream`](Self::new_stream). A GPU that has a free
    /// multiprocessor runs waiting blocks of the stream with the greatest priority (the lowest
    /// number) first. Blocks that run are not interrupted, copies have no priority, and results
    /// never depend on it.
    ///
    /// A number outside [`stream_priorities`](Self::stream_priorities) is replaced by the nearest
    /// one within, as in CUDA. [`Stream::priority`] returns the priority that the stream got.
    ///
    /// The embedded device has one priority, 0: each of its streams has a thread of its own, and
    /// the system chooses which of them runs. A seeded device draws the order from its seed.
    ///
    /// ```
    /// # fn main() -> resident::Result<()> {
    /// let device = resident::Device::cpu();
    /// let priorities = device.stream_priorities()?;
    /// let urgent = device.new_stream_with_priority(i32::MIN)?;
    /// assert_eq!(urgent.priority()?, priorities.greatest);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`new_stream`](Self::new_stream).
    #[track_caller]
    pub fn new_stream_with_priority(&self, priority: i32) -> Result<Stream> {
        let site = call_site();
        let StreamPriorities { least, greatest } = self.stream_priorities().at(site)?;
        // The range of a driver is trusted only as far as it is one.
        let priority = priority.min(least).max(greatest);
        let make = || self.backend().new_stream(Some(priority));
        self.stream_over(|| make().map(|raw| self.core_over(raw))).at(site)
    }
}

impl Stream {
    /// The stream's priority: `cuStreamGetPriority`. See [`Device::new_stream_with_priority`].
    ///
    /// # Errors
    ///
    /// [`Error::Backend`](crate::Error::Backend) if the driver refuses the question;
    /// [`Error::DeviceLost`](crate::Error::DeviceLost) if the device died.
    #[track_caller]
    pub fn priority(&self) -> Result<i32> {
        self.raw()
            .priority()
            .map_err(|error| {
                let operation = "asking for the priority of a stream";
                call_error(self.device_ref(), "this", operation, &error)
            })
            .at(call_site())
    }
}
