//! The elements of one part, contiguous in row-major order: what MPI reads and writes.
//!
//! They are an array of their own. To pack is to assign the part to it, where the part's contents
//! are newest, on a stream. What a device has packed then comes down in the same stream, unless MPI
//! can read it on the device. MPI uses the memory of one of the array's copies while that copy is
//! the only valid one, so that it is not evicted, and stays at one address.

use resident::ndarray::{ArrayRef, Dimension};
use resident::{
    AsView, AsViewMut, Device, DeviceArray, Element, PinnedArray, SmartArray, SmartView,
    SmartViewMut, Stream, Validity,
};

use crate::error::Result;
use crate::transport::Reachable;

/// How often the memory is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    /// It is ordinary memory, as pinning would take longer than it saves.
    Once,
    /// Host memory of it is pinned for the current device, unless MPI uses device memory.
    Repeated,
}

/// The array, and where MPI can read and write it.
pub(crate) struct Packed<T: Element, D: Dimension> {
    memory: Memory<T, D>,
    reachable: Reachable,
}

enum Memory<T: Element, D: Dimension> {
    Ordinary(SmartArray<T, D>),
    Pinned(PinnedArray<T, D>),
}

impl<T: Element, D: Dimension> Packed<T, D> {
    /// Without contents.
    pub(crate) fn new(shape: D, used: Use, reachable: &Reachable) -> Result<Self> {
        let memory = if used == Use::Repeated && reachable.is_host_only() {
            Memory::Pinned(PinnedArray::uninit(shape)?.named("message"))
        } else {
            Memory::Ordinary(SmartArray::uninit(shape).named("message"))
        };
        Ok(Self { memory, reachable: reachable.clone() })
    }

    /// Queues the copy of `part`, which has this shape: on `stream` where the part is newest on its
    /// device, and by the host, before this returns, where it is newest there.
    #[track_caller]
    pub(crate) fn pack_on(&mut self, stream: &Stream, part: &impl AsView<T, D>) -> Result<()> {
        self.keep_on(stream, part)?;
        if self.device().is_none() {
            self.view().prefetch_host_on(stream)?;
        }
        Ok(())
    }

    /// As [`pack_on`](Self::pack_on), where nothing but [`unpack_on`](Self::unpack_on) reads them:
    /// they stay where they are newest.
    #[track_caller]
    pub(crate) fn keep_on(&mut self, stream: &Stream, part: &impl AsView<T, D>) -> Result<()> {
        let part = part.as_view();
        if is_on_host(&part) {
            // As `assign` does, without looking for devices.
            return self.pack_from_host(&*part.host()?);
        }
        let _here = stream.enter();
        Ok(self.view_mut().assign(&part)?)
    }

    /// Copies elements of the host.
    #[track_caller]
    pub(crate) fn pack_from_host(&mut self, elements: &ArrayRef<T, D>) -> Result<()> {
        self.view_mut().host_overwrite()?.assign(elements);
        Ok(())
    }

    /// Takes elements of this shape, which are contiguous on a device.
    pub(crate) fn pack_from_device(&mut self, elements: DeviceArray<T, D>) {
        self.memory = Memory::Ordinary(SmartArray::from_device(elements).named("message"));
    }

    /// Whether MPI can use memory of this device.
    pub(crate) fn is_for(&self, device: &Device) -> bool {
        self.reachable.has(device)
    }

    /// Waits until the elements are packed, not for later work of the stream, and returns the
    /// address at which MPI finds them. They stay valid there until the array is written.
    #[track_caller]
    pub(crate) fn ready(&self) -> Result<*const T> {
        match self.device() {
            Some(device) => {
                let address = self.wait_on(&device)?;
                Ok(std::ptr::with_exposed_provenance(address as usize))
            }
            None => Ok(self.view().host()?.as_ptr()),
        }
    }

    /// Waits until the elements that `keep_on` copies are in place, not for later work.
    #[track_caller]
    pub(crate) fn wait(&self) -> Result<()> {
        if let Some(device) = self.only_on() {
            self.wait_on(&device)?;
        }
        Ok(())
    }

    /// The address of the copy of this device, which is valid, once the work that writes it is
    /// done. An error if that has failed.
    #[track_caller]
    fn wait_on(&self, device: &Device) -> Result<u64> {
        let stream = self.reachable.stream_of(device)?;
        drop(self.view().gpu_on(&stream)?);
        stream.synchronize()?;
        Ok(self.view().gpu_on(&stream)?.address())
    }

