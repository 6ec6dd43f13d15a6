//! Shapes and views of device arrays.

use std::sync::Arc;

use ndarray::{Axis, Dimension, IntoDimension, Ix1, Ix2, IxDyn, Order, RemoveAxis, SliceArg};

use super::super::view::{SmartView, SmartViewMut};
use super::{DeviceArray, DeviceView, DeviceViewMut};
use crate::call_site::call_site;
use crate::device::Device;
use crate::element::Element;
use crate::error::{AtCall, Result};

fn seen<'v, T: Element, D: Dimension>(
    view: SmartView<'v, T, D>,
    device: &'v Device,
) -> DeviceView<'v, T, D> {
    DeviceView { view, device }
}

macro_rules! query_methods {
    () => {
        /// The length of each axis.
        #[must_use]
        pub fn shape(&self) -> &[usize] {
            self.part().layout.shape()
        }

        /// The stride of each axis, in elements.
        #[must_use]
        pub fn strides(&self) -> &[isize] {
            self.part().layout.strides()
        }

        /// The shape as ndarray's dimension type.
        #[must_use]
        pub fn raw_dim(&self) -> D {
            self.part().layout.dim().clone()
        }

        /// The number of axes.
        #[must_use]
        pub fn ndim(&self) -> usize {
            self.shape().len()
        }

        /// The number of elements.
        #[must_use]
        pub fn len(&self) -> usize {
            self.part().layout.len()
        }

        /// Whether there are no elements.
        #[must_use]
        pub fn is_empty(&self) -> bool {
            self.len() == 0
        }

        /// The number of bytes of all elements, as NumPy's `nbytes`.
        #[must_use]
        pub fn nbytes(&self) -> usize {
            self.len().saturating_mul(size_of::<T>())
        }

        /// The device that has the elements.
        #[must_use]
        pub fn device(&self) -> Device {
            self.home().clone()
        }

        /// The array's name in errors, reports and events.
        #[must_use]
        pub fn name(&self) -> Arc<str> {
            self.part().storage.name()
        }

        /// Whether the elements are contiguous in row-major order. Axes of length 1 are ignored, as
        /// with NumPy's relaxed strides.
        #[must_use]
        pub fn is_c_contiguous(&self) -> bool {
            self.part().layout.is_c_contiguous()
        }

        /// Whether the elements are contiguous in column-major order. Axes of length 1 are ignored.
        #[must_use]
        pub fn is_f_contiguous(&self) -> bool {
            self.part().layout.is_f_contiguous()
        }
    };
}

