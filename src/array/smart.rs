//! The array that stays where it is used.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use ndarray::{Array, Axis, Dimension, IntoDimension, ShapeBuilder, SliceArg};
use num_traits::One;

use super::guard::{DeviceMut, DeviceRef};
use super::host_guard::{HostMut, HostRef};
use super::layout::{Layout, assert_fits};
use super::methods::{reading, writing};
use super::multi_slice::MultiSlice;
use super::owned;
use super::part::{Line, Part};
use super::pending::{Pending, sole_owner};
use super::questions::asking;
use super::view::{AsView, SmartView, SmartViewMut};
use crate::access::Access;
use crate::audit::{Cause, Residency, Traffic};
use crate::backend::Bytes;
#[cfg(feature = "cuda")]
use crate::backend::{Address, DeviceKind};
use crate::call_site::{CallSite, call_site};
use crate::device::{Device, Stream};
use crate::element::Element;
use crate::error::Result;
use crate::storage::{MemoryOrder, Origin, Selection, Storage};
use crate::transfer::{self, Request, Target};

/// An n-dimensional array with one copy on the host and one on each device that used it, kept
/// coherent region by region.
///
/// Nothing moves until somebody looks: [`host`](Self::host) brings down what is stale on the host,
/// [`gpu_on`](Self::gpu_on) and kernel launches bring up what is stale on a device, and only the
/// bytes of the part that is asked for. It descends from Numba's `SmartArray`, which knew one GPU
/// and whole arrays.
///
/// | call | what moves, at most | afterwards |
/// |---|---|---|
/// | `host()`, `gpu()` | stale parts, to there | both sides valid |
/// | `host_mut()`, `gpu_mut()` | stale parts, to there | that side newest |
/// | `host_overwrite()`, `gpu_overwrite()`, `fill(v)` | nothing | that side newest |
///
/// ```
/// use resident::{Device, SmartArray, ndarray::{Array2, s}};
///
/// let _here = Device::cpu().enter();
/// let mut field = SmartArray::from(Array2::<f32>::zeros((512, 512)));   // adopts the allocation
/// drop(field.gpu_mut()?);                                               // up: a kernel would write it now
/// let row = field.slice(s![7, ..]).host()?.sum();                       // down: one row
/// assert_eq!((row, field.traffic().to_host.bytes), (0.0, 512 * 4));
/// # Ok::<(), resident::Error>(())
/// ```
///
/// A place gets memory for the whole array when any part of it is first used there, and keeps it
/// until the array drops, [`release_on`](Self::release_on) or, where a device is full and the host
/// has all that the device has, until another array needs the room.
///
/// Its contents may be read by many threads at once; a transfer that several of them need happens
/// once. A state changes when an access is handed out, never when a guard drops, so forgetting a
/// guard is never unsound and loses no update. Dropping an array waits for nothing.
pub struct SmartArray<T: Element, D: Dimension> {
    storage: Arc<Storage>,
    layout: Layout<D>,
    element: PhantomData<T>,
}

impl<T: Element, D: Dimension> SmartArray<T, D> {
    /// All zero bytes, as a constant: each place fills its own copy at first use, which is no
    /// transfer. No device is asked, and there is no memory yet.
    ///
    /// The shape is what ndarray's constructors take: `100`, `(3, 4)`, `[2, 3, 4]`, with the first
    /// axis slowest, or the last with `.f()`.
    ///
    /// ```
    /// use resident::{SmartArray, Validity, ndarray::ShapeBuilder};
    ///
    /// let grid = SmartArray::<f32, _>::zeros((3, 4));
    /// assert_eq!(grid.residency().host(), Validity::Absent);
    /// assert_eq!(grid.host()?.sum(), 0.0);                                  // the host's copy is made and filled here
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

    /// All one, as a constant: see [`zeros`](Self::zeros).
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

    /// All `value`, as a constant: see [`zeros`](Self::zeros).
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

    /// Without contents, and without memory anywhere yet: for results. Which elements were written
    /// is kept track of, and reading one that was not is
    /// [`Uninitialised`](crate::Error::Uninitialised). An overwriting access ([`Out`](crate::Out),
    /// `host_overwrite`, `gpu_overwrite`) counts as having written its whole part.
    ///
    /// ```
    /// use resident::{Error, SmartArray, ndarray::s};
    ///
    /// let mut result = SmartArray::<f32, _>::uninit((2, 100));
    /// result.slice_mut(s![0, ..]).host_overwrite()?.fill(1.0);
    /// assert_eq!(result.slice(s![0, ..]).host()?.sum(), 100.0);
    /// assert!(matches!(result.host(), Err(Error::Uninitialised { .. })));   // the other row
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// As [`zeros`](Self::zeros).
    #[track_caller]
    pub fn uninit(shape: impl ShapeBuilder<Dim = D>) -> Self {
        Self::make(Layout::of_shape::<T>(shape), Origin::Uninitialised, call_site())
    }

