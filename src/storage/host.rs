//! Memory of the host that holds an array's contents: adopted from the user, or made here.

use std::alloc::{Layout, alloc_zeroed};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::backend::{DeviceKind, HostMemory, PageLock};
use crate::element::Element;

/// A `Vec`'s memory, kept as a pointer: no reference or box to it exists while it is shared with devices.
///
/// It is what a vector of `T` was made of, so that it can become one again; `release` knows `T`.
#[derive(Debug)]
pub(crate) struct HostBuffer {
    pointer: NonNull<u8>,
    /// Of the vector, in elements.
    len: usize,
    capacity: usize,
    /// Where the array starts in it, in elements.
    offset: usize,
    /// Of the array.
    len_bytes: usize,
    release: unsafe fn(NonNull<u8>, usize, usize),
    /// Set once, by `page_lock`. It goes before the memory does.
    locked: OnceLock<Locked>,
    /// Held while pages are being locked.
    locking: Mutex<()>,
    /// A device died in the midst of work with it: somebody holds it for good.
    is_abandoned: AtomicBool,
}

/// Pages locked for one kind of device.
#[derive(Debug)]
struct Locked {
    kind: DeviceKind,
    _lock: Box<dyn PageLock>,
}

// SAFETY: the buffer owns its memory as the `Vec<T: Send + Sync>` did that it was made from; it hands out a pointer, and whoever uses it keeps the
// order of uses (DESIGN.md, "Why it is sound").
unsafe impl Send for HostBuffer {}
// SAFETY: as above; `&HostBuffer` allows nothing but to read the fields.
unsafe impl Sync for HostBuffer {}

// SAFETY: `from_vec` and `zeroed` are the only makers: the pointer is the vector's, `offset` and `len_bytes` lie within its initialised length, and
// the memory is released by `drop` or handed on by `into_vec` alone, which both consume the value.
unsafe impl HostMemory for HostBuffer {
    fn base(&self) -> *mut u8 {
        self.pointer.as_ptr()
    }

    fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Release);
    }

    fn is_page_locked(&self, kind: DeviceKind) -> bool {
        self.locked.get().is_some_and(|locked| locked.kind == kind)
    }
}

impl HostBuffer {
    /// Whether its pages are locked for some kind of device.
    pub(crate) fn is_locked(&self) -> bool {
        self.locked.get().is_some()
    }

    /// Locks its pages for as long as it lives. One that is locked already stays as it is.
    ///
    /// # Errors
    ///
    /// That of `lock`.
    pub(crate) fn lock_pages<E>(&self, kind: DeviceKind, lock: impl FnOnce() -> Result<Box<dyn PageLock>, E>) -> Result<(), E> {
        // One thread at a time: a second one would find the pages locked, and take them for somebody else's to unlock.
        let _alone = self.locking.lock().unwrap_or_else(PoisonError::into_inner);
        if self.locked.get().is_none() {
            let _first = self.locked.set(Locked { kind, _lock: lock()? });
        }
        Ok(())
    }

    /// Takes over the memory of a vector, of which the array is `len` elements from `offset`.
    pub(crate) fn from_vec<T: Element>(vector: Vec<T>, offset: usize, len: usize) -> Self {
        assert!(offset + len <= vector.len(), "an array of {len} elements from {offset} in a vector of {}", vector.len());
        let mut vector = std::mem::ManuallyDrop::new(vector);
        let start = vector.as_mut_ptr().wrapping_add(offset);
        Self {
            pointer: NonNull::new(start).unwrap_or(NonNull::dangling()).cast(),
            len: vector.len(),
            capacity: vector.capacity(),
            offset,
            len_bytes: len * size_of::<T>(),
            release: release::<T>,
            locked: OnceLock::new(),
            locking: Mutex::new(()),
            is_abandoned: AtomicBool::new(false),
        }
    }

    /// A copy in memory of its own, if this one will never have a sole owner again; `None` if there is no room. Nobody writes it meanwhile, but the remains
    /// of a dead device's work. `T` is the type that it was made with.
    pub(crate) fn rescued<T: Element>(&self) -> Option<Option<Self>> {
        if !self.is_abandoned.load(Ordering::Acquire) {
            return None;
        }
        let copy = Self::zeroed::<T>(self.len_bytes / size_of::<T>().max(1));
        if let Some(copy) = &copy {
            // SAFETY: both have `len_bytes` initialised bytes (`HostMemory`), the copy nobody else knows of.
            unsafe { std::ptr::copy_nonoverlapping(self.base(), copy.base(), self.len_bytes) };
        }
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
    /// `T` is the element type of the vector that this was made from, and nothing queued touches the memory any more.
    pub(crate) unsafe fn into_vec<T: Element>(self) -> (Vec<T>, usize) {
        let mut this = std::mem::ManuallyDrop::new(self);
        drop(this.locked.take());
        let start = this.pointer.as_ptr().cast::<T>().wrapping_sub(this.offset);
        // SAFETY: pointer, length and capacity are those of the `Vec<T>` that `from_vec` took apart, and `this` is not dropped.
        (unsafe { Vec::from_raw_parts(start, this.len, this.capacity) }, this.offset)
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        drop(self.locked.take());
        // SAFETY: `release` was chosen by `from_vec` for the type whose vector this is; the pointer is that of its element `offset`.
        unsafe { (self.release)(self.pointer, self.offset, self.capacity) }
    }
}

/// Frees a vector of `T` by the pointer to its element `offset`. Elements are plain data: nothing is dropped, so the length is of no interest.
unsafe fn release<T: Element>(start: NonNull<u8>, offset: usize, capacity: usize) {
    if capacity == 0 {
        return;
    }
    let first = start.as_ptr().cast::<T>().wrapping_sub(offset);
    // SAFETY: the caller passes what `from_vec` took from a `Vec<T>` of that capacity; length 0 is always initialised.
    drop(unsafe { Vec::from_raw_parts(first, 0, capacity) });
}

/// A vector of zeros that fails instead of aborting, and whose pages the system zeroes when they are touched.
fn zeroed_vec<T: Element>(len: usize) -> Option<Vec<T>> {
    let layout = Layout::array::<T>(len).ok()?;
    if layout.size() == 0 {
        let mut vector = Vec::new();
        vector.resize(len, T::zeroed());
        return Some(vector);
    }
    // SAFETY: the layout's size is not zero.
    let pointer = NonNull::new(unsafe { alloc_zeroed(layout) })?;
    // SAFETY: allocated by the global allocator with the layout of `[T; len]`; all bytes zero is a `T`, which is `Zeroable`.
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
        assert_eq!((vector.as_ptr(), vector.len(), vector.capacity(), offset), (pointer, 10, 20, 3));
    }

    #[test]
    fn memory_without_bytes_is_memory() {
        drop(HostBuffer::zeroed::<[u8; 0]>(5).expect("no bytes fit anywhere"));
        drop(HostBuffer::zeroed::<u64>(0).expect("no bytes fit anywhere"));
        assert!(HostBuffer::zeroed::<u64>(usize::MAX / 16).is_none());
    }
}
