//! Copies between device arrays and host memory, and between device arrays.

use std::ops::Deref;

use ndarray::{
    Array, ArrayD, ArrayRef, Axis, Dimension, IntoDimension, IxDyn, Order, ShapeBuilder, SliceArg,
};

use super::super::as_view::{AsView, AsViewMut};
use super::super::layout::Layout;
use super::super::part::Part;
use super::super::pending::Pending;
use super::super::smart::{SmartArray, expect_fits};
use super::super::view::{SmartView, SmartViewMut, View};
use super::{AsDeviceView, DeviceArray, DeviceView, DeviceViewMut};
use crate::device::{Device, Stream};
use crate::element::Element;
use crate::error::{Error, Result, fitting};
use crate::storage::zeroed_vec;
use crate::transfer::{self, CopyCall, LentView, Target};
use resident_backend::call_site::{CallSite, call_site};
use resident_core::Access;

/// `$view` makes a shared view.
macro_rules! reading_methods {
    ($view:ident) => {
        /// The elements as an array of the host, in the axis order of this one and without gaps, so
        /// that unbroken memory takes one plain copy. Waits until they have arrived. As Numba's
        /// `copy_to_host`.
        ///
        /// ```
        /// use resident::{Device, DeviceArray, ndarray::{Array2, ShapeBuilder, s}};
        ///
        /// let _here = Device::cpu().enter();
        /// let columns = DeviceArray::from_host(&Array2::<f32>::ones((3, 4).f()))?;
        /// assert_eq!(columns.copy_to_host()?.strides(), [1, 3]);
        /// assert_eq!(columns.slice(s![..2, ..]).copy_to_host()?.strides(), [1, 2]);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// - [`Uninitialised`](crate::Error::Uninitialised) if some elements were never written.
        /// - [`Lost`](crate::Error::Lost) if work that should have written some of them failed.
        /// - [`OutOfMemory`](crate::Error::OutOfMemory) if the host has no memory for the array.
        /// - [`Backend`](crate::Error::Backend) if the device refuses a call or the copy fails;
        ///   [`DeviceLost`](crate::Error::DeviceLost) if the device died.
        /// - [`InsideKernel`](crate::Error::InsideKernel) if the call would have to wait inside a
        ///   kernel body.
        #[track_caller]
        pub fn copy_to_host(&self) -> Result<Array<T, D>> {
            let stream = self.home().current_stream();
            self.part().copy_to_host(&stream, call_site())
        }

        /// As [`copy_to_host`](Self::copy_to_host), in the order of `stream`. Returns at once: see
        /// [`Pending`]. Later writes of this array come after the copy. The host itself copies
        /// mapped and managed memory: then the call waits for kernels that write it.
        ///
        /// ```
        /// use resident::{Device, DeviceArray};
        ///
        /// let stream = Device::cpu().stream();
        /// let mut line = DeviceArray::<f32, _>::full_on(&stream, 100, 0.5)?;
        /// let copy = line.copy_to_host_on(&stream)?;
        /// line.fill(7.0)?;                                  // does not wait, and comes after
        /// assert_eq!(copy.wait()?.sum(), 50.0);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [`copy_to_host`](Self::copy_to_host), and
        /// [`WrongDevice`](crate::Error::WrongDevice) if the stream is one of another device. Later
        /// failures are returned by the [`Pending`].
        #[track_caller]
        pub fn copy_to_host_on(&self, stream: &Stream) -> Result<Pending<Array<T, D>>> {
            let (part, site) = (self.part(), call_site());
            part.expect_home(self.home(), stream, "copy_to_host_on", site)?;
            part.snapshot_on(stream, "copy_to_host_on", site)
        }

        /// Copies the elements into an array or view of the host, of any strides, in the order of
        /// the device's current stream. Waits until they have arrived, which
        /// [`copy_to_host_on`](Self::copy_to_host_on) and
        /// [`copy_to_pinned_on`](Self::copy_to_pinned_on) do not.
        ///
        /// ```
        /// use resident::{Device, DeviceArray, ndarray::{Array2, s}};
        ///
        /// let line = DeviceArray::<i32, _>::full_on(&Device::cpu().stream(), 3, 7)?;
        /// let mut table = Array2::zeros((3, 2));
        /// line.copy_to_host_into(&mut table.slice_mut(s![..;-1, 1]))?;
        /// assert_eq!(table.sum(), 21);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`Shape`](crate::Error::Shape) if the shapes differ; else as
        /// [`copy_to_host`](Self::copy_to_host). `to` is unchanged then, unless the error says how
        /// many of its bytes were already written
        /// ([`CalledAt::written_bytes`](crate::CalledAt::written_bytes)): a large copy takes
        /// several operations.
        #[track_caller]
        pub fn copy_to_host_into(&self, to: &mut ArrayRef<T, D>) -> Result<()> {
            let (part, stream, site) = (self.part(), self.home().current_stream(), call_site());
            part.expect_shape(to.shape(), "copy_to_host_into", site)?;
            let layout = layout_of(to);
            if part.layout.is_broadcast() || !layout.is_aligned_with(part.layout) {
                // The device copies long runs, and the host reorders the elements.
                to.assign(&part.copy_to_host(&stream, site)?);
                return Ok(());
            }
            // SAFETY: the borrow of `to` excludes all other accesses of its elements for the call.
            let lent = unsafe { lent(&layout, to.as_mut_ptr()) };
            transfer::copy_to_host(part.stored_view(), &lent, &stream, site)
        }

        /// Copies the elements into a [`PinnedArray`](crate::PinnedArray), into an array that is
        /// page-locked, or into a part of one, in the order of the device's current stream. The
        /// device writes the pinned memory itself, later: the call returns at once, and the other
        /// array's next access by the host waits for the copy. This array may be changed or dropped
        /// meanwhile. Other arrays are copied to before the call returns, and so are those whose
        /// axes are in another order.
        ///
        /// The host then has the other array's newest contents. If the copy fails later, they are
        /// [`Lost`](crate::Error::Lost).
        ///
        /// ```
        /// use resident::{Device, DeviceArray, PinnedArray};
        ///
        /// let _here = Device::cpu().enter();
        /// let mut line = DeviceArray::<f32, _>::full(1000, 0.5)?;
        /// let mut samples = PinnedArray::<f32, _>::uninit(1000)?;
        /// line.copy_to_pinned(&mut samples)?;
        /// line.fill(7.0)?;                                  // comes after the copy
        /// assert_eq!(samples.host()?.sum(), 500.0);         // waits for the copy
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// [`Shape`](crate::Error::Shape) if the shapes differ; else as
        /// [`copy_to_host`](Self::copy_to_host). The other array is unchanged then, unless the
        /// error says how many of its bytes were already written
        /// ([`CalledAt::written_bytes`](crate::CalledAt::written_bytes)): a GPU's driver may take
        /// several calls for a part with gaps.
        #[track_caller]
        pub fn copy_to_pinned(&self, to: &mut impl AsViewMut<T, D>) -> Result<()> {
            self.read_to_pinned(&to.as_view_mut(), &self.home().current_stream(), call_site())
        }

        /// As [`copy_to_pinned`](Self::copy_to_pinned), in the order of `stream`.
        ///
        /// # Errors
        ///
        /// As [`copy_to_pinned`](Self::copy_to_pinned), and
        /// [`WrongDevice`](crate::Error::WrongDevice) if the stream is one of another device.
        #[track_caller]
        pub fn copy_to_pinned_on(
            &self,
            stream: &Stream,
            to: &mut impl AsViewMut<T, D>,
        ) -> Result<()> {
            self.read_to_pinned(&to.as_view_mut(), stream, call_site())
        }

        fn read_to_pinned(
            &self,
            to: &SmartViewMut<'_, T, D>,
            stream: &Stream,
            site: CallSite,
        ) -> Result<()> {
            let (part, to) = (self.part(), to.part());
            part.expect_shape(to.layout.shape(), "copy_to_pinned", site)?;
            part.expect_home(self.home(), stream, "copy_to_pinned", site)?;
            let is_direct = part.is_copied_directly(&to);
            let (view, from) = (to.stored_view(), part.stored_view());
            let call = CopyCall { operation: "copy_to_pinned", site };
            if is_direct && transfer::copy_to_pinned(view, from, stream, call)? {
                return Ok(());
            }
            // First all that can fail, so that an error leaves the contents as they are.
            let elements = part.copy_to_host(stream, site)?;
            to.host_mut(Access::Overwrite, site)?.assign(&elements);
            Ok(())
        }

        /// The same elements in memory of their own on the same device, without gaps, in row-major
        /// order. The copy is made in the order of the device's current stream.
        ///
        /// # Errors
        ///
        /// As [`copy_from_device`](DeviceArray::copy_from_device).
        #[track_caller]
        pub fn to_contiguous(&self) -> Result<DeviceArray<T, D>> {
            self.to_contiguous_in(Order::RowMajor)
        }

        /// As [`to_contiguous`](Self::to_contiguous), in row-major or column-major order.
        ///
        /// ```
        /// use resident::{Device, DeviceArray, ndarray::{Order, array}};
        ///
        /// let _here = Device::cpu().enter();
        /// let rows = DeviceArray::from_host(&array![[1, 2, 3], [4, 5, 6]])?;
        /// let columns = rows.to_contiguous_in(Order::F)?;
        /// assert_eq!(columns.ravel(Order::F)?.copy_to_host()?, array![1, 4, 2, 5, 3, 6]);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [`to_contiguous`](Self::to_contiguous).
        #[track_caller]
        pub fn to_contiguous_in(&self, order: Order) -> Result<DeviceArray<T, D>> {
            let (stream, shape) = (self.home().current_stream(), self.raw_dim());
            let is_column_major = matches!(order, Order::ColumnMajor);
            expect_fits::<T>(self.shape(), call_site())?;
            let mut copy = DeviceArray::uninit_on(&stream, shape.set_f(is_column_major))?;
            copy.copy_from_device_on(&stream, &self.$view())?;
            Ok(copy)
        }
    };
}