    /// [`uninit`](Self::uninit) in the shape and axis order of another array or view, of whatever
    /// element; the like of a part with gaps has its first axis slowest. As NumPy's `empty_like`.
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
    #[track_caller]
    #[must_use]
    pub fn zeros_like<U: Element>(other: &impl AsView<U, D>) -> Self {
        Self::make(
            Self::packed(other.as_view().part().layout),
            Origin::Constant(bytes_of(&T::zeroed())),
            call_site(),
        )
    }

    #[track_caller]
    fn constant(shape: impl ShapeBuilder<Dim = D>, value: T, site: Line) -> Self {
        Self::make(Layout::of_shape::<T>(shape), Origin::Constant(bytes_of(&value)), site)
    }

    #[track_caller]
    fn make(layout: Layout<D>, origin: Origin, site: Line) -> Self {
        assert_fits::<T>(layout.shape());
        let element_bytes = u32::try_from(size_of::<T>()).unwrap_or(u32::MAX);
        let (memory_order, _) = MemoryOrder::of(layout.shape(), layout.strides(), element_bytes)
            .unwrap_or_else(|| {
                unreachable!(
                    "an array made here has no gaps: {:?}, {:?}",
                    layout.shape(),
                    layout.strides()
                )
            });
        let storage = Storage::new::<T>(memory_order, layout.shape(), origin, site);
        Self { storage, layout, element: PhantomData }
    }

    /// An array whose contents are in memory of `stream`'s device, behind what is queued on the
    /// stream so far.
    #[cfg(feature = "cuda")]
    pub(crate) fn over_device(dim: D, stream: Stream, address: Address, site: Line) -> Self {
        Self::make(Layout::of_shape::<T>(dim), Origin::Device(stream, address), site)
    }

    /// Brings the newest contents to `stream`'s device and hands its memory out, to be freed by the
    /// caller behind what is queued on the stream. `None` if the array has no byte.
    #[cfg(feature = "cuda")]
    pub(crate) fn into_device_memory(self, stream: &Stream, site: Line) -> Result<Option<Address>> {
        drop(self.part().gpu_mut_on::<T>(Access::ReadWrite, stream, site)?);
        Ok(transfer::take_memory(&self.storage, stream.device_ref()))
    }

    /// A stream of the first GPU that has a copy.
    #[cfg(feature = "cuda")]
    pub(crate) fn stream_of_a_copy(&self) -> Option<Stream> {
        let state = self.storage.lock();
        state
            .devices()
            .map(|(_, device)| device)
            .find(|device| device.kind() == DeviceKind::Cuda)
            .map(Device::stream)
    }

    /// Its name for messages.
    #[cfg(feature = "cuda")]
    pub(crate) fn in_words(&self) -> String {
        self.storage.named()
    }

    pub(super) fn adopted(array: Array<T, D>, site: Line) -> Self {
        let (layout, memory_order, origin) = owned::adopt(array);
        let storage = Storage::new::<T>(memory_order, layout.shape(), origin, site);
        Self { storage, layout, element: PhantomData }
    }

    pub(super) fn cloned(source: Part<'_, '_, D>, site: Line) -> Result<Self> {
        let clone = Self::make(Self::packed(source.layout), Origin::Uninitialised, site);
        transfer::clone_into(clone.part().end(), source.end(), site)?;
        Ok(clone)
    }

    /// The same shape in memory of its own: in the same axis order where there are no gaps, else
    /// with the first axis slowest.
    fn packed(layout: &Layout<D>) -> Layout<D> {
        let element_bytes = u32::try_from(size_of::<T>()).unwrap_or(u32::MAX);
        match MemoryOrder::of(layout.shape(), layout.strides(), element_bytes) {
            Some((_, offset)) => layout.clone().with_offset(offset),
            None => Layout::of_shape::<T>(layout.dim().clone()),
        }
    }

    /// Gives it the name under which errors, reports and events speak of it.
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

