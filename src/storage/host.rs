//! Memory of the host that holds an array's contents: adopted from the user, or made here.

use std::alloc::{Layout, alloc_zeroed};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::backend::{DeviceKind, HostMemory, PinnedRegistration};
use crate::element::Element;

/// A `Vec`'s memory, kept as a pointer: no reference or box to it exists while it is shared with
/// devices.
///
/// It is what a vector of `T` was made of, so that it can become one again; `release` knows `T`.
#[derive(Debug)]
pub(crate) struct HostBuffer {
    /// Freed by `drop`, or handed on, once its pages are unlocked.
    memory: ManuallyDrop<Memory>,
    /// Of the vector, in elements.
    len: usize,
    /// Of the array.
    len_bytes: usize,
    /// Made by the first `page_lock`: most arrays have none.
    locks: OnceLock<Box<Locks>>,
    /// A device died in the midst of work with it: somebody holds it for good.
    is_abandoned: AtomicBool,
}

/// What locks an array's pages.
#[derive(Debug, Default)]
struct Locks {
    by_kind: [OnceLock<Box<dyn PinnedRegistration>>; DeviceKind::COUNT],
    /// Held while pages are being locked.
    locking: Mutex<()>,
}

/// What a vector allocated. It is freed when this drops.
#[derive(Debug)]
struct Memory {
    /// Where the array starts.
    pointer: NonNull<u8>,
    /// The same from the vector's start, in elements.
    offset: usize,
    capacity: usize,
    release: unsafe fn(NonNull<u8>, usize, usize),
}

// SAFETY: it owns its memory as the `Vec<T: Send + Sync>` did that it was made from; it hands out a
// pointer, and whoever uses it keeps the order of uses (DESIGN.md, "Why it is sound").
unsafe impl Send for Memory {}
// SAFETY: as above; `&Memory` allows nothing but to read the fields.
unsafe impl Sync for Memory {}

// SAFETY: `from_vec` and `zeroed` are the only makers: the pointer is the vector's, its offset and
// `len_bytes` lie within its initialised length, and the memory is released by `drop` or handed on
// by `into_vec` alone, which both consume the value.
unsafe impl HostMemory for HostBuffer {
    fn base(&self) -> *mut u8 {
        self.memory.pointer.as_ptr()
    }

    fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    fn mark_leaked(&self) {
        self.is_abandoned.store(true, Ordering::Release);
    }

    fn is_pinned_for(&self, kind: DeviceKind) -> bool {
        self.lock_for(kind).is_some()
    }
}

impl HostBuffer {
    fn lock_for(&self, kind: DeviceKind) -> Option<&dyn PinnedRegistration> {
        self.locks.get()?.by_kind[kind as usize].get().map(|lock| &**lock)
    }

    /// Locks its pages for as long as it lives. What is locked for devices of this kind already
    /// stays as it is; other kinds have locks of their own. That it is locked shows while
    /// `shut_out` keeps out those who queue copies with it: none is planned for ordinary memory and
    /// queued for locked one.
    ///
    /// # Errors
    ///
    /// That of `lock`.
    pub(crate) fn lock_pages<E, G>(
        &self,
        kind: DeviceKind,
        lock: impl FnOnce() -> Result<Box<dyn PinnedRegistration>, E>,
        shut_out: impl FnOnce() -> G,
    ) -> Result<(), E> {
        // One thread at a time: a second one would find the pages locked, and take them for
        // somebody else's to unlock.
        let locks = self.locks.get_or_init(Box::default);
        let _alone = locks.locking.lock().unwrap_or_else(PoisonError::into_inner);
        let ours = &locks.by_kind[kind as usize];
        if ours.get().is_none() {
            let lock = lock()?;
            let _shut_out = shut_out();
            let _first = ours.set(lock);
        }
        Ok(())
    }

    /// Unlocks its pages, for all devices; says whether none has them any more.
    fn unlock_pages(&mut self) -> bool {
        let Some(locks) = self.locks.get_mut() else { return true };
        for lock in &mut locks.by_kind {
            if lock.get_mut().is_some_and(|lock| lock.unregister()) {
                lock.take();
            }
        }
        let is_free = locks.by_kind.iter().all(|lock| lock.get().is_none());
        if is_free {
            self.locks.take();
        }
        is_free
    }

    /// Itself, its pages unlocked, so that the memory can leave the library. Where a device still
    /// has them, the memory stays behind, and a copy leaves; `None` if there is no room for one.
    /// Nothing queued touches it any more; `T` is the type that it was made with.
    pub(crate) fn unlocked<T: Element>(mut self) -> Option<Self> {
        if self.unlock_pages() { Some(self) } else { self.copied::<T>() }
    }

    /// Takes over the memory of a vector, of which the array is `len` elements from `offset`.
    pub(crate) fn from_vec<T: Element>(vector: Vec<T>, offset: usize, len: usize) -> Self {
        assert!(
            offset + len <= vector.len(),
            "an array of {len} elements from {offset} in a vector of {}",
            vector.len()
        );
        let mut vector = ManuallyDrop::new(vector);
        let start = vector.as_mut_ptr().wrapping_add(offset);
        let pointer = NonNull::new(start).unwrap_or(NonNull::dangling()).cast();
        Self {
            memory: ManuallyDrop::new(Memory {
                pointer,
                offset,
                capacity: vector.capacity(),
                release: release::<T>,
            }),
            len: vector.len(),
            len_bytes: len * size_of::<T>(),
            locks: OnceLock::new(),
            is_abandoned: AtomicBool::new(false),
        }
    }

