//! Methods that return exclusive views of parts, which live as long as the borrow of `self`.
//! `$view` is `SmartViewMut`, `DeviceViewMut`, or `ExclusiveView` with the home `$of`; `$home` is
//! the home of its elements.

macro_rules! part_mut_methods {
    ($view:ident $(<$of:ident>)?, $home:ty) => {
        /// A mutable part, selected by ndarray's `s![..]`. The part shares the array's state: an
        /// access copies only the bytes of the part, and writing it makes no other part stale.
        ///
        /// The part borrows the whole array, so two calls give no two parts that live at once
        /// (E0499): use [`multi_slice_mut`](Self::multi_slice_mut), or
        /// [`split_at_mut`](Self::split_at_mut).
        ///
        /// ```
        /// use resident::{Device, SmartArray, ndarray::{Array2, s}};
        ///
        /// let _here = Device::cpu().enter();
        /// let mut image = SmartArray::from(Array2::<u8>::zeros((100, 100)));
        /// drop(image.gpu()?);                                       // uploads 10,000 bytes
        /// image.slice_mut(s![..10, ..]).host_mut()?.fill(255);      // 90 rows stay valid there
        /// drop(image.gpu()?);                                       // uploads 1,000 bytes
        /// assert_eq!(image.traffic().to_device.bytes, 11_000);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Panics
        ///
        /// As ndarray's `slice_mut`, if an index is out of bounds.
        #[track_caller]
        pub fn slice_mut<I: SliceArg<D>>(&mut self, info: I) -> $view<'_, $($of,)? T, I::OutDim> {
            self.view_mut().slice_move(info)
        }

        /// Some indices of one axis, which may be written, as ndarray's `slice_axis_mut`: see
        /// [`slice_axis`](crate::SmartArray::slice_axis).
        ///
        /// # Panics
        ///
        /// As ndarray's `slice_axis_mut`, if there is no such axis, or an index is out of bounds.
        #[track_caller]
        pub fn slice_axis_mut(&mut self, axis: Axis, indices: Slice) -> $view<'_, $($of,)? T, D> {
            self.view_mut().slice_axis_move(axis, indices)
        }

        /// Some indices of each axis, which may be written, as ndarray's `slice_each_axis_mut`: see
        /// [`slice_each_axis`](crate::SmartArray::slice_each_axis).
        ///
        /// # Panics
        ///
        /// As ndarray's `slice_each_axis_mut`, if an index is out of bounds.
        #[track_caller]
        pub fn slice_each_axis_mut(
            &mut self,
            indices: impl FnMut(AxisDescription) -> Slice,
        ) -> $view<'_, $($of,)? T, D> {
            self.view_mut().slice_each_axis_move(indices)
        }

        /// The same bytes as elements of another type, to be written: see
        /// [`reinterpret`](crate::SmartArray::reinterpret).
        ///
        /// ```
        /// use resident::SmartArray;
        ///
        /// let mut numbers = SmartArray::<f32, _>::uninit(2);
        /// let received = [0, 0, 128, 63, 0, 0, 0, 64];          // little-endian
        /// numbers.reinterpret_mut::<u8>()?.copy_from_slice(&received)?;
        /// assert_eq!(numbers.to_vec()?, [1.0, 2.0]);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [`reinterpret`](crate::SmartArray::reinterpret). Writing a part of the view that
        /// begins or ends within a number of the array is [`Shape`](crate::Error::Shape) too.
        #[track_caller]
        pub fn reinterpret_mut<U: Element>(&mut self) -> Result<$view<'_, $($of,)? U, D>> {
            self.view_mut().reinterpreted_mut(call_site())
        }

        /// See [`field_mut!`](crate::field_mut!).
        #[doc(hidden)]
        pub fn __field_mut<F: Element>(&mut self, field: Field<T, F>) -> $view<'_, $($of,)? F, D> {
            field.view_mut(self.view_mut())
        }

        /// See [`field_mut!`](crate::field_mut!).
        #[doc(hidden)]
        pub fn __fields_mut<F: FieldTuple<T, D>>(
            &mut self,
            fields: F,
            _disjoint: Disjoint,
        ) -> F::Output<'_, $home> {
            fields.views(self.view_mut())
        }

        /// The parts before `index` and from `index` along an axis, as ndarray's `split_at`. The
        /// two parts may be used at once, on different streams and by different threads.
        ///
        /// ```
        /// use resident::{SmartArray, ndarray::Axis};
        ///
        /// let mut table = SmartArray::<f32, _>::zeros((6, 4));
        /// let (mut head, mut tail) = table.split_at_mut(Axis(0), 2);
        /// assert_eq!((head.shape(), tail.shape()), (&[2, 4][..], &[4, 4][..]));
        /// head.fill(1.0)?;
        /// tail.host_mut()?.fill(2.0);
        /// assert_eq!(table.host()?.sum(), 8.0 + 32.0);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Panics
        ///
        /// As ndarray's `split_at`, if there is no such axis or `index` is beyond its end.
        #[track_caller]
        pub fn split_at_mut(
            &mut self,
            axis: Axis,
            index: usize,
        ) -> ($view<'_, $($of,)? T, D>, $view<'_, $($of,)? T, D>) {
            self.view_mut().split_at(axis, index)
        }

        /// The mutable part at one index of an axis, without that axis: see
        /// [`index_axis`](crate::SmartArray::index_axis).
        ///
        /// ```
        /// use resident::{SmartArray, ndarray::{Axis, array}};
        ///
        /// let mut table = SmartArray::<i32, _>::zeros((2, 3));
        /// table.index_axis_mut(Axis(1), 0).fill(7)?;
        /// assert_eq!(table.host()?, array![[7, 0, 0], [7, 0, 0]]);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Panics
        ///
        /// As ndarray's `index_axis_mut`, if there is no such axis or index.
        #[track_caller]
        pub fn index_axis_mut(
            &mut self,
            axis: Axis,
            index: usize,
        ) -> $view<'_, $($of,)? T, D::Smaller>
        where
            D: RemoveAxis,
        {
            self.view_mut().index_axis_move(axis, index)
        }

        /// The mutable parts at each index of an axis, in order, as ndarray's `axis_iter_mut`. They
        /// are disjoint, and may be used at once.
        ///
        /// ```
        /// use resident::{Device, Grid, InOut, Kernel, SmartArray, ndarray::Axis};
        ///
        /// let add = Kernel::<(f32, InOut<f32>)>::new("add")
        ///     .host(|_grid, (x, row)| row.iter_mut().for_each(|y| *y += x));
        /// let device = Device::cpu();
        /// let mut table = SmartArray::<f32, _>::zeros((4, 100));
        /// for (number, mut row) in table.axis_iter_mut(Axis(0)).enumerate() {
        ///     let stream = device.new_stream()?;                // the rows may overlap in time
        ///     add.launch_on(&stream, Grid::cover(100), (number as f32, &mut row))?;
        /// }
        /// assert_eq!(table.host()?.sum(), 600.0);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Panics
        ///
        /// As ndarray's `axis_iter_mut`, if there is no such axis.
        #[track_caller]
        pub fn axis_iter_mut(&mut self, axis: Axis) -> AxisIterMut<'_, T, D, $home>
        where
            D: RemoveAxis,
        {
            AxisParts::new(self.view_mut(), axis, 1)
        }

        /// Disjoint mutable parts of `size` indices of an axis, in order, as ndarray's
        /// `axis_chunks_iter_mut`. The last part has the rest.
        ///
        /// ```
        /// use resident::{SmartArray, ndarray::Axis};
        ///
        /// let mut line = SmartArray::<u32, _>::zeros(10);
        /// for (number, mut part) in line.axis_chunks_iter_mut(Axis(0), 4).enumerate() {
        ///     part.fill(number as u32)?;
        /// }
        /// assert_eq!(line.to_vec()?, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Panics
        ///
        /// As ndarray's `axis_chunks_iter_mut`, if there is no such axis or `size` is 0.
        #[track_caller]
        pub fn axis_chunks_iter_mut(
            &mut self,
            axis: Axis,
            size: usize,
        ) -> AxisChunksIterMut<'_, T, D, $home> {
            AxisChunks::new(self.view_mut(), axis, size)
        }
    };
}

