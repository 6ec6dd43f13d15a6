//! Shapes and views of device arrays.

use std::sync::Arc;

use ndarray::{Axis, Dimension, IntoDimension, Ix1, Ix2, IxDyn, Order, RemoveAxis, SliceArg};

use super::super::field::{Disjoint, Field, FieldTuple};
use super::super::iter::{AxisChunksIterMut, AxisIterMut};
use super::super::methods::query::shape_methods;
use super::super::multi_slice::MultiSlice;
use super::super::part::Part;
use super::super::rearrange::{chunk_size, in_range};
use super::super::view::{SmartView, SmartViewMut};
use super::parts::{rearranged_methods, reshape_method, row_methods, view_methods};
use super::parts_mut::{row_mut_methods, view_mut_methods};
use super::{DeviceArray, DeviceView, DeviceViewMut};
use crate::device::Device;
use crate::element::Element;
use crate::error::{AtCall, Result};
use resident_backend::call_site::call_site;

fn seen<'v, T: Element, D: Dimension>(
    view: SmartView<'v, T, D>,
    device: &'v Device,
) -> DeviceView<'v, T, D> {
    DeviceView { view, device }
}

macro_rules! device_methods {
    () => {
        /// The number of bytes of all elements: `len_bytes` by NumPy's and Numba's name.
        #[must_use]
        pub fn nbytes(&self) -> usize {
            self.len_bytes()
        }

        /// The device that has the elements.
        #[must_use]
        pub fn device(&self) -> Device {
            self.home().clone()
        }
    };
}

