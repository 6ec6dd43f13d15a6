//! The coherent array: construction, memory, and conversion back into an ndarray array.

mod memory;

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use ndarray::{Array, Dimension, IxDyn, Order, ShapeBuilder};
use num_traits::One;
use smallvec::SmallVec;

use super::adopt;
use super::as_view::{
    AnyView, AnyViewMut, AsView, AsViewMut, WithDimension, any_view, coherent_arguments, sealed,
};
use super::layout::{Layout, assert_fits, fits};
use super::part::{Part, bytes_of};
use super::pending::sole_owner;
use super::view::{Coherent, SmartView, SmartViewMut};
use crate::audit::{self, Cause, Implicit, MemoryNotice};
use crate::device::Device;
use crate::device::Stream;
use crate::element::Element;
use crate::error::{AtCall, Error, Result};
use crate::storage::{Origin, Storage};
use crate::transfer::{self, StoredView, Target};
use resident_backend::Address;
use resident_backend::AutomaticName;
#[cfg(feature = "cuda")]
use resident_backend::DeviceKind;
use resident_backend::call_site::{CallSite, call_site};
use resident_core::Access;
use resident_core::layout::MemoryOrder;

/// An n-dimensional array with one copy on the host and one on each device that used it, kept
/// coherent region by region.
///
/// Data is copied only when it is accessed: [`host`](Self::host) downloads stale bytes, and
/// [`gpu_on`](Self::gpu_on) and kernel launches upload them, in each case only those of the
/// accessed part. The idea comes from Numba's `SmartArray`, which supports one GPU and copies whole
/// arrays.
///
/// | call | bytes moved, at most | afterwards |
/// |---|---|---|
/// | `host()`, `gpu()` | stale bytes, to that side | both sides valid |
/// | `host_mut()`, `gpu_mut()` | stale bytes, to that side | that side newest |
/// | `host_overwrite()`, `gpu_overwrite()` | nothing | that side newest |
/// | `fill(v)` | nothing | a constant |
///
/// ```
/// use resident::{Device, SmartArray, ndarray::{Array2, s}};
///
/// let _here = Device::cpu().enter();
/// let mut field = SmartArray::from(Array2::<f32>::zeros((512, 512))); // takes it over
/// drop(field.gpu_mut()?);                           // uploads it, as a kernel would
/// let row = field.slice(s![7, ..]).host()?.sum();   // downloads one row
/// assert_eq!((row, field.traffic().to_host.bytes), (0.0, 512 * 4));
/// # Ok::<(), resident::Error>(())
/// ```
///
/// # Coming from ndarray
///
/// Elements are on several sides, and an access may wait and may fail, so there is no `a[0]`,
/// `a.iter()`, `a.mapv(..)` or `a += &b`. A guard of the host is an `ArrayView` or `ArrayViewMut`
/// with all of these:
///
/// - `a[[i, j]]`, no index: [`get`](Self::get)`([i, j])?`, one element from where it is newest; or
///   `a.host()?[[i, j]]`.
/// - `for x in &a`, no iterator: `for x in &*a.host()?`.
/// - `a[i] = x`: `a.host_mut()?[i] = x`; one element where the array is newest: [`set`](Self::set).
/// - `a.iter()`, `a.iter_mut()`, `a.mapv(f)`: `a.host()?.iter()`, `a.host_mut()?.iter_mut()`,
///   `a.host()?.mapv(f)`. On a device: [`ops`](crate::ops), or a [`Kernel`](crate::Kernel).
/// - `&a + &b`, `&a * 2.0`, `-&a`: `(&a + &b)?`, a new array where they are newest: see
///   [`ops`](crate::ops#operators). `a += &b`: [`ops::add`](crate::ops::add) into an existing
///   array, [`ops::scaled_add`](crate::ops::scaled_add), or
///   [`Elementwise`](crate::ops::Elementwise) with [`InOut`](crate::InOut).
/// - `a.sum()`, `a.slice(..)`, `a.t()`: methods of the same names.
/// - The whole as a `Vec` or an ndarray: [`to_vec`](Self::to_vec),
///   [`into_array`](Self::into_array).
///
/// ```
/// use resident::SmartArray;
///
/// let mut a = SmartArray::from(vec![1.0_f32, 2.0, 3.0]);
/// a.host_mut()?[0] = 5.0;
/// let host = a.host()?;                            // copies what is stale there, once
/// assert_eq!((host[0], host.iter().sum::<f32>()), (5.0, 10.0));
/// # Ok::<(), resident::Error>(())
/// ```
///
/// # Methods by task
///
/// | task | methods |
/// |---|---|
/// | make | [`from`](#trait-implementations), [`zeros`](Self::zeros), [`ones`](Self::ones), [`full`](Self::full), [`range`](Self::range), [`linspace`](Self::linspace), [`uninit`](Self::uninit), [`from_owner`](Self::from_owner_shaped) |
/// | read on the host | [`host`](Self::host), [`get`](Self::get), [`to_vec`](Self::to_vec) |
/// | read on a device | [`gpu`](Self::gpu), [`gpu_on`](Self::gpu_on); `&array` as an argument of a launch |
/// | write on the host | [`host_mut`](Self::host_mut), [`host_overwrite`](Self::host_overwrite), [`set`](Self::set) |
/// | write on a device | [`gpu_mut`](Self::gpu_mut), [`gpu_overwrite`](Self::gpu_overwrite), [`fill`](Self::fill); `&mut array` |
/// | copy to another array | [`assign`](Self::assign), [`try_clone`](Self::try_clone), [`to_contiguous`](Self::to_contiguous) |
/// | copy early | [`prefetch`](Self::prefetch), [`prefetch_host`](Self::prefetch_host), [`snapshot_on`](Self::snapshot_on) |
/// | parts and other shapes | [`slice`](Self::slice), [`slice_mut`](Self::slice_mut), [`t`](Self::t), [`reshape`](Self::reshape), [`axis_iter`](Self::axis_iter) |
/// | one number of all | [`sum`](Self::sum), [`max`](Self::max), [`std`](Self::std), [`dot`](Self::dot), and the functions of [`ops`](crate::ops) |
/// | ask, without copying | [`shape`](Self::shape), [`residency`](Self::residency), [`traffic`](Self::traffic) |
/// | free memory, pin it | [`release_on`](Self::release_on), [`release_host`](Self::release_host), [`page_lock`](Self::page_lock); [`discard`](Self::discard) |
/// | change its size | make another, and [`assign`](Self::assign) the common part, where it is newest: `b.slice_mut(s![..n]).assign(&a.slice(s![..n]))` |
/// | look while it changes | [`watch`](Self::watch) |
/// | give it back | [`into_array`](Self::into_array), [`into_device`](Self::into_device) |
///
/// # Memory
///
/// The host gets memory for the whole array when any part of it is first used there. A device of
/// which only parts of a large array are used gets memory for these parts, rounded to pages, under
/// one address; else for the whole array, as do GPUs whose driver has no such memory. It keeps the
/// memory until the array drops or [`release_on`](Self::release_on) frees it. A full device makes
/// room by itself: it frees what was used least recently, and first copies to the host what only it
/// has ([`Device::set_memory_limit`]). So an array larger than a device is used there tile by tile.
///
/// A device address is constant until the memory there is freed, by `release_on` or for room. The
/// address of the host's memory is constant until [`release_host`](Self::release_host), except that
/// the first write moves the contents of an owner ([`from_owner`](Self::from_owner_shaped)).
///
/// Many threads may read the contents at once; if several of them need the same transfer, it is
/// made once. State changes when a guard is created, so leaking a guard is safe and loses no
/// update. Dropping an array does not wait.
pub struct SmartArray<T: Element, D: Dimension> {
    storage: Owner,
    layout: Layout<D>,
    element: PhantomData<T>,
}

