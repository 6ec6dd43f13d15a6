//! The limit on what the library holds on a device.

use super::in_use::{Unused, in_use_by};
use super::room::Searches;
use crate::device::{Device, call_error};
use crate::error::{AtCall, CalledAt, Error, Result, Shortage};
use crate::transfer::copy::report::run_deferred;
use resident_backend::MemoryUsage;
use resident_backend::call_site::{CallSite, call_site};

impl Device {
    /// Limits the bytes that this library holds on the device: those of live arrays, those kept for
    /// reuse, and those that queued work still uses, which is the sum that
    /// [`memory`](Self::memory) returns. `None` removes the limit. Useful if several programs share
    /// a GPU, and to test how a program runs on a smaller one. Works on all devices.
    ///
    /// The call makes room at once: it waits for queued frees, returns the memory kept for reuse,
    /// and then evicts copies as an allocation does that does not fit. From now on, so does each
    /// allocation that would exceed the limit:
    ///
    /// - The copies that were used least recently give way first. A use is a launch, a guard, or a
    ///   copy on this device. Of an array of which only parts have memory, so do the parts.
    /// - What only the device has is copied to the host before its memory is freed, behind the work
    ///   that wrote it. Reports give such copies the cause `evict`, and the line of the call that
    ///   needed the room. If such a copy fails, its contents are lost ([`Error::Lost`]).
    /// - Copies with a guard, arguments of calls under way, and memory of explicit arrays
    ///   ([`DeviceArray`](crate::DeviceArray)) stay.
    ///
    /// A GPU's driver may hold more than that, since it allocates in large blocks. On
    /// [`Device::cpu`](crate::Device::cpu), copies that a guard
    /// ([`gpu_on`](crate::SmartArray::gpu_on)) has read as a whole before the first limit is set
    /// stay until their array is written: which of these guards live is not known.
    ///
    /// ```
    /// use resident::{Device, Emulation, Error, SmartArray};
    ///
    /// let device = Device::emulated(Emulation::new());
    /// let stream = device.stream();
    /// let mut arrays = [1.0, 2.0, 3.0].map(|value| SmartArray::<f64, _>::full(1000, value));
    /// for array in &mut arrays {
    ///     drop(array.gpu_mut_on(&stream)?);           // newest on the device
    /// }
    /// device.set_memory_limit(Some(16_000))?;         // room for two: writes the first back
    /// assert_eq!((device.memory().in_use, device.traffic().to_host.bytes), (16_000, 8_000));
    /// drop(arrays[0].gpu_mut_on(&stream)?);           // evicts the second
    /// assert_eq!(arrays.each_ref().map(|array| array.get(999).unwrap()), [1.0, 2.0, 3.0]);
    ///
    /// let guard = arrays[0].gpu_on(&stream)?;         // cannot be evicted
    /// assert!(matches!(device.set_memory_limit(Some(1)), Err(Error::OutOfMemory { .. })));
    /// assert_eq!(device.memory_limit(), Some(16_000));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If an error is returned, the limit is what it was before; evicted copies stay evicted.
    ///
    /// - [`OutOfMemory`](Error::OutOfMemory) if what is in use needs more.
    /// - [`InsideKernel`](Error::InsideKernel) if the call would have to wait inside a kernel body.
    /// - [`Backend`](Error::Backend) if the driver refuses; [`DeviceLost`](Error::DeviceLost) if
    ///   the device died.
    #[track_caller]
    pub fn set_memory_limit(&self, len_bytes: Option<u64>) -> Result<()> {
        let Some(limit_bytes) = len_bytes else {
            self.replace_memory_limit(None);
            return Ok(());
        };
        let outcome = {
            let _alone = self.allocate_alone();
            let before = self.replace_memory_limit(len_bytes);
            shrink(self, limit_bytes, call_site()).inspect_err(|_| {
                self.replace_memory_limit(before);
            })
        };
        run_deferred();
        outcome
    }
}

/// Frees memory until the library holds at most `limit_bytes`. The caller holds `allocate_alone`.
fn shrink(device: &Device, limit_bytes: u64, site: CallSite) -> Result<()> {
    let mut searches = Searches::new(device, None, site);
    loop {
        let MemoryUsage { in_use, pooled, .. } = device.memory();
        if in_use > limit_bytes {
            if !searches.make_room(in_use - limit_bytes) {
                return Err(does_not_fit(device, in_use, limit_bytes).at(site));
            }
            continue;
        }
        if in_use + pooled > limit_bytes {
            let trimmed = device.backend().trim();
            let operation = "making room for a memory limit";
            return trimmed.map_err(|error| call_error(device, "this", operation, &error)).at(site);
        }
        return Ok(());
    }
}

fn does_not_fit(device: &Device, in_use: u64, limit_bytes: u64) -> Error {
    Error::OutOfMemory {
        call: CalledAt::UNKNOWN,
        array: String::from("what is in use"),
        device: device.name(),
        shortage: Shortage { requested: in_use, free: 0, in_use, limit: Some(limit_bytes) },
        in_use_by: in_use_by(device, Unused::CouldNotGiveWay),
    }
}
