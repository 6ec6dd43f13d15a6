//! The functions that return devices: the embedded device, emulated devices, and the list of all
//! devices that can be used.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use smallvec::SmallVec;

use super::allocating::Allocations;
use super::errors::backend_error;
use super::gpu;
use super::handles::{Device, DeviceShared, RemoteUses, StreamList};
use super::stream_core::StreamCore;
use crate::error::Result;
use crate::memory_use::Place;
use crate::traffic::{DeviceTotals, TrafficCounter};
use resident_backend::sync::Mutex;
use resident_backend::{Backend, DeviceKind};
use resident_embedded::{EmbeddedDevice, Emulation};

impl Device {
    /// The *embedded device*: an asynchronous device that this library makes of the process's own
    /// memory and threads, so that programs run without a GPU. It always exists, and every call
    /// returns the same one. Kernels run their [`host`](crate::Kernel::host) bodies on it, on
    /// threads of the library.
    #[must_use]
    pub fn cpu() -> Self {
        static CPU: OnceLock<Device> = OnceLock::new();
        CPU.get_or_init(|| {
            Self::over(EmbeddedDevice::cpu()).unwrap_or_else(|error| {
                unreachable!("the embedded device refused a stream: {error}")
            })
        })
        .clone()
    }

    /// A new *emulated device*, for tests and experiments: like the embedded device
    /// ([`cpu`](Self::cpu)) it is made of this process's memory and threads, and [`Emulation`] has
    /// its settings. Such devices are called `cpu:1`, `cpu:2`, and so on. They live as long as
    /// their handles and the arrays on them.
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
        let device = Self::over(EmbeddedDevice::emulated(emulation))
            .unwrap_or_else(|error| unreachable!("a fresh device refused a stream: {error}"));
        // It may get a limit later, and is not there to be fast.
        device.0.is_scarce.store(true, Ordering::Relaxed);
        device
    }

    /// Every device that can be used now: NVIDIA's GPUs by number, then AMD's, then the embedded
    /// device ([`cpu`](Self::cpu)). Opens the GPUs, which takes a moment for each. GPUs that cannot
    /// be opened are left out; [`Device::cuda`] and [`Device::hip`] return the reason. Emulated
    /// devices are not listed.
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

    pub(super) fn over(backend: Arc<dyn Backend>) -> Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let raw = backend.default_stream().map_err(|error| {
            backend_error(&backend.name(), "creating its default stream", &error)
        })?;
        let is_scarce = backend.kind() != DeviceKind::Cpu;
        let name: Arc<str> = backend.name().into();
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let shared = DeviceShared {
            default_stream: Arc::new(StreamCore::new(raw, 0)),
            memory: Arc::new(Place::of_device(Arc::clone(&name), number)),
            name,
            properties: backend.properties(),
            backend,
            number,
            streams: Mutex::new(StreamList::default()),
            stream_count: AtomicU32::new(1),
            remote_uses: Mutex::new(RemoteUses::new()),
            deferred_frees: Mutex::new(Vec::new()),
            free_stream: OnceLock::new(),
            frees_since_reap: AtomicU32::new(0),
            allocations: Allocations::default(),
            is_scarce: AtomicBool::new(is_scarce),
            has_been_full: AtomicBool::new(false),
            memory_limit: Mutex::new(None),
            eviction_queue: Mutex::new(None),
            traffic: TrafficCounter::default(),
            held_by_arrays: AtomicUsize::new(0),
        };
        let device = Self(Arc::new(shared));
        LIVE_DEVICES.lock().devices.push(Arc::downgrade(&device.0));
        Ok(device)
    }

    /// Every device of the process that has a handle, emulated ones included.
    pub(crate) fn all_live() -> Vec<Self> {
        let devices: Vec<_> = LIVE_DEVICES.lock().devices.clone();
        devices.iter().filter_map(Weak::upgrade).map(Self).collect()
    }
}

/// What all devices of the process have copied and launched so far.
pub(crate) fn totals_of_all() -> DeviceTotals {
    loop {
        // What is dropped here, maybe the last handle of a device, is dropped without the lock.
        let (mut totals, devices) = {
            let live = LIVE_DEVICES.lock();
            let devices: SmallVec<[_; 4]> = live.devices.iter().map(Weak::upgrade).collect();
            (live.ended, devices)
        };
        if devices.iter().all(Option::is_some) {
            devices.iter().flatten().for_each(|device| totals += device.traffic.totals());
            return totals;
        }
        // A device is in its drop, and adds its totals next.
        std::thread::yield_now();
    }
}

/// What it has copied and launched stays.
impl Drop for DeviceShared {
    fn drop(&mut self) {
        let totals = self.traffic.totals();
        let mut live = LIVE_DEVICES.lock();
        live.ended += totals;
        live.devices.retain(|device| !std::ptr::eq(device.as_ptr(), self));
    }
}

static LIVE_DEVICES: Mutex<LiveDevices> =
    Mutex::new(LiveDevices { devices: Vec::new(), ended: DeviceTotals::ZERO });

struct LiveDevices {
    devices: Vec<Weak<DeviceShared>>,
    /// What devices have copied and launched that were dropped.
    ended: DeviceTotals,
}
