//! One block of memory: initialised, aligned, accessed only by raw pointer.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::leftovers::Leftovers;
use resident_backend::huge_pages::{self, HUGE_PAGE_BYTES, HUGE_PAGES_BYTES_MIN};
use resident_backend::reserved_memory::ReservedMemory;
use resident_backend::{ForeignMemory, HostMemory};

/// Every block starts at a multiple of this many bytes; a large one at a huge page.
pub(crate) const ALIGNMENT_BYTES: usize = 256;

/// The alignment requested from the system allocator. With a larger alignment, the allocator would
/// clear the memory itself instead of mapping zeroed pages.
const SYSTEM_ALIGNMENT_BYTES: usize = 16;

/// Device memory. A block's bytes are always initialised, and no reference to them is ever made.
pub(super) struct Block {
    owner: Owner,
    start: NonNull<u8>,
    len_bytes: usize,
    /// Whether nothing was copied to the block yet.
    is_new: AtomicBool,
    /// Whether other code knows the address.
    is_exposed: AtomicBool,
    leftovers: Leftovers,
}

/// What a block's memory belongs to.
enum Owner {
    /// An allocation of the system allocator, with the layout for the block's length.
    Own(NonNull<u8>),
    /// A reservation, whose pages are returned to the system one by one.
    Reserved(ReservedMemory),
    /// Other code, which frees the memory when this object drops.
    Foreign { _owner: Box<dyn Any + Send + Sync> },
    /// The caller, who lends the memory until the block drops.
    Caller,
    /// An array, whose host memory it is.
    Host { _memory: Arc<dyn HostMemory> },
}

// SAFETY: a block owns its memory, and no part of it is bound to a thread.
unsafe impl Send for Block {}
// SAFETY: a shared block returns only raw pointers. The order of work ensures that operations use
// them without conflicts (`backend`, contract).
unsafe impl Sync for Block {}

impl Block {
    /// A block of zeros, or `None` if the system has no memory.
    pub(super) fn zeroed(len_bytes: u64) -> Option<Self> {
        let len_bytes = usize::try_from(len_bytes).ok().filter(|len_bytes| *len_bytes > 0)?;
        let alignment_bytes = alignment_bytes(len_bytes);
        let layout = layout(len_bytes)?;
        // SAFETY: the layout's size is above zero, since `len_bytes` is, as checked above.
        let allocation = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let gap_bytes = allocation.as_ptr().align_offset(alignment_bytes);
        let start = NonNull::new(allocation.as_ptr().wrapping_add(gap_bytes))?;
        huge_pages::advise(start.as_ptr(), len_bytes);
        // The allocator's alignment ensures that the gap is at most the padding. It is still
        // checked, since memory safety depends on it.
        (gap_bytes <= layout.size() - len_bytes).then_some(Self {
            owner: Owner::Own(allocation),
            start,
            len_bytes,
            is_new: AtomicBool::new(true),
            is_exposed: AtomicBool::new(false),
            leftovers: Leftovers::default(),
        })
    }

    /// A block of reserved memory, all zeros. `None` if the system has no addresses left.
    pub(super) fn reserved(len_bytes: u64) -> Option<Self> {
        let len_bytes = usize::try_from(len_bytes).ok()?;
        let memory = ReservedMemory::new(len_bytes)?;
        let start = NonNull::new(memory.start())?;
        let (is_new, is_exposed) = (AtomicBool::new(true), AtomicBool::new(false));
        let (owner, leftovers) = (Owner::Reserved(memory), Leftovers::default());
        Some(Self { owner, start, len_bytes, is_new, is_exposed, leftovers })
    }

    /// A block of memory of other code. `None` if it has no bytes.
    ///
    /// # Safety
    ///
    /// As [`Backend::take_over`](resident_backend::Backend::take_over).
    pub(super) unsafe fn foreign(memory: ForeignMemory) -> Option<Self> {
        let len_bytes =
            usize::try_from(memory.len_bytes).ok().filter(|len_bytes| *len_bytes > 0)?;
        let (start, owner) = (NonNull::new(memory.start)?, Owner::Foreign { _owner: memory.owner });
        let (is_new, is_exposed) = (AtomicBool::new(false), AtomicBool::new(true));
        let leftovers = Leftovers::default();
        Some(Self { owner, start, len_bytes, is_new, is_exposed, leftovers })
    }

    /// A block of memory of the caller. `None` if it has no bytes.
    ///
    /// # Safety
    ///
    /// The bytes are initialised, and stay allocated until the block drops.
    pub(super) unsafe fn lent(start: *mut u8, len_bytes: usize) -> Option<Self> {
        let start = NonNull::new(start).filter(|_| len_bytes > 0)?;
        let (is_new, is_exposed) = (AtomicBool::new(false), AtomicBool::new(true));
        let (owner, leftovers) = (Owner::Caller, Leftovers::default());
        Some(Self { owner, start, len_bytes, is_new, is_exposed, leftovers })
    }

    /// A block of host memory. `None` if it has no bytes.
    pub(super) fn shared(memory: Arc<dyn HostMemory>) -> Option<Self> {
        // SAFETY: the bytes are initialised, and stay allocated while the block has the handle
        // (contract of `HostMemory`).
        let mut block = unsafe { Self::lent(memory.base(), memory.len_bytes()) }?;
        block.owner = Owner::Host { _memory: memory };
        Some(block)
    }

