//! Shapes and views of device arrays.

use std::ops::Deref;
use std::sync::Arc;

use ndarray::{
    Axis, AxisDescription, Dimension, IntoDimension, Ix1, Ix2, IxDyn, Order, RemoveAxis, Slice,
    SliceArg,
};

use super::super::field::{Disjoint, Field, FieldTuple};
use super::super::iter::{
    AxisChunks, AxisChunksIter, AxisChunksIterMut, AxisIter, AxisIterMut, AxisParts,
};
use super::super::methods::parts::{part_methods, rearranged_methods, row_methods};
use super::super::methods::parts_mut::{multi_slice_method, part_mut_methods, row_mut_methods};
use super::super::methods::query::{get_method, shape_methods, traffic_methods};
use super::super::multi_slice::MultiSlice;
use super::super::view::View;
use super::parts::{explicit_methods, home_methods};
use super::{DeviceArray, DeviceView, DeviceViewMut};
use crate::audit::Traffic;
use crate::device::Device;
use crate::element::Element;
use crate::error::{AtCall, Result};
use resident_backend::call_site::call_site;

impl<T: Element, D: Dimension> DeviceArray<T, D> {
    shape_methods!();
    traffic_methods!();
    get_method!();
    home_methods!();
    explicit_methods!('_);
    part_methods!(DeviceView<'_>, &'_ Device);
    rearranged_methods!(DeviceView<'_>);
    part_mut_methods!(DeviceViewMut, &'_ Device);
    multi_slice_method!(device_views -> DeviceOutput);

    /// A shared view of all elements.
    #[must_use]
    pub fn view(&self) -> DeviceView<'_, T, D> {
        self.array.view().with_home(&self.device)
    }

    /// An exclusive view of all elements.
    #[must_use]
    pub fn view_mut(&mut self) -> DeviceViewMut<'_, T, D> {
        self.array.view_mut().with_home(&self.device)
    }

    /// The same array in another shape of as many elements, read and laid out in this order. Never
    /// copies.
    ///
    /// # Errors
    ///
    /// As [`reshape`](Self::reshape); an error drops the array.
    #[track_caller]
    pub fn into_shape<S: IntoDimension>(
        self,
        shape: S,
        order: Order,
    ) -> Result<DeviceArray<T, S::Dim>> {
        let (_, _, layout) = self.view().into_shape(shape, order)?.into_parts();
        Ok(DeviceArray { array: self.array.with_layout(layout), device: self.device })
    }

    /// The same array with the number of axes known only when the program runs.
    #[must_use]
    pub fn into_dyn(self) -> DeviceArray<T, IxDyn> {
        DeviceArray { array: self.array.into_dyn(), device: self.device }
    }
}

impl<T: Element, R: Deref<Target = T>, D: Dimension> View<'_, &'_ Device, R, D> {
    home_methods!();
}

impl<'a, T: Element, D: Dimension> DeviceView<'a, T, D> {
    explicit_methods!('a);
}

impl<T: Element, D: Dimension> DeviceViewMut<'_, T, D> {
    explicit_methods!('_);
    multi_slice_method!(device_views -> DeviceOutput);
}

impl<T: Element> DeviceArray<T, Ix2> {
    row_methods!(DeviceView<'_>);
    row_mut_methods!(DeviceViewMut);
}
