//! Making device arrays, and the way to and from coherent arrays.

use ndarray::{ArrayRef, Dimension, ShapeBuilder};

use num_traits::One;

use super::super::smart::SmartArray;
use super::{AsDeviceView, DeviceArray};
use crate::audit::{self, Implicit};
use crate::device::{Device, Stream, call_error};
use crate::element::Element;
use crate::error::{AtCall, Error, Result};
use crate::transfer;
use resident_backend::call_site::{CallSite, call_site};
use resident_core::Access;

impl<T: Element, D: Dimension> DeviceArray<T, D> {
    /// A copy of a host array on the current device, in the axis order of the host array if it has
    /// no gaps, else row-major. As Numba's `to_device`.
    ///
    /// # Errors
    ///
    /// As [`from_host_on`](Self::from_host_on), and [`NoDevice`](crate::Error::NoDevice) if there
    /// is no current device.
    #[track_caller]
    pub fn from_host(array: &ArrayRef<T, D>) -> Result<Self> {
        Self::copied(&current_stream()?, array, call_site())
    }

    /// As [`from_host`](Self::from_host), on `stream`'s device, in the order of that stream.
    /// Returns when the host array has been read.
    ///
    /// # Errors
    ///
    /// - [`OutOfMemory`](crate::Error::OutOfMemory) if the device has no memory left, or the host
    ///   none for staging.
    /// - [`Backend`](crate::Error::Backend) if the device refuses a call;
    ///   [`DeviceLost`](crate::Error::DeviceLost) if it died.
    #[track_caller]
    pub fn from_host_on(stream: &Stream, array: &ArrayRef<T, D>) -> Result<Self> {
        Self::copied(stream, array, call_site())
    }

    fn copied(stream: &Stream, array: &ArrayRef<T, D>, site: CallSite) -> Result<Self> {
        let layout = super::super::layout::Layout::new(array.raw_dim(), array.strides(), 0);
        let mut made = Self::over(SmartArray::uninit_in(&layout, site)?, stream);
        made.write_from_host(array, stream, site)?;
        Ok(made)
    }

    /// An array on the current device whose bytes are all zero.
    ///
    /// # Errors
    ///
    /// As [`from_host`](Self::from_host).
    ///
    /// # Panics
    ///
    /// Like ndarray's constructors, if the shape overflows an `isize`, in elements or in bytes.
    #[track_caller]
    pub fn zeros(shape: impl ShapeBuilder<Dim = D>) -> Result<Self> {
        Self::filled(&current_stream()?, shape, T::zeroed(), call_site())
    }

    /// As [`zeros`](Self::zeros), on `stream`'s device, in the order of that stream.
    ///
    /// # Errors
    ///
    /// As [`from_host_on`](Self::from_host_on).
    ///
    /// # Panics
    ///
    /// As [`zeros`](Self::zeros).
    #[track_caller]
    pub fn zeros_on(stream: &Stream, shape: impl ShapeBuilder<Dim = D>) -> Result<Self> {
        Self::filled(stream, shape, T::zeroed(), call_site())
    }

    /// An array of ones on the current device.
    ///
    /// # Errors
    ///
    /// As [`from_host`](Self::from_host).
    ///
    /// # Panics
    ///
    /// As [`zeros`](Self::zeros).
    #[track_caller]
    pub fn ones(shape: impl ShapeBuilder<Dim = D>) -> Result<Self>
    where
        T: One,
    {
        Self::filled(&current_stream()?, shape, T::one(), call_site())
    }

    /// An array on the current device whose elements are all `value`.
    ///
    /// # Errors
    ///
    /// As [`from_host`](Self::from_host).
    ///
    /// # Panics
    ///
    /// As [`zeros`](Self::zeros).
    #[track_caller]
    pub fn full(shape: impl ShapeBuilder<Dim = D>, value: T) -> Result<Self> {
        Self::filled(&current_stream()?, shape, value, call_site())
    }

    /// As [`full`](Self::full), on `stream`'s device, in the order of that stream.
    ///
    /// # Errors
    ///
    /// As [`from_host_on`](Self::from_host_on).
    ///
    /// # Panics
    ///
    /// As [`zeros`](Self::zeros).
    #[track_caller]
    pub fn full_on(stream: &Stream, shape: impl ShapeBuilder<Dim = D>, value: T) -> Result<Self> {
        Self::filled(stream, shape, value, call_site())
    }

    fn filled(
        stream: &Stream,
        shape: impl ShapeBuilder<Dim = D>,
        value: T,
        site: CallSite,
    ) -> Result<Self> {
        let made = Self::over(SmartArray::uninit_at(shape, site), stream);
        made.part().fill_on(stream, value, site)?;
        Ok(made)
    }

    /// An array on the current device without contents, for results. Its memory is allocated now,
    /// and its elements count as unwritten: reading one is
    /// [`Uninitialised`](crate::Error::Uninitialised). As Numba's `device_array`.
    ///
    /// # Errors
    ///
    /// As [`from_host`](Self::from_host).
    ///
    /// # Panics
    ///
    /// As [`zeros`](Self::zeros).
    #[track_caller]
    pub fn uninit(shape: impl ShapeBuilder<Dim = D>) -> Result<Self> {
        Self::allocated(&current_stream()?, SmartArray::uninit_at(shape, call_site()), call_site())
    }

    /// As [`uninit`](Self::uninit), on `stream`'s device, in the order of that stream.
    ///
    /// # Errors
    ///
    /// As [`from_host_on`](Self::from_host_on).
    ///
    /// # Panics
    ///
    /// As [`zeros`](Self::zeros).
    #[track_caller]
    pub fn uninit_on(stream: &Stream, shape: impl ShapeBuilder<Dim = D>) -> Result<Self> {
        Self::allocated(stream, SmartArray::uninit_at(shape, call_site()), call_site())
    }

