//! What can be sent and received: arrays and views of the library.

use std::sync::Arc;

use resident::ndarray::Dimension;
use resident::{
    AsView, AsViewMut, Device, DeviceArray, DeviceView, DeviceViewMut, Element, PinnedArray,
    SmartArray, SmartView, SmartViewMut, Stream, Validity,
};

use crate::error::Result;
use crate::packed::Packed;

mod sealed {
    pub trait Sealed {}
}

/// An array or a view of elements `T` in dimension `D`, to be sent: `SmartArray`, `SmartView`,
/// `SmartViewMut`, `PinnedArray`, `DeviceArray`, `DeviceView`, `DeviceViewMut`, and references to
/// them. Sealed, as [`AsView`] is.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an array or view of `{T}` with dimension `{D}`",
    label = "expected an array or view of `resident`",
    note = "adopt an ndarray array with `SmartArray::from(array)`"
)]
pub trait Part<T: Element, D: Dimension + 'static>: sealed::Sealed {
    #[doc(hidden)]
    fn part_shape(&self) -> D;

    /// The array's name.
    #[doc(hidden)]
    fn part_name(&self) -> Arc<str>;

    /// Whether it has memory on this device.
    #[doc(hidden)]
    fn has_copy_on(&self, device: &Device) -> bool;

    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn pack(&self, memory: &mut Packed<T, D>, stream: &Stream) -> Result<()>;
}

/// A [`Part`] that can be written, to receive into it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a writable array or view of `{T}` with dimension `{D}`",
    label = "expected an array or exclusive view of `resident`",
    note = "`array.slice_mut(s![..])` is an exclusive view of a part"
)]
pub trait PartMut<T: Element, D: Dimension + 'static>: Part<T, D> {
    #[doc(hidden)]
    #[allow(private_interfaces)]
    fn unpack(&mut self, memory: &mut Packed<T, D>, stream: &Stream) -> Result<()>;
}

macro_rules! coherent_parts {
    ($($type:ty),+) => {$(
        impl<T: Element, D: Dimension> sealed::Sealed for $type {}

        impl<T: Element, D: Dimension + 'static> Part<T, D> for $type {
            fn part_shape(&self) -> D {
                self.as_view().raw_dim()
            }

            fn part_name(&self) -> Arc<str> {
                self.as_view().name()
            }

            fn has_copy_on(&self, device: &Device) -> bool {
                self.as_view().residency().on(device) != Validity::Absent
            }

            #[allow(private_interfaces)]
            #[track_caller]
            fn pack(&self, memory: &mut Packed<T, D>, stream: &Stream) -> Result<()> {
                memory.pack_on(stream, &self.as_view())
            }
        }
    )+};
}

coherent_parts!(SmartArray<T, D>, SmartView<'_, T, D>, SmartViewMut<'_, T, D>, PinnedArray<T, D>);

macro_rules! coherent_parts_mut {
    ($($type:ty),+) => {$(
        impl<T: Element, D: Dimension + 'static> PartMut<T, D> for $type {
            #[allow(private_interfaces)]
            #[track_caller]
            fn unpack(&mut self, memory: &mut Packed<T, D>, stream: &Stream) -> Result<()> {
                memory.unpack_on(stream, &mut self.as_view_mut())
            }
        }
    )+};
}

coherent_parts_mut!(SmartArray<T, D>, SmartViewMut<'_, T, D>, PinnedArray<T, D>);

macro_rules! device_parts {
    ($($type:ty),+) => {$(
        impl<T: Element, D: Dimension> sealed::Sealed for $type {}

        impl<T: Element, D: Dimension + 'static> Part<T, D> for $type {
            fn part_shape(&self) -> D {
                self.raw_dim()
            }

            fn part_name(&self) -> Arc<str> {
                self.name()
            }

            fn has_copy_on(&self, device: &Device) -> bool {
                self.device() == *device
            }

            #[allow(private_interfaces)]
            #[track_caller]
            fn pack(&self, memory: &mut Packed<T, D>, stream: &Stream) -> Result<()> {
                let stream = of_device(stream, self.device());
                if memory.is_for(&self.device()) {
                    let _here = stream.enter();
                    memory.pack_from_device(self.to_contiguous()?);
                    return Ok(());
                }
                memory.pack_from_host(&self.copy_to_host_on(&stream)?.wait()?)
            }
        }
    )+};
}

device_parts!(DeviceArray<T, D>, DeviceView<'_, T, D>, DeviceViewMut<'_, T, D>);

macro_rules! device_parts_mut {
    ($($type:ty),+) => {$(
        impl<T: Element, D: Dimension + 'static> PartMut<T, D> for $type {
            #[allow(private_interfaces)]
            #[track_caller]
            fn unpack(&mut self, memory: &mut Packed<T, D>, stream: &Stream) -> Result<()> {
                let stream = of_device(stream, self.device());
                if memory.device().is_some() {
                    let elements = memory.take_from(&self.device())?;
                    return Ok(self.copy_from_device_on(&stream, &elements)?);
                }
                Ok(self.copy_from_host_on(&stream, &memory.view().host()?)?)
            }
        }
    )+};
}

device_parts_mut!(DeviceArray<T, D>, DeviceViewMut<'_, T, D>);

impl<V: sealed::Sealed + ?Sized> sealed::Sealed for &V {}
impl<V: sealed::Sealed + ?Sized> sealed::Sealed for &mut V {}

macro_rules! part_through {
    ($pointer:ty) => {
        impl<T: Element, D: Dimension + 'static, V: Part<T, D> + ?Sized> Part<T, D> for $pointer {
            fn part_shape(&self) -> D {
                (**self).part_shape()
            }

            fn part_name(&self) -> Arc<str> {
                (**self).part_name()
            }

            fn has_copy_on(&self, device: &Device) -> bool {
                (**self).has_copy_on(device)
            }

            #[allow(private_interfaces)]
            #[track_caller]
            fn pack(&self, memory: &mut Packed<T, D>, stream: &Stream) -> Result<()> {
                (**self).pack(memory, stream)
            }
        }
    };
}

part_through!(&V);
part_through!(&mut V);

impl<T: Element, D: Dimension + 'static, V: PartMut<T, D> + ?Sized> PartMut<T, D> for &mut V {
    #[allow(private_interfaces)]
    #[track_caller]
    fn unpack(&mut self, memory: &mut Packed<T, D>, stream: &Stream) -> Result<()> {
        (**self).unpack(memory, stream)
    }
}

/// `stream`, or the default stream of `device` if that is another device.
fn of_device(stream: &Stream, device: Device) -> Stream {
    if stream.device() == device { stream.clone() } else { device.stream() }
}