/// # Make an array
///
/// An ndarray, a `Vec`, a slice or an iterator becomes one by `SmartArray::from` or `collect`.
impl<T: Element, D: Dimension> SmartArray<T, D> {
    /// An array whose bytes are all zero, as a constant: the host's copy and each device's copy are
    /// filled in place at first use. A fill is not a transfer. Uses no device and allocates
    /// nothing.
    ///
    /// `shape` is as for ndarray's constructors: `100`, `(3, 4)`, `[2, 3, 4]`, in row-major order,
    /// or column-major with `.f()`.
    ///
    /// ```
    /// use resident::{SmartArray, Validity, ndarray::ShapeBuilder};
    ///
    /// let grid = SmartArray::<f32, _>::zeros((3, 4));
    /// assert_eq!(grid.residency().host(), Validity::Absent);
    /// assert_eq!(grid.host()?.sum(), 0.0);      // allocates and fills the host's copy
    /// assert_eq!(SmartArray::<f32, _>::zeros((3, 4).f()).strides(), [1, 3]);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// Like ndarray's constructors, if the shape overflows an `isize`, in elements or in bytes.
    #[track_caller]
    pub fn zeros(shape: impl ShapeBuilder<Dim = D>) -> Self {
        Self::constant(shape, T::zeroed(), call_site())
    }

