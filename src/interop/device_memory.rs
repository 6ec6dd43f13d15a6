//! Device memory of any owner as an array, and arrays as device memory, without a copy.

use std::any::Any;
use std::sync::Arc;

use ndarray::{Dimension, ShapeBuilder};

use crate::array::{DeviceArray, HandedOut, Layout, SmartArray};
use crate::device::{Device, call_error};
use crate::element::Element;
use crate::error::{AtCall, CalledAt, Error, Result};
use resident_backend::ForeignMemory;
use resident_backend::call_site::call_site;
use resident_core::Access;

/// # Device memory of others
impl<T: Element, D: Dimension> DeviceArray<T, D> {
    /// An array over device memory of any owner, used in place. Copies nothing and does not wait:
    /// uses of the array are ordered after the work that is queued on the device's current stream
    /// now. Wait for work of other libraries' streams before, since it is not ordered.
    ///
    /// `owner` is whatever keeps the memory allocated. It is dropped after the last work that uses
    /// the array's memory, on any thread that calls the library; if this returns an error, before
    /// it returns. Programs for the memory of candle, CubeCL and cuda-core are in
    /// `examples/memory_of_others`.
    ///
    /// The address is the lowest element's; the shape is row-major, or column-major with `.f()`.
    /// On the embedded device, and on emulated ones, memory is the host's: pass the address of a
    /// pointer whose provenance is exposed.
    ///
    /// ```
    /// use resident::{Device, DeviceArray, ndarray::array};
    ///
    /// let device = Device::cpu();
    /// let mut owner = vec![1.0_f32, 2.0, 3.0, 4.0];
    /// let address = owner.as_mut_ptr().expose_provenance() as u64;
    /// // SAFETY: the vector keeps these four elements, which nothing else uses.
    /// let table = unsafe { DeviceArray::from_device_memory(&device, address, (2, 2), owner) };
    /// let mut table = table?;
    /// table.row_mut(1).fill(0.5_f32)?;
    /// assert_eq!(table.copy_to_host()?, array![[1.0, 2.0], [0.5, 0.5]]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Safety
    ///
    /// From the address on, the memory has initialised elements of this shape, which work of the
    /// device can read and write. Until `owner` is dropped the memory stays allocated, nothing else
    /// writes it, and nothing else reads it while this library writes it.
    ///
    /// # Errors
    ///
    /// - [`Error::Foreign`] if the address is 0 or not aligned for `T`; if the driver knows the
    ///   memory as that of another GPU or of none; or if it ends before the array does, which CUDA
    ///   is asked.
    /// - [`Error::Backend`] if an array uses some of the memory already.
    /// - [`Error::DeviceLost`] if the device died.
    #[track_caller]
    pub unsafe fn from_device_memory(
        device: &Device,
        address: u64,
        shape: impl ShapeBuilder<Dim = D>,
        owner: impl Send + Sync + 'static,
    ) -> Result<Self> {
        let (site, stream) = (call_site(), device.current_stream());
        let layout = Layout::of_shape::<T>(shape);
        let len_bytes = (layout.len() * size_of::<T>()) as u64;
        if len_bytes == 0 {
            let empty = Self::uninit_on(&stream, layout.dim().clone());
            return empty.map_err(|error| error.at(site));
        }
        check_start::<T>(address).at(site)?;
        let error_of = |error| call_error(device, "memory", "taking memory over", &error).at(site);
        let fault = device.backend().foreign_fault(address, len_bytes).map_err(error_of)?;
        if let Some(seen) = fault {
            return Err(foreign(seen, format!("{len_bytes} bytes of memory of {device}")).at(site));
        }
        let start = std::ptr::with_exposed_provenance_mut(address as usize);
        let memory = ForeignMemory { start, len_bytes, owner: Box::new(owner) };
        // SAFETY: the caller promises that the memory is initialised, that `owner` keeps it, and
        // that nothing else uses it meanwhile.
        let address = unsafe { device.backend().take_over(memory) }.map_err(error_of)?;
        Ok(Self::over_memory(layout, &stream, address, site))
    }

