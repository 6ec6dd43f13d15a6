//! Parts of arrays. They hold no state of their own: validity, uses and totals are the array's.

use std::fmt;
use std::marker::PhantomData;

use ndarray::{Axis, Dimension, SliceArg};

use super::device_guard::DeviceMut;
use super::host_guard::HostMut;
use super::layout::Layout;
use super::part::Part;
use crate::access::Access;
use crate::call_site::call_site;
use crate::device::Stream;
use crate::element::Element;
use crate::error::Result;
use crate::storage::Storage;

/// A part of a [`SmartArray`](crate::SmartArray), shared: by [`SmartArray::slice`](crate::SmartArray::slice) and [`SmartArray::view`](crate::SmartArray::view). Its
/// guards live as long as the borrow of the array that it was made with, so a view may be a
/// temporary. It is `Copy` where its dimension is (all but `IxDyn`), and holds no state of its own:
/// validity, uses and totals are the array's.
///
/// ```
/// use resident::{Device, SmartArray, ndarray::{Array2, s}};
///
/// let _here = Device::cpu().enter();
/// let image = SmartArray::from(Array2::<f32>::ones((100, 100)));
/// let row = image.slice(s![5, ..]);                                     // nothing happens yet
/// drop(row.gpu()?);                                                     // 400 bytes go up
/// let host = row.slice(s![10..20]).host()?;                             // of a part of the part; outlives it
/// assert_eq!((host.sum(), image.traffic().to_device.bytes), (10.0, 400));
/// # Ok::<(), resident::Error>(())
/// ```
pub struct SmartView<'a, T: Element, D: Dimension> {
    storage: &'a Storage,
    layout: Layout<D>,
    element: PhantomData<&'a T>,
}

/// A part of a [`SmartArray`](crate::SmartArray), exclusive: by [`SmartArray::slice_mut`](crate::SmartArray::slice_mut), [`SmartArray::view_mut`](crate::SmartArray::view_mut)
/// and their like. Its methods are those of the array; those that take the view itself
/// (`into_host_mut`, `slice_move`, `split_at`) hand out what lives as long as the view would have.
///
/// ```
/// use resident::{Device, Grid, InOut, Kernel, SmartArray, ndarray::{Array2, s}};
///
/// let halve = Kernel::<(InOut<f32>,)>::new("halve").host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 0.5));
/// let _here = Device::cpu().enter();
/// let mut table = SmartArray::from(Array2::<f32>::ones((4, 100)));
/// let mut row = table.slice_mut(s![2, ..]);
/// halve.launch(Grid::cover(row.len()), (&mut row,))?;                   // this row goes up, and is newest there
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
    pub(super) fn part(&self) -> Part<'a, '_, D> {
        Part { storage: self.storage, layout: &self.layout }
    }

    /// A part of this part for as long as this one would have lived, as ndarray's `slice_move`.
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
    /// As ndarray's `slice_move`, if an index lies outside.
    #[track_caller]
    #[must_use]
    pub fn slice_move<I: SliceArg<D>>(self, info: I) -> SmartView<'a, T, I::OutDim> {
        SmartView::new(self.storage, self.layout.slice(&info))
    }

    /// The parts before and from `index` on along an axis, as ndarray's `split_at`.
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
    /// As ndarray's `split_at`, if there is no such axis or `index` lies beyond its end.
    #[track_caller]
    #[must_use]
    pub fn split_at(self, axis: Axis, index: usize) -> (Self, Self) {
        let (first, second) = self.layout.split_at(axis, index);
        (Self::new(self.storage, first), Self::new(self.storage, second))
    }
}

impl<'a, T: Element, D: Dimension> SmartViewMut<'a, T, D> {
    /// The caller holds the elements of `layout` exclusively for `'a`.
    pub(super) fn new(storage: &'a Storage, layout: Layout<D>) -> Self {
        Self { storage, layout, element: PhantomData }
    }

    #[inline]
    pub(super) fn part(&self) -> Part<'_, '_, D> {
        Part { storage: self.storage, layout: &self.layout }
    }

    /// The same part with the lifetime of the view's own borrow, to be used up with the view.
    fn long_part(&self) -> Part<'a, '_, D> {
        Part { storage: self.storage, layout: &self.layout }
    }

    /// The same part, to be read, while this view is borrowed.
    #[must_use]
    pub fn view(&self) -> SmartView<'_, T, D> {
        SmartView::new(self.storage, self.layout.clone())
    }

    /// The same part for a shorter time, to be passed on where the view is needed again.
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

    /// The host's copy, to be changed, for as long as this view would have lived: else as
    /// [`host_mut`](Self::host_mut). The example of [`split_at`](Self::split_at) shows it.
    ///
    /// # Errors
    ///
    /// As [`host_mut`](Self::host_mut).
    #[track_caller]
    pub fn into_host_mut(self) -> Result<HostMut<'a, T, D>> {
        self.long_part().host_mut(Access::ReadWrite, call_site())
    }

    /// The copy of `stream`'s device, to be changed by foreign work, for as long as this view would
    /// have lived: else as [`gpu_mut_on`](Self::gpu_mut_on).
    ///
    /// ```
    /// use resident::{Device, SmartArray, ndarray::s};
    ///
    /// let stream = Device::cpu().stream();
    /// let mut array = SmartArray::<f32, _>::zeros(100);
    /// let guard = array.slice_mut(s![10..20]).into_gpu_mut_on(&stream)?;    // the view itself is gone
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

    /// A part of this part for as long as this one would have lived, as ndarray's `slice_move`.
    ///
    /// # Panics
    ///
    /// As ndarray's `slice_move`, if an index lies outside.
    #[track_caller]
    #[must_use]
    pub fn slice_move<I: SliceArg<D>>(self, info: I) -> SmartViewMut<'a, T, I::OutDim> {
        SmartViewMut::new(self.storage, self.layout.slice(&info))
    }

    /// The parts before and from `index` on along an axis, for as long as this one would have
    /// lived: so a part can be divided again and again.
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
    /// As ndarray's `split_at`, if there is no such axis or `index` lies beyond its end.
    #[track_caller]
    #[must_use]
    pub fn split_at(self, axis: Axis, index: usize) -> (Self, Self) {
        let (first, second) = self.layout.split_at(axis, index);
        (Self::new(self.storage, first), Self::new(self.storage, second))
    }
}

impl<T: Element, D: Dimension> fmt::Debug for SmartView<'_, T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "SmartView(of {}, {:?}, {})",
            self.storage.named(),
            self.shape(),
            self.residency()
        )
    }
}

impl<T: Element, D: Dimension> fmt::Debug for SmartViewMut<'_, T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "SmartViewMut(of {}, {:?}, {})",
            self.storage.named(),
            self.shape(),
            self.residency()
        )
    }
}
