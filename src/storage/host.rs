//! Host memory for an array's contents: taken over from a `Vec`, allocated here or by a driver,
//! lent by the caller, or read in an owner of the program.

use std::alloc::{Layout, alloc_zeroed};
use std::any::Any;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::device::Device;
use crate::element::Element;
use crate::memory_use::{self, Place};
use resident_backend::imports::PinnedInUse;
use resident_backend::{DeviceKind, HostMemory, PinnedRegistration, huge_pages, sync};

/// The host memory of an array, kept as a pointer: while devices share it, no reference or box to
/// it may exist.
///
/// The memory of a vector can be returned as that vector.
#[derive(Debug)]
pub(crate) struct HostBuffer {
    /// The memory. `drop` frees it, or `into_vec` takes it, once no device has it registered.
    memory: ManuallyDrop<Allocation>,
    /// The registrations; allocated when the memory is first pinned, since most arrays are never
    /// pinned.
    registrations: OnceLock<Box<Registrations>>,
}

// As of `Storage`.
impl std::panic::RefUnwindSafe for HostBuffer {}

/// The alignment of device memory.
pub(super) const ALIGNMENT_MAX_BYTES: usize = 256;

/// The start of memory without bytes, aligned for elements of all types.
const NO_ELEMENTS: *mut u8 = std::ptr::without_provenance_mut(ALIGNMENT_MAX_BYTES);

/// The drivers that have pinned an array's memory.
#[derive(Debug, Default)]
struct Registrations {
    /// Whether a device died with pending work that uses the memory. Its backend then keeps the
    /// memory forever.
    is_leaked: AtomicBool,
    by_kind: [OnceLock<Box<dyn PinnedRegistration>>; DeviceKind::COUNT],
    /// While some driver has pinned the memory.
    in_use: OnceLock<InUse>,
    /// Held during a registration.
    registering: Mutex<()>,
}

/// The memory of an array and its owner. The drop frees what this value owns.
#[derive(Debug)]
struct Allocation {
    /// Where the array starts.
    pointer: NonNull<u8>,
    /// The array's length.
    len_bytes: usize,
    owner: Owner,
}

#[derive(Debug)]
enum Owner {
    /// A vector that is the array.
    Vector {
        /// Whether the memory was allocated here and nothing was copied to it yet.
        is_new: AtomicBool,
        element: &'static VectorElement,
    },
    Other(Box<OtherOwner>),
    /// The caller, who keeps the memory for longer than this value lives.
    Caller,
}

#[derive(Debug)]
enum OtherOwner {
    /// A vector with other elements or more capacity.
    Vector(VectorParts),
    /// A vector of words, which cannot be returned as one of the array's elements.
    Words(VectorParts),
    /// A driver, which allocated the memory. It is listed as in use until this value drops.
    Driver(Arc<dyn HostMemory>, InUse),
    /// An owner of the program, whose memory is only read.
    Program {
        #[expect(dead_code, reason = "only its drop counts")]
        owner: DroppedWithoutLocks,
    },
}

/// An owner of the program, whose drop runs code of the program: with no lock of the library held.
#[derive(Debug)]
struct DroppedWithoutLocks(Option<Arc<dyn Any + Send + Sync>>);

impl Drop for DroppedWithoutLocks {
    fn drop(&mut self) {
        if let Some(owner) = self.0.take() {
            sync::defer_drop(owner);
        }
    }
}

/// Memory that devices may access, while this value lives.
#[derive(Debug)]
struct InUse {
    listed: PinnedInUse,
    _counted: Counted,
}

/// Where memory counts that a driver allocates for the host.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HostHome<'a> {
    /// As pinned memory of the host.
    Pinned,
    /// As memory of a device: its pages may be there.
    Managed(&'a Device),
}

/// Memory that counts as in use until this value drops.
#[derive(Debug)]
struct Counted {
    place: Arc<Place>,
    key: u64,
    len_bytes: u64,
}

