//! One array: its memory on the host and on devices, which elements are valid at which location,
//! and which work uses them.
//!
//! The state belongs to the allocation: views hold no state of their own. Only `transfer` changes
//! it; this module keeps it consistent and publishes it to the fast paths.

mod array_state;
mod forget_failures;
mod host;
mod published;
mod residency;
mod sole_use;
mod watchers;

use std::any::{TypeId, type_name};
use std::fmt;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use smallvec::SmallVec;

use crate::device::Device;
use crate::device::Stream;
use crate::element::Element;
use crate::live_arrays::{ArrayName, LiveArrays, Place};
use crate::memory_use::Owner;
use resident_backend::Address;
use resident_backend::call_site::CallSite;
use resident_backend::{AutomaticName, Bytes, HostMemory, Label, LabelText};
use resident_core::coherence::{Coherence, Location};
use resident_core::layout::MemoryOrder;

/// The atomics that `published` uses; its test replaces them by those of loom.
mod atomics {
    pub(super) use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
}

#[cfg(test)]
pub(crate) use array_state::failures::undisturbed;
pub(crate) use array_state::{
    ArrayState, Claim, DeviceCopy, MemoryClaim, OpenRead, PageRuns, Reservation, StaleOrigin,
    UseKind, pages_of, wait_for_claim,
};
pub(crate) use array_state::{PartId, PartUse, PartUseEnd, add_own_writer};
pub(crate) use forget_failures::forget_failures;
use host::ALIGNMENT_MAX_BYTES;
pub(crate) use host::{HostBuffer, HostHome, zeroed_vec};
use published::Published;
pub use residency::{Residency, Validity};
pub(crate) use resident_backend::short_type;
pub(crate) use sole_use::StateGuard;
use sole_use::SummarisedState;
use watchers::WatchedArray;
pub(crate) use watchers::{HostWrite, Watcher, notify_watchers};

/// The live arrays of the process.
static LIVE_ARRAYS: LiveArrays<Storage> = LiveArrays::new();

/// Every live array of the process, oldest first.
pub(crate) fn live_arrays() -> Vec<Arc<Storage>> {
    LIVE_ARRAYS.all()
}

/// How many arrays live.
pub(crate) fn live_array_count() -> usize {
    LIVE_ARRAYS.len()
}

/// Everything about one array except its type and its dimensions.
pub(crate) struct Storage {
    pub(crate) published: Published,
    pub(crate) state: SummarisedState,
    memory_order: MemoryOrder,
    /// The number of elements along each axis; `None` if the memory order says it.
    shape: Option<Box<Shape>>,
    element: &'static ElementType,
    made_at: CallSite,
    /// The array's place in the registry.
    place: Place,
    /// How often the array was used while a capture was running: see [`Storage::next_use`].
    uses: AtomicU32,
}

// A panic leaves it usable: what a lock guards is changed as a whole. The suite `unwinding` of the
// sweeps panics in each place.
impl std::panic::RefUnwindSafe for Storage {}

/// The number of elements along each axis.
type Shape = SmallVec<[usize; 6]>;

/// The properties of an element type: one static table for each type.
struct ElementType {
    name: fn() -> &'static str,
    id: fn() -> TypeId,
    alignment: usize,
    /// Allocates memory for this number of elements.
    make_host: fn(usize) -> Option<HostBuffer>,
    /// Whether contents end with the replay of the chain that wrote them.
    is_temporary: bool,
}

impl ElementType {
    const fn of<T: Element>() -> &'static Self {
        const { &Self::new::<T>() }
    }

    const fn temporary<T: Element>() -> &'static Self {
        const { &Self { is_temporary: true, ..Self::new::<T>() } }
    }

    const fn new<T: Element>() -> Self {
        Self {
            name: type_name::<T>,
            id: TypeId::of::<T>,
            alignment: align_of::<T>(),
            make_host: HostBuffer::aligned::<T>,
            is_temporary: false,
        }
    }
}

/// The initial contents of an array.
pub(crate) enum Origin {
    /// Never written.
    Uninitialised,
    /// A constant: the bytes of one element.
    Constant(Bytes),
    /// Memory of the host.
    Host(HostBuffer),
    /// Memory of a stream's device, whose contents are complete after the work queued on the stream
    /// so far.
    Device(Stream, Address),
}

