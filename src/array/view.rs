//! Views of arrays and of their parts. A view holds no state: validity, uses and traffic belong to
//! the array.

use std::fmt;
use std::marker::PhantomData;

use ndarray::{Axis, Dimension, IntoDimension, IxDyn, Order, RemoveAxis, ShapeArg, SliceArg};

use super::device_guard::DeviceMut;
use super::host_guard::HostMut;
use super::layout::Layout;
use super::part::Part;
use super::rearrange::in_range;
use crate::device::Stream;
use crate::element::Element;
use crate::error::{AtCall, Result};
use crate::storage::Storage;
use resident_backend::call_site::call_site;
use resident_core::Access;

/// A shared view of a part of a [`SmartArray`](crate::SmartArray), returned by the array's methods
/// [`slice`](crate::SmartArray::slice) and [`view`](crate::SmartArray::view).
///
/// Its guards live as long as its borrow of the array, so a view may be a temporary. It is `Copy`
/// if its dimension is (all but `IxDyn`), and holds no state: validity, uses and traffic belong to
/// the array.
///
/// ```
/// use resident::{Device, SmartArray, ndarray::{Array2, s}};
///
/// let _here = Device::cpu().enter();
/// let image = SmartArray::from(Array2::<f32>::ones((100, 100)));
/// let row = image.slice(s![5, ..]);                     // moves nothing yet
/// drop(row.gpu()?);                                     // uploads 400 bytes
/// let host = row.slice(s![10..20]).host()?;             // outlives the part of the part
/// assert_eq!((host.sum(), image.traffic().to_device.bytes), (10.0, 400));
/// # Ok::<(), resident::Error>(())
/// ```
pub struct SmartView<'a, T: Element, D: Dimension> {
    storage: &'a Storage,
    layout: Layout<D>,
    element: PhantomData<&'a T>,
}

/// An exclusive view of a part of a [`SmartArray`](crate::SmartArray), returned by the array's
/// methods [`slice_mut`](crate::SmartArray::slice_mut), [`view_mut`](crate::SmartArray::view_mut)
/// and similar ones.
///
/// It has the array's methods. Methods that consume the view (`into_host_mut`, `slice_move`,
/// `split_at`) return values that live as long as the view's borrow of the array.
///
/// ```
/// use resident::{Device, Grid, InOut, Kernel, SmartArray, ndarray::{Array2, s}};
///
/// let halve = Kernel::<(InOut<f32>,)>::new("halve")
///     .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 0.5));
/// let _here = Device::cpu().enter();
/// let mut table = SmartArray::from(Array2::<f32>::ones((4, 100)));
/// let mut row = table.slice_mut(s![2, ..]);
/// halve.launch(Grid::cover(row.len()), (&mut row,))?;   // uploads this row; it is newest there
/// assert_eq!((table.host()?.sum(), table.traffic().to_device.bytes), (350.0, 400));
/// # Ok::<(), resident::Error>(())
/// ```
pub struct SmartViewMut<'a, T: Element, D: Dimension> {
    storage: &'a Storage,
    layout: Layout<D>,
    element: PhantomData<&'a mut T>,
}

impl<T: Element, D: Dimension + Copy> Copy for SmartView<'_, T, D> {}

impl<T: Element, D: Dimension> Clone for SmartView<'_, T, D> {
    fn clone(&self) -> Self {
        Self { storage: self.storage, layout: self.layout.clone(), element: PhantomData }
    }
}

impl<'a, T: Element, D: Dimension> SmartView<'a, T, D> {
    pub(super) fn new(storage: &'a Storage, layout: Layout<D>) -> Self {
        Self { storage, layout, element: PhantomData }
    }

    #[inline]
    pub(super) fn part(&self) -> Part<'a, '_, T, D> {
        Part::of(self.storage, &self.layout)
    }

    /// The same view.
    #[must_use]
    pub fn view(&self) -> Self {
        self.clone()
    }

