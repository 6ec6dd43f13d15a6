//! Methods that return shared views of parts, or of all elements in another arrangement. `$view` is
//! `SmartView`, `DeviceView`, or `SharedView` with the home `$of`; `$home` is the home of its
//! elements, and `$life` its lifetime: the borrow of `self`, or `'a` for a shared view with this
//! lifetime.

/// For all arrays and views.
macro_rules! part_methods {
    ($view:ident<$life:lifetime $(, $of:ident)?>, $home:ty) => {
        /// A part, selected by ndarray's `s![..]`: ranges, steps, reversed axes, single indices,
        /// new axes. The part shares the array's state, and an access copies only the bytes of the
        /// part. Slicing copies nothing and uses no device.
        ///
        /// ```
        /// use resident::{Device, SmartArray, ndarray::{Array2, s}};
        ///
        /// let _here = Device::cpu().enter();
        /// let image = SmartArray::from(Array2::<u8>::zeros((600, 800)));
        /// let tile = image.slice(s![..;2, 100..200]);       // every other row of 100 columns
        /// assert_eq!(tile.shape(), [300, 100]);
        /// drop(tile.gpu()?);
        /// assert_eq!(image.traffic().to_device.bytes, 300 * 100);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Panics
        ///
        /// As ndarray's `slice`, if an index is out of bounds.
        #[track_caller]
        pub fn slice<I: SliceArg<D>>(&self, info: I) -> $view<$life, $($of,)? T, I::OutDim> {
            self.view().slice_move(info)
        }

        /// Some indices of one axis, as ndarray's `slice_axis`: for code that works for any
        /// number of axes.
        ///
        /// ```
        /// use resident::{Element, SmartArray, SmartView};
        /// use resident::ndarray::{Axis, Dimension, Slice, array};
        ///
        /// /// The last two indices of an axis.
        /// fn high_face<T: Element, D: Dimension>(
        ///     array: &SmartArray<T, D>,
        ///     axis: Axis,
        /// ) -> SmartView<'_, T, D> {
        ///     array.slice_axis(axis, Slice::from(-2..))
        /// }
        ///
        /// let table = SmartArray::from(array![[1, 2, 3], [4, 5, 6]]);
        /// assert_eq!(high_face(&table, Axis(1)).host()?, array![[2, 3], [5, 6]]);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Panics
        ///
        /// As ndarray's `slice_axis`, if there is no such axis, or an index is out of bounds.
        #[track_caller]
        pub fn slice_axis(&self, axis: Axis, indices: Slice) -> $view<$life, $($of,)? T, D> {
            self.view().slice_axis_move(axis, indices)
        }

        /// Some indices of each axis, as ndarray's `slice_each_axis`. Ranges that are known only
        /// when the program runs, of any number of axes, can also be a
        /// [`SliceInfo`](ndarray::SliceInfo) of a vector, which [`slice`](Self::slice) takes.
        ///
        /// ```
        /// use resident::{SmartArray, ndarray::{Ix2, Slice, SliceInfo, SliceInfoElem, array}};
        ///
        /// let table = SmartArray::from(array![[1, 2, 3], [4, 5, 6], [7, 8, 9]]);
        /// let inside = table.slice_each_axis(|axis| Slice::from(1..axis.len - 1));
        /// assert_eq!(inside.host()?, array![[5]]);
        ///
        /// let ranges: Vec<SliceInfoElem> = vec![(1..).into(), (..2).into()];
        /// let ranges = SliceInfo::<_, Ix2, Ix2>::try_from(ranges).expect("two ranges");
        /// assert_eq!(table.slice(&ranges).host()?, array![[4, 5], [7, 8]]);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Panics
        ///
        /// As ndarray's `slice_each_axis`, if an index is out of bounds.
        #[track_caller]
        pub fn slice_each_axis(
            &self,
            indices: impl FnMut(AxisDescription) -> Slice,
        ) -> $view<$life, $($of,)? T, D> {
            self.view().slice_each_axis_move(indices)
        }

        /// The same bytes as elements of another type, in a shape whose last axis is longer or
        /// shorter. Moves and copies nothing: as NumPy's `view(dtype)`. The view shares the array's
        /// state, as a part does.
        ///
        /// ```
        /// use resident::{SmartArray, ndarray::array};
        ///
        /// let numbers = SmartArray::from(array![[1.0_f32, 2.0], [-1.0, 0.5]]);
        /// let bits = numbers.reinterpret::<u32>()?;
        /// assert_eq!(bits.get([0, 0])?, 0x3F80_0000);
        /// let bytes = numbers.reinterpret::<u8>()?;
        /// assert_eq!((bytes.shape(), bytes.get([1, 3])?), (&[2, 8][..], 0xBF));
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// A part of the view may begin or end within a number of the array, such as one byte of an
        /// `f32`. Reading such a part moves whole numbers; writing it is
        /// [`Shape`](crate::Error::Shape). Records can be written in any part.
        ///
        /// # Errors
        ///
        /// [`Shape`](crate::Error::Shape)
        ///
        /// - if the elements along the last axis are not next to each other in memory: of
        ///   column-major elements, reinterpret [`t()`](Self::t);
        /// - if the last axis, or the distance of two rows, is no whole number of the new elements;
        /// - if neither the size of the new elements nor that of the array's numbers is a multiple
        ///   of the other;
        /// - if memory of the array is not aligned for the new elements, or they need an alignment
        ///   above 16 bytes, which the array's own do not need.
        #[track_caller]
        pub fn reinterpret<U: Element>(&self) -> Result<$view<$life, $($of,)? U, D>> {
            self.view().reinterpreted(call_site())
        }

        /// See [`field!`](crate::field!).
        #[doc(hidden)]
        pub fn __field<F: Element>(&self, field: Field<T, F>) -> $view<$life, $($of,)? F, D> {
            field.view(self.view())
        }

        /// With the axes in reverse order, as ndarray's `t`: rows become columns. Moves and copies
        /// nothing.
        ///
        /// ```
        /// use resident::{Device, Grid, In, Kernel, Out, SmartArray, ndarray::{Ix2, array}};
        ///
        /// let copy = Kernel::<(In<i32, Ix2>, Out<i32, Ix2>)>::new("copy")
        ///     .host(|_grid, (from, mut to)| to.assign(&from));
        /// let _here = Device::cpu().enter();
        /// let rows = SmartArray::from(array![[1, 2, 3], [4, 5, 6]]);
        /// let mut columns = SmartArray::uninit((3, 2));
        /// copy.launch(Grid::cover(6), (&rows.t(), &mut columns))?;
        /// assert_eq!(columns.host()?, array![[1, 4], [2, 5], [3, 6]]);
        /// # Ok::<(), resident::Error>(())
        /// ```
        #[must_use]
        pub fn t(&self) -> $view<$life, $($of,)? T, D> {
            self.view().reversed_axes()
        }

        /// The part at one index of an axis, without that axis, as ndarray's `index_axis`.
        ///
        /// ```
        /// use resident::{SmartArray, ndarray::{Axis, array}};
        ///
        /// let table = SmartArray::from(array![[1, 2, 3], [4, 5, 6]]);
        /// assert_eq!(table.index_axis(Axis(1), 2).host()?, array![3, 6]);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Panics
        ///
        /// As ndarray's `index_axis`, if there is no such axis or index.
        #[track_caller]
        pub fn index_axis(&self, axis: Axis, index: usize) -> $view<$life, $($of,)? T, D::Smaller>
        where
            D: RemoveAxis,
        {
            self.view().index_axis_move(axis, index)
        }

        /// The parts at each index of an axis, in order, as ndarray's `axis_iter`.
        ///
        /// ```
        /// use resident::{SmartArray, ndarray::{Axis, array}};
        ///
        /// let table = SmartArray::from(array![[1, 2, 3], [4, 5, 6]]);
        /// let mut sums = Vec::new();
        /// for row in table.axis_iter(Axis(0)) {
        ///     sums.push(row.host()?.sum());
        /// }
        /// assert_eq!(sums, [6, 15]);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Panics
        ///
        /// As ndarray's `axis_iter`, if there is no such axis.
        #[track_caller]
        pub fn axis_iter(&self, axis: Axis) -> AxisIter<$life, T, D, $home>
        where
            D: RemoveAxis,
        {
            AxisParts::new(self.view(), axis, 1)
        }

        /// Parts of `size` indices of an axis, in order, as ndarray's `axis_chunks_iter`. The last
        /// part has the rest.
        ///
        /// ```
        /// use resident::{SmartArray, ndarray::Axis};
        ///
        /// let lines = SmartArray::<f32, _>::zeros((10, 4));
        /// let lens: Vec<_> = lines.axis_chunks_iter(Axis(0), 4).map(|part| part.len()).collect();
        /// assert_eq!(lens, [16, 16, 8]);
        /// ```
        ///
        /// # Panics
        ///
        /// As ndarray's `axis_chunks_iter`, if there is no such axis or `size` is 0.
        #[track_caller]
        pub fn axis_chunks_iter(
            &self,
            axis: Axis,
            size: usize,
        ) -> AxisChunksIter<$life, T, D, $home> {
            AxisChunks::new(self.view(), axis, size)
        }

        /// The elements repeated along axes of length 1 and along new first axes, as ndarray's
        /// `broadcast`. The repeated elements exist once, also on devices: CUDA C gets a stride of
        /// 0.
        ///
        /// ```
        /// use resident::{Device, Grid, In, InOut, Kernel, SmartArray, ndarray::{Ix2, array}};
        ///
        /// let add = Kernel::<(In<i32, Ix2>, InOut<i32, Ix2>)>::new("add")
        ///     .host(|_grid, (x, mut y)| y += &x);
        /// let _here = Device::cpu().enter();
        /// let offsets = SmartArray::from(vec![10, 20, 30]);
        /// let mut table = SmartArray::from(array![[1, 2, 3], [4, 5, 6]]);
        /// add.launch(Grid::cover(6), (&offsets.broadcast((2, 3))?, &mut table))?;
        /// assert_eq!(table.host()?, array![[11, 22, 33], [14, 25, 36]]);
        /// assert_eq!(offsets.traffic().to_device.bytes, 12);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`Shape`](crate::Error::Shape) if an axis has another length, which is not 1.
        #[track_caller]
        pub fn broadcast<S: IntoDimension>(
            &self,
            shape: S,
        ) -> Result<$view<$life, $($of,)? T, S::Dim>> {
            self.view().repeated(shape)
        }
    };
}