/// `$life` is the lifetime of the views: the borrow of `self`, or `'a` for a `DeviceView<'a>`.
macro_rules! view_methods {
    ($life:lifetime) => {
        /// A shared view of all elements.
        #[must_use]
        pub fn view(&self) -> DeviceView<$life, T, D> {
            let part = self.part();
            seen(SmartView::new(part.storage, part.layout.clone()), self.home())
        }

        /// A part, selected by ndarray's `s![..]`: see
        /// [`SmartArray::slice`](crate::SmartArray::slice).
        ///
        /// # Panics
        ///
        /// As ndarray's `slice`, if an index is out of bounds.
        #[track_caller]
        pub fn slice<I: SliceArg<D>>(&self, info: I) -> DeviceView<$life, T, I::OutDim> {
            seen(self.view().view.slice(info), self.home())
        }

        /// With the axes in reverse order: see [`SmartArray::t`](crate::SmartArray::t).
        #[must_use]
        pub fn t(&self) -> DeviceView<$life, T, D> {
            seen(self.view().view.t(), self.home())
        }

        /// The part at one index of an axis, without that axis: see
        /// [`SmartArray::index_axis`](crate::SmartArray::index_axis).
        ///
        /// # Panics
        ///
        /// As ndarray's `index_axis`, if there is no such axis or index.
        #[track_caller]
        pub fn index_axis(&self, axis: Axis, index: usize) -> DeviceView<$life, T, D::Smaller>
        where
            D: RemoveAxis,
        {
            seen(self.view().view.index_axis(axis, index), self.home())
        }

        /// The elements repeated along axes of length 1 and new first axes: see
        /// [`SmartArray::broadcast`](crate::SmartArray::broadcast).
        ///
        /// # Errors
        ///
        /// [`Shape`](crate::Error::Shape) if an axis has another length, which is not 1.
        #[track_caller]
        pub fn broadcast<S: IntoDimension>(
            &self,
            shape: S,
        ) -> Result<DeviceView<$life, T, S::Dim>> {
            Ok(seen(self.view().view.broadcast(shape)?, self.home()))
        }

        /// All elements as one axis, read in this order. As Numba's and NumPy's `ravel`, but never
        /// a copy.
        ///
        /// ```
        /// use resident::{Device, DeviceArray, ndarray::{Order, array}};
        ///
        /// let _here = Device::cpu().enter();
        /// let table = DeviceArray::from_host(&array![[1, 2, 3], [4, 5, 6]])?;
        /// assert_eq!(table.ravel(Order::C)?.copy_to_host()?, array![1, 2, 3, 4, 5, 6]);
        /// assert!(table.ravel(Order::F).is_err());          // column by column needs a copy
        /// let columns = table.t().to_contiguous()?;
        /// assert_eq!(columns.ravel(Order::C)?.copy_to_host()?, array![1, 4, 2, 5, 3, 6]);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`Shape`](crate::Error::Shape) if the elements in this order have no strides:
        /// [`to_contiguous`](Self::to_contiguous) makes a copy of which they have.
        #[track_caller]
        pub fn ravel(&self, order: Order) -> Result<DeviceView<$life, T, Ix1>> {
            self.reshape(self.len(), order)
        }

        /// Parts of `section` indices of the first axis, in order; the last part has the rest. As
        /// Numba's `split`.
        ///
        /// ```
        /// use resident::{Device, DeviceArray};
        ///
        /// let line = DeviceArray::<f32, _>::zeros_on(&Device::cpu().stream(), 10)?;
        /// let lens: Vec<_> = line.split(4)?.iter().map(|part| part.len()).collect();
        /// assert_eq!(lens, [4, 4, 2]);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`Shape`](crate::Error::Shape) if `section` is 0, or if there are no axes.
        #[track_caller]
        pub fn split(&self, section: usize) -> Result<Vec<DeviceView<$life, T, D>>> {
            let refused = || self.part().no_sections(section);
            let is_possible = section > 0 && self.ndim() > 0;
            is_possible.then_some(()).ok_or_else(refused).at(call_site())?;
            let parts = self.view().view.axis_chunks_iter(Axis(0), section);
            Ok(parts.map(|view| seen(view, self.home())).collect())
        }
    };
}

/// For shared views and arrays. A [`DeviceViewMut`] has methods of the same names, which consume
/// it.
macro_rules! rearranged_methods {
    ($life:lifetime) => {
        /// With the axes in another order: see
        /// [`SmartArray::permuted_axes`](crate::SmartArray::permuted_axes).
        ///
        /// # Panics
        ///
        /// As ndarray's `permuted_axes`, if an axis is missing or occurs twice.
        #[track_caller]
        pub fn permuted_axes(&self, axes: impl IntoDimension<Dim = D>) -> DeviceView<$life, T, D> {
            seen(self.view().view.permuted_axes(axes), self.home())
        }

        /// With another axis, of length 1: see
        /// [`SmartArray::insert_axis`](crate::SmartArray::insert_axis).
        ///
        /// # Panics
        ///
        /// As ndarray's `insert_axis`, if the axis is greater than the number of axes.
        #[track_caller]
        pub fn insert_axis(&self, axis: Axis) -> DeviceView<$life, T, D::Larger> {
            seen(self.view().view.insert_axis(axis), self.home())
        }
    };
}

/// In another shape.
macro_rules! reshape_method {
    ($life:lifetime) => {
        /// In another shape of as many elements, read and laid out in this order. Never copies.
        ///
        /// # Errors
        ///
        /// [`Shape`](crate::Error::Shape) if the number of elements differs, or if the elements in
        /// this shape have no strides: [`to_contiguous`](Self::to_contiguous) makes a copy of which
        /// they have.
        #[track_caller]
        pub fn reshape<S: IntoDimension>(
            &self,
            shape: S,
            order: Order,
        ) -> Result<DeviceView<$life, T, S::Dim>> {
            let (part, shape) = (self.part(), shape.into_dimension());
            let reshaped = part.layout.reshaped(&shape, order);
            let refused = || part.no_reshape(shape.slice(), "to_contiguous");
            let layout = reshaped.ok_or_else(refused).at(call_site())?;
            Ok(seen(SmartView::new(part.storage, layout), self.home()))
        }
    };
}