    /// An array of ones, as a constant: see [`zeros`](Self::zeros).
    ///
    /// ```
    /// let weights = resident::SmartArray::<f64, _>::ones((2, 3));
    /// assert_eq!(weights.host()?.sum(), 6.0);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// As [`zeros`](Self::zeros).
    #[track_caller]
    pub fn ones(shape: impl ShapeBuilder<Dim = D>) -> Self
    where
        T: One,
    {
        Self::constant(shape, T::one(), call_site())
    }

    /// An array whose elements are all `value`, as a constant: see [`zeros`](Self::zeros).
    ///
    /// ```
    /// let distances = resident::SmartArray::full((100, 100), f32::INFINITY);
    /// assert_eq!(distances.get((7, 9))?, f32::INFINITY);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// As [`zeros`](Self::zeros).
    #[track_caller]
    pub fn full(shape: impl ShapeBuilder<Dim = D>, value: T) -> Self {
        Self::constant(shape, value, call_site())
    }

    /// An array without contents or memory, for results. The array tracks which elements were
    /// written; reading one that was not returns [`Uninitialised`](crate::Error::Uninitialised). An
    /// access that overwrites ([`Out`](crate::Out), `host_overwrite`, `gpu_overwrite`) marks its
    /// whole part as written.
    ///
    /// ```
    /// use resident::{Error, SmartArray, ndarray::s};
    ///
    /// let mut result = SmartArray::<f32, _>::uninit((2, 100));
    /// result.slice_mut(s![0, ..]).host_overwrite()?.fill(1.0);
    /// assert_eq!(result.slice(s![0, ..]).host()?.sum(), 100.0);
    /// assert!(matches!(result.host(), Err(Error::Uninitialised { .. })));   // row 1
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// As [`zeros`](Self::zeros).
    #[inline]
    #[track_caller]
    pub fn uninit(shape: impl ShapeBuilder<Dim = D>) -> Self {
        Self::make(Layout::of_shape::<T>(shape), Origin::Uninitialised, call_site())
    }

    /// [`uninit`](Self::uninit) in the shape and axis order of another array or view, of any
    /// element type. If the other array or view has gaps, the new array is row-major. As NumPy's
    /// `empty_like`.
    ///
    /// ```
    /// use resident::{SmartArray, ndarray::{ShapeBuilder, s}};
    ///
    /// let image = SmartArray::<u8, _>::zeros((480, 640).f());
    /// let edges = SmartArray::<f32, _>::uninit_like(&image);
    /// assert_eq!((edges.shape(), edges.strides()), (image.shape(), image.strides()));
    /// let tile = SmartArray::<f32, _>::uninit_like(&image.slice(s![..100, ..]));
    /// assert_eq!((tile.shape(), tile.strides()), (&[100, 640][..], &[640, 1][..]));
    /// ```
    ///
    /// # Panics
    ///
    /// As [`zeros`](Self::zeros): a view may repeat elements, or have smaller ones.
    #[track_caller]
    #[must_use]
    pub fn uninit_like<U: Element>(other: &impl AsView<U, D>) -> Self {
        Self::make(Self::packed(other.as_view().part().layout), Origin::Uninitialised, call_site())
    }

