//! The memory of a device: how much is used, its limit, and how it is returned to the system.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::allocating::{Allocating, Turn};
use super::{Device, call_error};
use crate::error::{AtCall, Result};
use crate::memory_use::Place;
use resident_backend::call_site::call_site;
use resident_backend::{Capacity, MemoryUsage};

impl Device {
    /// The bytes that this library holds on the device: the bytes of live arrays, and bytes that
    /// are kept for reuse or not freed yet. Host memory that is pinned through the device is
    /// counted apart.
    ///
    /// ```
    /// use resident::{Device, Emulation, SmartArray};
    ///
    /// let device = Device::emulated(Emulation::new());
    /// let array = SmartArray::<f32, _>::zeros(1000);
    /// drop(array.gpu_on(&device.stream())?);
    /// assert_eq!(device.memory().in_use, 4000);
    /// drop(array);                                                // does not wait
    /// device.synchronize()?;
    /// assert_eq!((device.memory().in_use, device.memory().peak), (0, 4000));
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use]
    pub fn memory(&self) -> MemoryUsage {
        self.retry_deferred_frees();
        let usage = self.0.backend.memory();
        MemoryUsage { peak: self.0.memory.peak().max(usage.in_use), ..usage }
    }

    /// The memory that the driver reports, in bytes: `cuMemGetInfo` for a GPU; for the embedded
    /// device the memory of the machine; for an emulated device with a limit, that limit.
    ///
    /// ```
    /// use resident::{Device, Emulation};
    ///
    /// let device = Device::emulated(Emulation::new().memory(1 << 20));
    /// assert_eq!((device.capacity()?.total, device.capacity()?.free), (1 << 20, 1 << 20));
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Backend`](crate::Error::Backend) if the query fails, or the system does not report
    /// its memory; [`Error::DeviceLost`](crate::Error::DeviceLost) if the device died.
    #[track_caller]
    pub fn capacity(&self) -> Result<Capacity> {
        self.0
            .backend
            .capacity()
            .map_err(|error| call_error(self, "this", "querying its memory", &error))
            .at(call_site())
    }

    /// The limit that the program has set by [`set_memory_limit`](Self::set_memory_limit), in
    /// bytes; `None` if it has set none. The memory of an emulated device
    /// ([`Emulation::memory`](crate::Emulation::memory)) is no such limit.
    ///
    /// ```
    /// use resident::{Device, Emulation};
    ///
    /// let device = Device::emulated(Emulation::new().memory(1 << 20));
    /// assert_eq!(device.memory_limit(), None);
    /// device.set_memory_limit(Some(1 << 16))?;
    /// assert_eq!(device.memory_limit(), Some(1 << 16));
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use]
    pub fn memory_limit(&self) -> Option<u64> {
        *self.0.memory_limit.lock()
    }

    /// The most bytes that arrays can have, if the program has limited them: the limit, and the
    /// memory of an emulated device.
    pub(crate) fn bytes_max(&self) -> Option<u64> {
        [self.memory_limit(), self.properties().emulated_bytes].into_iter().flatten().min()
    }

    /// Sets the limit on what allocations may take from now on, and returns the one before.
    pub(crate) fn replace_memory_limit(&self, len_bytes: Option<u64>) -> Option<u64> {
        let mut limit = self.0.memory_limit.lock();
        self.0.backend.set_memory_limit(len_bytes);
        std::mem::replace(&mut *limit, len_bytes)
    }

    /// Returns to the system the memory that is kept for reuse: device memory, and pinned host
    /// memory. Waits for queued frees first. Live arrays keep their copies.
    ///
    /// ```
    /// use resident::{Device, Emulation, SmartArray};
    ///
    /// let device = Device::emulated(Emulation::new());
    /// drop(SmartArray::<f32, _>::zeros(1000).gpu_on(&device.stream())?);
    /// device.trim()?;
    /// assert_eq!((device.memory().in_use, device.memory().pooled), (0, 0));
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InsideKernel`](crate::Error::InsideKernel) if the call would have to wait inside a
    /// kernel body; [`Error::Backend`](crate::Error::Backend) if the driver refuses;
    /// [`Error::DeviceLost`](crate::Error::DeviceLost) if the device died.
    #[track_caller]
    pub fn trim(&self) -> Result<()> {
        self.retry_deferred_frees();
        self.0
            .backend
            .trim()
            .map_err(|error| call_error(self, "this", "returning unused memory", &error))
            .at(call_site())
    }

    /// The memory of arrays on the device.
    pub(crate) fn array_memory(&self) -> &Arc<Place> {
        &self.0.memory
    }

    /// Allocates beside other threads, once no thread allocates alone.
    pub(crate) fn allocate_beside(&self) -> Allocating<'_> {
        self.0.allocations.enter(Turn::Beside)
    }

    /// Allocates alone, once no other thread allocates.
    pub(crate) fn allocate_alone(&self) -> Allocating<'_> {
        self.0.is_scarce.store(true, Ordering::Relaxed);
        self.0.has_been_full.store(true, Ordering::Relaxed);
        self.0.allocations.enter(Turn::Alone)
    }

    /// What the last search for room has left for the next one, if no other thread has it.
    pub(crate) fn take_eviction_queue<Q: Send + 'static>(&self) -> Option<Q> {
        let queue = self.0.eviction_queue.lock().take()?;
        queue.downcast().ok().map(|queue| *queue)
    }

    /// Keeps it for the next search. The caller holds no lock.
    pub(crate) fn keep_eviction_queue<Q: Send + 'static>(&self, queue: Q) {
        let before = self.0.eviction_queue.lock().replace(Box::new(queue));
        drop(before);
    }

    /// Whether a thread has found the device full, or the program has limited its memory.
    pub(crate) fn has_been_full(&self) -> bool {
        self.0.has_been_full.load(Ordering::Relaxed)
    }

    /// Whether copies may have to give way, so that an array must know of each guard whether it
    /// lives: on all devices but [`Device::cpu`] without a limit.
    pub(crate) fn is_scarce(&self) -> bool {
        self.0.is_scarce.load(Ordering::Relaxed)
    }
}