    /// Whether the memory belongs to other code, so that it must not be used once it is freed.
    pub(super) fn is_foreign(&self) -> bool {
        matches!(self.owner, Owner::Foreign { .. } | Owner::Caller)
    }

    pub(super) fn is_reserved(&self) -> bool {
        matches!(self.owner, Owner::Reserved(_))
    }

    /// The block's length.
    pub(super) fn len_bytes(&self) -> u64 {
        self.len_bytes as u64
    }

    /// The block's first byte, valid for reads and writes of `len_bytes` while the block lives.
    pub(super) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Whether this is the first call for the block.
    pub(super) fn take_new(&self) -> bool {
        self.is_new.swap(false, Ordering::Relaxed)
    }

    /// What the block has of an array that had it before.
    pub(super) fn leftovers(&self) -> &Leftovers {
        &self.leftovers
    }

    /// Other code learns the address, and may access the memory.
    pub(super) fn expose(&self) {
        self.is_exposed.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_exposed(&self) -> bool {
        self.is_exposed.load(Ordering::Relaxed)
    }

    /// Overwrites every byte.
    pub(super) fn fill(&mut self, byte: u8) {
        // SAFETY: `start` is valid for `len_bytes` (`zeroed`). `&mut self` proves that there is no
        // other handle, so no operation uses the block.
        unsafe { self.start.as_ptr().write_bytes(byte, self.len_bytes) };
    }

    /// Prepares these bytes of a reservation for use: as huge pages, if they are many, and filled,
    /// if there is a byte for that.
    ///
    /// # Safety
    ///
    /// The bytes lie in the block, and nothing else accesses them meanwhile.
    pub(super) unsafe fn commit(&self, bytes: &Range<u64>, fill: Option<u8>) {
        let len_bytes = (bytes.end - bytes.start) as usize;
        let start = self.start().wrapping_add(bytes.start as usize);
        huge_pages::advise(start, len_bytes);
        if let Some(byte) = fill {
            // SAFETY: `start` is valid for the block's length while the block lives, and the caller
            // promises that nothing else accesses these bytes.
            unsafe { start.write_bytes(byte, len_bytes) };
        }
    }

    /// Returns the memory of these bytes of a reservation to the system.
    ///
    /// # Safety
    ///
    /// Nothing else accesses the bytes meanwhile.
    pub(super) unsafe fn decommit(&self, bytes: &Range<u64>) {
        if let Owner::Reserved(memory) = &self.owner {
            // SAFETY: the caller's promise is passed on.
            unsafe { memory.discard(&(bytes.start as usize..bytes.end as usize)) };
        }
    }
}

/// The alignment of a block with this length.
fn alignment_bytes(len_bytes: usize) -> usize {
    if len_bytes < HUGE_PAGES_BYTES_MIN { ALIGNMENT_BYTES } else { HUGE_PAGE_BYTES }
}

/// The layout of the allocation for a block with this length: with room to align the block. `None`
/// if there is no such layout.
fn layout(len_bytes: usize) -> Option<Layout> {
    let padded_bytes =
        len_bytes.checked_add(alignment_bytes(len_bytes) - SYSTEM_ALIGNMENT_BYTES)?;
    Layout::from_size_align(padded_bytes, SYSTEM_ALIGNMENT_BYTES).ok()
}

impl Drop for Block {
    fn drop(&mut self) {
        match &self.owner {
            Owner::Own(allocation) => {
                if let Some(layout) = layout(self.len_bytes) {
                    // SAFETY: the allocation came from `alloc_zeroed` with the layout for this
                    // length (`zeroed`) and is deallocated once, here.
                    unsafe { dealloc(allocation.as_ptr(), layout) };
                }
            }
            // The owner is dropped next, and frees the memory.
            Owner::Foreign { .. } | Owner::Reserved(_) => {}
            Owner::Caller | Owner::Host { .. } => {}
        }
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Block({} bytes)", self.len_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::{ALIGNMENT_BYTES, Block, HUGE_PAGE_BYTES, HUGE_PAGES_BYTES_MIN};

    #[test]
    fn large_blocks_start_at_a_huge_page_and_all_are_zeros() {
        let long = HUGE_PAGES_BYTES_MIN;
        for (len_bytes, alignment_bytes) in
            [(1, ALIGNMENT_BYTES), (long - 1, ALIGNMENT_BYTES), (long, HUGE_PAGE_BYTES)]
        {
            let block = Block::zeroed(len_bytes as u64).expect("memory");
            assert_eq!(block.start().addr() % alignment_bytes, 0);
            // SAFETY: the block has this many initialised bytes, which nothing else uses.
            let bytes = unsafe { std::slice::from_raw_parts(block.start(), len_bytes) };
            assert!(bytes.iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn large_blocks_ask_for_huge_pages() {
        use resident_backend::huge_pages::is_advised;
        let block = Block::zeroed(16 << 20).expect("memory");
        assert_ne!(is_advised(block.start()), Some(false));
    }
}
