//! Guards of accesses to a device's copy. Dropping one does not wait, and leaking one is safe and
//! loses no update: state changes when a guard is created. Dropping a [`DeviceMut`] only records
//! the position in its stream at which the external work ends.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
#[cfg(feature = "cuda")]
use std::sync::Arc;
use std::sync::OnceLock;

use ndarray::Dimension;

use super::layout::Layout;
#[cfg(feature = "nccl")]
use crate::audit::Cause;
use crate::device::{Device, Stream};
#[cfg(feature = "nccl")]
use crate::error::Result;
use crate::storage::{OpenRead, Storage};
use crate::transfer;
#[cfg(feature = "nccl")]
use crate::transfer::Request;
use resident_backend::Address;
#[cfg(feature = "nccl")]
use resident_backend::call_site::CallSite;
#[cfg(feature = "nccl")]
use resident_core::Access;
use resident_core::coherence::Location;

/// A part of one device's copy, used on one stream: the state of both kinds of guard.
pub(crate) struct DevicePart<'a, D> {
    storage: &'a Storage,
    layout: Layout<D>,
    /// The address of the element with index 0, 0, ...
    address: u64,
    stream_id: u64,
    /// The stream. It is set when it is first borrowed, or at creation if the part has no bytes.
    /// Until then the array holds the stream, as part of the guard's mark.
    stream: OnceLock<Box<Stream>>,
}

impl<'a, D: Dimension> DevicePart<'a, D> {
    /// `base` is the address of the whole array's copy.
    #[inline]
    pub(super) fn new<T>(
        storage: &'a Storage,
        layout: &Layout<D>,
        base: u64,
        stream: &Stream,
    ) -> Self {
        let has_bytes = size_of::<T>() > 0 && layout.len() > 0;
        let address = base + (layout.offset() * size_of::<T>()) as u64;
        let stream_id = stream.id().0;
        let stream =
            if has_bytes { OnceLock::new() } else { OnceLock::from(Box::new(stream.clone())) };
        Self { storage, layout: layout.clone(), address, stream_id, stream }
    }

    /// The address by which the device knows the element with index 0, 0, ..., borrowed from the
    /// guard: a cudarc launch reads its argument through this reference.
    pub(crate) fn address(&self) -> &u64 {
        &self.address
    }

    /// The address for code outside of this library.
    fn external_address(&self) -> u64 {
        let address = Address(self.address);
        self.with_stream(|stream| stream.device_ref().backend().external_address(address))
    }

    fn stream(&self) -> Stream {
        self.with_stream(Stream::clone)
    }

    /// Calls `f` with the stream, perhaps with the array's lock held. The array keeps the stream as
    /// long as the guard's mark exists, and nothing replaces the mark while the guard's borrow
    /// lasts.
    fn with_stream<R>(&self, f: impl FnOnce(&Stream) -> R) -> R {
        if let Some(stream) = self.stream.get() {
            return f(stream);
        }
        match self.storage.lock().find_stream(self.stream_id) {
            Some((_, stream)) => f(stream),
            None => unreachable!("an array forgot the stream of an open guard"),
        }
    }
}

#[cfg(feature = "cuda")]
impl<D: Dimension> DevicePart<'_, D> {
    /// The stream, borrowed from the guard.
    pub(crate) fn stream_ref(&self) -> &Stream {
        self.stream.get_or_init(|| Box::new(self.with_stream(Stream::clone)))
    }

    pub(crate) fn layout(&self) -> &Layout<D> {
        &self.layout
    }

    /// The address of the lowest element, of type `T`.
    pub(crate) fn lowest_address<T>(&self) -> u64 {
        let above = self.layout.strided().below_first();
        self.address - above * size_of::<T>() as u64
    }

    /// The array's name for messages.
    pub(crate) fn display_name(&self) -> String {
        self.storage.named()
    }

    pub(crate) fn array_name(&self) -> Arc<str> {
        self.storage.name()
    }
}

/// A device's copy of a part, which external work on [`stream`](Self::stream) may read: launches
/// and library calls made outside this crate. [`SmartArray::gpu`](crate::SmartArray::gpu) and
/// [`gpu_on`](crate::SmartArray::gpu_on) return it.
///
/// Work queued on that stream is ordered after the work that wrote the bytes, and later writes of
/// the bytes, on any stream or on the host, are ordered after it. Many such guards of one array may
/// live at once, on any streams.
///
/// ```
/// use resident::{Device, SmartArray};
///
/// let device = Device::cpu();
/// let (one, other) = (device.new_stream()?, device.new_stream()?);
/// let table = SmartArray::from(vec![1_u32; 100]);
/// let (first, second) = (table.gpu_on(&one)?, table.gpu_on(&other)?);
/// assert_eq!((first.address(), first.len()), (second.address(), 100));  // one copy for both
/// assert_eq!((first.stream(), second.stream()), (one.clone(), other.clone()));
/// # Ok::<(), resident::Error>(())
/// ```
#[must_use = "pass this guard to external work; to upload contents ahead of their use, call \
              `prefetch` or `drop` the guard"]
