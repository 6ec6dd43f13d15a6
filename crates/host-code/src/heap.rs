//! Memory that kernels allocate. What is freed and was not allocated fails the launch: the C
//! library's `free` would end the process. While a launch is checked, each allocation has a gap
//! behind it, and what is freed is kept for a while, so that accesses to either are found. The
//! checker asks here which memory is a kernel's.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::c_void;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::waiting;

thread_local! {
    /// Whether this thread of the machine runs a launch that is checked.
    pub(super) static GAPS: Cell<bool> = const { Cell::new(false) };
}

/// The gap behind an allocation of a checked launch.
const GAP_BYTES: usize = 64;

/// So much freed memory is kept: allocations, and their bytes in all.
const KEPT_MAX: usize = 1 << 10;
const KEPT_BYTES_MAX: usize = 16 << 20;

/// How far from its memory an address is taken for one that misses it.
const NEAR_BYTES: usize = 1 << 12;

/// The memory that kernels have.
#[derive(Debug)]
struct Heap {
    /// The start and the length of what is not freed.
    live: BTreeMap<usize, usize>,
    /// What checked launches have freed, in order.
    kept: VecDeque<Range<usize>>,
    kept_bytes: usize,
}

static HEAP: Mutex<Heap> =
    Mutex::new(Heap { live: BTreeMap::new(), kept: VecDeque::new(), kept_bytes: 0 });

fn heap() -> MutexGuard<'static, Heap> {
    HEAP.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Heap {
    /// Keeps freed memory. Returns what is kept no longer.
    fn keep(&mut self, range: Range<usize>) -> Vec<Range<usize>> {
        self.kept_bytes += range.len();
        self.kept.push_back(range);
        let mut over = Vec::new();
        while self.kept.len() > KEPT_MAX || self.kept_bytes > KEPT_BYTES_MAX {
            let Some(oldest) = self.kept.pop_front() else { break };
            self.kept_bytes -= oldest.len();
            over.push(oldest);
        }
        over
    }
}

/// `resident_runtime.allocate`: null if the system has not so much memory.
pub(super) unsafe extern "C" fn allocate(len_bytes: usize) -> *mut c_void {
    let gap_bytes = if GAPS.get() { GAP_BYTES } else { 0 };
    // SAFETY: the function has no preconditions.
    let memory = unsafe { libc::malloc(len_bytes.saturating_add(gap_bytes)) };
    if !memory.is_null() {
        heap().live.insert(memory.expose_provenance(), len_bytes);
    }
    memory
}

/// `resident_runtime.release`.
pub(super) unsafe extern "C" fn release(memory: *mut c_void) {
    if memory.is_null() {
        return;
    }
    // The lock is not held where the thread ends.
    let start = memory.addr();
    let freed = heap().live.remove(&start);
    match freed {
        Some(len_bytes) if GAPS.get() => {
            let over = heap().keep(start..start + len_bytes);
            let starts = over.iter().map(|one| std::ptr::with_exposed_provenance_mut(one.start));
            starts.for_each(free);
        }
        Some(_) => free(memory),
        None => waiting::fail(format!(
            "`free` gets {memory:?}, which is no memory that `malloc` gave a kernel, or is free \
             already"
        )),
    }
}

/// Frees what `allocate` returned, and `release` got once.
fn free(memory: *mut c_void) {
    // SAFETY: `allocate` got it from `malloc`, and it is freed here only, once it is out of `live`
    // and of `kept`.
    unsafe { libc::free(memory) };
}

/// Whether bytes are of memory that a kernel has allocated and not freed.
pub(super) fn holds(address: usize, len_bytes: usize) -> bool {
    let heap = heap();
    let below = heap.live.range(..=address).next_back();
    below.is_some_and(|(start, len)| address - start <= *len && len_bytes <= start + len - address)
}

/// The memory nearest to an address.
pub(super) struct Near {
    /// Such as `malloc(8)`.
    pub(super) name: String,
    /// The byte of it, which may be negative or too large.
    pub(super) byte: i64,
    /// How far away it is, in bytes.
    pub(super) distance: usize,
}

/// How the name of memory begins that was freed.
pub(super) const FREED: &str = "freed ";

/// The memory of a kernel that an address is in, or misses.
pub(super) fn near(address: usize) -> Option<Near> {
    let heap = heap();
    let with_gap = |range: &&Range<usize>| (range.start..range.end + GAP_BYTES).contains(&address);
    let freed = heap.kept.iter().find(with_gap);
    let live = heap.live.range(..=address).next_back().into_iter();
    let live = live.chain(heap.live.range(address..).next());
    let live =
        live.map(|(start, len)| *start..start + len).min_by_key(|one| distance(one, address));
    let (range, state) =
        freed.cloned().map(|range| (range, FREED)).or_else(|| Some((live?, "")))?;
    let distance = distance(&range, address);
    (distance < NEAR_BYTES).then(|| Near {
        name: format!("{state}malloc({})", range.len()),
        byte: address.wrapping_sub(range.start) as i64,
        distance,
    })
}

fn distance(range: &Range<usize>, address: usize) -> usize {
    range.start.saturating_sub(address).max((address + 1).saturating_sub(range.end))
}

#[cfg(test)]
mod tests {
    use super::{GAPS, Heap, KEPT_BYTES_MAX, KEPT_MAX, allocate, holds, near, release};

    #[test]
    fn freed_memory_is_kept_up_to_a_number_and_a_size() {
        let freed = |start, len_bytes| start..start + len_bytes;
        let mut heap = Heap { live: Default::default(), kept: Default::default(), kept_bytes: 0 };
        for start in 0..KEPT_MAX {
            assert_eq!(heap.keep(freed(start, 1)), []);
        }
        assert_eq!(heap.keep(freed(KEPT_MAX, 1)), [freed(0, 1)]);
        assert_eq!(heap.keep(freed(1 << 20, KEPT_BYTES_MAX)).len(), KEPT_MAX);
        assert_eq!(heap.keep(freed(1 << 30, 1)), [freed(1 << 20, KEPT_BYTES_MAX)]);
        assert_eq!((heap.kept.len(), heap.kept_bytes), (1, 1));
    }

    #[test]
    fn addresses_are_in_memory_of_kernels_or_miss_it() {
        GAPS.set(true);
        // SAFETY: it has no preconditions.
        let memory = unsafe { allocate(8) };
        let start = memory.addr();
        assert!(holds(start, 8) && holds(start + 4, 4) && !holds(start + 4, 8));
        assert!(!holds(start + 8, 1) && !holds(start - 4, 4));
        let seen = near(start + 8).map(|near| (near.name, near.byte, near.distance));
        assert_eq!(seen, Some(("malloc(8)".to_owned(), 8, 1)));
        // SAFETY: `allocate` made it.
        unsafe { release(memory) };
        let seen = near(start).map(|near| (near.name, near.byte, near.distance));
        assert_eq!(seen, Some(("freed malloc(8)".to_owned(), 0, 0)));
        assert!(!holds(start, 1));
        GAPS.set(false);
    }
}
