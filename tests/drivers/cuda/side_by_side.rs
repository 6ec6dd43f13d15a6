//! An allocator for tests. On request it makes allocations adjacent, except for the gap that an
//! ordinary allocator leaves between blocks, and it records which of them were freed. It never
//! reuses the memory of adjacent allocations.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

pub(crate) const PAGE_BYTES: usize = 4096;

/// Smaller allocations are not used for the elements of arrays.
const LEN_BYTES_MIN: usize = 1024;
const ROOM_BYTES: usize = 8 << 20;
/// The alignment of an ordinary allocator, and the size of its header before each block.
const ALIGNMENT_BYTES: usize = 16;

#[global_allocator]
static ALLOCATOR: SideBySide =
    SideBySide { room: AtomicUsize::new(0), used_bytes: AtomicUsize::new(0) };

struct SideBySide {
    /// The start of the memory for adjacent allocations; 0 until it is allocated.
    room: AtomicUsize,
    used_bytes: AtomicUsize,
}

/// For each possible start of a block: whether that block was freed.
static GIVEN_BACK: [AtomicBool; ROOM_BYTES / ALIGNMENT_BYTES] =
    [const { AtomicBool::new(false) }; ROOM_BYTES / ALIGNMENT_BYTES];

thread_local! {
    static IS_ASKED_FOR: Cell<bool> = const { Cell::new(false) };
}

/// Runs `make` so that its allocations are adjacent; the first starts at the start of a page.
pub(crate) fn side_by_side<T>(make: impl FnOnce() -> T) -> T {
    let whole_pages = |used_bytes: usize| Some(used_bytes.next_multiple_of(PAGE_BYTES));
    let _started =
        ALLOCATOR.used_bytes.fetch_update(Ordering::SeqCst, Ordering::SeqCst, whole_pages);
    IS_ASKED_FOR.set(true);
    let made = make();
    IS_ASKED_FOR.set(false);
    made
}

/// Whether the adjacent block that starts at this address was freed.
pub(crate) fn is_given_back(start: usize) -> bool {
    GIVEN_BACK[ALLOCATOR.place(start).expect("an adjacent block")].load(Ordering::SeqCst)
}

impl SideBySide {
    fn place(&self, start: usize) -> Option<usize> {
        let room = self.room.load(Ordering::SeqCst);
        start
            .checked_sub(room)
            .filter(|offset| room != 0 && *offset < ROOM_BYTES)
            .map(|offset| offset / ALIGNMENT_BYTES)
    }

    fn next(&self, len_bytes: usize) -> *mut u8 {
        if self.room.load(Ordering::SeqCst) == 0 {
            let layout = Layout::from_size_align(ROOM_BYTES, PAGE_BYTES).expect("a layout");
            // SAFETY: the layout's size is not zero.
            let room = unsafe { System.alloc_zeroed(layout) };
            let _others = self.room.compare_exchange(
                0,
                room.expose_provenance(),
                Ordering::SeqCst,
                Ordering::SeqCst,
            );
        }
        let taken_bytes = (len_bytes + ALIGNMENT_BYTES).next_multiple_of(ALIGNMENT_BYTES);
        let offset = self.used_bytes.fetch_add(taken_bytes, Ordering::SeqCst) + ALIGNMENT_BYTES;
        if offset + len_bytes > ROOM_BYTES {
            return std::ptr::null_mut();
        }
        std::ptr::with_exposed_provenance_mut(self.room.load(Ordering::SeqCst) + offset)
    }
}

// SAFETY: each block of the reserved memory is returned once, aligned to `ALIGNMENT_BYTES` and
// zeroed; the system allocator serves all other requests.
unsafe impl GlobalAlloc for SideBySide {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= LEN_BYTES_MIN
            && layout.align() <= ALIGNMENT_BYTES
            && IS_ASKED_FOR.try_with(Cell::get).unwrap_or(false)
        {
            return self.next(layout.size());
        }
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        match self.place(start.addr()) {
            Some(place) => GIVEN_BACK[place].store(true, Ordering::SeqCst),
            // SAFETY: as the caller promises; a block outside the reserved memory is the system's.
            None => unsafe { System.dealloc(start, layout) },
        }
    }
}