    /// Makes the host's copy the newest, or that of `device` if MPI can use it, for MPI to write
    /// it, once queued work that reads it is done. Returns its address.
    #[track_caller]
    pub(crate) fn overwrite(&mut self, device: Option<&Device>) -> Result<*mut T> {
        let Some(device) = device.filter(|device| self.is_for(device)) else {
            return Ok(self.view_mut().host_overwrite()?.as_mut_ptr());
        };
        let stream = self.reachable.stream_of(device)?;
        let address = self.view_mut().gpu_overwrite_on(&stream)?.address();
        stream.synchronize()?;
        Ok(std::ptr::with_exposed_provenance_mut(address as usize))
    }

    /// Copies the elements to `part`, which has this shape: on `stream` if the part has a copy on
    /// its device, else on the host.
    #[track_caller]
    pub(crate) fn unpack_on(&self, stream: &Stream, part: &mut impl AsViewMut<T, D>) -> Result<()> {
        let mut part = part.as_view_mut();
        if is_on_host(&part.view()) && self.only_on().is_none() {
            self.unpack_to_host(&mut part.host_overwrite()?)?;
        } else if part.residency().on(&stream.device()) == Validity::Absent {
            part.assign(&self.view())?;
        } else {
            part.assign_on(stream, &self.view())?;
        }
        Ok(())
    }

    /// Copies the elements to elements of the host, in this shape.
    #[track_caller]
    pub(crate) fn unpack_to_host(&self, elements: &mut ArrayRef<T, D>) -> Result<()> {
        elements.assign(&*self.view().host()?);
        Ok(())
    }

    /// The elements in memory of this device only, where they are the newest. They are gone from
    /// here.
    #[track_caller]
    pub(crate) fn take_from(&mut self, device: &Device) -> Result<DeviceArray<T, D>> {
        let shape = self.view().raw_dim();
        let empty = Self::new(shape, Use::Once, &self.reachable)?;
        std::mem::replace(self, empty).into_array()?.into_device(device).map_err(Into::into)
    }

    /// An array of the elements.
    #[track_caller]
    pub(crate) fn into_array(self) -> Result<SmartArray<T, D>> {
        match self.memory {
            Memory::Ordinary(array) => Ok(array),
            Memory::Pinned(array) => Ok(SmartArray::from(array.into_array()?)),
        }
    }

    /// The array of a message for which device memory is reachable.
    #[cfg(feature = "nccl")]
    pub(crate) fn array(&self) -> &SmartArray<T, D> {
        match &self.memory {
            Memory::Ordinary(array) => array,
            Memory::Pinned(_) => unreachable!("messages of NCCL are in device memory"),
        }
    }

    #[cfg(feature = "nccl")]
    pub(crate) fn array_mut(&mut self) -> &mut SmartArray<T, D> {
        match &mut self.memory {
            Memory::Ordinary(array) => array,
            Memory::Pinned(_) => unreachable!("messages of NCCL are in device memory"),
        }
    }

    /// The device that has the only valid copy, if MPI can use memory of it.
    pub(crate) fn device(&self) -> Option<Device> {
        if self.reachable.is_host_only() {
            return None;
        }
        self.only_on().filter(|device| self.is_for(device))
    }

    /// The device that has a valid copy, if the host has none.
    fn only_on(&self) -> Option<Device> {
        let residency = self.view().residency();
        if residency.host() == Validity::Valid {
            return None;
        }
        let mut devices = residency.devices();
        let valid = devices.find(|(_, validity)| *validity == Validity::Valid);
        valid.map(|(device, _)| device.clone())
    }

    pub(crate) fn view(&self) -> SmartView<'_, T, D> {
        match &self.memory {
            Memory::Ordinary(array) => array.view(),
            Memory::Pinned(array) => array.view(),
        }
    }

    fn view_mut(&mut self) -> SmartViewMut<'_, T, D> {
        match &mut self.memory {
            Memory::Ordinary(array) => array.view_mut(),
            Memory::Pinned(array) => array.view_mut(),
        }
    }
}

/// Whether all elements are on the host, and no device has memory for them.
pub(crate) fn is_on_host<T: Element, D: Dimension>(part: &SmartView<'_, T, D>) -> bool {
    let residency = part.residency();
    residency.host() == Validity::Valid
        && residency.devices().all(|(_, validity)| validity == Validity::Absent)
}

/// The stream of calls that name none.
pub(crate) fn current_stream() -> Result<Stream> {
    // The guard of an array without elements, for which nothing is allocated or moved.
    Ok(SmartArray::<u8, _>::uninit(0).gpu()?.stream())
}