impl Counted {
    fn new(
        home: HostHome<'_>,
        len_bytes: usize,
        whose: impl FnOnce() -> memory_use::Owner,
    ) -> Self {
        /// The keys of a device's place are numbers of arrays, which are far smaller.
        static KEY: AtomicU64 = AtomicU64::new(1 << 63);
        let place = match home {
            HostHome::Pinned => &memory_use::PINNED_MEMORY,
            HostHome::Managed(device) => device.array_memory(),
        };
        let key = KEY.fetch_add(1, Ordering::Relaxed);
        let len_bytes = len_bytes as u64;
        place.add(key, len_bytes, whose);
        Self { place: Arc::clone(place), key, len_bytes }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.place.remove(self.key, self.len_bytes);
    }
}

/// A vector without its pointer.
#[derive(Clone, Copy, Debug)]
struct VectorParts {
    /// The array's start in the vector, in elements.
    offset: usize,
    /// The vector's length, in elements.
    len: usize,
    capacity: usize,
    element: &'static VectorElement,
}

/// The element type of a vector: one static table for each type.
#[derive(Debug)]
struct VectorElement {
    len_bytes: usize,
    /// Frees a vector, given the pointer to the element at an offset, this offset, and the
    /// capacity.
    release: unsafe fn(NonNull<u8>, usize, usize),
}

impl VectorElement {
    const fn of<T: Element>() -> &'static Self {
        &Self { len_bytes: size_of::<T>(), release: release::<T> }
    }
}

// SAFETY: the value owns the memory of a `Vec<T: Send + Sync>`, memory of an owner that is `Send`
// and `Sync`, or memory of a driver or of a caller that is not bound to a thread. It only returns a
// pointer, whose users order their accesses (DESIGN.md, "Soundness").
unsafe impl Send for Allocation {}
// SAFETY: as for `Send`; `&Allocation` only allows its fields to be read.
unsafe impl Sync for Allocation {}

// SAFETY: pointer and `len_bytes` lie within initialised memory: that of the vector in `from_vec`,
// that of the driver in `from_driver` (`HostMemory`), that of the caller in `lent`, that of the
// owner in `from_owner`. Only `drop` and `into_vec` release the memory, and they consume the value.
unsafe impl HostMemory for HostBuffer {
    fn base(&self) -> *mut u8 {
        self.memory.pointer.as_ptr()
    }

    fn len_bytes(&self) -> usize {
        self.memory.len_bytes
    }

    fn take_new(&self) -> bool {
        let Owner::Vector { is_new, .. } = &self.memory.owner else { return false };
        is_new.swap(false, Ordering::Relaxed)
    }

    fn mark_leaked(&self) {
        let registrations = self.registrations.get_or_init(Box::default);
        registrations.is_leaked.store(true, Ordering::Release);
    }

    fn is_pinned_for(&self, kind: DeviceKind) -> bool {
        if let Owner::Other(other) = &self.memory.owner
            && let OtherOwner::Driver(memory, _) = &**other
            && memory.is_pinned_for(kind)
        {
            return true;
        }
        let registrations = self.registrations.get();
        registrations.is_some_and(|all| all.by_kind[kind as usize].get().is_some())
    }
}

impl HostBuffer {
    /// Pins the memory for devices of one kind, until this buffer drops. Does nothing if the memory
    /// is already pinned for them.
    ///
    /// `lock_array` returns a guard that excludes threads which queue copies with this memory: a
    /// copy planned for pageable memory must not be queued for pinned memory.
    ///
    /// # Errors
    ///
    /// The error of `register`.
    pub(crate) fn register<E, G>(
        &self,
        kind: DeviceKind,
        register: impl FnOnce() -> Result<Box<dyn PinnedRegistration>, E>,
        lock_array: impl FnOnce() -> G,
        whose: impl FnOnce() -> memory_use::Owner,
    ) -> Result<(), E> {
        // Only one thread at a time may do this: a second thread would find the memory registered,
        // and assume that another library had registered it.
        let registrations = self.registrations.get_or_init(Box::default);
        let _only_one = registrations.registering.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_pinned_for(kind) {
            let registration = register()?;
            registrations.in_use.get_or_init(|| InUse {
                listed: PinnedInUse::list(self.base(), self.len_bytes()),
                _counted: Counted::new(HostHome::Pinned, self.len_bytes(), whose),
            });
            let _array = lock_array();
            let _first = registrations.by_kind[kind as usize].set(registration);
        }
        Ok(())
    }