    /// With the number of axes known only when the program runs, as ndarray's `into_dyn`.
    #[must_use]
    pub fn into_dyn(self) -> SmartView<'a, T, IxDyn> {
        SmartView::new(self.storage, self.layout.with_any_dim())
    }

    /// A smaller part with the same lifetime, as ndarray's `slice_move` returns.
    ///
    /// ```
    /// use resident::{SmartArray, SmartView, ndarray::{Ix1, Ix2, s}};
    ///
    /// fn diagonal_row(image: SmartView<'_, f32, Ix2>, index: usize) -> SmartView<'_, f32, Ix1> {
    ///     image.slice_move(s![index, index..])
    /// }
    ///
    /// let image = SmartArray::<f32, _>::ones((4, 4));
    /// assert_eq!(diagonal_row(image.view(), 1).len(), 3);
    /// ```
    ///
    /// # Panics
    ///
    /// As ndarray's `slice_move`, if an index is out of bounds.
    #[track_caller]
    #[must_use]
    pub fn slice_move<I: SliceArg<D>>(self, info: I) -> SmartView<'a, T, I::OutDim> {
        in_range(self.storage, self.layout.check_slice(info.as_ref()));
        SmartView::new(self.storage, self.layout.slice(&info))
    }

    /// The parts before `index` and from `index` along an axis, as ndarray's `split_at`.
    ///
    /// ```
    /// use resident::{SmartArray, ndarray::Axis};
    ///
    /// let table = SmartArray::<f32, _>::ones((6, 4));
    /// let (left, right) = table.view().split_at(Axis(1), 1);
    /// assert_eq!((left.shape(), right.shape()), (&[6, 1][..], &[6, 3][..]));
    /// ```
    ///
    /// # Panics
    ///
    /// As ndarray's `split_at`, if there is no such axis or `index` is beyond its end.
    #[track_caller]
    #[must_use]
    pub fn split_at(self, axis: Axis, index: usize) -> (Self, Self) {
        let (first, second) = in_range(self.storage, self.layout.split_at(axis, index));
        (Self::new(self.storage, first), Self::new(self.storage, second))
    }
}

impl<'a, T: Element, D: Dimension> SmartViewMut<'a, T, D> {
    /// The caller has an exclusive borrow of the elements of `layout` for `'a`.
    pub(super) fn new(storage: &'a Storage, layout: Layout<D>) -> Self {
        Self { storage, layout, element: PhantomData }
    }

    #[inline]
    pub(super) fn part(&self) -> Part<'_, '_, T, D> {
        Part::of(self.storage, &self.layout)
    }

    /// The part, with the lifetime of the view's borrow of the array, for methods that consume the
    /// view.
    fn long_part(&self) -> Part<'a, '_, T, D> {
        Part::of(self.storage, &self.layout)
    }

    /// The array, and the elements of which this view has an exclusive borrow.
    pub(super) fn into_parts(self) -> (&'a Storage, Layout<D>) {
        (self.storage, self.layout)
    }

