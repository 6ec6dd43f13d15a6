//! The host memory that this library pinned, so that copies of memory that is lent for a call need
//! no staging if it is pinned. The driver would tell too, by several calls per copy.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The end of each range, by its start. No other lock is taken under this one.
static RANGES: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

/// A range of pinned memory, listed until this value drops.
#[derive(Debug)]
pub(super) struct PinnedRange {
    start: usize,
}

impl PinnedRange {
    pub(super) fn new(start: *mut u8, len_bytes: usize) -> Self {
        let start = start.addr();
        ranges().insert(start, start + len_bytes);
        Self { start }
    }
}

impl Drop for PinnedRange {
    fn drop(&mut self) {
        ranges().remove(&self.start);
    }
}

/// Whether all of these bytes lie in one pinned range.
pub(crate) fn covers(start: *const u8, len_bytes: usize) -> bool {
    let ranges = ranges();
    let before = ranges.range(..=start.addr()).next_back();
    before.is_some_and(|(_, end)| start.addr() + len_bytes <= *end)
}

fn ranges() -> MutexGuard<'static, BTreeMap<usize, usize>> {
    RANGES.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{PinnedRange, covers};

    #[test]
    fn parts_of_a_range_are_covered_while_it_is_listed() {
        let mut memory = [0_u8; 64];
        let start = memory.as_mut_ptr();
        let range = PinnedRange::new(start.wrapping_add(8), 40);
        assert!(covers(start.wrapping_add(8), 40) && covers(start.wrapping_add(20), 28));
        assert!(!covers(start, 16) && !covers(start.wrapping_add(20), 29));
        drop(range);
        assert!(!covers(start.wrapping_add(8), 40));
    }
}