macro_rules! writing_methods {
    () => {
        /// Overwrites the elements with those of a host array of the same shape, and of any
        /// strides. Returns when the host array has been read. As Numba's `copy_to_device`.
        ///
        /// # Errors
        ///
        /// - [`Shape`](crate::Error::Shape) if the shapes differ.
        /// - [`OutOfMemory`](crate::Error::OutOfMemory) if the device has no memory left, or the
        ///   host none for staging.
        /// - [`Backend`](crate::Error::Backend) if the device refuses a call;
        ///   [`DeviceLost`](crate::Error::DeviceLost) if it died.
        ///
        /// The contents are unchanged then, unless the error says how many bytes were already
        /// written ([`CalledAt::written_bytes`](crate::CalledAt::written_bytes)): a large copy
        /// takes several operations, and so does one of many runs on a GPU, and a later one may be
        /// refused. A repeated call writes all.
        #[track_caller]
        pub fn copy_from_host(&mut self, from: &ArrayRef<T, D>) -> Result<()> {
            self.write_from_host(from, &self.home().current_stream(), call_site())
        }

        /// As [`copy_from_host`](Self::copy_from_host), in the order of `stream`.
        ///
        /// # Errors
        ///
        /// As [`copy_from_host`](Self::copy_from_host), and
        /// [`WrongDevice`](crate::Error::WrongDevice) if the stream is one of another device.
        #[track_caller]
        pub fn copy_from_host_on(&mut self, stream: &Stream, from: &ArrayRef<T, D>) -> Result<()> {
            self.write_from_host(from, stream, call_site())
        }

        /// Overwrites the elements with those of a [`PinnedArray`](crate::PinnedArray), of an array
        /// that is page-locked, or of a part of one, in the order of the device's current stream.
        /// The device reads the pinned memory itself, later: the call returns at once, and the
        /// array may be changed or dropped. Other arrays are copied as by
        /// [`copy_from_host`](Self::copy_from_host), and so are those whose axes are in another
        /// order.
        ///
        /// ```
        /// use resident::{Device, DeviceArray, PinnedArray, ndarray::array};
        ///
        /// let _here = Device::cpu().enter();
        /// let mut samples = PinnedArray::from_array(array![1, 2, 3])?;
        /// let mut there = DeviceArray::<i32, _>::zeros(3)?;
        /// there.copy_from_pinned(&samples)?;
        /// samples.host_overwrite()?.fill(0);                // waits until the device has read it
        /// assert_eq!(there.copy_to_host()?, array![1, 2, 3]);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [`copy_from_host`](Self::copy_from_host), and as
        /// [`SmartArray::host`](crate::SmartArray::host) of the other array.
        #[track_caller]
        pub fn copy_from_pinned(&mut self, from: &impl AsView<T, D>) -> Result<()> {
            self.write_from_pinned(&from.as_view(), &self.home().current_stream(), call_site())
        }

        /// As [`copy_from_pinned`](Self::copy_from_pinned), in the order of `stream`.
        ///
        /// # Errors
        ///
        /// As [`copy_from_pinned`](Self::copy_from_pinned), and
        /// [`WrongDevice`](crate::Error::WrongDevice) if the stream is one of another device.
        #[track_caller]
        pub fn copy_from_pinned_on(
            &mut self,
            stream: &Stream,
            from: &impl AsView<T, D>,
        ) -> Result<()> {
            self.write_from_pinned(&from.as_view(), stream, call_site())
        }

        fn write_from_pinned(
            &mut self,
            from: &SmartView<'_, T, D>,
            stream: &Stream,
            site: CallSite,
        ) -> Result<()> {
            let (part, from) = (self.part(), from.part());
            part.expect_shape(from.layout.shape(), "copy_from_pinned", site)?;
            part.expect_home(self.home(), stream, "copy_from_pinned", site)?;
            let is_direct = from.is_copied_directly(&part);
            let (to, view) = (part.stored_view(), from.stored_view());
            if is_direct && transfer::copy_from_pinned(to, view, stream, site)? {
                return Ok(());
            }
            self.write_from_host(&*from.host(site)?, stream, site)
        }

        pub(super) fn write_from_host(
            &mut self,
            from: &ArrayRef<T, D>,
            stream: &Stream,
            site: CallSite,
        ) -> Result<()> {
            let part = self.part();
            part.expect_shape(from.shape(), "copy_from_host", site)?;
            part.expect_home(self.home(), stream, "copy_from_host", site)?;
            if !part.stored_view().has_fields() {
                let source = SmartArray::adopted(from.to_owned(), site);
                return part.assign(source.part(), Target::On(stream), site);
            }
            if layout_of(from).is_aligned_with(part.layout) || size_of::<T>() == 0 {
                return upload(from, &part, stream, site);
            }
            let copy = aligned_copy(from, part.layout);
            let copy = copy.ok_or_else(|| {
                let requested = from.len() as u64 * size_of::<T>() as u64;
                Error::host_full(&part.storage.named(), requested).at(site)
            })?;
            upload(&*copy, &part, stream, site)
        }

        /// Overwrites the elements with those of a device array of the same shape, in any axis
        /// order and of any device. Waits only if the two devices cannot access each other's
        /// memory: then the elements are copied to the host and from there.
        ///
        /// Two parts of one array that share no element come from `split_at_mut` or
        /// `multi_slice_mut`. Parts that overlap do not compile, since one of them is borrowed
        /// exclusively: [`copy_within`](Self::copy_within) copies these. If the axes are in another
        /// order, as here, each run of elements is a copy of its own on a GPU;
        /// [`ops::copy`](crate::ops::copy) copies numbers by one launch.
        ///
        /// ```
        /// use resident::{Device, DeviceArray, ndarray::array};
        ///
        /// let _here = Device::cpu().enter();
        /// let rows = DeviceArray::from_host(&array![[1, 2, 3], [4, 5, 6]])?;
        /// let mut columns = DeviceArray::uninit((3, 2))?;
        /// columns.copy_from_device(&rows.t())?;
        /// assert_eq!(columns.copy_to_host()?, array![[1, 4], [2, 5], [3, 6]]);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// - [`Shape`](crate::Error::Shape) if the shapes differ.
        /// - [`Uninitialised`](crate::Error::Uninitialised) or [`Lost`](crate::Error::Lost) if the
        ///   other array has no contents.
        /// - [`OutOfMemory`](crate::Error::OutOfMemory), [`Backend`](crate::Error::Backend) or
        ///   [`DeviceLost`](crate::Error::DeviceLost) if a device refuses a call.
        ///
        /// The contents are unchanged then, unless the error says how many bytes were already
        /// written ([`CalledAt::written_bytes`](crate::CalledAt::written_bytes)): a broadcast view
        /// takes several copies, and so do, on a GPU, many runs. A repeated call writes all.
        #[track_caller]
        pub fn copy_from_device(&mut self, from: &impl AsDeviceView<T, D>) -> Result<()> {
            let stream = self.home().current_stream();
            self.write_from_device(&from.as_device_view(), &stream, call_site())
        }

        /// A copy between devices that cannot access each other's memory goes through memory of
        /// this call, so that the source's contents stay on its device only.
        fn write_from_device(
            &mut self,
            from: &DeviceView<'_, T, D>,
            stream: &Stream,
            site: CallSite,
        ) -> Result<()> {
            let (here, there) = (self.home().backend(), from.home().backend());
            let is_here = self.home() == from.home();
            if is_here || here.can_access_peer(&**there) && !from.part().is_host_mapped() {
                return self.part().assign(from.part(), Target::On(stream), site);
            }
            self.part().expect_shape(from.shape(), "copy_from_device", site)?;
            let elements = from.part().copy_to_host(&from.home().current_stream(), site)?;
            self.write_from_host(&elements, stream, site)
        }

        /// As [`copy_from_device`](Self::copy_from_device), in the order of `stream`.
        ///
        /// # Errors
        ///
        /// As [`copy_from_device`](Self::copy_from_device), and
        /// [`WrongDevice`](crate::Error::WrongDevice) if the stream is one of another device.
        #[track_caller]
        pub fn copy_from_device_on(
            &mut self,
            stream: &Stream,
            from: &impl AsDeviceView<T, D>,
        ) -> Result<()> {
            let site = call_site();
            self.part().expect_home(self.home(), stream, "copy_from_device_on", site)?;
            self.write_from_device(&from.as_device_view(), stream, site)
        }

        /// Overwrites one part of the array with another of the same shape, which may overlap it in
        /// any direction: `a[1:] = a[:-1]` in NumPy, and `copy_within` of std's slices. All
        /// elements are read, into memory that the call takes on the device, before any is written.
        /// Parts of [`multi_slice_mut`](Self::multi_slice_mut) share no element, and need no such
        /// memory. All is in the order of the device's current stream.
        ///
        /// ```
        /// use resident::{Device, DeviceArray, ndarray::{array, s}};
        ///
        /// let _here = Device::cpu().enter();
        /// let mut line = DeviceArray::from_host(&array![1, 2, 3, 4, 5])?;
        /// line.copy_within(s![..4], s![1..])?;
        /// assert_eq!(line.copy_to_host()?, array![1, 1, 2, 3, 4]);
        /// # Ok::<(), resident::Error>(())
        /// ```
        ///
        /// # Errors
        ///
        /// As [`copy_from_device`](Self::copy_from_device), also about contents.
        ///
        /// # Panics
        ///
        /// As ndarray's `slice`, if an index is out of bounds.
        #[track_caller]
        pub fn copy_within<I, J>(&mut self, from: I, to: J) -> Result<()>
        where
            I: SliceArg<D>,
            J: SliceArg<D, OutDim = I::OutDim>,
        {
            let elements = self.slice(from).to_contiguous()?;
            self.slice_mut(to).copy_from_device(&elements)
        }

        /// Makes all elements `value`, in the order of the device's current stream. The value is
        /// kept as a constant until something writes other elements: a copy to the host then
        /// writes the constant there, moves nothing, and counts no bytes.
        ///
        /// # Errors
        ///
        /// [`OutOfMemory`](crate::Error::OutOfMemory), [`Backend`](crate::Error::Backend) or
        /// [`DeviceLost`](crate::Error::DeviceLost) if the device refuses a call. The contents are
        /// unchanged then, unless the error says how many bytes were already written
        /// ([`CalledAt::written_bytes`](crate::CalledAt::written_bytes)): a GPU's driver may take
        /// several calls for a part with gaps.
        #[track_caller]
        pub fn fill(&mut self, value: T) -> Result<()> {
            self.part().fill_on(&self.home().current_stream(), value, call_site())
        }

        /// As [`fill`](Self::fill), in the order of `stream`.
        ///
        /// # Errors
        ///
        /// As [`fill`](Self::fill), and [`WrongDevice`](crate::Error::WrongDevice) if the stream is
        /// one of another device.
        #[track_caller]
        pub fn fill_on(&mut self, stream: &Stream, value: T) -> Result<()> {
            let site = call_site();
            self.part().expect_home(self.home(), stream, "fill_on", site)?;
            self.part().fill_on(stream, value, site)
        }

        /// Writes one element, in the order of the device's current stream.
        ///
        /// # Errors
        ///
        /// [`Shape`](crate::Error::Shape) if the index is out of bounds; else as
        /// [`fill`](Self::fill).
        #[track_caller]
        pub fn set(&mut self, index: impl IntoDimension<Dim = D>, value: T) -> Result<()> {
            let (stream, index) = (self.home().current_stream(), index.into_dimension());
            self.part().set(Some(&stream), index.slice(), value, call_site())
        }
    };
}