    /// [`zeros`](Self::zeros) in the shape and axis order of another array or view, as
    /// [`uninit_like`](Self::uninit_like). As NumPy's `zeros_like`.
    ///
    /// ```
    /// use resident::SmartArray;
    ///
    /// let image = SmartArray::<u8, _>::ones((480, 640));
    /// let sums = SmartArray::<u64, _>::zeros_like(&image);
    /// assert_eq!((sums.shape(), sums.host()?.sum()), (image.shape(), 0));
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// As [`uninit_like`](Self::uninit_like).
    #[track_caller]
    #[must_use]
    pub fn zeros_like<U: Element>(other: &impl AsView<U, D>) -> Self {
        Self::make(
            Self::packed(other.as_view().part().layout),
            Origin::Constant(bytes_of(&T::zeroed())),
            call_site(),
        )
    }
}

impl<T: Element, D: Dimension> SmartArray<T, D> {
    /// An array without contents or memory: see [`uninit`](Self::uninit).
    #[track_caller]
    pub(crate) fn uninit_at(shape: impl ShapeBuilder<Dim = D>, site: CallSite) -> Self {
        Self::make(Layout::of_shape::<T>(shape), Origin::Uninitialised, site)
    }

    /// One element, for a call of the program at `site`.
    pub(crate) fn get_at(&self, index: usize, site: CallSite) -> Result<T> {
        self.part().get(&[index], site).at(site)
    }

    /// A constant: see [`full`](Self::full).
    #[track_caller]
    pub(crate) fn full_at(shape: impl ShapeBuilder<Dim = D>, value: T, site: CallSite) -> Self {
        Self::constant(shape, value, site)
    }

    /// An array without contents or memory, in the shape of `layout`, and in its axis order if it
    /// has no gaps.
    pub(crate) fn uninit_in(layout: &Layout<D>, site: CallSite) -> Result<Self> {
        expect_fits::<T>(layout.shape(), site)?;
        Ok(Self::make(Self::packed(layout), Origin::Uninitialised, site))
    }

    /// As [`uninit_in`](Self::uninit_in), of contents that nothing reads after the operation that
    /// writes them.
    pub(crate) fn temporary_in(layout: &Layout<D>, site: CallSite) -> Result<Self> {
        expect_fits::<T>(layout.shape(), site)?;
        let layout = Self::packed(layout);
        let storage = Storage::temporary::<T>(Self::order_of(&layout), layout.shape(), site);
        Ok(Self { storage: Owner(storage), layout, element: PhantomData })
    }

    /// An array without contents or memory, with the axes in this order, for a call of the program
    /// at `site`.
    pub(crate) fn uninit_in_order(dim: D, order: Order, site: CallSite) -> Result<Self> {
        let layout = Self::layout_in_order(dim, order, site)?;
        Ok(Self::make(layout, Origin::Uninitialised, site))
    }

    /// A layout in this order of the axes, without gaps.
    fn layout_in_order(dim: D, order: Order, site: CallSite) -> Result<Layout<D>> {
        expect_fits::<T>(dim.slice(), site)?;
        let is_column_major = matches!(order, Order::ColumnMajor);
        Ok(Layout::of_shape::<T>(dim.set_f(is_column_major)))
    }

    /// The same array with another layout of all its elements.
    pub(super) fn with_layout<E: Dimension>(self, layout: Layout<E>) -> SmartArray<T, E> {
        SmartArray { storage: self.storage, layout, element: PhantomData }
    }

    /// Frees the memory on other devices than this one, which has the newest contents.
    pub(super) fn release_other_copies(&self, device: &Device, site: CallSite) -> Result<()> {
        let others: Vec<Device> = {
            let state = self.storage.lock();
            state
                .devices()
                .map(|(_, other)| other.clone())
                .filter(|other| other != device)
                .collect()
        };
        let request = self.request(Access::Read, Cause::Evict, "into_device", site);
        others.iter().try_for_each(|other| transfer::release_on(&request, other))
    }

    #[track_caller]
    fn constant(shape: impl ShapeBuilder<Dim = D>, value: T, site: CallSite) -> Self {
        Self::make(Layout::of_shape::<T>(shape), Origin::Constant(bytes_of(&value)), site)
    }