impl<T: Element, D: Dimension> DeviceArray<T, D> {
    shape_methods!();
    device_methods!();
    view_methods!('_);
    rearranged_methods!('_);
    reshape_method!('_);
    view_mut_methods!();

    fn parts_mut(&mut self) -> (SmartViewMut<'_, T, D>, &Device) {
        (self.array.view_mut(), &self.device)
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
        let (part, shape) = (self.part(), shape.into_dimension());
        let reshaped = part.layout.reshaped(&shape, order);
        let refused = || part.no_reshape(shape.slice(), order);
        let layout = reshaped.ok_or_else(refused).at(call_site())?;
        Ok(DeviceArray { array: self.array.with_layout(layout), device: self.device })
    }

    /// The same array with the number of axes known only when the program runs.
    #[must_use]
    pub fn into_dyn(self) -> DeviceArray<T, IxDyn> {
        DeviceArray { array: self.array.into_dyn(), device: self.device }
    }
}

impl<'a, T: Element, D: Dimension> DeviceView<'a, T, D> {
    shape_methods!();
    device_methods!();
    view_methods!('a);
    rearranged_methods!('a);
    reshape_method!('a);

    /// The parts before `index` and from `index` along an axis: see
    /// [`SmartView::split_at`](crate::SmartView::split_at).
    ///
    /// # Panics
    ///
    /// As ndarray's `split_at`, if there is no such axis or `index` is beyond its end.
    #[track_caller]
    #[must_use]
    pub fn split_at(self, axis: Axis, index: usize) -> (Self, Self) {
        let (first, second) = self.view.split_at(axis, index);
        (seen(first, self.device), seen(second, self.device))
    }

    /// The same view with the number of axes known only when the program runs.
    #[must_use]
    pub fn into_dyn(self) -> DeviceView<'a, T, IxDyn> {
        seen(self.view.into_dyn(), self.device)
    }
}

impl<'a, T: Element, D: Dimension> DeviceViewMut<'a, T, D> {
    shape_methods!();
    device_methods!();
    view_methods!('_);
    reshape_method!('_);
    view_mut_methods!();

    fn parts_mut(&mut self) -> (SmartViewMut<'_, T, D>, &'a Device) {
        (self.view.reborrow(), self.device)
    }

    /// With the axes in another order: see
    /// [`SmartViewMut::permuted_axes`](crate::SmartViewMut::permuted_axes).
    ///
    /// # Panics
    ///
    /// As ndarray's `permuted_axes`, if an axis is missing or occurs twice.
    #[track_caller]
    #[must_use]
    pub fn permuted_axes(self, axes: impl IntoDimension<Dim = D>) -> Self {
        Self { view: self.view.permuted_axes(axes), device: self.device }
    }

    /// With the axes in reverse order, as ndarray's `reversed_axes`.
    #[must_use]
    pub fn reversed_axes(self) -> Self {
        Self { view: self.view.reversed_axes(), device: self.device }
    }

    /// A smaller part with the same lifetime: see
    /// [`SmartViewMut::slice_move`](crate::SmartViewMut::slice_move).
    ///
    /// # Panics
    ///
    /// As ndarray's `slice_move`, if an index is out of bounds.
    #[track_caller]
    #[must_use]
    pub fn slice_move<I: SliceArg<D>>(self, info: I) -> DeviceViewMut<'a, T, I::OutDim> {
        DeviceViewMut { view: self.view.slice_move(info), device: self.device }
    }

    /// The part at one index of an axis, without that axis: see
    /// [`SmartViewMut::index_axis_move`](crate::SmartViewMut::index_axis_move).
    ///
    /// # Panics
    ///
    /// As ndarray's `index_axis_move`, if there is no such axis or index.
    #[track_caller]
    #[must_use]
    pub fn index_axis_move(self, axis: Axis, index: usize) -> DeviceViewMut<'a, T, D::Smaller>
    where
        D: RemoveAxis,
    {
        DeviceViewMut { view: self.view.index_axis_move(axis, index), device: self.device }
    }

    /// In another shape of as many elements, read and laid out in this order: the mutable
    /// counterpart of [`reshape`](Self::reshape), which returns a shared view. It consumes the
    /// view, as [`SmartViewMut::reshape`](crate::SmartViewMut::reshape) does.
    ///
    /// ```
    /// use resident::{Device, DeviceArray, ndarray::{Order, array}};
    ///
    /// let _here = Device::cpu().enter();
    /// let mut line = DeviceArray::<i32, _>::zeros(6)?;
    /// line.view_mut().into_shape((2, 3), Order::C)?.column_mut(1).fill(7)?;
    /// assert_eq!(line.copy_to_host()?, array![0, 7, 0, 0, 7, 0]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`reshape`](Self::reshape).
    #[track_caller]
    pub fn into_shape<S: IntoDimension>(
        self,
        shape: S,
        order: Order,
    ) -> Result<DeviceViewMut<'a, T, S::Dim>> {
        let shape = shape.into_dimension();
        let refused = || self.part().no_reshape(shape.slice(), order);
        let reshaped = self.part().layout.reshaped(&shape, order);
        let layout = reshaped.ok_or_else(refused).at(call_site())?;
        let (storage, _) = self.view.into_parts();
        Ok(DeviceViewMut { view: SmartViewMut::new(storage, layout), device: self.device })
    }

    /// With another axis, of length 1: see
    /// [`SmartViewMut::insert_axis`](crate::SmartViewMut::insert_axis).
    ///
    /// # Panics
    ///
    /// As ndarray's `insert_axis`, if the axis is greater than the number of axes.
    #[track_caller]
    #[must_use]
    pub fn insert_axis(self, axis: Axis) -> DeviceViewMut<'a, T, D::Larger> {
        DeviceViewMut { view: self.view.insert_axis(axis), device: self.device }
    }

    /// Without an axis, at its index 0: see
    /// [`SmartViewMut::remove_axis`](crate::SmartViewMut::remove_axis).
    ///
    /// # Panics
    ///
    /// As ndarray's `remove_axis`, if there is no such axis or its length is 0.
    #[track_caller]
    #[must_use]
    pub fn remove_axis(self, axis: Axis) -> DeviceViewMut<'a, T, D::Smaller>
    where
        D: RemoveAxis,
    {
        DeviceViewMut { view: self.view.remove_axis(axis), device: self.device }
    }

    /// The parts before `index` and from `index` along an axis: see
    /// [`SmartViewMut::split_at`](crate::SmartViewMut::split_at).
    ///
    /// # Panics
    ///
    /// As ndarray's `split_at`, if there is no such axis or `index` is beyond its end.
    #[track_caller]
    #[must_use]
    pub fn split_at(self, axis: Axis, index: usize) -> (Self, Self) {
        let (first, second) = self.view.split_at(axis, index);
        (Self { view: first, device: self.device }, Self { view: second, device: self.device })
    }

    /// The same view with the number of axes known only when the program runs.
    #[must_use]
    pub fn into_dyn(self) -> DeviceViewMut<'a, T, IxDyn> {
        DeviceViewMut { view: self.view.into_dyn(), device: self.device }
    }
}

impl<T: Element> DeviceArray<T, Ix2> {
    row_methods!('_);
    row_mut_methods!();
}

impl<'a, T: Element> DeviceView<'a, T, Ix2> {
    row_methods!('a);
}

impl<T: Element> DeviceViewMut<'_, T, Ix2> {
    row_methods!('_);
    row_mut_methods!();
}