/// For shared views and arrays. Exclusive views have methods of the same names, which consume them.
macro_rules! rearranged_methods {
    ($view:ident<$life:lifetime $(, $of:ident)?>) => {
        /// With the axes in another order, as ndarray's `permuted_axes`: axis `i` of the view is
        /// axis `axes[i]` of this part. Moves and copies nothing.
        ///
        /// ```
        /// use resident::SmartArray;
        ///
        /// let image = SmartArray::<u8, _>::zeros((480, 640, 3));
        /// let planes = image.permuted_axes([2, 0, 1]);
        /// assert_eq!((planes.shape(), planes.strides()), (&[3, 480, 640][..], &[1, 1920, 3][..]));
        /// ```
        ///
        /// # Panics
        ///
        /// As ndarray's `permuted_axes`, if an axis is missing or occurs twice.
        #[track_caller]
        pub fn permuted_axes(
            &self,
            axes: impl IntoDimension<Dim = D>,
        ) -> $view<$life, $($of,)? T, D> {
            self.view().permuted(axes)
        }

        /// With another axis, of length 1, as ndarray's `insert_axis`.
        ///
        /// ```
        /// use resident::{SmartArray, ndarray::Axis};
        ///
        /// let line = SmartArray::<f32, _>::zeros(100);
        /// assert_eq!(line.insert_axis(Axis(0)).shape(), [1, 100]);
        /// assert_eq!(line.insert_axis(Axis(1)).shape(), [100, 1]);
        /// ```
        ///
        /// # Panics
        ///
        /// As ndarray's `insert_axis`, if the axis is greater than the number of axes.
        #[track_caller]
        pub fn insert_axis(&self, axis: Axis) -> $view<$life, $($of,)? T, D::Larger> {
            self.view().with_axis(axis)
        }

        /// Without an axis, at its index 0, as ndarray's `remove_axis`.
        ///
        /// ```
        /// use resident::{SmartArray, ndarray::Axis};
        ///
        /// let column = SmartArray::<f32, _>::zeros((100, 1));
        /// assert_eq!(column.remove_axis(Axis(1)).shape(), [100]);
        /// ```
        ///
        /// # Panics
        ///
        /// As ndarray's `remove_axis`, if there is no such axis or its length is 0.
        #[track_caller]
        pub fn remove_axis(&self, axis: Axis) -> $view<$life, $($of,)? T, D::Smaller>
        where
            D: RemoveAxis,
        {
            self.index_axis(axis, 0)
        }
    };
}

