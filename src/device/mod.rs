//! Devices, streams and events: handles over a backend, and what the library must remember to order
//! streams with few driver calls.
//!
//! - [`Device`] is in this file; its streams are in `streams`, its memory in `memory`.
//! - `current`: which device a thread works on. `gpu`: opening GPUs.
//! - `stream`: the handle [`Stream`]. `stream_core`: its events, waits and reported failures.
//! - `deferred_free`: memory to free once its last uses are over.
//! - `errors`: from a backend's errors to the library's [`Error`].

mod current;
mod deferred_free;
mod errors;
mod event;
mod gpu;
mod memory;
mod stream;
mod stream_core;
mod streams;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::backend::embedded::{EmbeddedDevice, Emulation, EmulationLog};
use crate::backend::{Backend, DeviceKind};
use crate::error::Result;
use crate::sync::{DeviceLevel, Mutex};
use crate::traffic::{Flow, Traffic, TrafficCounter};

pub use current::Entered;
use deferred_free::DeferredFree;
pub(crate) use errors::{FILL, POISON, call_error, late_error};
pub use event::Event;
pub use stream::{AutoSynchronize, Stream};
pub(crate) use stream_core::StreamCore;
use streams::RemoteUses;

/// A device: its own memory, and streams of work. Cheap to clone; two handles are equal if they are
/// of the same device.
///
/// Calls that name no stream use the *current* device of their thread: see [`Device::current`] and
/// [`Device::enter`].
///
/// ```
/// use resident::Device;
///
/// let device = Device::cpu();
/// let _here = device.enter();
/// assert_eq!(Device::current()?, device);
/// # Ok::<(), resident::Error>(())
/// ```
#[derive(Clone)]
pub struct Device(Arc<DeviceShared>);

pub(crate) struct DeviceShared {
    backend: Arc<dyn Backend>,
    name: Arc<str>,
    /// Unique in the process.
    number: u64,
    default_stream: Arc<StreamCore>,
    /// The streams made by `new_stream`, for `synchronize`. A stream without handles stays here
    /// while it has work in flight or an unreported failure.
    streams: Mutex<Vec<Arc<StreamCore>>, DeviceLevel>,
    stream_count: AtomicU32,
    /// Uses of this device's memory by streams of other devices.
    remote_uses: Mutex<RemoteUses, DeviceLevel>,
    deferred_frees: Mutex<Vec<DeferredFree>, DeviceLevel>,
    /// The stream for frees of memory that several streams used last; made when first needed.
    free_stream: OnceLock<Arc<StreamCore>>,
    frees_since_reap: AtomicU32,
    traffic: TrafficCounter,
    /// The byte that stale copies are filled with, if any.
    poison_byte: Option<u8>,
}

impl Device {
    /// The embedded device: memory and asynchronous streams in this process. It always exists, and
    /// every call returns the same one. Kernels run their [`host`](crate::Kernel::host) bodies
    /// there, on threads of the library.
    #[must_use]
    pub fn cpu() -> Self {
        static CPU: OnceLock<Device> = OnceLock::new();
        CPU.get_or_init(|| {
            Self::over(EmbeddedDevice::cpu()).unwrap_or_else(|refusal| {
                unreachable!("the embedded device refused a queue: {refusal}")
            })
        })
        .clone()
    }

    /// A new embedded device for tests and experiments, numbered from `cpu:1` on: see
    /// [`Emulation`]. It lives as long as its handles and their users.
    ///
    /// ```
    /// use resident::{Device, Emulation, SmartArray};
    ///
    /// let small = Device::emulated(Emulation::new().memory(1 << 10));
    /// let _here = small.enter();
    /// let array = SmartArray::<f64, _>::ones(1000);
    /// assert!(matches!(array.gpu(), Err(resident::Error::OutOfMemory { .. })));
    /// ```
    #[must_use]
    pub fn emulated(emulation: Emulation) -> Self {
        Self::over(EmbeddedDevice::emulated(emulation))
            .unwrap_or_else(|refusal| unreachable!("a fresh device refused a queue: {refusal}"))
    }

    /// Every device that can be used now: GPUs by number, then the embedded device. Opens the GPUs,
    /// which takes the driver a moment for each. GPUs that cannot be opened are missing;
    /// [`Device::cuda`] returns the reason. Emulated devices are not listed.
    ///
    /// ```
    /// use resident::Device;
    ///
    /// let devices = Device::all();
    /// assert_eq!(devices.last(), Some(&Device::cpu()));
    /// for device in &devices {
    ///     println!("{device}: {}, {} bytes free", device.model(), device.capacity()?.free);
    /// }
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut all = gpu::all();
        all.push(Self::cpu());
        all
    }

    fn over(backend: Arc<dyn Backend>) -> Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let queue = backend.default_queue().map_err(|refusal| {
            errors::backend_error(&backend.name(), "making its default stream", &refusal)
        })?;
        let shared = DeviceShared {
            default_stream: Arc::new(StreamCore::new(queue, 0)),
            name: backend.name().into(),
            poison_byte: backend.poison_byte(),
            backend,
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
            streams: Mutex::new(Vec::new()),
            stream_count: AtomicU32::new(1),
            remote_uses: Mutex::new(RemoteUses::new()),
            deferred_frees: Mutex::new(Vec::new()),
            free_stream: OnceLock::new(),
            frees_since_reap: AtomicU32::new(0),
            traffic: TrafficCounter::default(),
        };
        Ok(Self(Arc::new(shared)))
    }

    /// The kind of device: which driver runs it, and so which bodies of a kernel run there.
    #[must_use]
    pub fn kind(&self) -> DeviceKind {
        self.0.backend.kind()
    }

    /// Its number among the devices of its kind, from 0; for GPUs, the driver's number.
    #[must_use]
    pub fn ordinal(&self) -> usize {
        self.0.backend.ordinal()
    }

    /// Its name in reports and errors: kind and number.
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

    /// Its name, without a copy.
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

    /// What has been copied to and from this device since it was opened, for all arrays. A copy
    /// between two devices counts for both; `avoided` counts launches on this device.
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

    pub(crate) fn count(&self, traffic: &Traffic) {
        self.0.traffic.add(traffic);
    }

    /// Counts copies that a launch did not have to make.
    #[inline]
    pub(crate) fn count_avoided(&self, flow: Flow) {
        self.0.traffic.add_avoided(flow);
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

    /// Unique in the process, and never reused.
    #[inline]
    pub(crate) fn number(&self) -> u64 {
        self.0.number
    }

    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        &self.0.backend
    }

    /// The byte that stale copies are filled with, if the device asks for that.
    #[inline]
    pub(crate) fn poison(&self) -> Option<u8> {
        self.0.poison_byte
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
