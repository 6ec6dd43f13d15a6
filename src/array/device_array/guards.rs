//! Guards of device arrays, for external work: launches and library calls outside this crate.

use ndarray::Dimension;

use super::super::device_guard::{DeviceMut, DeviceRef};
use super::{DeviceArray, DeviceView, DeviceViewMut};
use crate::device::Stream;
use crate::element::Element;
use crate::error::Result;
use resident_backend::call_site::call_site;
use resident_core::Access;

macro_rules! guard_methods {
    ($life:lifetime, $part:ident) => {
        /// The memory, for external work on `stream` to read: as
        /// [`SmartArray::gpu_on`](crate::SmartArray::gpu_on). Moves nothing.
        ///
        /// ```
        /// use resident::{Device, DeviceArray};
        ///
        /// let stream = Device::cpu().stream();
        /// let table = DeviceArray::<f32, _>::full_on(&stream, (2, 3), 1.0)?;
        /// let guard = table.gpu_on(&stream)?;
        /// println!("6 elements from address {:#x} on", guard.address());
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// - [`WrongDevice`](crate::Error::WrongDevice) if the stream is one of another device.
        /// - [`Uninitialised`](crate::Error::Uninitialised) or [`Lost`](crate::Error::Lost) if
        ///   elements have no contents.
        /// - [`Backend`](crate::Error::Backend) or [`DeviceLost`](crate::Error::DeviceLost) if the
        ///   device refuses a call.
        #[track_caller]
        pub fn gpu_on(&self, stream: &Stream) -> Result<DeviceRef<$life, T, D>> {
            let site = call_site();
            self.part().expect_home(self.home(), stream, "gpu_on", site)?;
            self.$part().gpu_on(stream, site)
        }
    };
}

macro_rules! guard_mut_methods {
    () => {
        /// The memory, for external work on `stream` to read and write: as
        /// [`SmartArray::gpu_mut_on`](crate::SmartArray::gpu_mut_on). Moves nothing.
        ///
        /// # Errors
        ///
        /// As [`gpu_on`](Self::gpu_on).
        #[track_caller]
        pub fn gpu_mut_on(&mut self, stream: &Stream) -> Result<DeviceMut<'_, T, D>> {
            let site = call_site();
            self.part().expect_home(self.home(), stream, "gpu_mut_on", site)?;
            self.part().gpu_mut_on(Access::ReadWrite, stream, site)
        }

        /// The memory, for external work on `stream` to overwrite: as
        /// [`SmartArray::gpu_overwrite_on`](crate::SmartArray::gpu_overwrite_on). Moves nothing.
        ///
        /// # Errors
        ///
        /// As [`gpu_on`](Self::gpu_on), but the elements need no contents.
        #[track_caller]
        pub fn gpu_overwrite_on(&mut self, stream: &Stream) -> Result<DeviceMut<'_, T, D>> {
            let site = call_site();
            self.part().expect_home(self.home(), stream, "gpu_overwrite_on", site)?;
            self.part().gpu_mut_on(Access::Overwrite, stream, site)
        }
    };
}

impl<T: Element, D: Dimension> DeviceArray<T, D> {
    guard_methods!('_, part);
    guard_mut_methods!();
}

impl<'a, T: Element, D: Dimension> DeviceView<'a, T, D> {
    guard_methods!('a, long_part);
}

impl<T: Element, D: Dimension> DeviceViewMut<'_, T, D> {
    guard_methods!('_, part);
    guard_mut_methods!();
}
