//! Memory that is freed or pinned, and states to watch.

use ndarray::Dimension;

use super::SmartArray;
use crate::array::watch::Watch;
use crate::audit::Cause;
use crate::device::Device;
use crate::element::Element;
use crate::error::{AtCall, Result};
use crate::transfer::{self, Request, WatchCore};
use resident_backend::call_site::{CallSite, call_site};
use resident_core::Access;
use resident_core::layout::Selection;

/// # Memory, and states to watch
impl<T: Element, D: Dimension> SmartArray<T, D> {
    /// Frees the array's memory on a device, after its uses there. Contents that are valid only on
    /// this device are downloaded first, and the call waits for the download. Nothing else is
    /// copied. The next use on the device allocates new memory, at another address. Does nothing if
    /// the array has no memory there, or if the device accesses the host's (an array made of a
    /// [`MappedArray`](crate::MappedArray) or [`ManagedArray`](crate::ManagedArray)).
    ///
    /// ```
    /// use resident::{Device, SmartArray, Validity};
    ///
    /// let device = Device::cpu();
    /// let mut array = SmartArray::from(vec![1.0_f32; 1000]);
    /// array.gpu_overwrite_on(&device.stream())?.address();
    /// array.release_on(&device)?;                           // downloads 4,000 bytes
    /// assert_eq!(array.residency().on(&device), Validity::Absent);
    /// assert_eq!(array.traffic().to_host.bytes, 4000);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`host`](Self::host), except that elements that were never written do not cause an error.
    /// On an error the copy stays on the device.
    #[track_caller]
    pub fn release_on(&mut self, device: &Device) -> Result<()> {
        let request = self.request(Access::Read, Cause::Evict, "release_on", call_site());
        transfer::release_on(&request, device)
    }

    /// Frees the host's memory of the array, and returns once nothing uses it any more. Contents
    /// that only the host has are first uploaded, to a device that has memory for the array, else
    /// to the current one. The next use on the host allocates new memory, at another address, and
    /// downloads what it needs. [`into_array`](Self::into_array) then returns new memory too. Does
    /// nothing if there is no such memory, or if a device accesses it.
    ///
    /// ```
    /// use resident::{Device, SmartArray, Validity};
    ///
    /// let _here = Device::cpu().enter();
    /// let mut table = SmartArray::from(vec![1.0_f32; 1000]);
    /// table.release_host()?;                                // uploads 4,000 bytes
    /// assert_eq!(table.residency().host(), Validity::Absent);
    /// assert_eq!(table.host()?.sum(), 1000.0);              // downloads them
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`gpu`](Self::gpu), except that elements that were never written do not cause an error,
    /// and [`Backend`](crate::Error::Backend) or [`DeviceLost`](crate::Error::DeviceLost) if a wait
    /// fails. On an error the host keeps its memory.
    #[track_caller]
    pub fn release_host(&mut self) -> Result<()> {
        transfer::release_host(&self.request(
            Access::Read,
            Cause::Evict,
            "release_host",
            call_site(),
        ))
    }

    pub(in crate::array) fn request(
        &self,
        access: Access,
        cause: Cause,
        operation: &'static str,
        site: CallSite,
    ) -> Request<'_> {
        Request::new(&self.storage, &Selection::Whole, access, cause, operation, site)
    }

    /// Pins (page-locks) the host's copy for devices of the current device's kind, as CUDA's
    /// `cuMemHostRegister` does. Copies then go directly to and from this memory, without staging,
    /// and uploads return immediately. The memory stays pinned until the array drops or
    /// [`into_array`](Self::into_array) returns it. Memory of an owner
    /// ([`from_owner`](Self::from_owner_shaped)) is pinned for reading only, where the driver can
    /// (CUDA's attribute `READ_ONLY_HOST_REGISTER_SUPPORTED`); the copy that the first write makes
    /// of it is not pinned.
    ///
    /// Copies nothing; allocates the host's memory if there is none. Pinning takes about a
    /// millisecond per few MiB, and pinned memory cannot be swapped out: pin arrays that are
    /// transferred often. Memory that another library registered with CUDA is used unchanged and
    /// stays registered. Memory that is already pinned for this kind of device stays pinned; to pin
    /// for several kinds, call once for each. Does nothing for mapped and managed memory.
    ///
    /// ```
    /// use resident::{Device, SmartArray};
    ///
    /// let device = Device::cpu();
    /// let _here = device.enter();
    /// let frame = SmartArray::from(vec![0_u8; 1 << 16]);
    /// frame.page_lock()?;
    /// frame.prefetch(&device.stream())?;                    // without staging
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The array stays pageable then, and its copies are staged.
    ///
    /// - [`NoDevice`](crate::Error::NoDevice) if there is no current device.
    /// - [`OutOfMemory`](crate::Error::OutOfMemory) if the host has no memory for a first copy.
    /// - [`Backend`](crate::Error::Backend) if the system refuses to pin more (`ulimit -l`); if a
    ///   part of the memory, or of its first or last page, is registered with CUDA already; or if
    ///   an owner mapped the memory for reading only, and the device does not pin such memory.
    /// - [`DeviceLost`](crate::Error::DeviceLost) if the device died.
    #[track_caller]
    pub fn page_lock(&self) -> Result<()> {
        let site = call_site();
        let device = Device::current().at(site)?;
        let request = self.request(Access::Read, Cause::Explicit, "page_lock", site);
        transfer::page_lock(&request, &device)
    }

    /// Watches the array: while the returned [`Watch`] lives, its newest contents are copied to
    /// memory of the watch by themselves, one state at a time. [`Watch`] has an example. Copies
    /// nothing itself: the first state is that of the next change.
    ///
    /// An array may have any number of watches, each with its own copies.
    ///
    /// # Errors
    ///
    /// None today: all failures are those of later copies, which [`Watch::changed`] returns.
    #[track_caller]
    pub fn watch(&self) -> Result<Watch<T, D>> {
        self.watch_every_from(1, call_site())
    }

    /// As [`watch`](Self::watch), for each `n`-th change only (0 counts as 1), and the last one.
    ///
    /// ```
    /// # use resident::{Device, Grid, InOut, Kernel, SmartArray};
    /// # let _here = Device::cpu().enter();
    /// # let step = Kernel::<(InOut<f32>,)>::new("step")
    /// #     .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x += 1.0));
    /// let mut field = SmartArray::<f32, _>::zeros(8);
    /// let live = field.watch_every(10)?;
    /// for _ in 0..10 {
    ///     step.launch(Grid::cover(8), (&mut field,))?;
    /// }
    /// assert_eq!(live.changed()?.map(|state| state.change()), Some(10));
    /// assert_eq!(field.traffic().to_host.count, 1);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`watch`](Self::watch).
    #[track_caller]
    pub fn watch_every(&self, n: u64) -> Result<Watch<T, D>> {
        self.watch_every_from(n, call_site())
    }

    fn watch_every_from(&self, n: u64, site: CallSite) -> Result<Watch<T, D>> {
        Ok(Watch::new(WatchCore::begin(&self.storage.0, n, site), self.layout.clone()))
    }
}
