//! Methods of device arrays that return shared views of parts, or of all elements in another
//! arrangement.

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

        /// See [`field!`](crate::field!).
        #[doc(hidden)]
        pub fn __field<F: Element>(&self, field: Field<T, F>) -> DeviceView<$life, F, D> {
            seen(self.view().view.__field(field), self.home())
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

        /// The parts at each index of an axis, in order: see
        /// [`SmartArray::axis_iter`](crate::SmartArray::axis_iter).
        ///
        /// # Panics
        ///
        /// As ndarray's `axis_iter`, if there is no such axis.
        #[track_caller]
        pub fn axis_iter(
            &self,
            axis: Axis,
        ) -> impl ExactSizeIterator<Item = DeviceView<$life, T, D::Smaller>>
        + DoubleEndedIterator
        + use<$life, T, D>
        where
            D: RemoveAxis,
        {
            let device = self.home();
            self.view().view.axis_iter(axis).map(move |view| seen(view, device))
        }

        /// Parts of `size` indices of an axis, in order; the last part has the rest: see
        /// [`SmartArray::axis_chunks_iter`](crate::SmartArray::axis_chunks_iter).
        ///
        /// # Panics
        ///
        /// As ndarray's `axis_chunks_iter`, if there is no such axis or `size` is 0.
        #[track_caller]
        pub fn axis_chunks_iter(
            &self,
            axis: Axis,
            size: usize,
        ) -> impl ExactSizeIterator<Item = DeviceView<$life, T, D>>
        + DoubleEndedIterator
        + use<$life, T, D> {
            let device = self.home();
            self.view().view.axis_chunks_iter(axis, size).map(move |view| seen(view, device))
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
        /// let columns = table.to_contiguous_in(Order::F)?;
        /// assert_eq!(columns.ravel(Order::F)?.copy_to_host()?, array![1, 4, 2, 5, 3, 6]);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`Shape`](crate::Error::Shape) if the elements in this order have no strides:
        /// [`to_contiguous_in`](Self::to_contiguous_in) makes a copy of which they have.
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

        /// Without an axis, at its index 0: see
        /// [`SmartArray::remove_axis`](crate::SmartArray::remove_axis).
        ///
        /// # Panics
        ///
        /// As ndarray's `remove_axis`, if there is no such axis or its length is 0.
        #[track_caller]
        pub fn remove_axis(&self, axis: Axis) -> DeviceView<$life, T, D::Smaller>
        where
            D: RemoveAxis,
        {
            self.index_axis(axis, 0)
        }
    };
}

/// In another shape.
macro_rules! reshape_method {
    ($life:lifetime) => {
        /// In another shape of as many elements, read and laid out in this order. Never copies.
        /// The view is a shared one. [`DeviceViewMut::into_shape`] makes an exclusive one, as
        /// [`SmartViewMut::reshape`](crate::SmartViewMut::reshape) does.
        ///
        /// # Errors
        ///
        /// [`Shape`](crate::Error::Shape) if the number of elements differs, or if the elements in
        /// this shape have no strides: [`to_contiguous_in`](Self::to_contiguous_in) makes a copy of
        /// which they have.
        #[track_caller]
        pub fn reshape<S: IntoDimension>(
            &self,
            shape: S,
            order: Order,
        ) -> Result<DeviceView<$life, T, S::Dim>> {
            let (part, shape) = (self.part(), shape.into_dimension());
            let reshaped = part.layout.reshaped(&shape, order);
            let refused = || part.no_reshape(shape.slice(), order);
            let layout = reshaped.ok_or_else(refused).at(call_site())?;
            Ok(seen(SmartView::new(part.storage, layout), self.home()))
        }
    };
}

/// Rows and columns of what has two axes.
macro_rules! row_methods {
    ($life:lifetime) => {
        /// A row: see [`SmartArray::row`](crate::SmartArray::row).
        ///
        /// # Panics
        ///
        /// As ndarray's `row`, if there is no such row.
        #[track_caller]
        pub fn row(&self, index: usize) -> DeviceView<$life, T, Ix1> {
            self.index_axis(Axis(0), index)
        }

        /// A column: see [`SmartArray::column`](crate::SmartArray::column).
        ///
        /// # Panics
        ///
        /// As ndarray's `column`, if there is no such column.
        #[track_caller]
        pub fn column(&self, index: usize) -> DeviceView<$life, T, Ix1> {
            self.index_axis(Axis(1), index)
        }
    };
}

pub(super) use {rearranged_methods, reshape_method, row_methods, view_methods};