/// For shared coherent views and arrays.
macro_rules! reshape_method {
    ($life:lifetime) => {
        /// In another shape of as many elements. The order of the elements is row-major, or the one
        /// given: `a.reshape(((3, 4), Order::F))`. Moves and copies nothing. As NumPy's `reshape`
        /// with `copy=False`.
        ///
        /// ```
        /// use resident::{Error, SmartArray, ndarray::s};
        ///
        /// let line = SmartArray::from((0..12).collect::<Vec<i32>>());
        /// let table = line.reshape((3, 4))?;
        /// assert_eq!(table.slice(s![1, ..]).host()?.to_vec(), [4, 5, 6, 7]);
        /// // Two axes of which one has gaps cannot become one.
        /// assert!(matches!(table.slice(s![.., ..2]).reshape(6), Err(Error::Shape { .. })));
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`Shape`](crate::Error::Shape) if the number of elements differs, or if the elements in
        /// this shape have no strides, so that a copy would be needed:
        /// [`to_contiguous`](Self::to_contiguous) makes one.
        #[track_caller]
        pub fn reshape<S: ShapeArg>(&self, shape: S) -> Result<SmartView<$life, T, S::Dim>> {
            let (shape, order) = shape.into_shape_and_order();
            self.view().into_shape(shape, order.unwrap_or(Order::RowMajor))
        }
    };
}