    /// Unregisters the memory with all drivers. Returns whether no driver has it registered any
    /// more.
    fn unregister(&mut self) -> bool {
        let Some(registrations) = self.registrations.get_mut() else { return true };
        for registration in &mut registrations.by_kind {
            if registration.get_mut().is_some_and(|registration| registration.unregister()) {
                registration.take();
            }
        }
        let is_free = registrations.is_empty();
        if is_free {
            registrations.in_use.take();
        }
        if is_free && !self.is_leaked() {
            self.registrations.take();
        }
        is_free
    }

    /// This buffer, unregistered, so that the library can give its vector to the caller; or a copy
    /// in a vector, if the memory is not that of a vector or a driver refuses to unregister it.
    /// `None` if there is no memory for a copy. No queued work may use the buffer any more. `T`
    /// must be the element type.
    pub(crate) fn unregistered<T: Element>(mut self) -> Option<Self> {
        let is_vector = self.memory.vector().is_some();
        if self.unregister() && is_vector { Some(self) } else { self.copy::<T>() }
    }

    /// Whether a device died with pending work that uses the memory.
    pub(crate) fn is_leaked(&self) -> bool {
        let registrations = self.registrations.get();
        registrations.is_some_and(|it| it.is_leaked.load(Ordering::Acquire))
    }

    /// Takes over memory that a driver allocated.
    pub(crate) fn from_driver(
        memory: Arc<dyn HostMemory>,
        home: HostHome<'_>,
        whose: impl FnOnce() -> memory_use::Owner,
    ) -> Self {
        let (start, len_bytes) = (memory.base(), memory.len_bytes());
        let in_use = InUse {
            listed: PinnedInUse::list(start, len_bytes),
            _counted: Counted::new(home, len_bytes, whose),
        };
        let owner = Owner::Other(Box::new(OtherOwner::Driver(memory, in_use)));
        Self::new(start, owner, len_bytes)
    }

    /// Other code is handed the memory, and may hand it back to be taken over.
    pub(crate) fn mark_lent(&self) {
        if let Owner::Other(other) = &self.memory.owner
            && let OtherOwner::Driver(_, in_use) = &**other
        {
            in_use.listed.mark_lent();
        }
    }

    /// Memory of a caller.
    ///
    /// # Safety
    ///
    /// The `len_bytes` bytes from `start` are initialised, stay allocated for longer than the
    /// buffer lives, and meanwhile are accessed only through it. Queued work that uses them is
    /// complete before that ends.
    pub(crate) unsafe fn lent(start: *mut u8, len_bytes: usize) -> Self {
        Self::new(start, Owner::Caller, len_bytes)
    }

    fn new(start: *mut u8, owner: Owner, len_bytes: usize) -> Self {
        let pointer = NonNull::new(start).unwrap_or(NonNull::dangling());
        Self {
            memory: ManuallyDrop::new(Allocation { pointer, len_bytes, owner }),
            registrations: OnceLock::new(),
        }
    }

    /// Takes over the memory of a vector. The array is the `len` elements that start at `offset`.
    pub(crate) fn from_vec<T: Element>(vector: Vec<T>, offset: usize, len: usize) -> Self {
        assert!(
            offset + len <= vector.len(),
            "an array of {len} elements from {offset} in a vector of {}",
            vector.len()
        );
        let mut vector = ManuallyDrop::new(vector);
        // An empty vector has any aligned address, and views may need a larger alignment.
        let start = match vector.capacity() {
            0 => NO_ELEMENTS.cast(),
            _ => vector.as_mut_ptr().wrapping_add(offset),
        };
        let element = VectorElement::of::<T>();
        let is_all = len == vector.len() && len == vector.capacity() && size_of::<T>() > 0;
        let owner = if is_all {
            Owner::Vector { is_new: AtomicBool::new(false), element }
        } else {
            let (len, capacity) = (vector.len(), vector.capacity());
            let parts = VectorParts { offset, len, capacity, element };
            Owner::Other(Box::new(OtherOwner::Vector(parts)))
        };
        Self::new(start.cast(), owner, len * size_of::<T>())
    }

