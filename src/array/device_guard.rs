//! What an access on a device hands out. Nothing happens when a guard is dropped but that its
//! device learns where foreign work ends: forgetting one is never unsound and loses no update.

use std::fmt;
use std::marker::PhantomData;
#[cfg(feature = "cuda")]
use std::sync::Arc;
use std::sync::OnceLock;

use ndarray::Dimension;

use super::layout::Layout;
use crate::audit::Cause;
use crate::call_site::CallSite;
use crate::coherence::Location;
use crate::device::{Device, Stream};
use crate::storage::Storage;
use crate::transfer::{self, Request};

/// What both guards of a device's side are: a part of one device's copy, on one stream.
pub(crate) struct HandedOut<'a, D> {
    pub(super) storage: &'a Storage,
    pub(super) layout: Layout<D>,
    /// Of the element with index 0, 0, ...
    pub(super) address: u64,
    pub(super) stream: u64,
    pub(super) kept: Kept,
}

/// The stream of a guard itself: of one without a byte, which leaves no mark by which its array
/// would keep the stream, or where somebody asked for it by reference.
pub(super) type Kept = OnceLock<Box<Stream>>;

impl<'a, D: Dimension> HandedOut<'a, D> {
    /// `base` is the address of the whole array's copy.
    #[inline]
    pub(super) fn new<T>(
        storage: &'a Storage,
        layout: &Layout<D>,
        base: u64,
        stream: &Stream,
    ) -> Self {
        let has_bytes = size_of::<T>() > 0 && layout.len() > 0;
        let kept = if has_bytes { Kept::new() } else { Kept::from(Box::new(stream.clone())) };
        let address = base + (layout.offset() * size_of::<T>()) as u64;
        Self { storage, layout: layout.clone(), address, stream: stream.id().0, kept }
    }

    fn stream(&self) -> Stream {
        match self.kept.get() {
            Some(stream) => Stream::clone(stream),
            None => stream_of(self.storage, self.stream),
        }
    }
}

#[cfg(feature = "cuda")]
impl<D: Dimension> HandedOut<'_, D> {
    /// Its stream, for as long as the guard lives.
    pub(crate) fn kept_stream(&self) -> &Stream {
        self.kept.get_or_init(|| Box::new(stream_of(self.storage, self.stream)))
    }

    pub(crate) fn layout(&self) -> &Layout<D> {
        &self.layout
    }

    /// Where the address stands in memory, for as long as the guard lives: what a launch reads its
    /// argument from.
    pub(crate) fn address(&self) -> &u64 {
        &self.address
    }

    /// The address of the element that lies lowest.
    pub(crate) fn lowest_address(&self) -> u64 {
        let above = self.layout.offset() as u64 - self.layout.strided().lowest();
        self.address - above * self.storage.memory_order().element_bytes() as u64
    }

    /// The array's name for messages.
    pub(crate) fn named(&self) -> String {
        self.storage.named()
    }

    pub(crate) fn array_name(&self) -> Arc<str> {
        self.storage.name()
    }
}

/// What both guards of a device's side show.
macro_rules! handed_out {
    () => {
        /// Elements.
        #[must_use]
        pub fn len(&self) -> usize {
            self.part.layout.len()
        }

        /// Whether there are none.
        #[must_use]
        pub fn is_empty(&self) -> bool {
            self.len() == 0
        }

        /// Elements along each axis.
        #[must_use]
        pub fn shape(&self) -> &[usize] {
            self.part.layout.shape()
        }

        /// Elements from one to the next along each axis, below zero where an axis runs backwards.
        #[must_use]
        pub fn strides(&self) -> &[isize] {
            self.part.layout.strides()
        }

        /// The device's own address, in bytes, of the element with index 0, 0, ... It stays the
        /// same until the array drops, is released there, or makes room for another.
        #[must_use]
        pub fn address(&self) -> u64 {
            self.part.address
        }

        /// The stream that this access is ordered on: the one to queue foreign work on.
        #[must_use]
        pub fn stream(&self) -> Stream {
            self.part.stream()
        }

        /// The device whose copy this is.
        #[must_use]
        pub fn device(&self) -> Device {
            self.stream().device()
        }
    };
}

/// A device's copy of a part, to be read by foreign work on [`stream`](Self::stream): launches and
/// library calls that this crate does not know of. By [`SmartArray::gpu`](crate::SmartArray::gpu)
/// and [`gpu_on`](crate::SmartArray::gpu_on).
///
/// Work queued on that stream is ordered behind what wrote the bytes, and what writes them later
/// anywhere is ordered behind that work. Many such guards of one array may live at once, on any
/// streams.
///
/// ```
/// use resident::{Device, SmartArray};
///
/// let device = Device::cpu();
/// let (one, other) = (device.new_stream()?, device.new_stream()?);
/// let table = SmartArray::from(vec![1_u32; 100]);
/// let (first, second) = (table.gpu_on(&one)?, table.gpu_on(&other)?);
/// assert_eq!((first.address(), first.len()), (second.address(), 100));  // one copy, for both
/// assert_eq!((first.stream(), second.stream()), (one.clone(), other.clone()));
/// # Ok::<(), resident::Error>(())
/// ```
#[must_use = "hand this guard to foreign work; to bring contents to a device ahead of their use take `prefetch`, or `drop` the guard"]
pub struct DeviceRef<'a, T, D> {
    pub(crate) part: HandedOut<'a, D>,
    pub(super) element: PhantomData<&'a T>,
}

impl<T, D: Dimension> DeviceRef<'_, T, D> {
    handed_out!();
}

/// A device's copy of a part, to be written by foreign work on [`stream`](Self::stream). By
/// [`SmartArray::gpu_mut_on`](crate::SmartArray::gpu_mut_on),
/// [`gpu_overwrite_on`](crate::SmartArray::gpu_overwrite_on) and their like, whose examples show
/// it.
///
/// It is the newest copy from the moment it was handed out. Later uses elsewhere are ordered behind
/// all work queued on the stream before this guard drops; if it is forgotten, behind all work
/// queued there before they are. Dropping it waits for nothing.
#[must_use = "hand this guard to foreign work, which ends where the guard is dropped; where there is no such work, `drop` it"]
pub struct DeviceMut<'a, T, D: Dimension> {
    pub(crate) part: HandedOut<'a, D>,
    pub(super) place: Location,
    pub(super) site: CallSite,
    pub(super) element: PhantomData<&'a mut T>,
}

impl<T, D: Dimension> DeviceMut<'_, T, D> {
    handed_out!();
}

/// A guard's stream: the array keeps it for as long as the guard's own mark stands, which nothing
/// replaces while its borrow lasts.
fn stream_of(storage: &Storage, id: u64) -> Stream {
    let stream = storage.lock().find_stream(id).map(|(_, stream)| stream.clone());
    stream.unwrap_or_else(|| unreachable!("an array forgot the stream of an open guard"))
}

impl<T, D: Dimension> Drop for DeviceMut<'_, T, D> {
    #[inline]
    fn drop(&mut self) {
        let HandedOut { storage, layout, stream, .. } = &self.part;
        if layout.len() as u64 == storage.memory_order().len() {
            return transfer::close_whole(storage, *stream, self.place);
        }
        layout.with_selection(storage.memory_order(), |selection| {
            let request = Request {
                storage,
                selection,
                cause: Cause::Gpu,
                operation: "gpu_mut",
                site: self.site,
            };
            transfer::close_write(&request, *stream, self.place);
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