    #[inline]
    #[track_caller]
    fn make(layout: Layout<D>, origin: Origin, site: CallSite) -> Self {
        let storage = Storage::new::<T>(Self::order_of(&layout), layout.shape(), origin, site);
        Self { storage: Owner(storage), layout, element: PhantomData }
    }

    /// The memory order of a new array.
    fn order_of(layout: &Layout<D>) -> MemoryOrder {
        let (memory_order, _) = adopt::memory_order::<T>(layout.shape(), layout.strides())
            .unwrap_or_else(|| unreachable!("a new array has no gaps: {:?}", layout.strided()));
        memory_order
    }

    /// An array whose contents are in memory of `stream`'s device once the work queued on the
    /// stream so far is complete.
    #[cfg(feature = "cuda")]
    pub(crate) fn over_device(dim: D, stream: Stream, address: Address, site: CallSite) -> Self {
        Self::over_memory(Layout::of_shape::<T>(dim), stream, address, site)
    }

    /// As [`over_device`](Self::over_device), with a layout without gaps.
    pub(super) fn over_memory(
        layout: Layout<D>,
        stream: Stream,
        address: Address,
        site: CallSite,
    ) -> Self {
        let device = stream.device();
        let array = Self::make(layout, Origin::Device(stream, address), site);
        let bytes = array.storage.memory_order().len_bytes();
        audit::note_memory(MemoryNotice::Allocation, &array.storage, &device, bytes, site);
        audit::report_recorded();
        array
    }

    /// Copies the newest contents to `stream`'s device and gives that device's memory to the
    /// caller, who must free it after the work queued on the stream. `None` if the array has no
    /// bytes.
    #[cfg(feature = "cuda")]
    pub(crate) fn take_device_memory(
        self,
        stream: &Stream,
        site: CallSite,
    ) -> Result<Option<Address>> {
        // What the caller gives away must not be lost because a copy is denied.
        let _allowed = audit::allow(Implicit::ALL);
        // Nothing may be queued with this memory behind the acquisition.
        transfer::finish_watches(&self.storage);
        self.storage.lock().become_explicit();
        self.leave_host_memory(site)?;
        // While the guard lives, the copy is not evicted.
        let guard = self.part().gpu_mut_on(Access::ReadWrite, stream, site)?;
        let memory = transfer::take_memory(&self.storage, stream.device_ref(), site);
        drop(guard);
        Ok(memory)
    }

    /// The current stream of the first GPU that has a copy.
    #[cfg(feature = "cuda")]
    pub(crate) fn stream_of_a_copy(&self) -> Option<Stream> {
        let state = self.storage.lock();
        state
            .devices()
            .map(|(_, device)| device)
            .find(|device| device.kind() == DeviceKind::Cuda)
            .map(Device::current_stream)
    }

    /// The array's name for messages.
    #[cfg(feature = "cuda")]
    pub(crate) fn display_name(&self) -> String {
        self.storage.named()
    }

    pub(super) fn adopted(array: Array<T, D>, site: CallSite) -> Self {
        let (layout, memory_order, origin) = adopt::adopt(array);
        Self::over(layout, memory_order, origin, site)
    }

    /// An array with this layout over memory of its own.
    pub(super) fn over(
        layout: Layout<D>,
        memory_order: MemoryOrder,
        origin: Origin,
        site: CallSite,
    ) -> Self {
        let storage = Storage::new::<T>(memory_order, layout.shape(), origin, site);
        Self { storage: Owner(storage), layout, element: PhantomData }
    }

    /// The array's name, in quotation marks if the program gave it.
    pub(super) fn label(&self) -> String {
        self.storage.named()
    }

    pub(super) fn cloned(source: Part<'_, '_, T, D>, site: CallSite) -> Result<Self> {
        expect_fits::<T>(source.layout.shape(), site)?;
        Self::cloned_in(Self::packed(source.layout), source, site)
    }

    /// A copy in this order of the axes, without gaps.
    pub(super) fn cloned_in_order(
        order: Order,
        source: Part<'_, '_, T, D>,
        site: CallSite,
    ) -> Result<Self> {
        let layout = Self::layout_in_order(source.layout.dim().clone(), order, site)?;
        Self::cloned_in(layout, source, site)
    }

