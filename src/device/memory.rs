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
    /// assert_eq!(device.memory().in_use, 0);
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use]
    pub fn memory(&self) -> MemoryUsage {
        self.retry_deferred_frees();
        self.0.backend.memory()
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

    /// Limits the bytes that this library has in use on the device
    /// ([`memory`](Self::memory)`().in_use`); `None` removes the limit. Useful if several programs
    /// share a GPU.
    ///
    /// From now on, an allocation that would bring them above `len_bytes` evicts copies that are
    /// not in use and that the host has too. If what is left does not fit, it is
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory). The call itself frees nothing: copies
    /// give way, and a GPU's pool of freed memory is returned, when an allocation needs it or by
    /// [`trim`](Self::trim).
    ///
    /// ```
    /// use resident::{Device, Emulation, Error, SmartArray};
    ///
    /// let device = Device::emulated(Emulation::new());
    /// device.set_memory_limit(Some(1 << 10))?;
    /// let array = SmartArray::<f64, _>::ones(1000);
    /// assert!(matches!(array.gpu_on(&device.stream()), Err(Error::OutOfMemory { .. })));
    /// device.set_memory_limit(None)?;
    /// drop(array.gpu_on(&device.stream())?);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// None so far, since nothing is freed at once.
    pub fn set_memory_limit(&self, len_bytes: Option<u64>) -> Result<()> {
        if len_bytes.is_some() {
            self.0.is_scarce.store(true, Ordering::Relaxed);
        }
        self.0.backend.set_memory_limit(len_bytes);
        Ok(())
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
        self.0.allocations.enter(Turn::Alone)
    }

    /// Whether copies may have to give way, so that an array must know of each guard whether it
    /// lives: on GPUs, and on embedded devices with a limit.
    pub(crate) fn is_scarce(&self) -> bool {
        self.0.is_scarce.load(Ordering::Relaxed)
    }
}
