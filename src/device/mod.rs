//! Devices, streams and events: handles over a backend. They record events and waits, so that few
//! driver calls suffice to order streams.
//!
//! - `handles`: [`Device`] and [`Stream`]. `held`: those that arrays have. This file has the
//!   properties of a device, `opening` its construction, `streams` its streams, `memory` its
//!   memory.
//! - `current`: which device a thread works on. `gpu`: opening GPUs.
//! - `done`: waiting for a stream in a task. `host_function`: functions behind a stream's work,
//!   which `host_thread` runs.
//! - `stream`: the methods of [`Stream`]. `stream_core`: its raw stream and reported failures.
//!   `waits`: its events, and waits between streams. `wait_span`: the span of a wait for `tracing`.
//! - `timing`: the times of a GPU's work.
//! - `deferred_free`: memory to free after its last uses. `allocating`: which thread may allocate.
//! - `errors`: from a backend's errors to the library's [`Error`].

mod allocating;
mod current;
mod deferred_free;
mod done;
mod errors;
mod event;
mod gpu;
mod handles;
mod held;
mod host_function;
mod host_thread;
mod memory;
mod opening;
mod priorities;
mod stream;
mod stream_core;
mod streams;
#[cfg(test)]
mod tests;
mod timing;
mod wait_span;
mod waits;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::traffic::{Flow, LaunchedCopies, Traffic};
use resident_backend::grid::GridLimits;
use resident_backend::{Backend, BodyKind, DeviceKind, DeviceProperties};
use resident_embedded::{EmbeddedDevice, EmulationLog};

pub use current::Entered;
pub use done::Done;
pub(crate) use errors::{FILL, POISON, call_error, late_error, uninitialised};
pub use event::Event;
pub use handles::{Device, Stream};
pub(crate) use held::Held;
pub use host_function::HostFunction;
pub(crate) use opening::totals_of_all;
pub use priorities::StreamPriorities;
pub(crate) use resident_backend::environment;
pub(crate) use resident_host_code::{KernelTotals, checked_totals};
pub use stream::AutoSynchronize;
pub(crate) use stream_core::StreamCore;
pub(crate) use streams::UNREPORTED_MAX;
pub use timing::DeviceTimes;
pub(crate) use timing::{AUDIT_VARIABLE, GPU_TIMES, audit_has_word, take_some_times, take_times};

impl Device {
    /// The kind of device: which driver controls it, and so which body of a kernel runs on it.
    #[must_use]
    pub fn kind(&self) -> DeviceKind {
        self.0.backend.kind()
    }

    /// The device's number among the devices of its kind, from 0; for GPUs, the driver's number.
    #[must_use]
    pub fn ordinal(&self) -> usize {
        self.0.backend.ordinal()
    }

    /// The device's name in reports and errors: kind and number.
    ///
    /// ```
    /// use resident::{Device, DeviceKind};
    ///
    /// let device = Device::cpu();
    /// assert_eq!((device.kind(), device.ordinal()), (DeviceKind::Cpu, 0));
    /// assert_eq!(device.name(), "cpu:0");
    /// ```
    #[must_use]
    pub fn name(&self) -> String {
        self.0.name.to_string()
    }

    /// The device's name, without a copy.
    pub(crate) fn name_str(&self) -> &str {
        &self.0.name
    }

    pub(crate) fn name_shared(&self) -> Arc<str> {
        Arc::clone(&self.0.name)
    }

    /// The name of the hardware, as in `NVIDIA H200`.
    ///
    /// ```
    /// assert_eq!(resident::Device::cpu().model(), "embedded device");
    /// ```
    #[must_use]
    pub fn model(&self) -> String {
        self.0.backend.model()
    }

    /// The copies to and from this device since it was opened, for all arrays. A copy between two
    /// devices counts for both. `avoided` is what a launcher that copies each argument in and out
    /// would have moved at the launches on this device, minus these copies, as far as they are of
    /// arrays of launches.
    ///
    /// ```
    /// use resident::{Device, Emulation, SmartArray};
    ///
    /// let device = Device::emulated(Emulation::new());
    /// let (one, two) = (SmartArray::from(vec![0_u8; 100]), SmartArray::from(vec![0_u8; 200]));
    /// drop(one.gpu_on(&device.stream())?);
    /// drop(two.gpu_on(&device.stream())?);
    /// let traffic = device.traffic();
    /// assert_eq!((traffic.to_device.count, traffic.to_device.bytes), (2, 300));
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.0.traffic.get()
    }

    /// Counts copies, and those of them that are of arrays of launches.
    pub(crate) fn count(&self, traffic: &Traffic, launched: Flow) {
        self.0.traffic.add(traffic, launched);
    }

    /// Counts the arguments of a launch.
    #[inline]
    pub(crate) fn count_launch(&self, copies: &LaunchedCopies) {
        self.0.traffic.add_launch(copies);
    }

    /// The number of a use of an array's copy on the device, by which a full device finds the copy
    /// that was used least recently. All arguments of a launch have one number, which this returns
    /// before the launch is counted. Uses by several threads at the same time may have one number.
    /// Launches of explicit arrays only, which are never evicted, do not count.
    #[inline]
    pub(crate) fn number_of_use(&self) -> u64 {
        self.0.traffic.uses()
    }

    /// As [`number_of_use`](Self::number_of_use), for a use that is no launch. Uses after it have
    /// higher numbers.
    pub(crate) fn number_of_other_use(&self) -> u64 {
        self.0.traffic.add_other_use()
    }

    /// The calls made on an emulated device, and its hazards. `None` for every other device,
    /// including [`Device::cpu`].
    ///
    /// ```
    /// use resident::{Device, Emulation, SmartArray, emulation::CallKind};
    ///
    /// let device = Device::emulated(Emulation::new());
    /// drop(SmartArray::from(vec![1.0_f32; 8]).gpu_on(&device.stream())?);
    /// let log = device.emulation().expect("this device is emulated");
    /// assert!(log.calls().iter().any(|call| call.kind == CallKind::Upload));
    /// assert!(Device::cpu().emulation().is_none());
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use]
    pub fn emulation(&self) -> Option<EmulationLog> {
        self.0.backend.downcast_ref::<EmbeddedDevice>()?.log()
    }

    /// The device's number, which is unique in the process and never reused.
    #[inline]
    pub(crate) fn number(&self) -> u64 {
        self.0.number
    }

    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        &self.0.backend
    }

    #[inline]
    pub(crate) fn properties(&self) -> &DeviceProperties {
        &self.0.properties
    }

    /// The poison byte, with which stale copies are overwritten, if the device uses one.
    #[inline]
    pub(crate) fn poison(&self) -> Option<u8> {
        self.0.properties.poison_byte
    }

    /// The bodies of kernels that the device runs.
    #[inline]
    pub(crate) fn body_kind(&self) -> BodyKind {
        self.0.properties.body_kind
    }

    /// The largest grids of launches of host bodies.
    #[inline]
    pub(crate) fn grid_limits(&self) -> &GridLimits {
        &self.0.properties.grid_limits
    }
}

impl PartialEq for Device {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Device {}

impl PartialEq<&Self> for Device {
    fn eq(&self, other: &&Self) -> bool {
        self == *other
    }
}

impl PartialEq<Device> for &Device {
    fn eq(&self, other: &Device) -> bool {
        *self == other
    }
}

impl Hash for Device {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.number.hash(state);
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.name())
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}