/// `$views` is the method of `MultiSlice` that makes such views, and `$parts` what it returns.
macro_rules! multi_slice_method {
    ($views:ident -> $parts:ident) => {
        /// Up to six disjoint parts at once, selected by a tuple of ndarray's `s![..]`, as
        /// ndarray's `multi_slice_mut`. Interleaved steps are disjoint too.
        ///
        /// ```
        /// use resident::{Device, Grid, In, Kernel, Out, SmartArray, ndarray::{Ix1, s}};
        ///
        /// let negate = Kernel::<(In<i32, Ix1>, Out<i32, Ix1>)>::new("negate")
        ///     .host(|_grid, (x, mut y)| y.assign(&x.mapv(|x| -x)));
        /// let _here = Device::cpu().enter();
        /// let mut line = SmartArray::from(vec![1, 0, 2, 0, 3, 0]);
        /// let (even, mut odd) = line.multi_slice_mut((s![..;2], s![1..;2]));
        /// negate.launch(Grid::cover(3), (&even, &mut odd))?;        // reads one, writes the other
        /// assert_eq!(line.host()?.to_vec(), [1, -1, 2, -2, 3, -3]);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Panics
        ///
        /// As ndarray's `multi_slice_mut`, if two parts share an element or an index is out of
        /// bounds.
        #[track_caller]
        pub fn multi_slice_mut<'m, M: MultiSlice<'m, T, D>>(&'m mut self, slices: M) -> M::$parts {
            slices.$views(self.view_mut())
        }
    };
}

/// Rows and columns of what has two axes.
macro_rules! row_mut_methods {
    ($view:ident $(<$of:ident>)?) => {
        /// A mutable row, as ndarray's `row_mut`.
        ///
        /// ```
        /// use resident::{SmartArray, ndarray::array};
        ///
        /// let mut table = SmartArray::<i32, _>::zeros((2, 3));
        /// table.row_mut(1).copy_from_slice(&[1, 2, 3])?;
        /// table.column_mut(0).fill(9)?;
        /// assert_eq!(table.host()?, array![[9, 0, 0], [9, 2, 3]]);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Panics
        ///
        /// As ndarray's `row_mut`, if there is no such row.
        #[track_caller]
        pub fn row_mut(&mut self, index: usize) -> $view<'_, $($of,)? T, Ix1> {
            self.index_axis_mut(Axis(0), index)
        }

        /// A mutable column, as ndarray's `column_mut`: see [`row_mut`](Self::row_mut).
        ///
        /// # Panics
        ///
        /// As ndarray's `column_mut`, if there is no such column.
        #[track_caller]
        pub fn column_mut(&mut self, index: usize) -> $view<'_, $($of,)? T, Ix1> {
            self.index_axis_mut(Axis(1), index)
        }
    };
}

pub(in crate::array) use {multi_slice_method, part_mut_methods, row_mut_methods};