    /// A shared view of the same part, while this view is borrowed.
    #[must_use]
    pub fn view(&self) -> SmartView<'_, T, D> {
        SmartView::new(self.storage, self.layout.clone())
    }

    /// An exclusive view of the same part with a shorter lifetime, to pass to a function while
    /// keeping this view.
    ///
    /// ```
    /// use resident::{Result, SmartArray, SmartViewMut, ndarray::Ix1};
    ///
    /// fn add_one(mut part: SmartViewMut<'_, u32, Ix1>) -> Result<()> {
    ///     part.host_mut()?.iter_mut().for_each(|x| *x += 1);
    ///     Ok(())
    /// }
    ///
    /// let mut array = SmartArray::<u32, _>::zeros(10);
    /// let mut part = array.view_mut();
    /// add_one(part.reborrow())?;
    /// add_one(part)?;
    /// assert_eq!(array.host()?.sum(), 20);
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use]
    pub fn reborrow(&mut self) -> SmartViewMut<'_, T, D> {
        SmartViewMut::new(self.storage, self.layout.clone())
    }

    /// [`reborrow`](Self::reborrow), under the name that ndarray's views have.
    #[must_use]
    pub fn view_mut(&mut self) -> SmartViewMut<'_, T, D> {
        self.reborrow()
    }

    /// As [`host_mut`](Self::host_mut), with the lifetime of the view's borrow of the array. The
    /// example of [`split_at`](Self::split_at) uses this method.
    ///
    /// # Errors
    ///
    /// As [`host_mut`](Self::host_mut).
    #[track_caller]
    pub fn into_host_mut(self) -> Result<HostMut<'a, T, D>> {
        self.long_part().host_mut(Access::ReadWrite, call_site())
    }

    /// As [`gpu_mut_on`](Self::gpu_mut_on), with the lifetime of the view's borrow of the array.
    ///
    /// ```
    /// use resident::{Device, SmartArray, ndarray::s};
    ///
    /// let stream = Device::cpu().stream();
    /// let mut array = SmartArray::<f32, _>::zeros(100);
    /// let guard = array.slice_mut(s![10..20]).into_gpu_mut_on(&stream)?;
    /// assert_eq!(guard.len(), 10);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`gpu_mut_on`](Self::gpu_mut_on).
    #[track_caller]
    pub fn into_gpu_mut_on(self, stream: &Stream) -> Result<DeviceMut<'a, T, D>> {
        self.long_part().gpu_mut_on(Access::ReadWrite, stream, call_site())
    }

    /// A smaller part with the same lifetime, as ndarray's `slice_move` returns.
    ///
    /// # Panics
    ///
    /// As ndarray's `slice_move`, if an index is out of bounds.
    #[track_caller]
    #[must_use]
    pub fn slice_move<I: SliceArg<D>>(self, info: I) -> SmartViewMut<'a, T, I::OutDim> {
        in_range(self.storage, self.layout.check_slice(info.as_ref()));
        SmartViewMut::new(self.storage, self.layout.slice(&info))
    }

    /// The parts before `index` and from `index` along an axis, with the same lifetime, so that a
    /// part can be divided recursively.
    ///
    /// ```
    /// use resident::{Result, SmartArray, SmartViewMut, ndarray::{Axis, Ix1}};
    ///
    /// fn number(part: SmartViewMut<'_, u32, Ix1>, start: u32) -> Result<()> {
    ///     match part.len() {
    ///         0 => Ok(()),
    ///         1 => part.into_host_mut().map(|mut host| host[0] = start),
    ///         len => {
    ///             let (low, high) = part.split_at(Axis(0), len / 2);
    ///             number(low, start)?;
    ///             number(high, start + len as u32 / 2)
    ///         }
    ///     }
    /// }
    ///
    /// let mut array = SmartArray::<u32, _>::zeros(10);
    /// number(array.view_mut(), 0)?;
    /// assert_eq!(array.host()?.to_vec(), (0..10).collect::<Vec<_>>());
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// As ndarray's `split_at`, if there is no such axis or `index` is beyond its end.
    #[track_caller]
    #[must_use]
    pub fn split_at(self, axis: Axis, index: usize) -> (Self, Self) {
        let (first, second) = in_range(self.storage, self.layout.split_at(axis, index));
        (Self::new(self.storage, first), Self::new(self.storage, second))
    }
}