impl<T: Element, D: Dimension> DeviceArray<T, D> {
    reading_methods!(view);
    writing_methods!();
}

impl<T: Element, R: Deref<Target = T>, D: Dimension> View<'_, &'_ Device, R, D> {
    reading_methods!(shared);
}

impl<T: Element, D: Dimension> DeviceViewMut<'_, T, D> {
    writing_methods!();
}

/// The layout of a host array's elements, counted from the one with the lowest address.
fn layout_of<T, D: Dimension>(array: &ArrayRef<T, D>) -> Layout<D> {
    let layout = Layout::new(array.raw_dim(), array.strides(), 0);
    let below = layout.strided().below_first() as usize;
    layout.with_offset(below)
}

/// A copy of a host array with the axes in the order and directions of `layout`, for the device to
/// copy in long runs. `None` if the host has no memory for it.
fn aligned_copy<T: Element, D: Dimension>(
    from: &ArrayRef<T, D>,
    layout: &Layout<D>,
) -> Option<ArrayD<T>> {
    let view = layout.strided();
    let mut order: Vec<usize> = (0..view.shape.len()).collect();
    order.sort_by_key(|axis| std::cmp::Reverse(view.strides[*axis].unsigned_abs()));
    let shape: Vec<usize> = order.iter().map(|axis| view.shape[*axis]).collect();
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(position, axis)| back[*axis] = position);
    let copy = ArrayD::from_shape_vec(IxDyn(&shape), zeroed_vec::<T>(from.len())?).ok()?;
    let mut copy = copy.permuted_axes(IxDyn(&back));
    for axis in (0..view.shape.len()).filter(|axis| view.is_reversed(*axis)) {
        copy.invert_axis(Axis(axis));
    }
    copy.assign(&from.view().into_dyn());
    Some(copy)
}