pub struct DeviceRef<'a, T, D> {
    pub(crate) part: DevicePart<'a, D>,
    /// Notes in the array that this guard exists, without a lock when it drops.
    pub(super) _read: Option<OpenRead>,
    pub(super) element: PhantomData<&'a T>,
}

impl<T, D: Dimension> DeviceRef<'_, T, D> {
    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.part.layout.len()
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The length of each axis.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        self.part.layout.shape()
    }

    /// The stride of each axis, in elements. It is negative if the axis runs backwards.
    #[must_use]
    pub fn strides(&self) -> &[isize] {
        self.part.layout.strides()
    }

    /// The device address of the element with index 0, 0, ... The address stays the same until
    /// the array drops, or until the device's copy is released or evicted. Copies in use, as by
    /// this guard, and those of a [`DeviceArray`](crate::DeviceArray) are never evicted. An
    /// array's memory starts at a multiple of 256 bytes, unless it came from other code (a
    /// tensor of DLPack, [`with_mapped`](crate::with_mapped)), or is
    /// [one with the host's](crate::guide::configuration#one-memory-of-host-and-gpu).
    ///
    /// - *On a GPU* it is a pointer for work on the GPU: CUDA's `CUdeviceptr`.
    /// - *On [`Device::cpu`](crate::Device::cpu)* it is a pointer to memory of this process, or
    ///   0 if there are no bytes: for a library that runs on the CPU. Following it is `unsafe`:
    ///   it is valid for the elements of the part, for writes if the guard is a
    ///   [`DeviceMut`](crate::DeviceMut), once the work is over that was queued on the guard's
    ///   stream when the guard was created, and until the guard drops.
    ///   [`Stream::launch_host_function`](crate::Stream::launch_host_function) shows how to
    ///   call a function of C in that time. A kernel needs no address for this: its `.host`
    ///   body may pass the pointers of its slices to C, and nothing waits for it.
    /// - *On an [emulated](crate::Device::emulated) device* it is no pointer, but a number that
    ///   names the memory in the device's log: such a device checks all accesses, and cannot
    ///   see those of other code. Following it ends the process.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.part.external_address()
    }

    /// The stream to queue external work on: the library orders this access on it.
    #[must_use]
    pub fn stream(&self) -> Stream {
        self.part.stream()
    }

    /// The device whose copy this is.
    #[must_use]
    pub fn device(&self) -> Device {
        self.stream().device()
    }
}

/// A device's copy of a part, which external work on its [`stream`](DeviceRef::stream) may write:
/// launches and library calls made outside this crate.
/// [`SmartArray::gpu_mut_on`](crate::SmartArray::gpu_mut_on),
/// [`gpu_overwrite_on`](crate::SmartArray::gpu_overwrite_on) and similar methods return it; their
/// examples show its use.
///
/// This copy is the newest from the moment the guard is created. Later uses elsewhere are ordered
/// after all work queued on the stream before the guard drops; if the guard is leaked, after all
/// work queued on the stream before those uses. Dropping the guard does not wait.
#[must_use = "pass this guard to external work, which ends when the guard drops; if there is no \
              such work, `drop` it"]
pub struct DeviceMut<'a, T, D: Dimension> {
    read: DeviceRef<'a, T, D>,
    location: Location,
    element: PhantomData<&'a mut T>,
}

impl<'a, T, D: Dimension> DeviceMut<'a, T, D> {
    pub(super) fn new(part: DevicePart<'a, D>, location: Location) -> Self {
        let read = DeviceRef { part, _read: None, element: PhantomData };
        Self { read, location, element: PhantomData }
    }
}

/// For what a [`DeviceRef`] offers.
impl<'a, T, D: Dimension> Deref for DeviceMut<'a, T, D> {
    type Target = DeviceRef<'a, T, D>;

    #[inline]
    fn deref(&self) -> &DeviceRef<'a, T, D> {
        &self.read
    }
}

#[cfg(feature = "nccl")]
impl<T, D: Dimension> DeviceMut<'_, T, D> {
    /// Ends the guard's work at the stream's tail, as work whose failure may be recorded. The guard
    /// drops without further work.
    pub(crate) fn may_fail(&self, site: CallSite) -> Result<()> {
        let DevicePart { storage, layout, .. } = &self.read.part;
        layout.stored_in::<T>(storage).with_selection(|selection| {
            let request =
                Request::new(storage, selection, Access::ReadWrite, Cause::Gpu, "nccl", site);
            transfer::close_fallible_guard(&request, self.part.stream_ref(), self.location)
        })
    }
}

impl<T, D: Dimension> Drop for DeviceMut<'_, T, D> {
    #[inline]
    fn drop(&mut self) {
        let DevicePart { storage, layout, stream_id, .. } = &self.read.part;
        layout.stored_in::<T>(storage).with_selection(|selection| {
            transfer::close_guard(storage, selection, *stream_id, self.location);
        });
    }
}

impl<T, D: Dimension> fmt::Debug for DeviceRef<'_, T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceRef({:?} at {:#x})", self.shape(), self.address())
    }
}

impl<T, D: Dimension> fmt::Debug for DeviceMut<'_, T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceMut({:?} at {:#x} on {})", self.shape(), self.address(), self.stream())
    }
}
