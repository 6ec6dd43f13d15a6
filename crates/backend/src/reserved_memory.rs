//! Memory of this process that is reserved as a whole, and of which the system keeps what is used.

use std::ops::Range;
use std::ptr::NonNull;

/// Memory of this process, page-aligned. Its bytes are always initialised: zeros until they are
/// written, which no memory backs, if the system can do so (Linux).
#[derive(Debug)]
pub struct ReservedMemory {
    start: NonNull<u8>,
    len_bytes: usize,
}

// SAFETY: the value owns its memory, and no part of it is bound to a thread.
unsafe impl Send for ReservedMemory {}
// SAFETY: a shared value returns only a raw pointer.
unsafe impl Sync for ReservedMemory {}

impl ReservedMemory {
    /// `None` for no bytes, or if the system has no addresses left.
    #[must_use]
    pub fn new(len_bytes: usize) -> Option<Self> {
        let start = if len_bytes == 0 { None } else { system::reserve(len_bytes) }?;
        Some(Self { start, len_bytes })
    }

    /// The first byte, valid for reads and writes of the whole length while this value lives.
    #[must_use]
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Returns the memory of these bytes to the system, as far as they are whole pages of it. They
    /// are zeros then, if the system can do so; other bytes keep their contents.
    ///
    /// # Safety
    ///
    /// Nothing else accesses these bytes meanwhile.
    pub unsafe fn discard(&self, bytes: &Range<usize>) {
        let end = bytes.end.min(self.len_bytes);
        if bytes.start < end {
            // SAFETY: the bytes lie in this memory, and the caller promises that nothing else
            // accesses them.
            unsafe { system::discard(self.start(), bytes.start..end) };
        }
    }
}

impl Drop for ReservedMemory {
    fn drop(&mut self) {
        // SAFETY: the memory came from `reserve` with this length, and is released once, here.
        unsafe { system::release(self.start, self.len_bytes) };
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
mod system {
    use std::ops::Range;
    use std::ptr::NonNull;

    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
    use rustix::param::page_size;

    pub(super) fn reserve(len_bytes: usize) -> Option<NonNull<u8>> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        let (anywhere, flags) = (std::ptr::null_mut(), flags | MapFlags::NORESERVE);
        // SAFETY: the system chooses addresses that nothing else uses.
        let start = unsafe { mmap_anonymous(anywhere, len_bytes, access, flags) };
        NonNull::new(start.ok()?.cast())
    }

    /// # Safety
    ///
    /// As [`ReservedMemory::discard`](super::ReservedMemory::discard), within the memory.
    pub(super) unsafe fn discard(start: *mut u8, bytes: Range<usize>) {
        // The memory starts at a page. Its last page belongs to it as a whole, but may hold bytes
        // before the range.
        let first = bytes.start.next_multiple_of(page_size());
        let end = bytes.end / page_size() * page_size();
        if first < end {
            let first_page = start.wrapping_add(first).cast();
            // SAFETY: these are whole pages of a private anonymous mapping, which are zeros from
            // now on. The caller promises that nothing else accesses them.
            let _kept = unsafe { madvise(first_page, end - first, Advice::LinuxDontNeed) };
        }
    }

    /// # Safety
    ///
    /// The memory came from `reserve`, and nothing uses it any more.
    pub(super) unsafe fn release(start: NonNull<u8>, len_bytes: usize) {
        // SAFETY: as this function.
        let _never_refused = unsafe { munmap(start.as_ptr().cast(), len_bytes) };
    }
}

#[cfg(any(not(target_os = "linux"), miri))]
mod system {
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::ops::Range;
    use std::ptr::NonNull;

    /// That of all memory of devices (`ALIGNMENT_BYTES` in `crates/embedded`).
    const ALIGNMENT_BYTES: usize = 256;

    pub(super) fn reserve(len_bytes: usize) -> Option<NonNull<u8>> {
        let layout = Layout::from_size_align(len_bytes, ALIGNMENT_BYTES).ok()?;
        // SAFETY: the length is above zero, as the caller has checked.
        NonNull::new(unsafe { alloc_zeroed(layout) })
    }

    /// # Safety
    ///
    /// None.
    pub(super) unsafe fn discard(_start: *mut u8, _bytes: Range<usize>) {}

    /// # Safety
    ///
    /// The memory came from `reserve` with this length, and nothing uses it any more.
    pub(super) unsafe fn release(start: NonNull<u8>, len_bytes: usize) {
        if let Ok(layout) = Layout::from_size_align(len_bytes, ALIGNMENT_BYTES) {
            // SAFETY: as this function.
            unsafe { dealloc(start.as_ptr(), layout) };
        }
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::ReservedMemory;

    #[test]
    fn whole_pages_of_what_is_discarded_are_zeros_and_others_keep_their_contents() {
        let page_bytes = rustix::param::page_size();
        let memory = ReservedMemory::new(4 * page_bytes + 10).expect("addresses");
        let len_bytes = 4 * page_bytes + 10;
        // SAFETY: the memory has this length, and nothing else uses it.
        unsafe { memory.start().write_bytes(7, len_bytes) };
        for range in [0..page_bytes, page_bytes + 1..3 * page_bytes + 1, 4 * page_bytes..len_bytes]
        {
            // SAFETY: nothing else uses the memory.
            unsafe { memory.discard(&range) };
        }
        // SAFETY: as above.
        let bytes = unsafe { std::slice::from_raw_parts(memory.start(), len_bytes) };
        let is_cleared = |page: usize| bytes[page * page_bytes..][..10] == [0; 10];
        assert_eq!([0, 1, 2, 3, 4].map(is_cleared), [true, false, true, false, false]);
        let of = |byte| bytes.iter().filter(|found| **found == byte).count();
        assert_eq!((of(0), of(7)), (2 * page_bytes, 2 * page_bytes + 10));
    }

    #[test]
    fn more_than_the_machine_has_can_be_reserved() {
        let memory = ReservedMemory::new(1 << 42).expect("addresses");
        // SAFETY: the memory is longer, and nothing else uses it.
        let byte = unsafe { memory.start().wrapping_add(1 << 41).read() };
        assert_eq!(byte, 0);
        assert!(ReservedMemory::new(0).is_none());
    }
}
