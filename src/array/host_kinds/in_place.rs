//! What mapped and managed arrays share: each method is written once, in a macro. Both are a
//! [`DeviceArray`] whose memory is the host memory of the array too.

use std::fmt;
use std::ops::Deref;

use ndarray::{Array, ArrayRef, Dimension, IntoDimension};

use super::super::as_view::{AnyView, AnyViewMut, WithDimension, sealed};
use super::super::device_array::{AsDeviceView, DeviceArray, device_arguments};
use super::super::field::{Disjoint, Field, FieldTuple};
use super::super::host_guard::{HostMut, HostRef};
use super::super::smart::SmartArray;
use super::super::view::{DeviceView, DeviceViewMut};
use super::managed::ManagedArray;
use super::mapped::MappedArray;
use crate::device::Device;
use crate::element::Element;
use crate::error::Result;
use crate::transfer::StoredView;
use resident_backend::call_site::call_site;
use resident_core::Access;

/// The host's accesses, and all that needs `&mut`. There is no `&mut DeviceArray`, so that no array
/// in other memory can take the place of one of these.
macro_rules! in_place_kind {
    ($type:ident, $name:literal) => {
        impl<T: Element, D: Dimension> $type<T, D> {
            /// The contents, for the host to read. Waits for queued work that writes them.
            ///
            /// # Errors
            ///
            /// - [`Lost`](crate::Error::Lost) if work that should have written some elements
            ///   failed.
            /// - [`Backend`](crate::Error::Backend) if waiting fails;
            ///   [`DeviceLost`](crate::Error::DeviceLost) if the device died.
            /// - [`InsideKernel`](crate::Error::InsideKernel) if the call would have to wait inside
            ///   a kernel body.
            #[track_caller]
            pub fn host(&self) -> Result<HostRef<'_, T, D>> {
                self.array.part().host(call_site())
            }

            /// The contents, for the host to change. Waits for queued work that uses them.
            ///
            /// # Errors
            ///
            /// As [`host`](Self::host).
            #[track_caller]
            pub fn host_mut(&mut self) -> Result<HostMut<'_, T, D>> {
                self.array.part().host_mut(Access::ReadWrite, call_site())
            }

            /// The contents, for the host to overwrite, those that were lost included. Write every
            /// element. Waits for queued work that uses them.
            ///
            /// # Errors
            ///
            /// As [`host`](Self::host), without [`Lost`](crate::Error::Lost).
            #[track_caller]
            pub fn host_overwrite(&mut self) -> Result<HostMut<'_, T, D>> {
                self.array.part().host_mut(Access::Overwrite, call_site())
            }

            /// The contents as an owned ndarray array: a copy, since ndarray's arrays cannot own
            /// memory of a driver. Waits for work that writes them.
            ///
            /// # Errors
            ///
            /// As [`host`](Self::host); an error drops the array.
            #[track_caller]
            pub fn into_array(self) -> Result<Array<T, D>> {
                SmartArray::from_device(self.array).into_array()
            }

            /// Overwrites the elements, in the order of the device's current stream: see
            /// [`DeviceArray::fill`].
            ///
            /// # Errors
            ///
            /// As [`DeviceArray::fill`].
            #[track_caller]
            pub fn fill(&mut self, value: T) -> Result<()> {
                self.array.fill(value)
            }

            /// Writes one element: see [`DeviceArray::set`].
            ///
            /// # Errors
            ///
            /// As [`DeviceArray::set`].
            #[track_caller]
            pub fn set(&mut self, index: impl IntoDimension<Dim = D>, value: T) -> Result<()> {
                self.array.set(index, value)
            }

            /// Overwrites the elements with those of a host array: see
            /// [`DeviceArray::copy_from_host`].
            ///
            /// # Errors
            ///
            /// As [`DeviceArray::copy_from_host`].
            #[track_caller]
            pub fn copy_from_host(&mut self, from: &ArrayRef<T, D>) -> Result<()> {
                self.array.copy_from_host(from)
            }

            /// Overwrites the elements with those of a device array: see
            /// [`DeviceArray::copy_from_device`].
            ///
            /// # Errors
            ///
            /// As [`DeviceArray::copy_from_device`].
            #[track_caller]
            pub fn copy_from_device(&mut self, from: &impl AsDeviceView<T, D>) -> Result<()> {
                self.array.copy_from_device(from)
            }

            /// An exclusive view for the device: see [`DeviceArray::view_mut`].
            #[must_use]
            pub fn view_mut(&mut self) -> DeviceViewMut<'_, T, D> {
                self.array.view_mut()
            }

            /// See [`field_mut!`](crate::field_mut!).
            #[doc(hidden)]
            pub fn __field_mut<F: Element>(
                &mut self,
                field: Field<T, F>,
            ) -> DeviceViewMut<'_, F, D> {
                self.array.__field_mut(field)
            }

            /// See [`field_mut!`](crate::field_mut!).
            #[doc(hidden)]
            pub fn __fields_mut<F: FieldTuple<T, D>>(
                &mut self,
                fields: F,
                disjoint: Disjoint,
            ) -> F::Output<'_, &'_ Device> {
                self.array.__fields_mut(fields, disjoint)
            }

            /// Names the array in errors, reports and events.
            #[must_use]
            pub fn named(self, name: impl AsRef<str>) -> Self {
                Self { array: self.array.named(name) }
            }

            /// Names the array anew: see [`SmartArray::set_name`].
            pub fn set_name(&mut self, name: impl AsRef<str>) {
                self.array.set_name(name);
            }
        }

        impl<T: Element, D: Dimension> Deref for $type<T, D> {
            type Target = DeviceArray<T, D>;

            #[inline]
            fn deref(&self) -> &DeviceArray<T, D> {
                &self.array
            }
        }

        device_arguments!($type<T, D>, $name, |array| array.array);

        /// A coherent array in the same memory. The host and the device access it, so nothing is
        /// ever copied between the two: `residency` says that both are valid, and
        /// [`release_on`](SmartArray::release_on) and [`page_lock`](SmartArray::page_lock) do
        /// nothing for them. Other devices have copies of their own. Calls that copy the host's
        /// contents at once, such as [`snapshot_on`](SmartArray::snapshot_on), wait for kernels
        /// that write them, since no driver copies within host memory behind a kernel: CUDA's
        /// copies from host memory to host memory block the caller.
        impl<T: Element, D: Dimension> From<$type<T, D>> for SmartArray<T, D> {
            fn from(array: $type<T, D>) -> Self {
                Self::from_device(array.array)
            }
        }

        #[diagnostic::do_not_recommend]
        impl<T: Element, D: Dimension> AnyViewMut<T> for $type<T, D> {}
    };
}

in_place_kind!(MappedArray, "MappedArray");
in_place_kind!(ManagedArray, "ManagedArray");