    /// The elements of an owner, which are only read ([`is_read_only`](Self::is_read_only)), and
    /// their number. The owner drops after them.
    pub(crate) fn from_owner<T: Element>(
        owner: impl AsRef<[T]> + Send + Sync + 'static,
    ) -> (Self, usize) {
        // In its place before it is asked: its elements may lie within it.
        let owner = Arc::new(owner);
        let elements: &[T] = (*owner).as_ref();
        let (start, len) = (elements.as_ptr().cast_mut(), elements.len());
        let start = if len == 0 { NO_ELEMENTS.cast() } else { start };
        let owner = DroppedWithoutLocks(Some(owner));
        let owner = Owner::Other(Box::new(OtherOwner::Program { owner }));
        (Self::new(start.cast(), owner, len * size_of::<T>()), len)
    }

    /// Whether the memory must not be written, because its owner may be read elsewhere.
    pub(crate) fn is_read_only(&self) -> bool {
        matches!(&self.memory.owner, Owner::Other(it) if matches!(**it, OtherOwner::Program { .. }))
    }

    /// Whether a device that reaches ordinary memory may use it in its place: the process's own,
    /// pinned for no driver, and aligned as the widest accesses of GPUs need.
    pub(crate) fn may_be_shared(&self) -> bool {
        self.is_of_process()
            && self.base().addr().is_multiple_of(Self::ALIGNMENT_BYTES)
            && self.registrations.get().is_none_or(|all| all.is_empty() && !self.is_leaked())
    }

    /// Whether it is memory of the process's allocator, which this buffer frees.
    pub(crate) fn is_of_process(&self) -> bool {
        self.memory.owned_vector().is_some()
    }

    /// A copy, if a backend keeps this memory forever, else `None`; `Some(None)` if there is no
    /// memory for the copy. Meanwhile only the remaining work of a dead device may write the
    /// memory. `T` is the element type.
    pub(crate) fn copy_if_leaked<T: Element>(&self) -> Option<Option<Self>> {
        self.is_leaked().then(|| self.copy::<T>())
    }

    fn copy<T: Element>(&self) -> Option<Self> {
        let copy = Self::zeroed::<T>(self.len_bytes() / size_of::<T>().max(1))?;
        // SAFETY: each of the two has `len_bytes` initialised bytes (`HostMemory`), and no other
        // code has the copy yet.
        unsafe { std::ptr::copy_nonoverlapping(self.base(), copy.base(), self.len_bytes()) };
        Some(copy)
    }

    /// The alignment of memory that [`aligned`](Self::aligned) makes, for elements that need less.
    pub(crate) const ALIGNMENT_BYTES: usize = align_of::<u128>();

    /// As [`zeroed`](Self::zeroed), with at least [`ALIGNMENT_BYTES`](Self::ALIGNMENT_BYTES): a
    /// view may have elements that need it. The memory is that of a vector of `T` if the allocator
    /// aligns it so, as allocators of systems do.
    pub(crate) fn aligned<T: Element>(len: usize) -> Option<Self> {
        let buffer = Self::zeroed::<T>(len)?;
        if buffer.base().addr().is_multiple_of(Self::ALIGNMENT_BYTES) {
            return Some(buffer);
        }
        Self::of_words(buffer.len_bytes())
    }

    /// Zeros in a vector of words, for elements of any type.
    fn of_words(len_bytes: usize) -> Option<Self> {
        let len = len_bytes.div_ceil(size_of::<u128>());
        let mut words = ManuallyDrop::new(zeroed_vec::<u128>(len)?);
        let (capacity, element) = (words.capacity(), VectorElement::of::<u128>());
        let parts = VectorParts { offset: 0, len, capacity, element };
        let owner = Owner::Other(Box::new(OtherOwner::Words(parts)));
        Some(Self::new(words.as_mut_ptr().cast(), owner, len_bytes))
    }