    /// [`uninit`](Self::uninit) with the shape, the axis order and the device of another device
    /// array or view; row-major if the other has gaps. As Numba's `device_array_like`.
    ///
    /// # Errors
    ///
    /// As [`from_host_on`](Self::from_host_on).
    #[track_caller]
    pub fn like<U: Element>(other: &impl AsDeviceView<U, D>) -> Result<Self> {
        let other = other.as_device_view();
        let array = SmartArray::uninit_in(other.part().layout, call_site())?;
        Self::allocated(&other.home().current_stream(), array, call_site())
    }

    /// As [`like`](Self::like), on `stream`'s device, in the order of that stream.
    ///
    /// # Errors
    ///
    /// As [`from_host_on`](Self::from_host_on).
    #[track_caller]
    pub fn like_on<U: Element>(stream: &Stream, other: &impl AsDeviceView<U, D>) -> Result<Self> {
        let array = SmartArray::uninit_in(other.as_device_view().part().layout, call_site())?;
        Self::allocated(stream, array, call_site())
    }

    fn allocated(stream: &Stream, array: SmartArray<T, D>, site: CallSite) -> Result<Self> {
        let made = Self::over(array, stream);
        made.part().allocate_on(stream, site)?;
        Ok(made)
    }

    /// From now on, the array's memory on `stream`'s device stays where it is.
    pub(in crate::array) fn over(array: SmartArray<T, D>, stream: &Stream) -> Self {
        array.part().storage.lock().become_explicit();
        Self { array, device: stream.device() }
    }

    /// Names the array in errors, reports and events.
    #[must_use]
    pub fn named(self, name: impl AsRef<str>) -> Self {
        Self { array: self.array.named(name), device: self.device }
    }

    /// Names the array anew: see [`SmartArray::set_name`].
    pub fn set_name(&mut self, name: impl AsRef<str>) {
        self.array.set_name(name);
    }
}

/// # From and to arrays of one device
impl<T: Element, D: Dimension> SmartArray<T, D> {
    /// A coherent array with the contents of a device array, which stay where they are. Copies
    /// nothing. From now on a full device may evict this copy.
    ///
    /// ```
    /// use resident::{Device, DeviceArray, SmartArray, Validity};
    ///
    /// let device = Device::cpu();
    /// let line = DeviceArray::<f32, _>::full_on(&device.stream(), 100, 0.5)?;
    /// let line = SmartArray::from_device(line);
    /// assert_eq!(line.residency().on(&device), Validity::Valid);
    /// assert_eq!(line.host()?.sum(), 50.0);             // downloads it
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use]
    pub fn from_device(array: DeviceArray<T, D>) -> Self {
        array.part().storage.lock().become_coherent();
        array.array
    }

    /// A device array with these contents, on one device. Copies nothing if the contents are there
    /// already; else copies what is stale there, and waits until it has arrived. The memory of
    /// copies on other devices is freed; that of the host is kept until the array drops.
    ///
    /// ```
    /// use resident::{Device, SmartArray};
    ///
    /// let line = SmartArray::from(vec![1.0_f32, 2.0, 3.0]);
    /// let line = line.into_device(&Device::cpu())?;     // uploads 12 bytes
    /// assert_eq!(line.copy_to_host()?.sum(), 6.0);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`gpu_mut_on`](Self::gpu_mut_on), and [`InsideKernel`](crate::Error::InsideKernel) if the
    /// call would have to wait inside a kernel body; an error drops the array. To keep it, call
    /// [`gpu_on`](Self::gpu_on) first.
    #[track_caller]
    pub fn into_device(self, device: &Device) -> Result<DeviceArray<T, D>> {
        let (site, stream) = (call_site(), device.current_stream());
        // What the caller gives away must not be lost because a copy is denied.
        let _allowed = audit::allow(Implicit::ALL);
        let made = DeviceArray::over(self, &stream);
        made.array.leave_host_memory(site)?;
        made.array.bring_all_to(&stream, site)?;
        drop(made.part().gpu_mut_on(Access::ReadWrite, &stream, site)?);
        made.array.release_other_copies(device, site)?;
        Ok(made)
    }
}

impl<T: Element, D: Dimension> SmartArray<T, D> {
    /// If a device uses the host memory in its place, ends that. The caller has made the array an
    /// explicit one, so that its next use allocates device memory.
    pub(in crate::array) fn leave_host_memory(&self, site: CallSite) -> Result<()> {
        let part = self.part();
        if part.storage.lock().is_host_shared() {
            drop(part.host_mut(Access::ReadWrite, site)?);
            transfer::unshare_host(part.storage);
        }
        Ok(())
    }

    /// Copies what is stale on `stream`'s device, and waits until it has arrived. The contents stay
    /// valid where they were, so a copy that fails late is made again.
    fn bring_all_to(&self, stream: &Stream, site: CallSite) -> Result<()> {
        const ATTEMPTS: usize = 3;
        for _ in 0..ATTEMPTS {
            let before = self.traffic();
            drop(self.part().gpu_on(stream, site)?);
            if self.traffic() == before {
                return Ok(());
            }
            let waited = stream.wait_until(stream.raw().tail(), site);
            waited
                .map_err(|error| {
                    call_error(stream.device_ref(), &self.name(), "into_device", &error)
                })
                .at(site)?;
        }
        Err(Error::Backend {
            call: site.into(),
            device: stream.device_ref().name(),
            operation: String::from("into_device"),
            cause: format!("the copy failed {ATTEMPTS} times; call `gpu_on` to see why"),
        })
    }
}

/// The current device's default stream.
#[track_caller]
fn current_stream() -> Result<Stream> {
    Stream::current().at(call_site())
}