impl Storage {
    /// Checks the requirements on `T`: an element's size is stored in 32 bits, and devices align
    /// allocations to 256 bytes, as CUDA does.
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
        let host_base = match &origin {
            Origin::Host(buffer) => buffer.base(),
            _ => null_mut(),
        };
        let home = match &origin {
            Origin::Device(stream, _) => Some(stream.device_ref().clone()),
            _ => None,
        };
        let state = match origin {
            Origin::Uninitialised => ArrayState::new(Coherence::UNDEFINED),
            Origin::Constant(value) => ArrayState::constant(value),
            Origin::Host(buffer) => ArrayState::on_host(buffer),
            Origin::Device(stream, address) => {
                ArrayState::on_device(memory_order.extents(), &stream, address)
            }
        };
        let shape = shape_beside(&memory_order, shape);
        let element = ElementType::of::<T>();
        let storage = Self::register(memory_order, shape, element, state, host_base, made_at);
        let bytes = storage.memory_order.len_bytes();
        home.iter().for_each(|device| storage.count_memory(device, bytes, made_at));
        storage
    }

    /// A new array, never written, whose contents nothing reads after the operation that writes
    /// them.
    pub(crate) fn temporary<T: Element>(
        memory_order: MemoryOrder,
        shape: &[usize],
        made_at: CallSite,
    ) -> Arc<Self> {
        const { Self::check_element::<T>() };
        let shape = shape_beside(&memory_order, shape);
        let (element, state) =
            (ElementType::temporary::<T>(), ArrayState::new(Coherence::UNDEFINED));
        Self::register(memory_order, shape, element, state, null_mut(), made_at)
    }

    /// Whether the contents need not be kept while no operation uses them.
    pub(crate) fn is_temporary(&self) -> bool {
        self.element.is_temporary
    }

    /// Counts bytes that the array has got on a device, by this call.
    pub(crate) fn count_memory(&self, device: &Device, bytes: u64, site: CallSite) {
        device.array_memory().add(self.number(), bytes, || self.owner(site));
    }

    /// Counts bytes of the array on a device no more. They are not free yet.
    pub(crate) fn count_memory_freed(&self, device: &Device, bytes: u64) {
        device.array_memory().remove(self.number(), bytes);
    }

    /// Whose the memory is that this call allocates.
    pub(crate) fn owner(&self, site: CallSite) -> Owner {
        Owner { array: self.name(), site }
    }

    /// A new array with this layout and element type, never written.
    pub(crate) fn new_like(&self, made_at: CallSite) -> Arc<Self> {
        let state = ArrayState::new(Coherence::UNDEFINED);
        Self::register(
            self.memory_order.clone(),
            self.shape.clone(),
            self.element,
            state,
            null_mut(),
            made_at,
        )
    }

    #[inline]
    fn register(
        memory_order: MemoryOrder,
        shape: Option<Box<Shape>>,
        element: &'static ElementType,
        state: ArrayState,
        host_base: *mut u8,
        made_at: CallSite,
    ) -> Arc<Self> {
        LIVE_ARRAYS.register(|place| {
            Arc::new(Self {
                published: Published::new(host_base, state.is_host_ready()),
                state: SummarisedState::new(state),
                shape,
                memory_order,
                element,
                made_at,
                place,
                uses: AtomicU32::new(0),
            })
        })
    }

    #[inline]
    pub(crate) fn memory_order(&self) -> &MemoryOrder {
        &self.memory_order
    }

    #[inline]
    pub(crate) fn lock(&self) -> StateGuard<'_> {
        self.state.lock(&self.memory_order)
    }

    /// The host memory's start; null if there is none yet.
    #[inline]
    pub(crate) fn host_base(&self) -> *mut u8 {
        self.published.host_base()
    }

    /// Allocates zeroed memory on the host for the array, if it has none. Returns `false` if there
    /// is not enough memory.
    pub(crate) fn allocate_host(&self, state: &mut ArrayState) -> bool {
        if state.host.is_some() {
            return true;
        }
        let Some(buffer) = self.new_host_memory() else { return false };
        self.set_host(state, buffer);
        true
    }

    /// Makes the host memory such that the host may write it: memory that is only read is copied.
    /// Returns `false` if there is not enough memory.
    pub(crate) fn make_host_writable(&self, state: &mut ArrayState) -> bool {
        if state.has_writable_host() {
            return true;
        }
        let Some(old) = state.host.clone() else { return self.allocate_host(state) };
        let Some(buffer) = self.new_host_memory() else { return false };
        // SAFETY: both have the array's bytes, those of the first are never written, and nothing
        // else has the second yet.
        unsafe { std::ptr::copy_nonoverlapping(old.base(), buffer.base(), old.len_bytes()) };
        self.published.set_host_base(buffer.base());
        state.replace_read_only_host(buffer);
        true
    }

    /// Gives host memory to an array that has none.
    pub(crate) fn set_host(&self, state: &mut ArrayState, buffer: HostBuffer) {
        self.published.set_host_base(buffer.base());
        state.host = Some(Arc::new(buffer));
    }

    /// Makes the memory of the device's copy at `location` the host memory too. The array has no
    /// other host memory.
    pub(crate) fn set_mapped_host(
        &self,
        state: &mut ArrayState,
        location: Location,
        host: Arc<HostBuffer>,
    ) {
        self.published.set_host_base(host.base());
        state.host = Some(host);
        state.set_host_location(location);
    }

    /// Makes the host memory the copy of the device at `location`, which has no memory, at this
    /// address there. All that was of the host's location is of the device's.
    pub(crate) fn share_host(&self, state: &mut ArrayState, location: Location, address: Address) {
        state.device_copy_mut(location).set_address(Some(address));
        state.move_host(location);
        self.publish(state);
    }

    /// Ends [`share_host`](Self::share_host). Returns the device and the address, which the caller
    /// frees. `None` if the array does not share its host memory. No work uses it.
    pub(crate) fn unshare_host(&self, state: &mut ArrayState) -> Option<(Device, Address)> {
        let location = state.host_location();
        if !state.is_host_shared() {
            return None;
        }
        let copy = state.device_copy_mut(location);
        let address = copy.address()?;
        copy.set_address(None);
        let device = copy.device.clone();
        state.move_host(Location::HOST);
        self.published.forget_readers();
        self.publish(state);
        Some((device, address))
    }

    /// Zeroed memory on the host for a copy of the array. `None` if there is not enough memory.
    pub(crate) fn new_host_memory(&self) -> Option<HostBuffer> {
        usize::try_from(self.memory_order.elements()).ok().and_then(self.element.make_host)
    }

    /// Whether the memory of each copy, present and future, has this alignment: that of the element
    /// type, that of `HostBuffer::aligned` and of device memory, unless a copy is memory of others.
    pub(crate) fn is_aligned(&self, alignment: usize) -> bool {
        if alignment <= self.element.alignment {
            return true;
        }
        let state = self.lock();
        let devices = state.device_addresses().map(|address| address.0 as usize);
        let mut all = devices.chain([self.host_base().addr()]);
        alignment <= HostBuffer::ALIGNMENT_BYTES && all.all(|it| it.is_multiple_of(alignment))
    }

    /// Publishes to the fast paths whether the whole array can be read on the host. Called with the
    /// lock held, after every change of `state`.
    #[inline]
    pub(crate) fn publish(&self, state: &ArrayState) {
        self.published.set_host_ready(state.is_host_ready());
    }

    /// Other code is handed the memory of the array's copy on its device, which may be host memory,
    /// and may hand it back to be taken over.
    pub(crate) fn mark_lent(&self) {
        let state = self.lock();
        if let Some(host) = state.host.as_ref().filter(|_| state.is_host_mapped()) {
            host.mark_lent();
        }
    }

    /// Removes the array from the registry, and so from inventory and eviction.
    pub(crate) fn unregister(&self) {
        LIVE_ARRAYS.remove(self.place);
    }

    /// Whether no thread has begun to drop the array.
    pub(crate) fn is_registered(&self) -> bool {
        LIVE_ARRAYS.contains(self.place)
    }

    /// The array's name: the given one, or one made of its type, shape and the line that made it.
    pub(crate) fn array_name(&self) -> ArrayName {
        LIVE_ARRAYS.name(self.place, || self.automatic_name())
    }

    fn automatic_name(&self) -> Arc<str> {
        self.automatic().to_string().into()
    }

    fn automatic(&self) -> AutomaticName {
        let shape = self.shape().into_iter().collect();
        AutomaticName { element: self.element.name, shape, made_at: self.made_at }
    }

    /// The call that made the array.
    pub(crate) fn made_at(&self) -> CallSite {
        self.made_at
    }

    /// The name that the program gave the array.
    pub(crate) fn given_name(&self) -> Option<Arc<str>> {
        LIVE_ARRAYS.given_name(self.place)
    }

    /// The array's name without quotes.
    pub(crate) fn name(&self) -> Arc<str> {
        Arc::clone(self.array_name().text())
    }

    /// Whether the array's elements have this type: views may show a field of each element.
    pub(crate) fn has_elements<T: Element>(&self) -> bool {
        (self.element.id)() == TypeId::of::<T>()
    }

    /// The array's number, unique in the process.
    pub(crate) fn number(&self) -> u64 {
        self.place.number()
    }

    /// Counts a use of the array while a capture of any thread runs, and returns its number. In a
    /// capture that knows of all uses the numbers have no gap. Uses of several threads at the same
    /// time may get the same number, so that this needs no atomic addition.
    #[inline]
    pub(crate) fn next_use(&self) -> u16 {
        let number = self.uses.load(Ordering::Relaxed);
        self.uses.store(number.wrapping_add(1), Ordering::Relaxed);
        number as u16
    }

    /// The type of the array's elements, with its path.
    pub(crate) fn element_path(&self) -> &'static str {
        (self.element.name)()
    }

    /// The type of the array's elements, without its path.
    pub(crate) fn element_name(&self) -> String {
        short_type((self.element.name)())
    }

    /// The number of elements along each axis.
    pub(crate) fn shape(&self) -> Shape {
        match &self.shape {
            Some(shape) => Shape::clone(shape),
            None => {
                let extents = self.memory_order.element_extents().iter();
                extents.map(|extent| *extent as usize).collect()
            }
        }
    }

    /// The name for messages: in quotation marks if the program gave it.
    pub(crate) fn named(&self) -> String {
        self.array_name().to_string()
    }

    pub(crate) fn set_name(&self, name: &str) {
        LIVE_ARRAYS.set_name(self.place, Arc::from(name));
        self.published.set_named();
    }

    /// Where the array is valid: `host` first, then devices in the order of their first use.
    pub(crate) fn validity_by_place(&self) -> Vec<(String, Validity)> {
        let state = self.lock();
        let validity = |location| state.validity(&self.memory_order, location);
        let devices =
            state.devices().map(|(location, device)| (Device::name(device), validity(location)));
        let host = ("host".to_owned(), validity(state.host_location()));
        std::iter::once(host).chain(devices).collect()
    }

    pub(crate) fn label(&self, operation: &'static str, site: CallSite) -> Label {
        let text = if self.published.times_named() > 0 {
            LabelText::Text(LIVE_ARRAYS.label(self.place, operation, || self.automatic_name()))
        } else {
            LabelText::Unnamed(operation, self.automatic())
        };
        Label { text, site: Some(site) }
    }
}

/// The shape, if the memory order does not determine it: if it has axes of length 1, is
/// column-major, or has more than six axes.
#[inline]
fn shape_beside(memory_order: &MemoryOrder, shape: &[usize]) -> Option<Box<Shape>> {
    let extents = memory_order.element_extents();
    let is_told = shape.len() == extents.len()
        && shape.iter().zip(extents).all(|(len, extent)| *len as u64 == *extent);
    (!is_told).then(|| Box::new(Shape::from_slice(shape)))
}

impl WatchedArray for Storage {
    fn end_host_write(&self, number: u64) {
        self.lock().end_host_write(number);
    }
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Storage").field("name", &self.name()).finish_non_exhaustive()
    }
}