    /// Memory for `len` elements whose bytes are all zero. `None` if there is not enough memory.
    pub(crate) fn zeroed<T: Element>(len: usize) -> Option<Self> {
        let mut buffer = Self::from_vec(zeroed_vec::<T>(len)?, 0, len);
        if let Owner::Vector { is_new, .. } = &mut buffer.memory.owner {
            *is_new.get_mut() = true;
        }
        Some(buffer)
    }

    /// The vector, and the position of the array in it.
    ///
    /// # Safety
    ///
    /// `T` is the element type of the vector that this was made from, no queued work uses the
    /// memory any more, and it is not registered (`unregistered`).
    pub(crate) unsafe fn into_vec<T: Element>(self) -> (Vec<T>, usize) {
        debug_assert!(
            self.registrations.get().is_none_or(|registrations| registrations.is_empty()),
            "registered memory leaves"
        );
        let this = ManuallyDrop::new(self);
        // SAFETY: the caller promises the element type, and neither `this` nor its memory is
        // dropped.
        let vector = unsafe { this.vector() };
        vector.unwrap_or_else(|| unreachable!("only memory of a vector leaves: {this:?}"))
    }

    /// The vector and the position of the array in it, while this buffer owns the memory. `None` if
    /// the memory is not that of a vector.
    ///
    /// # Safety
    ///
    /// `T` is the element type of the vector that this was made from. The vector is not dropped,
    /// changed or given away, and not used while the memory is written or after this buffer is
    /// dropped.
    pub(crate) unsafe fn vector<T: Element>(&self) -> Option<(Vec<T>, usize)> {
        let VectorParts { offset, len, capacity, .. } = self.memory.vector()?;
        let start = self.memory.pointer.as_ptr().cast::<T>().wrapping_sub(offset);
        // SAFETY: pointer, length and capacity are those of the `Vec<T>` that `from_vec` took
        // apart. The caller does not free it twice.
        Some((unsafe { Vec::from_raw_parts(start, len, capacity) }, offset))
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        let is_free = self.unregister();
        // SAFETY: `into_vec`, the only other function that takes the memory, prevents this drop,
        // and `self` is not used afterwards.
        let memory = unsafe { ManuallyDrop::take(&mut self.memory) };
        if is_free {
            return;
        }
        let memory = Arc::new(memory);
        let registrations = self.registrations.take().into_iter().flat_map(|all| all.by_kind);
        for mut registration in registrations.filter_map(OnceLock::into_inner) {
            let memory = Arc::clone(&memory) as Arc<dyn Any + Send + Sync>;
            registration.keep_until_unregistered(memory);
        }
    }
}

impl Registrations {
    fn is_empty(&self) -> bool {
        self.by_kind.iter().all(|own| own.get().is_none())
    }
}

impl Allocation {
    /// The vector, if the memory belongs to one.
    fn vector(&self) -> Option<VectorParts> {
        match &self.owner {
            Owner::Vector { element, .. } => {
                let len = self.len_bytes / element.len_bytes;
                Some(VectorParts { offset: 0, len, capacity: len, element })
            }
            Owner::Other(other) => match **other {
                OtherOwner::Vector(parts) => Some(parts),
                OtherOwner::Words(_) | OtherOwner::Driver(..) | OtherOwner::Program { .. } => None,
            },
            Owner::Caller => None,
        }
    }

    /// The vector to be freed, which may have other elements than the array.
    fn owned_vector(&self) -> Option<VectorParts> {
        if let Owner::Other(other) = &self.owner
            && let OtherOwner::Words(parts) = **other
        {
            return Some(parts);
        }
        self.vector()
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if let Some(VectorParts { offset, capacity, element, .. }) = self.owned_vector() {
            // SAFETY: `from_vec` or `of_words` chose `release` for the vector's element type, and
            // the pointer is that of its element `offset`. The capacity is the one that it found.
            unsafe { (element.release)(self.pointer, offset, capacity) }
        }
    }
}

