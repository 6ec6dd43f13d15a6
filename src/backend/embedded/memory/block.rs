//! One block of memory: initialised, aligned, accessed only by raw pointer.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::ptr::NonNull;

/// Every block starts at a multiple of this many bytes.
pub(crate) const ALIGNMENT_BYTES: usize = 256;

/// The alignment requested from the system allocator. With a larger alignment, the allocator would
/// clear the memory itself instead of mapping zeroed pages.
const SYSTEM_ALIGNMENT_BYTES: usize = 16;

/// Device memory. Its bytes are always initialised, and no reference to them is ever made.
pub(super) struct Block {
    allocation: NonNull<u8>,
    layout: Layout,
    start: NonNull<u8>,
    len_bytes: usize,
}

// SAFETY: a block owns its allocation, and nothing in it depends on the thread.
unsafe impl Send for Block {}
// SAFETY: a shared block gives out only raw pointers. The order of work decides which operation may
// use them when (`backend`, contract).
unsafe impl Sync for Block {}

impl Block {
    /// Zeroed memory, or `None` if the system has none.
    pub(super) fn zeroed(len_bytes: u64) -> Option<Self> {
        let len_bytes = usize::try_from(len_bytes).ok().filter(|len_bytes| *len_bytes > 0)?;
        let padded_bytes = len_bytes.checked_add(ALIGNMENT_BYTES - SYSTEM_ALIGNMENT_BYTES)?;
        let layout = Layout::from_size_align(padded_bytes, SYSTEM_ALIGNMENT_BYTES).ok()?;
        // SAFETY: the layout's size is above zero, since `len_bytes` is: filtered above.
        let allocation = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let gap_bytes = allocation.as_ptr().align_offset(ALIGNMENT_BYTES);
        let start = NonNull::new(allocation.as_ptr().wrapping_add(gap_bytes))?;
        // The system's alignment bounds the gap by the padding. The check stays nevertheless, since
        // memory safety depends on it.
        (gap_bytes <= padded_bytes - len_bytes).then_some(Self {
            allocation,
            layout,
            start,
            len_bytes,
        })
    }

    /// The block's length.
    pub(super) fn len_bytes(&self) -> u64 {
        self.len_bytes as u64
    }

    /// The block's first byte, valid for reads and writes of `len_bytes` while the block lives.
    pub(super) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Overwrites every byte.
    pub(super) fn fill(&mut self, byte: u8) {
        // SAFETY: `start` is valid for `len_bytes` (`zeroed`). `&mut self` means that no other
        // handle, and so no operation, has the block.
        unsafe { self.start.as_ptr().write_bytes(byte, self.len_bytes) };
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: `allocation` came from `alloc_zeroed` with this layout (`zeroed`) and is
        // deallocated once, here.
        unsafe { dealloc(self.allocation.as_ptr(), self.layout) };
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Block({} bytes)", self.len_bytes)
    }
}
