//! Counts the allocations of each thread, and the live bytes of all.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static LIVE_BYTES: Cell<i64> = const { Cell::new(0) };
}

static LIVE_BYTES_OF_ALL: AtomicI64 = AtomicI64::new(0);

/// The system's allocator, with a count per thread, so that the library's threads do not count.
pub struct Counting;

fn count(len_bytes: usize) {
    let _ = COUNT.try_with(|count| count.set(count.get() + 1));
    change_live(len_bytes as i64);
}

fn change_live(by_bytes: i64) {
    // Tests also ask for more than there can be, and are refused.
    let _ = LIVE_BYTES.try_with(|live| live.set(live.get().wrapping_add(by_bytes)));
    LIVE_BYTES_OF_ALL.fetch_add(by_bytes, Ordering::Relaxed);
}

/// The allocations of this thread so far.
#[must_use]
pub fn of_this_thread() -> u64 {
    COUNT.get()
}

/// The bytes that this thread has allocated so far, less those that it has freed.
#[must_use]
pub fn live_bytes_of_this_thread() -> i64 {
    LIVE_BYTES.get()
}

/// The bytes that all threads have allocated so far, less those that they have freed.
#[must_use]
pub fn live_bytes_of_all_threads() -> i64 {
    LIVE_BYTES_OF_ALL.load(Ordering::Relaxed)
}

// SAFETY: every call is forwarded to `System` unchanged; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's guarantee is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's guarantee is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size);
        change_live((layout.size() as i64).wrapping_neg());
        // SAFETY: the caller's guarantee is passed on.
        unsafe { System.realloc(pointer, layout, new_size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        change_live((layout.size() as i64).wrapping_neg());
        // SAFETY: the caller's guarantee is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}