/// Other arrangements of the same elements. These methods consume the view, as ndarray's do: keep
/// it with [`reborrow`](Self::reborrow).
impl<'a, T: Element, D: Dimension> SmartViewMut<'a, T, D> {
    fn arranged<E: Dimension>(&self, layout: Layout<E>) -> SmartViewMut<'a, T, E> {
        SmartViewMut::new(self.storage, layout)
    }

    /// With the axes in another order: see [`SmartArray::permuted_axes`].
    ///
    /// ```
    /// use resident::{SmartArray, ndarray::array};
    ///
    /// let mut table = SmartArray::<i32, _>::zeros((2, 3));
    /// table.view_mut().permuted_axes([1, 0]).row_mut(2).fill(7)?;
    /// assert_eq!(table.host()?, array![[0, 0, 7], [0, 0, 7]]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// As ndarray's `permuted_axes`, if an axis is missing or occurs twice.
    ///
    /// [`SmartArray::permuted_axes`]: crate::SmartArray::permuted_axes
    #[track_caller]
    #[must_use]
    pub fn permuted_axes(self, axes: impl IntoDimension<Dim = D>) -> Self {
        let permuted = self.layout.permuted(&axes.into_dimension());
        self.arranged(in_range(self.storage, permuted))
    }

    /// With the axes in reverse order, as ndarray's `reversed_axes`: the mutable counterpart of
    /// [`t`](Self::t).
    #[must_use]
    pub fn reversed_axes(self) -> Self {
        self.arranged(self.layout.transposed())
    }

    /// With another axis, of length 1, as ndarray's `insert_axis`.
    ///
    /// # Panics
    ///
    /// As ndarray's `insert_axis`, if the axis is greater than the number of axes.
    #[track_caller]
    #[must_use]
    pub fn insert_axis(self, axis: Axis) -> SmartViewMut<'a, T, D::Larger> {
        self.arranged(in_range(self.storage, self.layout.with_axis(axis)))
    }

    /// The part at one index of an axis, without that axis, as ndarray's `index_axis_move`.
    ///
    /// # Panics
    ///
    /// As ndarray's `index_axis_move`, if there is no such axis or index.
    #[track_caller]
    #[must_use]
    pub fn index_axis_move(self, axis: Axis, index: usize) -> SmartViewMut<'a, T, D::Smaller>
    where
        D: RemoveAxis,
    {
        self.arranged(in_range(self.storage, self.layout.index_axis(axis, index)))
    }

    /// Without an axis, at its index 0, as ndarray's `remove_axis`.
    ///
    /// # Panics
    ///
    /// As ndarray's `remove_axis`, if there is no such axis or its length is 0.
    #[track_caller]
    #[must_use]
    pub fn remove_axis(self, axis: Axis) -> SmartViewMut<'a, T, D::Smaller>
    where
        D: RemoveAxis,
    {
        self.index_axis_move(axis, 0)
    }

    /// In another shape of as many elements: see [`SmartArray::reshape`]. The result is exclusive
    /// too. On a [`DeviceViewMut`](crate::DeviceViewMut), the method of this name returns a shared
    /// view, and [`into_shape`](crate::DeviceViewMut::into_shape) an exclusive one.
    ///
    /// ```
    /// use resident::{SmartArray, ndarray::array};
    ///
    /// let mut line = SmartArray::<i32, _>::zeros(6);
    /// line.view_mut().reshape((2, 3))?.column_mut(1).fill(7)?;
    /// assert_eq!(line.host()?, array![0, 7, 0, 0, 7, 0]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Shape`](crate::Error::Shape) if the number of elements differs, or if the elements in this
    /// shape have no strides.
    ///
    /// [`SmartArray::reshape`]: crate::SmartArray::reshape
    #[track_caller]
    pub fn reshape<S: ShapeArg>(self, shape: S) -> Result<SmartViewMut<'a, T, S::Dim>> {
        let (shape, order) = shape.into_shape_and_order();
        let order = order.unwrap_or(Order::RowMajor);
        let reshaped = self.layout.reshaped(&shape, order);
        let reshaped = reshaped.ok_or_else(|| self.part().no_reshape(shape.slice(), order));
        Ok(self.arranged(reshaped.at(call_site())?))
    }

    /// With the number of axes known only when the program runs, as ndarray's `into_dyn`.
    #[must_use]
    pub fn into_dyn(self) -> SmartViewMut<'a, T, IxDyn> {
        self.arranged(self.layout.with_any_dim())
    }
}

impl<T: Element, D: Dimension> fmt::Debug for SmartView<'_, T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, shape, residency) = (self.storage.named(), self.shape(), self.residency());
        write!(f, "SmartView(of {name}, {shape:?}, {residency})")
    }
}

impl<T: Element, D: Dimension> fmt::Debug for SmartViewMut<'_, T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, shape, residency) = (self.storage.named(), self.shape(), self.residency());
        write!(f, "SmartViewMut(of {name}, {shape:?}, {residency})")
    }
}
