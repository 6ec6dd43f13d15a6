//! Views of arrays and of their parts. A view holds no state: validity, uses and traffic belong to
//! the array.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use ndarray::{
    Axis, AxisDescription, Dimension, IntoDimension, IxDyn, Order, RemoveAxis, ShapeArg, Slice,
    SliceArg,
};

use super::device_guard::DeviceMut;
use super::host_guard::HostMut;
use super::layout::Layout;
use super::part::Part;
use super::rearrange::{broadcast_to, in_range, reshape_to};
use crate::device::{Device, Stream};
use crate::element::Element;
use crate::error::{AtCall, Result};
use crate::storage::Storage;
use resident_backend::call_site::call_site;
use resident_core::Access;

/// A view of a part of an array. Programs name its four kinds, as they name ndarray's `ArrayView`
/// and not its `ArrayBase`:
///
/// | | `R` is `&T` | `R` is `&mut T` |
/// |---|---|---|
/// | `H` is [`Coherent`] | [`SmartView`] | [`SmartViewMut`] |
/// | `H` is `&Device` | [`DeviceView`] | [`DeviceViewMut`] |
///
/// `R` is the borrow of the elements, and `H`, their home, says where they are: wherever the array
/// is valid, or on one device. What follows from the arrangement of the elements alone is the same
/// for all kinds; only shared views can be copied and broadcast, and only exclusive ones written.
/// A coherent view moves elements when they are accessed, a device view only by `copy_*`.
pub struct View<'a, H, R, D> {
    storage: &'a Storage,
    home: H,
    layout: Layout<D>,
    elements: PhantomData<R>,
}

/// The home of a [`SmartArray`](crate::SmartArray)'s elements: each memory where they are valid.
#[derive(Clone, Copy, Debug)]
pub struct Coherent;

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
pub type SmartView<'a, T, D> = View<'a, Coherent, &'a T, D>;

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
/// halve.launch(Grid::cover(row.len()), (&mut row,))?;  // uploads this row; it is newest there
/// assert_eq!((table.host()?.sum(), table.traffic().to_device.bytes), (350.0, 400));
/// # Ok::<(), resident::Error>(())
/// ```
pub type SmartViewMut<'a, T, D> = View<'a, Coherent, &'a mut T, D>;

/// A shared view of a part of a [`DeviceArray`](crate::DeviceArray). It is `Copy` if its dimension
/// is.
pub type DeviceView<'a, T, D> = View<'a, &'a Device, &'a T, D>;

/// An exclusive view of a part of a [`DeviceArray`](crate::DeviceArray).
pub type DeviceViewMut<'a, T, D> = View<'a, &'a Device, &'a mut T, D>;

impl<H: Copy, T: Element, D: Dimension + Copy> Copy for View<'_, H, &T, D> {}

impl<H: Copy, T: Element, D: Dimension> Clone for View<'_, H, &T, D> {
    fn clone(&self) -> Self {
        Self::new(self.storage, self.home, self.layout.clone())
    }
}

/// Other arrangements of the same elements, and parts, with the view's own lifetime. These methods
/// consume the view, as ndarray's do: keep an exclusive one with [`view_mut`](View::view_mut).
impl<'a, H: Copy, R, D: Dimension> View<'a, H, R, D> {
    /// The caller's borrow of the elements of `layout` is `R`.
    pub(super) fn new(storage: &'a Storage, home: H, layout: Layout<D>) -> Self {
        Self { storage, home, layout, elements: PhantomData }
    }

    /// The array, its home, and the elements that this view has borrowed.
    pub(super) fn into_parts(self) -> (&'a Storage, H, Layout<D>) {
        (self.storage, self.home, self.layout)
    }

