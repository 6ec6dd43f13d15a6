//! Methods of device arrays that return mutable views of parts.

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

        /// Up to six disjoint parts at once: see
        /// [`SmartArray::multi_slice_mut`](crate::SmartArray::multi_slice_mut).
        ///
        /// ```
        /// use resident::{Device, DeviceArray, ndarray::{array, s}};
        ///
        /// let _here = Device::cpu().enter();
        /// let mut line = DeviceArray::from_host(&array![1, 0, 2, 0, 3, 0])?;
        /// let (even, mut odd) = line.multi_slice_mut((s![..;2], s![1..;2]));
        /// odd.copy_from_device(&even)?;
        /// assert_eq!(line.copy_to_host()?, array![1, 1, 2, 2, 3, 3]);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Panics
        ///
        /// As ndarray's `multi_slice_mut`, if two parts share an element or an index is out of
        /// bounds.
        #[track_caller]
        pub fn multi_slice_mut<'m, M: MultiSlice<'m, T, D>>(
            &'m mut self,
            slices: M,
        ) -> M::DeviceOutput {
            let (view, device) = self.parts_mut();
            let (storage, layout) = view.into_parts();
            slices.device_views(storage, &layout, device)
        }

        /// See [`field_mut!`](crate::field_mut!).
        #[doc(hidden)]
        pub fn __field_mut<F: Element>(&mut self, field: Field<T, F>) -> DeviceViewMut<'_, F, D> {
            let (view, device) = self.parts_mut();
            let (storage, records) = view.into_parts();
            DeviceViewMut { view: SmartViewMut::new(storage, field.of(&records)), device }
        }

        /// See [`field_mut!`](crate::field_mut!).
        #[doc(hidden)]
        pub fn __fields_mut<'m, F: FieldTuple<'m, T, D>>(
            &'m mut self,
            fields: F,
            _disjoint: Disjoint,
        ) -> F::DeviceOutput {
            let (view, device) = self.parts_mut();
            fields.device_views(view, device)
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

        /// The mutable parts at each index of an axis, in order: see
        /// [`SmartArray::axis_iter_mut`](crate::SmartArray::axis_iter_mut).
        ///
        /// ```
        /// use resident::{Device, DeviceArray, ndarray::{Axis, array}};
        ///
        /// let _here = Device::cpu().enter();
        /// let mut table = DeviceArray::<i32, _>::zeros((2, 3))?;
        /// for (number, mut row) in (1..).zip(table.axis_iter_mut(Axis(0))) {
        ///     row.fill(number)?;
        /// }
        /// assert_eq!(table.copy_to_host()?, array![[1, 1, 1], [2, 2, 2]]);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Panics
        ///
        /// As ndarray's `axis_iter_mut`, if there is no such axis.
        #[track_caller]
        pub fn axis_iter_mut(
            &mut self,
            axis: Axis,
        ) -> impl ExactSizeIterator<Item = DeviceViewMut<'_, T, D::Smaller>>
        + DoubleEndedIterator
        + use<'_, T, D>
        where
            D: RemoveAxis,
        {
            let (Part { storage, layout, .. }, device) = (self.part(), self.home());
            let axis = in_range(storage, layout.checked_axis(axis));
            let parts = AxisIterMut::new(storage, layout.clone(), axis, 1);
            parts.map(move |view| DeviceViewMut { view, device })
        }

        /// Mutable parts of `size` indices of an axis, in order; the last part has the rest: see
        /// [`SmartArray::axis_chunks_iter_mut`](crate::SmartArray::axis_chunks_iter_mut).
        ///
        /// # Panics
        ///
        /// As ndarray's `axis_chunks_iter_mut`, if there is no such axis or `size` is 0.
        #[track_caller]
        pub fn axis_chunks_iter_mut(
            &mut self,
            axis: Axis,
            size: usize,
        ) -> impl ExactSizeIterator<Item = DeviceViewMut<'_, T, D>>
        + DoubleEndedIterator
        + use<'_, T, D> {
            let (Part { storage, layout, .. }, device) = (self.part(), self.home());
            let axis = in_range(storage, layout.checked_axis(axis));
            let size = chunk_size(storage, size);
            let parts = AxisChunksIterMut::new(storage, layout.clone(), axis, size);
            parts.map(move |view| DeviceViewMut { view, device })
        }
    };
}

/// Mutable rows and columns of what has two axes.
macro_rules! row_mut_methods {
    () => {
        /// A mutable row: see [`SmartArray::row_mut`](crate::SmartArray::row_mut).
        ///
        /// # Panics
        ///
        /// As ndarray's `row_mut`, if there is no such row.
        #[track_caller]
        pub fn row_mut(&mut self, index: usize) -> DeviceViewMut<'_, T, Ix1> {
            self.index_axis_mut(Axis(0), index)
        }

        /// A mutable column: see [`SmartArray::column_mut`](crate::SmartArray::column_mut).
        ///
        /// # Panics
        ///
        /// As ndarray's `column_mut`, if there is no such column.
        #[track_caller]
        pub fn column_mut(&mut self, index: usize) -> DeviceViewMut<'_, T, Ix1> {
            self.index_axis_mut(Axis(1), index)
        }
    };
}

pub(super) use {row_mut_methods, view_mut_methods};
