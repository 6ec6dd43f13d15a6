//! One array's contents, wherever they are: its memory on the host and on devices, what is valid
//! where, and who uses it.
//!
//! The state lives here, with the allocation: views hold none of their own. `transfer` alone
//! changes it; this module keeps it consistent and publishes what the fast paths read.

mod array_state;
mod host;
mod published;

use std::any::{Any, type_name};
use std::fmt;
use std::ptr::null_mut;
use std::sync::{Arc, Weak};

use smallvec::SmallVec;

use crate::audit::registry::{self, Entry, Listed};
#[cfg(feature = "cuda")]
use crate::backend::Address;
use crate::backend::{Bytes, HostMemory, Label, failure};
use crate::call_site::CallSite;
use crate::coherence::{Coherence, Location};
use crate::device::Device;
#[cfg(feature = "cuda")]
use crate::device::Stream;
use crate::element::Element;
use crate::layout::MemoryOrder;
use crate::sync::{ArrayLevel, ShortGuard, ShortLock};

/// What `published` is built on; its test builds it on loom's.
mod atomics {
    pub(super) use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
}

pub(crate) use array_state::{ArrayState, DeviceCopy, ReadyCopy, StaleOrigin};
pub(crate) use host::HostBuffer;
use published::Published;

/// What devices align memory to.
const ALIGNMENT_MAX_BYTES: usize = 256;

/// Everything about one array but its type and its dimensions.
pub(crate) struct Storage {
    published: Published,
    state: ShortLock<ArrayState, ArrayLevel>,
    memory_order: MemoryOrder,
    /// Elements along each axis, unless these are the extents of `space`.
    shape: Option<Box<[usize]>>,
    element: &'static ElementType,
    made_at: CallSite,
    /// Under which the registry knows it, and keeps its name.
    number: u64,
}

/// What the storage of an array knows of its elements: one table for each type.
struct ElementType {
    name: fn() -> &'static str,
    /// Makes memory for so many of them.
    make_host: fn(usize) -> Option<HostBuffer>,
}

impl ElementType {
    const fn of<T: Element>() -> &'static Self {
        &Self { name: type_name::<T>, make_host: HostBuffer::zeroed::<T> }
    }
}

/// What an array starts as.
pub(crate) enum Origin {
    /// Never written.
    Uninitialised,
    /// A constant: the bytes of one element.
    Constant(Bytes),
    /// Memory of the host.
    Host(HostBuffer),
    /// Memory of a stream's device, which is there behind what is queued on the stream so far.
    #[cfg(feature = "cuda")]
    Device(Stream, Address),
}

impl Storage {
    /// What every array of `T` must be: its size is counted in 32 bits, and allocations of devices
    /// are aligned to 256 bytes, as CUDA's are.
    const fn check_element<T>() {
        assert!(size_of::<T>() <= u32::MAX as usize, "an element of an array has at most 4 GiB");
        assert!(
            align_of::<T>() <= ALIGNMENT_MAX_BYTES,
            "an element of an array is aligned to at most 256 bytes"
        );
    }

    pub(crate) fn new<T: Element>(
        memory_order: MemoryOrder,
        shape: &[usize],
        origin: Origin,
        made_at: CallSite,
    ) -> Arc<Self> {
        const { Self::check_element::<T>() };
        let extents = memory_order.extents();
        let host_base = match &origin {
            Origin::Host(buffer) => buffer.base(),
            _ => null_mut(),
        };
        let state = match origin {
            Origin::Uninitialised => ArrayState::new(Coherence::undefined(extents)),
            Origin::Constant(value) => ArrayState::constant(extents, value),
            Origin::Host(buffer) => {
                ArrayState::on_host(Coherence::stored(extents, Location::HOST), buffer)
            }
            #[cfg(feature = "cuda")]
            Origin::Device(stream, address) => ArrayState::on_device(extents, &stream, address),
        };
        let shape = shape_beside(&memory_order, shape);
        Self::listed(memory_order, shape, ElementType::of::<T>(), state, host_base, made_at)
    }

    /// Another array of this layout and element, never written.
    pub(crate) fn new_like(&self, made_at: CallSite) -> Arc<Self> {
        let state = ArrayState::new(Coherence::undefined(self.memory_order.extents()));
        Self::listed(
            self.memory_order.clone(),
            self.shape.clone(),
            self.element,
            state,
            null_mut(),
            made_at,
        )
    }

    fn listed(
        memory_order: MemoryOrder,
        shape: Option<Box<[usize]>>,
        element: &'static ElementType,
        state: ArrayState,
        host_base: *mut u8,
        made_at: CallSite,
    ) -> Arc<Self> {
        let storage = Arc::new(Self {
            published: Published::new(host_base, state.is_host_ready()),
            state: ShortLock::new(state),
            shape,
            memory_order,
            element,
            made_at,
            number: registry::number(),
        });
        let listed: Weak<Self> = Arc::downgrade(&storage);
        registry::enter(storage.number, listed);
        storage
    }

