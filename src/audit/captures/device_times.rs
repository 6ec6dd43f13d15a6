//! Asks for the times of a GPU's work.

pub use crate::device::DeviceTimes;

use crate::device::Device;
use crate::error::Result;
use resident_backend::call_site::call_site;

/// Times the launches and copies of a GPU until the guard drops, so that reports have when the
/// device ran them, as they have it of embedded and emulated devices at all times. All captures see
/// the times.
///
/// Each launch and copy is then between two events with timing (`cuEventRecord`), so it costs two
/// driver calls more, and what is short looks longer than it is, by what the events take. Launches
/// are timed only in a capture. Waits once for the work of the device's default stream, to compare
/// the device's clock with the host's. Of more than 16,384 pieces of work that are not over, the
/// oldest have no times. With `gpu-times` in `RESIDENT_AUDIT` every GPU is timed from the moment in
/// which it is opened, without a guard.
///
/// ```
/// use resident::audit::{self, DocumentRecord};
/// use resident::{Device, SmartArray};
///
/// let device = Device::cpu();
/// let array = SmartArray::from(vec![1.0_f32; 1000]);
/// let (outcome, report) = audit::capture(|| {
///     let _guard = audit::time_device(&device)?;           // only a GPU needs it
///     array.prefetch(&device.stream())?;
///     device.synchronize()
/// });
/// outcome?;
/// let is_timed = |record: &DocumentRecord| {
///     matches!(record, DocumentRecord::Copy { started_ns: Some(_), finished_ns: Some(_), .. })
/// };
/// assert!(report.to_document().records.iter().any(is_timed));
/// # Ok::<(), resident::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Backend`](crate::Error::Backend) if the driver refuses the event or the wait;
/// [`Error::DeviceLost`](crate::Error::DeviceLost) if the device died;
/// [`Error::InsideKernel`](crate::Error::InsideKernel) if the call would have to wait inside a
/// kernel body.
#[track_caller]
pub fn time_device(device: &Device) -> Result<DeviceTimes> {
    device.time_work(call_site())
}