macro_rules! view_mut_methods {
    () => {
        /// An exclusive view of all elements.
        #[must_use]
        pub fn view_mut(&mut self) -> DeviceViewMut<'_, T, D> {
            let (view, device) = self.parts_mut();
            DeviceViewMut { view, device }
        }

        /// A mutable part, selected by ndarray's `s![..]`: see
        /// [`SmartArray::slice_mut`](crate::SmartArray::slice_mut).
        ///
        /// # Panics
        ///
        /// As ndarray's `slice_mut`, if an index is out of bounds.
        #[track_caller]
        pub fn slice_mut<I: SliceArg<D>>(&mut self, info: I) -> DeviceViewMut<'_, T, I::OutDim> {
            let (view, device) = self.parts_mut();
            DeviceViewMut { view: view.slice_move(info), device }
        }

        /// The mutable parts before `index` and from `index` along an axis: see
        /// [`SmartArray::split_at_mut`](crate::SmartArray::split_at_mut).
        ///
        /// # Panics
        ///
        /// As ndarray's `split_at`, if there is no such axis or `index` is beyond its end.
        #[track_caller]
        pub fn split_at_mut(
            &mut self,
            axis: Axis,
            index: usize,
        ) -> (DeviceViewMut<'_, T, D>, DeviceViewMut<'_, T, D>) {
            let (view, device) = self.parts_mut();
            let (first, second) = view.split_at(axis, index);
            (DeviceViewMut { view: first, device }, DeviceViewMut { view: second, device })
        }

        /// The mutable part at one index of an axis, without that axis: see
        /// [`SmartArray::index_axis_mut`](crate::SmartArray::index_axis_mut).
        ///
        /// # Panics
        ///
        /// As ndarray's `index_axis_mut`, if there is no such axis or index.
        #[track_caller]
        pub fn index_axis_mut(
            &mut self,
            axis: Axis,
            index: usize,
        ) -> DeviceViewMut<'_, T, D::Smaller>
        where
            D: RemoveAxis,
        {
            let (view, device) = self.parts_mut();
            DeviceViewMut { view: view.index_axis_move(axis, index), device }
        }
    };
}

impl<T: Element, D: Dimension> DeviceArray<T, D> {
    query_methods!();
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
        let refused = || part.no_reshape(shape.slice(), "to_contiguous");
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
    query_methods!();
    view_methods!('a);
    rearranged_methods!('a);
    reshape_method!('a);
}

impl<'a, T: Element, D: Dimension> DeviceViewMut<'a, T, D> {
    query_methods!();
    view_methods!('_);
    reshape_method!('_);
    view_mut_methods!();

    fn parts_mut(&mut self) -> (SmartViewMut<'_, T, D>, &'a Device) {
        (self.view.reborrow(), self.device)
    }

    /// With the axes in another order: see
    /// [`SmartArray::permuted_axes`](crate::SmartArray::permuted_axes).
    ///
    /// # Panics
    ///
    /// As ndarray's `permuted_axes`, if an axis is missing or occurs twice.
    #[track_caller]
    #[must_use]
    pub fn permuted_axes(self, axes: impl IntoDimension<Dim = D>) -> Self {
        Self { view: self.view.permuted_axes(axes), device: self.device }
    }
}

impl<T: Element> DeviceArray<T, Ix2> {
    /// A row: see [`SmartArray::row`](crate::SmartArray::row).
    ///
    /// # Panics
    ///
    /// As ndarray's `row`, if there is no such row.
    #[track_caller]
    pub fn row(&self, index: usize) -> DeviceView<'_, T, Ix1> {
        self.index_axis(Axis(0), index)
    }

    /// A column: see [`SmartArray::column`](crate::SmartArray::column).
    ///
    /// # Panics
    ///
    /// As ndarray's `column`, if there is no such column.
    #[track_caller]
    pub fn column(&self, index: usize) -> DeviceView<'_, T, Ix1> {
        self.index_axis(Axis(1), index)
    }
}