    #[inline]
    pub(crate) fn memory_order(&self) -> &MemoryOrder {
        &self.memory_order
    }

    #[inline]
    pub(crate) fn lock(&self) -> ShortGuard<'_, ArrayState> {
        self.state.lock()
    }

    /// The host memory's start, if the whole array can be read there right now.
    #[inline]
    pub(crate) fn ready_on_host(&self) -> Option<*mut u8> {
        self.published.ready_on_host()
    }

    /// The host memory's start; null before there is any.
    #[inline]
    pub(crate) fn host_base(&self) -> *mut u8 {
        self.published.host_base()
    }

    /// Gives the array memory on the host, all zero bytes, if it has none. False if there is no
    /// room.
    pub(crate) fn allocate_host(&self, state: &mut ArrayState) -> bool {
        if state.host.is_some() {
            return true;
        }
        let made = usize::try_from(self.memory_order.len()).ok().and_then(self.element.make_host);
        let Some(buffer) = made else { return false };
        self.published.set_host_base(buffer.base());
        state.host = Some(Arc::new(buffer));
        true
    }

    /// Tells the fast paths what they may assume. Called with the lock held, after every change of
    /// `state`.
    #[inline]
    pub(crate) fn publish(&self, state: &ArrayState) {
        self.published.set_host_ready(state.is_host_ready());
    }

    /// The device address of the whole array, if `stream` is entered as its reader already.
    #[inline]
    pub(crate) fn reader_address(&self, stream: u64) -> Option<u64> {
        self.published.reader_address(stream, failure::epoch())
    }

    /// Enters a reader for the fast path, where there is room. Called with the lock held.
    pub(crate) fn publish_reader(&self, state: &ArrayState, stream: u64, address: u64) {
        self.published.publish_reader(state.failure_epoch(), stream, address);
    }

    /// Forgets all known readers: the array is about to change. Called with the lock held.
    #[inline]
    pub(crate) fn forget_readers(&self) {
        self.published.forget_readers();
    }

    /// Its name, or its type, shape and the line that made it.
    pub(crate) fn name(&self) -> Arc<str> {
        registry::name_of(self.number, || {
            format!("{}{:?} made at {}", self.type_name(), self.shape(), self.made_at).into()
        })
    }

    fn type_name(&self) -> String {
        short_type((self.element.name)())
    }

    /// Elements along each axis.
    fn shape(&self) -> SmallVec<[usize; 6]> {
        match &self.shape {
            Some(shape) => SmallVec::from_slice(shape),
            None => self.memory_order.extents().iter().map(|extent| *extent as usize).collect(),
        }
    }

    /// The name for messages: quoted if it was given.
    pub(crate) fn named(&self) -> String {
        let name = self.name();
        if name.contains(" made at ") { name.to_string() } else { format!("\"{name}\"") }
    }

    pub(crate) fn set_name(&self, name: &str) {
        registry::set_name(self.number, Arc::from(name));
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn label(&self, operation: &str, site: CallSite) -> Label {
        Label { text: format!("{operation} {}", self.named()).into(), site: Some(site) }
    }
}

/// The shape where memory order does not tell it: lone axes, columns first, more than six axes.
fn shape_beside(memory_order: &MemoryOrder, shape: &[usize]) -> Option<Box<[usize]>> {
    let is_told = shape.len() == memory_order.extents().len()
        && shape.iter().zip(memory_order.extents()).all(|(len, extent)| *len as u64 == *extent);
    (!is_told).then(|| shape.into())
}

/// A type without its path: `f32`, `Complex<f64>`.
pub(crate) fn short_type(name: &str) -> String {
    let mut short = String::new();
    for word in name.split_inclusive(|character: char| {
        !(character.is_alphanumeric() || character == '_' || character == ':')
    }) {
        short.push_str(word.rsplit("::").next().unwrap_or(word));
    }
    short
}

impl Listed for Storage {
    fn entry(&self) -> Entry {
        let state = self.state.lock();
        let mut locations =
            vec![("host".to_owned(), state.validity(&self.memory_order, Location::HOST))];
        locations.extend(state.devices().map(|(location, device)| {
            (Device::name(device), state.validity(&self.memory_order, location))
        }));
        Entry::new(
            self.name(),
            self.shape().to_vec(),
            self.type_name(),
            self.memory_order.len_bytes(),
            locations,
        )
    }

    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Storage").field("name", &self.name()).finish_non_exhaustive()
    }
}