    /// The same elements, or some of them.
    fn arranged<E: Dimension>(self, layout: Layout<E>) -> View<'a, H, R, E> {
        View::new(self.storage, self.home, layout)
    }

    pub(super) fn with_home<G: Copy>(self, home: G) -> View<'a, G, R, D> {
        View::new(self.storage, home, self.layout)
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
    pub fn slice_move<I: SliceArg<D>>(self, info: I) -> View<'a, H, R, I::OutDim> {
        let part = in_range(self.storage, self.layout.slice(&info));
        self.arranged(part)
    }

    /// Some indices of one axis, with the same lifetime: as
    /// [`slice_axis`](crate::SmartArray::slice_axis).
    ///
    /// # Panics
    ///
    /// As ndarray's `slice_axis`, if there is no such axis, or an index is out of bounds.
    #[track_caller]
    #[must_use]
    pub fn slice_axis_move(self, axis: Axis, indices: Slice) -> Self {
        let part = in_range(self.storage, self.layout.slice_axis(axis, indices));
        self.arranged(part)
    }

    /// Some indices of each axis, with the same lifetime: as
    /// [`slice_each_axis`](crate::SmartArray::slice_each_axis).
    ///
    /// # Panics
    ///
    /// As ndarray's `slice_each_axis`, if an index is out of bounds.
    #[track_caller]
    #[must_use]
    pub fn slice_each_axis_move(self, mut indices: impl FnMut(AxisDescription) -> Slice) -> Self {
        let mut part = self;
        for axis in (0..part.layout.shape().len()).map(Axis) {
            let (len, stride) = (part.layout.shape()[axis.0], part.layout.strides()[axis.0]);
            part = part.slice_axis_move(axis, indices(AxisDescription { axis, len, stride }));
        }
        part
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
        (Self::new(self.storage, self.home, first), Self::new(self.storage, self.home, second))
    }

    /// The part at one index of an axis, without that axis, as ndarray's `index_axis_move`.
    ///
    /// # Panics
    ///
    /// As ndarray's `index_axis_move`, if there is no such axis or index.
    #[track_caller]
    #[must_use]
    pub fn index_axis_move(self, axis: Axis, index: usize) -> View<'a, H, R, D::Smaller>
    where
        D: RemoveAxis,
    {
        let part = in_range(self.storage, self.layout.index_axis(axis, index));
        self.arranged(part)
    }

    /// With the axes in reverse order, as ndarray's `reversed_axes`: as `t`, of an exclusive view
    /// too.
    #[must_use]
    pub fn reversed_axes(self) -> Self {
        let reversed = self.layout.transposed();
        self.arranged(reversed)
    }

    /// In another shape of as many elements, read and laid out in this order. Never copies. The
    /// result is exclusive if the view is.
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
    /// [`Shape`](crate::Error::Shape) if the number of elements differs, or if the elements in this
    /// shape have no strides: `to_contiguous_in` makes a copy that has strides in this order.
    #[track_caller]
    pub fn into_shape<S: IntoDimension>(
        self,
        shape: S,
        order: Order,
    ) -> Result<View<'a, H, R, S::Dim>> {
        let reshaped = reshape_to(self.storage, &self.layout, &shape.into_dimension(), order);
        Ok(self.arranged(reshaped.at(call_site())?))
    }

    /// With the number of axes known only when the program runs, as ndarray's `into_dyn`.
    #[must_use]
    pub fn into_dyn(self) -> View<'a, H, R, IxDyn> {
        let layout = self.layout.with_any_dim();
        self.arranged(layout)
    }

    #[track_caller]
    pub(super) fn permuted(self, axes: impl IntoDimension<Dim = D>) -> Self {
        let permuted = in_range(self.storage, self.layout.permuted(&axes.into_dimension()));
        self.arranged(permuted)
    }

    #[track_caller]
    pub(super) fn with_axis(self, axis: Axis) -> View<'a, H, R, D::Larger> {
        let layout = in_range(self.storage, self.layout.with_axis(axis));
        self.arranged(layout)
    }
}

impl<'a, H, T: Element, R: Deref<Target = T>, D: Dimension> View<'a, H, R, D> {
    /// The part, while this view is borrowed, so that its guards do not outlive the borrow.
    #[inline]
    pub(super) fn part(&self) -> Part<'_, '_, T, D> {
        Part::of(self.storage, &self.layout)
    }

    /// The part, with the lifetime of the view's borrow of the array: for shared views, and for
    /// methods that consume the view.
    #[inline]
    pub(super) fn long_part(&self) -> Part<'a, '_, T, D> {
        Part::of(self.storage, &self.layout)
    }

    /// A shared view of the same part, while this view is borrowed.
    pub(super) fn shared(&self) -> View<'_, H, &T, D>
    where
        H: Copy,
    {
        View::new(self.storage, self.home, self.layout.clone())
    }
}

impl<'a, H: Copy, T: Element, D: Dimension> View<'a, H, &'a T, D> {
    /// The same view.
    #[must_use]
    pub fn view(&self) -> Self {
        self.clone()
    }

    /// Never of an exclusive view: one element would be borrowed several times.
    #[track_caller]
    pub(super) fn repeated<S: IntoDimension>(self, shape: S) -> Result<View<'a, H, &'a T, S::Dim>> {
        let repeated = broadcast_to(self.storage, &self.layout, &shape.into_dimension());
        Ok(self.arranged(repeated.at(call_site())?))
    }
}

impl<'a, H: Copy, T: Element, D: Dimension> View<'a, H, &'a mut T, D> {
    /// A shared view of the same part, while this view is borrowed.
    #[must_use]
    pub fn view(&self) -> View<'_, H, &T, D> {
        self.shared()
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
    /// add_one(part.view_mut())?;
    /// add_one(part)?;
    /// assert_eq!(array.host()?.sum(), 20);
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use]
    pub fn view_mut(&mut self) -> View<'_, H, &mut T, D> {
        View::new(self.storage, self.home, self.layout.clone())
    }

    /// [`view_mut`](Self::view_mut), by another name.
    #[doc(hidden)]
    #[must_use]
    pub fn reborrow(&mut self) -> View<'_, H, &mut T, D> {
        self.view_mut()
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
        self.permuted(axes)
    }

    /// With another axis, of length 1, as ndarray's `insert_axis`.
    ///
    /// # Panics
    ///
    /// As ndarray's `insert_axis`, if the axis is greater than the number of axes.
    #[track_caller]
    #[must_use]
    pub fn insert_axis(self, axis: Axis) -> View<'a, H, &'a mut T, D::Larger> {
        self.with_axis(axis)
    }

    /// Without an axis, at its index 0, as ndarray's `remove_axis`.
    ///
    /// # Panics
    ///
    /// As ndarray's `remove_axis`, if there is no such axis or its length is 0.
    #[track_caller]
    #[must_use]
    pub fn remove_axis(self, axis: Axis) -> View<'a, H, &'a mut T, D::Smaller>
    where
        D: RemoveAxis,
    {
        self.index_axis_move(axis, 0)
    }
}

impl<'a, T: Element, D: Dimension> SmartViewMut<'a, T, D> {
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
        self.into_shape(shape, order.unwrap_or(Order::RowMajor))
    }
}

impl<'a, R, D> View<'a, &'a Device, R, D> {
    /// The device that has the elements.
    #[inline]
    pub(super) fn home(&self) -> &'a Device {
        self.home
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