fn upload<T: Element, D: Dimension, E: Dimension>(
    from: &ArrayRef<T, E>,
    part: &Part<'_, '_, T, D>,
    stream: &Stream,
    site: CallSite,
) -> Result<()> {
    let layout = layout_of(from);
    // SAFETY: the borrow of `from` excludes writes of its elements for the call, and the copy only
    // reads them.
    let lent = unsafe { lent(&layout, from.as_ptr().cast_mut()) };
    transfer::copy_from_host(part.stored_view(), &lent, stream, site)
}

/// The elements of a host array with this layout, of which `first` is the one with index 0, 0, ...
///
/// # Safety
///
/// For `'a` nothing else writes the elements; if they are to be written, nothing else accesses
/// them.
unsafe fn lent<'a, T: Element, D: Dimension>(layout: &'a Layout<D>, first: *mut T) -> LentView<'a> {
    let above = layout.shape().iter().zip(layout.strides());
    let span = above.map(|(len, stride)| len.saturating_sub(1) * stride.unsigned_abs());
    let len = if layout.len() == 0 { 0 } else { span.sum::<usize>() + 1 };
    let base = first.wrapping_sub(layout.offset());
    // SAFETY: the elements lie in this range, and are initialised, since they are those of an
    // ndarray array; the caller promises the rest.
    unsafe { LentView::new(base.cast(), len * size_of::<T>(), layout.strided()) }
}

impl<T: Element, D: Dimension> Part<'_, '_, T, D> {
    pub(in crate::array) fn expect_shape(
        &self,
        seen: &[usize],
        operation: &str,
        site: CallSite,
    ) -> Result<()> {
        if seen == self.layout.shape() {
            return Ok(());
        }
        Err(Error::Shape {
            call: site.into(),
            operation: format!("{operation} of {}", self.storage.named()),
            expected: format!("its own shape, {:?},", self.layout.shape()),
            seen: format!("{seen:?}"),
            instead: fitting::to_shape(seen, self.layout.shape()).into(),
        })
    }
}