    fn cloned_in(layout: Layout<D>, source: Part<'_, '_, T, D>, site: CallSite) -> Result<Self> {
        let clone = Self::make(layout, Origin::Uninitialised, site);
        if let Some(name) = source.storage.given_name() {
            clone.storage.set_name(&name);
        }
        if source.layout.is_broadcast() {
            clone.part().assign(source, Target::WhereItLives, site)?;
        } else {
            transfer::clone_into(clone.part().stored_view(), source.stored_view(), site)?;
        }
        Ok(clone)
    }

    /// The layout of a copy without gaps: in the same axis order if this one has no gaps, else
    /// row-major.
    #[track_caller]
    fn packed(layout: &Layout<D>) -> Layout<D> {
        match adopt::memory_order::<T>(layout.shape(), layout.strides()) {
            Some((_, offset)) => {
                // The shape is checked, because the other array may have smaller elements, so that
                // the same shape needs fewer bytes.
                assert_fits::<T>(layout.shape());
                layout.clone().with_offset(offset)
            }
            None => Layout::of_shape::<T>(layout.dim().clone()),
        }
    }
}

/// # Names
impl<T: Element, D: Dimension> SmartArray<T, D> {
    /// Names the array in errors, reports and events.
    ///
    /// ```
    /// let photo = resident::SmartArray::<u8, _>::uninit((3, 4)).named("photo");
    /// assert_eq!(&*photo.name(), "photo");
    /// assert!(photo.host().unwrap_err().to_string().contains("\"photo\""));
    /// ```
    #[must_use]
    pub fn named(self, name: impl AsRef<str>) -> Self {
        self.storage.set_name(name.as_ref());
        self
    }

    /// Names the array anew: see [`named`](Self::named). Reports keep the name that the array had
    /// at each copy.
    ///
    /// ```
    /// let (mut now, mut next) = [(); 2].map(|()| resident::SmartArray::<f32, _>::zeros(9)).into();
    /// std::mem::swap(&mut now, &mut next);
    /// now.set_name("now");
    /// assert_eq!(&*now.name(), "now");
    /// ```
    pub fn set_name(&mut self, name: impl AsRef<str>) {
        self.storage.set_name(name.as_ref());
    }
}

/// # The whole array, as a view or another value
impl<T: Element, D: Dimension> SmartArray<T, D> {
    /// The same array with the number of axes known only when the program runs, as ndarray's
    /// `into_dyn`. Copies nothing.
    ///
    /// ```
    /// use resident::{SmartArray, ndarray::IxDyn};
    ///
    /// let all: Vec<SmartArray<f32, IxDyn>> =
    ///     vec![SmartArray::zeros((2, 3)).into_dyn(), SmartArray::zeros(7).into_dyn()];
    /// assert_eq!((all[0].ndim(), all[1].ndim()), (2, 1));
    /// ```
    #[must_use]
    pub fn into_dyn(self) -> SmartArray<T, IxDyn> {
        let layout = self.layout.with_any_dim();
        self.with_layout(layout)
    }