/// Rows and columns of what has two axes.
macro_rules! row_methods {
    ($view:ident<$life:lifetime $(, $of:ident)?>) => {
        /// A row, as ndarray's `row`.
        ///
        /// ```
        /// use resident::{SmartArray, ndarray::array};
        ///
        /// let table = SmartArray::from(array![[1, 2, 3], [4, 5, 6]]);
        /// assert_eq!(table.row(1).host()?, array![4, 5, 6]);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Panics
        ///
        /// As ndarray's `row`, if there is no such row.
        #[track_caller]
        pub fn row(&self, index: usize) -> $view<$life, $($of,)? T, Ix1> {
            self.index_axis(Axis(0), index)
        }

        /// A column, as ndarray's `column`.
        ///
        /// ```
        /// use resident::{SmartArray, ndarray::array};
        ///
        /// let table = SmartArray::from(array![[1, 2, 3], [4, 5, 6]]);
        /// assert_eq!(table.column(1).host()?, array![2, 5]);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Panics
        ///
        /// As ndarray's `column`, if there is no such column.
        #[track_caller]
        pub fn column(&self, index: usize) -> $view<$life, $($of,)? T, Ix1> {
            self.index_axis(Axis(1), index)
        }
    };
}

pub(in crate::array) use {part_methods, rearranged_methods, reshape_method, row_methods};