/// Frees a vector of `T`, given the pointer to its element `offset`. Elements are plain data and
/// have no drop code, so the length does not matter.
unsafe fn release<T: Element>(start: NonNull<u8>, offset: usize, capacity: usize) {
    if capacity == 0 {
        return;
    }
    let first = start.as_ptr().cast::<T>().wrapping_sub(offset);
    // SAFETY: the caller passes the pointer that `from_vec` took from a `Vec<T>` of this capacity.
    // With length 0 no element needs to be initialised.
    drop(unsafe { Vec::from_raw_parts(first, 0, capacity) });
}

/// A vector of zeros. Returns `None` instead of aborting if there is no memory; the system zeroes
/// pages at their first use. Takes no time for elements without bytes, however many.
pub(crate) fn zeroed_vec<T: Element>(len: usize) -> Option<Vec<T>> {
    let layout = Layout::array::<T>(len).ok()?;
    if layout.size() == 0 {
        // SAFETY: a vector of no bytes has a dangling pointer, and any capacity. Either `len` is
        // 0, or elements have no bytes, and so are initialised: `T` is `Zeroable`.
        return Some(unsafe { Vec::from_raw_parts(NonNull::dangling().as_ptr(), len, len) });
    }
    // SAFETY: the layout's size is not zero.
    let pointer = NonNull::new(unsafe { alloc_zeroed(layout) })?;
    huge_pages::advise(pointer.as_ptr(), layout.size());
    // SAFETY: the memory was allocated by the global allocator with the layout of `[T; len]`, and
    // zero bytes are a valid `T`, which is `Zeroable`.
    Some(unsafe { Vec::from_raw_parts(pointer.as_ptr().cast(), len, len) })
}

#[cfg(test)]
mod tests {
    use super::HostBuffer;
    use resident_backend::HostMemory;

    #[test]
    fn a_vector_keeps_its_capacity_and_offset() {
        let mut vector = Vec::with_capacity(20);
        vector.extend(0..10_u32);
        let pointer = vector.as_ptr();
        let buffer = HostBuffer::from_vec(vector, 3, 5);
        assert_eq!(buffer.len_bytes(), 20);
        assert_eq!(buffer.base().cast::<u32>().cast_const(), pointer.wrapping_add(3));
        // SAFETY: the buffer was made from a vector of u32 above, and no work is queued.
        let (vector, offset) = unsafe { buffer.into_vec::<u32>() };
        assert_eq!(
            (vector.as_ptr(), vector.len(), vector.capacity(), offset),
            (pointer, 10, 20, 3)
        );
    }

    #[test]
    fn a_large_buffer_is_zeros_and_asks_for_huge_pages() {
        let len = 16 << 20;
        let buffer = HostBuffer::zeroed::<u8>(len).expect("memory");
        #[cfg(target_os = "linux")]
        {
            use resident_backend::huge_pages::is_advised;
            assert_ne!(is_advised(buffer.base()), Some(false));
        }
        // SAFETY: the buffer was made from a vector of bytes above, and no work is queued.
        let (vector, _) = unsafe { buffer.into_vec::<u8>() };
        assert!(vector.len() == len && vector.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn memory_in_words_is_aligned_and_leaves_as_a_copy() {
        let words = HostBuffer::of_words(5).expect("memory");
        assert!(words.base().addr().is_multiple_of(HostBuffer::ALIGNMENT_BYTES));
        assert_eq!(words.len_bytes(), 5);
        let buffer = words.unregistered::<u8>().expect("memory");
        // SAFETY: the buffer is a copy in a vector of bytes, and no work is queued.
        let (vector, offset) = unsafe { buffer.into_vec::<u8>() };
        assert_eq!((vector.as_slice(), offset), (&[0; 5][..], 0));
        let aligned = HostBuffer::aligned::<[u8; 2]>(3).expect("memory");
        assert!(aligned.base().addr().is_multiple_of(HostBuffer::ALIGNMENT_BYTES));
    }

    #[test]
    fn buffers_without_bytes_are_allowed() {
        drop(HostBuffer::zeroed::<[u8; 0]>(5).expect("no bytes fit anywhere"));
        drop(HostBuffer::zeroed::<u64>(0).expect("no bytes fit anywhere"));
        assert!(HostBuffer::zeroed::<u64>(usize::MAX / 16).is_none());
    }
}