    /// The contents as an owned ndarray array. An adopted array is returned with its allocation,
    /// axis order and strides. Downloads stale bytes, waits for queued work that uses the host's
    /// copy, and frees device copies. Nothing is copied within the host, with one exception: if a
    /// device may still access this memory, because the device died or the driver did not unpin it,
    /// the elements are copied to new memory.
    ///
    /// ```
    /// use resident::{SmartArray, ndarray::Array2};
    ///
    /// let array = Array2::<f32>::ones((100, 100));
    /// let memory = array.as_ptr();
    /// let mut smart = SmartArray::from(array);
    /// smart.host_mut()?[[0, 0]] = 5.0;
    /// let array = smart.into_array()?;
    /// assert_eq!((array.as_ptr(), array[[0, 0]]), (memory, 5.0));   // the same allocation
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`host`](Self::host); an error drops the array. To keep it, call `host` first.
    #[track_caller]
    pub fn into_array(self) -> Result<Array<T, D>> {
        let site = call_site();
        // What the caller gives away must not be lost because a copy is denied.
        let _allowed = audit::allow(Implicit::ALL);
        drop(self.part().host(site)?);
        transfer::finish_watches(&self.storage);
        if self.is_empty() || size_of::<T>() == 0 {
            return Ok(self.without_bytes());
        }
        // Waits for work that reads the host's copy, since the library gives up its memory.
        drop(self.part().host_mut(Access::ReadWrite, site)?);
        transfer::unshare_host(&self.storage);
        let host = self.storage.lock().host.take();
        let copied = host.as_ref().and_then(|buffer| buffer.copy_if_leaked::<T>());
        match copied.unwrap_or_else(|| host.and_then(|host| sole_owner(host).unregistered::<T>())) {
            Some(buffer) => Ok(adopt::array_over(buffer, &self.layout)),
            None => Err(transfer::host_full(&self.storage).at(site)),
        }
    }

    /// `into_array` for an array without elements, or whose elements have no bytes.
    fn without_bytes(&self) -> Array<T, D> {
        let host = self.storage.lock().host.take_if(|buffer| !buffer.is_read_only());
        match host {
            Some(buffer) if self.is_empty() => adopt::array_over(sole_owner(buffer), &self.layout),
            _ => adopt::array_without_bytes(self.raw_dim()),
        }
    }

    /// A shared view of the whole array, for functions that take a part.
    ///
    /// ```
    /// use resident::{Result, SmartArray, SmartView, ndarray::{Ix2, s}};
    ///
    /// fn total(part: SmartView<'_, f32, Ix2>) -> Result<f32> { Ok(part.host()?.sum()) }
    ///
    /// let array = SmartArray::<f32, _>::ones((4, 5));
    /// assert_eq!((total(array.view())?, total(array.slice(s![..2, ..]))?), (20.0, 10.0));
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use]
    pub fn view(&self) -> SmartView<'_, T, D> {
        SmartView::new(&self.storage, Coherent, self.layout.clone())
    }

    /// An exclusive view of the whole array, for functions that take a part.
    ///
    /// ```
    /// use resident::{Result, SmartArray, SmartViewMut, ndarray::{Ix2, s}};
    ///
    /// fn clear(mut part: SmartViewMut<'_, f32, Ix2>) -> Result<()> { part.fill(0.0) }
    ///
    /// let mut array = SmartArray::<f32, _>::ones((4, 5));
    /// clear(array.slice_mut(s![..2, ..]))?;
    /// assert_eq!(array.host()?.sum(), 10.0);
    /// clear(array.view_mut())?;
    /// assert_eq!(array.host()?.sum(), 0.0);
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use]
    pub fn view_mut(&mut self) -> SmartViewMut<'_, T, D> {
        SmartViewMut::new(&self.storage, Coherent, self.layout.clone())
    }

    #[inline]
    pub(super) fn part(&self) -> Part<'_, '_, T, D> {
        Part::of(&self.storage, &self.layout)
    }
}

/// Refuses a shape whose elements no memory has room for: a view may repeat elements, or have
/// smaller ones.
pub(super) fn expect_fits<T: Element>(shape: &[usize], site: CallSite) -> Result<()> {
    if fits::<T>(shape) {
        return Ok(());
    }
    let bytes = |bytes: u64, len: &usize| bytes.saturating_mul(*len as u64);
    let requested = shape.iter().fold(size_of::<T>() as u64, bytes);
    let element = std::any::type_name::<T>;
    let name = AutomaticName { element, shape: SmallVec::from_slice(shape), made_at: site };
    Err(Error::host_full(&name.to_string(), requested).at(site))
}

/// The owner of an array's memory. Queued work may have other handles of it.
struct Owner(Arc<Storage>);

impl Deref for Owner {
    type Target = Storage;

    #[inline]
    fn deref(&self) -> &Storage {
        &self.0
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        audit::record_end(&self.0);
        transfer::release(&self.0);
    }
}

/// Prints name, shape and residency; copies nothing.
impl<T: Element, D: Dimension> fmt::Debug for SmartArray<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SmartArray({}, {:?}, {})", self.storage.named(), self.shape(), self.residency())
    }
}

coherent_arguments!(SmartArray<T, D>);

#[cfg(test)]
mod tests;