    /// The array's memory for other code: its address, its length in bytes, and an owner that keeps
    /// it. Waits until the contents are complete, so that any stream may use them. Copies nothing.
    /// The elements lie in memory as in the array: row-major, if it
    /// [`is_c_contiguous`](Self::is_c_contiguous).
    ///
    /// Drop the owner when the other code's work with the memory has ended. It may also be dropped
    /// when that work is queued on the stream that was the device's current one in this call, since
    /// the memory is freed in the order of that stream.
    /// [`from_device_memory`](Self::from_device_memory) makes it an array again, with this owner.
    ///
    /// ```
    /// use resident::{Device, DeviceArray};
    ///
    /// let device = Device::cpu();
    /// let line = DeviceArray::<f32, _>::full_on(&device.stream(), 100, 0.5)?;
    /// let (address, len_bytes, owner) = line.into_device_memory()?;
    /// assert_eq!(len_bytes, 400);
    /// // SAFETY: the owner keeps the 100 elements, which nothing else uses.
    /// let line = unsafe { DeviceArray::from_device_memory(&device, address, 100, owner) };
    /// let line: DeviceArray<f32, _> = line?;
    /// assert_eq!(line.copy_to_host()?.sum(), 50.0);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// The address is 0 if the array has no bytes.
    ///
    /// # Errors
    ///
    /// As [`copy_to_host`](Self::copy_to_host); an error drops the array.
    #[track_caller]
    pub fn into_device_memory(self) -> Result<(u64, usize, Box<dyn Any + Send + Sync>)> {
        let (site, device, len_bytes) = (call_site(), self.device(), self.len_bytes());
        let (access, stream) = (Access::ReadWrite, device.current_stream());
        let array = Arc::new(self.into_dyn());
        let handed_out = HandedOut::waiting(array, access, &stream, "into_device_memory", site)?;
        let address = match len_bytes {
            0 => 0,
            _ => handed_out.data().expose_provenance() as u64,
        };
        Ok((address, len_bytes, Box::new(handed_out)))
    }
}

/// # Device memory of others
impl<T: Element, D: Dimension> SmartArray<T, D> {
    /// A coherent array over device memory of any owner, in which its newest contents are: see
    /// [`DeviceArray::from_device_memory`].
    ///
    /// The array may leave the owner's memory: by [`release_on`](Self::release_on), or when a full
    /// device evicts it, its contents move to the host, and the owner is dropped. Writes on the
    /// host or on other devices are not copied to the owner's memory before the array is used on
    /// this device. If other code is to find the results at the address, use a [`DeviceArray`],
    /// which stays there.
    ///
    /// ```
    /// use resident::{Device, SmartArray};
    ///
    /// let device = Device::cpu();
    /// let mut owner = vec![1_u32; 100];
    /// let address = owner.as_mut_ptr().expose_provenance() as u64;
    /// // SAFETY: the vector keeps the 100 elements, which nothing else uses.
    /// let ones = unsafe { SmartArray::from_device_memory(&device, address, 100, owner) };
    /// let ones: SmartArray<u32, _> = ones?;
    /// assert_eq!(ones.host()?.sum(), 100);              // downloads 400 bytes
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Safety
    ///
    /// As [`DeviceArray::from_device_memory`].
    ///
    /// # Errors
    ///
    /// As [`DeviceArray::from_device_memory`].
    #[track_caller]
    pub unsafe fn from_device_memory(
        device: &Device,
        address: u64,
        shape: impl ShapeBuilder<Dim = D>,
        owner: impl Send + Sync + 'static,
    ) -> Result<Self> {
        // SAFETY: the caller's promise is passed on.
        let array = unsafe { DeviceArray::from_device_memory(device, address, shape, owner) };
        array.map(Self::from_device)
    }

    /// The array's memory on the current device, for other code: see
    /// [`DeviceArray::into_device_memory`]. What is stale on that device is copied first; copies
    /// elsewhere are freed.
    ///
    /// ```
    /// use resident::{Device, SmartArray};
    ///
    /// let _here = Device::cpu().enter();
    /// let (address, len_bytes, owner) = SmartArray::from(vec![1_u32, 2, 3]).into_device_memory()?;
    /// let start = std::ptr::with_exposed_provenance::<u32>(address as usize);
    /// // SAFETY: the owner keeps three elements there, which nothing writes.
    /// assert_eq!(unsafe { std::slice::from_raw_parts(start, len_bytes / 4) }, [1, 2, 3]);
    /// drop(owner);                                      // frees the memory
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`into_device`](Self::into_device); an error drops the array.
    #[track_caller]
    pub fn into_device_memory(self) -> Result<(u64, usize, Box<dyn Any + Send + Sync>)> {
        self.into_device(&Device::current().at(call_site())?)?.into_device_memory()
    }
}

fn check_start<T>(address: u64) -> Result<()> {
    if address != 0 && address.is_multiple_of(align_of::<T>() as u64) {
        return Ok(());
    }
    let expected = format!("an address other than 0 that is a multiple of {}", align_of::<T>());
    Err(foreign(format!("memory to be taken over at address {address:#x}"), expected))
}

fn foreign(seen: String, expected: String) -> Error {
    Error::Foreign { call: CalledAt::UNKNOWN, seen, expected }
}
