//! One block of memory: always initialised, aligned, reached by raw pointer alone.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::ptr::NonNull;

/// Every block starts at a multiple of this many bytes.
pub(super) const ALIGNMENT_BYTES: usize = 256;

/// What is asked of the system allocator: above this alignment it would clear the memory by hand
/// instead of taking clear pages.
const SYSTEM_ALIGNMENT_BYTES: usize = 16;

/// Memory of the device. Its bytes are initialised from the start and stay so; no reference to them
/// is ever made.
pub(super) struct Block {
    allocation: NonNull<u8>,
    layout: Layout,
    start: NonNull<u8>,
    len_bytes: usize,
}

// SAFETY: a block is an owned allocation that no thread has a claim to; nothing in it depends on
// the thread.
unsafe impl Send for Block {}
// SAFETY: a shared block gives out raw pointers only. Who may use them when is kept by the order of
// work (`backend`, contract).
unsafe impl Sync for Block {}

impl Block {
    /// Zeroed memory, or nothing if the system has none.
    pub(super) fn zeroed(len_bytes: u64) -> Option<Self> {
        let len_bytes = usize::try_from(len_bytes).ok().filter(|len_bytes| *len_bytes > 0)?;
        let padded_bytes = len_bytes.checked_add(ALIGNMENT_BYTES - SYSTEM_ALIGNMENT_BYTES)?;
        let layout = Layout::from_size_align(padded_bytes, SYSTEM_ALIGNMENT_BYTES).ok()?;
        // SAFETY: the layout's size is above zero, since `len_bytes` is: filtered above.
        let allocation = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let gap_bytes = allocation.as_ptr().align_offset(ALIGNMENT_BYTES);
        let start = NonNull::new(allocation.as_ptr().wrapping_add(gap_bytes))?;
        // The system's alignment leaves at most the padding as a gap; asked for all the same, since
        // bounds rest on it.
        (gap_bytes <= padded_bytes - len_bytes).then_some(Self {
            allocation,
            layout,
            start,
            len_bytes,
        })
    }

    /// Bytes of it.
    pub(super) fn len_bytes(&self) -> u64 {
        self.len_bytes as u64
    }

    /// Its first byte; valid for reads and writes of `len_bytes` while the block lives.
    pub(super) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Overwrites all of a block that nobody else can reach.
    pub(super) fn fill(&mut self, byte: u8) {
        // SAFETY: `start` is valid for `len_bytes` (`zeroed`), and `&mut self` says that no other
        // handle, so no work, has the block.
        unsafe { self.start.as_ptr().write_bytes(byte, self.len_bytes) };
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: `allocation` came from `alloc_zeroed` with this very layout (`zeroed`) and is
        // given back once, here.
        unsafe { dealloc(self.allocation.as_ptr(), self.layout) };
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Block({} bytes)", self.len_bytes)
    }
}