    /// A copy in memory of its own, if this one will never have a sole owner again; `None` if there
    /// is no room. Nobody writes it meanwhile, but the remains of a dead device's work. `T` is the
    /// type that it was made with.
    pub(crate) fn rescued<T: Element>(&self) -> Option<Option<Self>> {
        self.is_abandoned.load(Ordering::Acquire).then(|| self.copied::<T>())
    }

    fn copied<T: Element>(&self) -> Option<Self> {
        let copy = Self::zeroed::<T>(self.len_bytes / size_of::<T>().max(1))?;
        // SAFETY: both have `len_bytes` initialised bytes (`HostMemory`), the copy nobody else
        // knows of.
        unsafe { std::ptr::copy_nonoverlapping(self.base(), copy.base(), self.len_bytes) };
        Some(copy)
    }

    /// Makes memory for `len` elements, all bytes zero; `None` if there is no room.
    pub(crate) fn zeroed<T: Element>(len: usize) -> Option<Self> {
        zeroed_vec::<T>(len).map(|vector| Self::from_vec(vector, 0, len))
    }

    /// The vector again, and where the array starts in it. `T` is the type that it was made with.
    ///
    /// # Safety
    ///
    /// `T` is the element type of the vector that this was made from, nothing queued touches the
    /// memory any more, and its pages are unlocked (`unlocked`).
    pub(crate) unsafe fn into_vec<T: Element>(self) -> (Vec<T>, usize) {
        debug_assert!(self.locks.get().is_none(), "locked memory leaves");
        let this = ManuallyDrop::new(self);
        let Memory { pointer, offset, capacity, .. } = *this.memory;
        let start = pointer.as_ptr().cast::<T>().wrapping_sub(offset);
        // SAFETY: pointer, length and capacity are those of the `Vec<T>` that `from_vec` took
        // apart, and neither `this` nor its memory is dropped.
        (unsafe { Vec::from_raw_parts(start, this.len, capacity) }, offset)
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        let is_free = self.unlock_pages();
        // SAFETY: nobody takes it elsewhere (`into_vec` does not come here), and `self` is gone
        // after this.
        let memory = unsafe { ManuallyDrop::take(&mut self.memory) };
        if is_free {
            return;
        }
        let memory = Arc::new(memory);
        let locks = self.locks.take().into_iter().flat_map(|locks| locks.by_kind);
        for mut lock in locks.filter_map(OnceLock::into_inner) {
            lock.keep_until_unregistered(
                Arc::clone(&memory) as Arc<dyn std::any::Any + Send + Sync>
            );
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `release` was chosen by `from_vec` for the type whose vector this is; the pointer
        // is that of its element `offset`.
        unsafe { (self.release)(self.pointer, self.offset, self.capacity) }
    }
}

/// Frees a vector of `T` by the pointer to its element `offset`. Elements are plain data: nothing
/// is dropped, so the length is of no interest.
unsafe fn release<T: Element>(start: NonNull<u8>, offset: usize, capacity: usize) {
    if capacity == 0 {
        return;
    }
    let first = start.as_ptr().cast::<T>().wrapping_sub(offset);
    // SAFETY: the caller passes what `from_vec` took from a `Vec<T>` of that capacity; length 0 is
    // always initialised.
    drop(unsafe { Vec::from_raw_parts(first, 0, capacity) });
}

/// A vector of zeros that fails instead of aborting, and whose pages the system zeroes when they
/// are touched.
fn zeroed_vec<T: Element>(len: usize) -> Option<Vec<T>> {
    let layout = Layout::array::<T>(len).ok()?;
    if layout.size() == 0 {
        let mut vector = Vec::new();
        vector.resize(len, T::zeroed());
        return Some(vector);
    }
    // SAFETY: the layout's size is not zero.
    let pointer = NonNull::new(unsafe { alloc_zeroed(layout) })?;
    // SAFETY: allocated by the global allocator with the layout of `[T; len]`; all bytes zero is a
    // `T`, which is `Zeroable`.
    Some(unsafe { Vec::from_raw_parts(pointer.as_ptr().cast(), len, len) })
}

#[cfg(test)]
mod tests {
    use super::HostBuffer;
    use crate::backend::HostMemory;

    #[test]
    fn a_vector_comes_back_with_its_capacity_and_offset() {
        let mut vector = Vec::with_capacity(20);
        vector.extend(0..10_u32);
        let pointer = vector.as_ptr();
        let buffer = HostBuffer::from_vec(vector, 3, 5);
        assert_eq!(buffer.len_bytes(), 20);
        assert_eq!(buffer.base().cast::<u32>().cast_const(), pointer.wrapping_add(3));
        // SAFETY: made from a vector of u32 two lines up; nothing is queued.
        let (vector, offset) = unsafe { buffer.into_vec::<u32>() };
        assert_eq!(
            (vector.as_ptr(), vector.len(), vector.capacity(), offset),
            (pointer, 10, 20, 3)
        );
    }

    #[test]
    fn memory_without_bytes_is_memory() {
        drop(HostBuffer::zeroed::<[u8; 0]>(5).expect("no bytes fit anywhere"));
        drop(HostBuffer::zeroed::<u64>(0).expect("no bytes fit anywhere"));
        assert!(HostBuffer::zeroed::<u64>(usize::MAX / 16).is_none());
    }
}