    /// Gives the array's memory on a device back, behind its uses there. What is newest there alone
    /// comes to the host first, and that is waited for; everything else moves nothing. The next use
    /// on that device takes memory anew, at another address. Where the array has no memory there,
    /// nothing is done.
    ///
    /// ```
    /// use resident::{Device, SmartArray, Validity};
    ///
    /// let device = Device::cpu();
    /// let mut array = SmartArray::from(vec![1.0_f32; 1000]);
    /// array.gpu_overwrite_on(&device.stream())?.address();
    /// array.release_on(&device)?;                                             // 4,000 bytes come down
    /// assert_eq!(array.residency().on(&device), Validity::Absent);
    /// assert_eq!(array.traffic().to_host.bytes, 4000);
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`host`](Self::host), but for elements never written: the copy stays where it is then.
    #[track_caller]
    pub fn release_on(&mut self, device: &Device) -> Result<()> {
        transfer::release_on(&self.request(Cause::Evict, "release_on", call_site()), device)
    }

    /// The whole of it, to be served.
    fn request(&self, cause: Cause, operation: &'static str, site: CallSite) -> Request<'_> {
        Request { storage: &self.storage, selection: &Selection::Whole, cause, operation, site }
    }

    /// Locks the pages of the host's copy, for devices of the kind that is current: their copies
    /// then go straight to and from this memory, without staging, and uploads return at once. The
    /// memory stays locked until the array drops or gives it back (`into_array`). It is CUDA's
    /// `cuMemHostRegister`.
    ///
    /// Moves nothing; the host gets its memory here if it has none. Locking takes the system about
    /// a millisecond for each few MiB, and the memory can no longer be swapped out: it is worth it
    /// for arrays that go back and forth often. Memory that another library registered with CUDA is
    /// used as it is, and left to that library. What is locked for devices of this kind already
    /// stays as it is; one call for each kind locks for several.
    ///
    /// ```
    /// use resident::{Device, SmartArray};
    ///
    /// let device = Device::cpu();
    /// let _here = device.enter();
    /// let frame = SmartArray::from(vec![0_u8; 1 << 16]);
    /// frame.page_lock()?;
    /// frame.prefetch(&device.stream())?;          // read from the array itself
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`NoDevice`](crate::Error::NoDevice) if there is no current device;
    /// [`OutOfMemory`](crate::Error::OutOfMemory) if the host has no room for a first copy;
    /// [`Backend`](crate::Error::Backend) if the system locks no more (`ulimit -l`), or if a part of
    /// the memory, or of its first or last page, is registered with CUDA already;
    /// [`DeviceLost`](crate::Error::DeviceLost) if the device died. The array stays as it is then,
    /// and is staged.
    #[track_caller]
    pub fn page_lock(&self) -> Result<()> {
        transfer::page_lock(
            &self.request(Cause::Explicit, "page_lock", call_site()),
            &Device::current()?,
        )
    }

    /// The owned ndarray array: the one that was adopted, if it was, with its allocation, axis
    /// order and strides. Stale parts come down first, and what is queued that uses the host's copy
    /// is waited for; device copies are given back. Nothing is copied on the host, unless a device
    /// may still be at this memory: one that died, or one for which the driver did not unlock its
    /// pages.
    ///
    /// ```
    /// use resident::{SmartArray, ndarray::Array2};
    ///
    /// let array = Array2::<f32>::ones((100, 100));
    /// let memory = array.as_ptr();
    /// let mut smart = SmartArray::from(array);
    /// smart.host_mut()?[[0, 0]] = 5.0;
    /// let array = smart.into_array()?;
    /// assert_eq!((array.as_ptr(), array[[0, 0]]), (memory, 5.0));           // the very allocation
    /// # Ok::<(), resident::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`host`](Self::host). The array is dropped then: call `host` before, and nothing is left
    /// that could fail.
    #[track_caller]
    pub fn into_array(self) -> Result<Array<T, D>> {
        let site = call_site();
        // Wait for readers of the host memory as well: it leaves the library's hands.
        drop(self.part().host::<T>(site)?);
        if self.is_empty() || size_of::<T>() == 0 {
            return Ok(self.without_bytes());
        }
        drop(self.part().host_mut::<T>(Access::ReadWrite, site)?);
        let host = self.storage.lock().host.take();
        let rescued = host.as_ref().and_then(|buffer| buffer.rescued::<T>());
        match rescued.unwrap_or_else(|| host.and_then(|host| sole_owner(host).unlocked::<T>())) {
            Some(buffer) => Ok(owned::array_over(buffer, &self.layout)),
            None => Err(transfer::host_full(&self.storage)),
        }
    }

    /// An array whose elements take no memory: any one is as good as another.
    fn without_bytes(&self) -> Array<T, D> {
        let host = self.storage.lock().host.take();
        match host {
            Some(buffer) if self.is_empty() => owned::array_over(sole_owner(buffer), &self.layout),
            _ => Array::from_elem(self.raw_dim(), T::zeroed()),
        }
    }

    /// All of it, to be read: what functions over parts take.
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
        SmartView::new(&self.storage, self.layout.clone())
    }

    /// All of it, to be written: what functions over parts take.
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
        SmartViewMut::new(&self.storage, self.layout.clone())
    }

    #[inline]
    pub(super) fn part(&self) -> Part<'_, '_, D> {
        Part { storage: &self.storage, layout: &self.layout }
    }

    asking!();
    reading!('_);
    writing!();
}

fn bytes_of<T: Element>(value: &T) -> Bytes {
    Bytes::from_slice(bytemuck::bytes_of(value))
}

impl<T: Element, D: Dimension> Drop for SmartArray<T, D> {
    fn drop(&mut self) {
        self.storage.unregister();
        transfer::release(&self.storage);
    }
}

/// Name, shape and residency; moves nothing.
impl<T: Element, D: Dimension> fmt::Debug for SmartArray<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SmartArray({}, {:?}, {})", self.storage.named(), self.shape(), self.residency())
    }
}
