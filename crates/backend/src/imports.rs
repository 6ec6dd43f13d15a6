//! Which memory of other code a device takes over: memory that no array uses, and memory that the
//! device handed out, when it comes back.
//!
//! Each backend knows its own memory. Pinned host memory belongs to no device, and any of them may
//! be asked to take it over, so it is listed here.

use std::collections::BTreeMap;
use std::fmt;

use crate::sync::BackendLock;

/// The pinned, mapped and managed memory of arrays, by numbers that are never used again. No other
/// lock is taken under this one. Host memory of the system's allocator is not listed: arrays are
/// made and dropped without a lock of the process.
static PINNED: BackendLock<Pinned> = BackendLock::new(Pinned { next: 0, in_use: BTreeMap::new() });

struct Pinned {
    next: u64,
    in_use: BTreeMap<u64, InUse>,
}

/// Pinned host memory of an array, listed until this value drops.
#[derive(Debug)]
pub struct PinnedInUse {
    number: u64,
}

impl PinnedInUse {
    #[must_use]
    pub fn list(start: *const u8, len_bytes: usize) -> Self {
        let range = AddressRange::new(start.addr() as u64, len_bytes as u64);
        let mut pinned = PINNED.lock();
        let number = pinned.next;
        pinned.next += 1;
        pinned.in_use.insert(number, InUse { range, is_lent: false });
        Self { number }
    }

    /// Other code is handed the memory, and may hand it back.
    pub fn mark_lent(&self) {
        if let Some(in_use) = PINNED.lock().in_use.get_mut(&self.number) {
            in_use.is_lent = true;
        }
    }
}

impl Drop for PinnedInUse {
    fn drop(&mut self) {
        PINNED.lock().in_use.remove(&self.number);
    }
}

/// As [`counted_bytes`], of the pinned host memory of all arrays.
///
/// # Errors
///
/// As [`counted_bytes`].
pub fn counted_in_pinned(memory: AddressRange) -> Result<u64, String> {
    counted_bytes(memory, PINNED.lock().in_use.values().copied())
}

/// A range of addresses, by its first byte and the byte after its last.
#[derive(Clone, Copy, Debug)]
pub struct AddressRange {
    start: u64,
    end: u64,
}

/// Memory that an array uses.
#[derive(Clone, Copy, Debug)]
pub struct InUse {
    pub range: AddressRange,
    /// Whether other code was handed it, so that it may come back.
    pub is_lent: bool,
}

impl AddressRange {
    #[must_use]
    pub fn new(start: u64, len_bytes: u64) -> Self {
        Self { start, end: start.saturating_add(len_bytes) }
    }

    fn overlaps(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}..{:#x}", self.start, self.end)
    }
}

/// The bytes that memory of other code adds to those in use: none if it lies in memory that was
/// handed out, which counts already.
///
/// Compares with all memory in use, so that allocations keep no order for imports, which are rare.
///
/// # Errors
///
/// What an error says if an array uses bytes of the memory.
pub fn counted_bytes(
    memory: AddressRange,
    in_use: impl Iterator<Item = InUse>,
) -> Result<u64, String> {
    let mut counted_bytes = memory.end - memory.start;
    for InUse { range, is_lent } in in_use.filter(|used| used.range.overlaps(memory)) {
        if !is_lent || !range.contains(memory) {
            return Err(format!(
                "an array uses {range} already, which the memory to be taken over, {memory}, \
                 overlaps; drop that array first, or copy the memory"
            ));
        }
        counted_bytes = 0;
    }
    Ok(counted_bytes)
}

#[cfg(test)]
mod tests {
    use super::{AddressRange, PinnedInUse, counted_in_pinned};

    #[test]
    fn pinned_memory_is_in_use_while_it_is_listed() {
        let memory = [0_u8; 64];
        let range = |offset, len_bytes| {
            AddressRange::new(memory.as_ptr().wrapping_add(offset).addr() as u64, len_bytes)
        };
        // One range is listed twice if two drivers pin it.
        let (first, second) =
            (PinnedInUse::list(&memory[8], 40), PinnedInUse::list(&memory[8], 40));
        drop(first);
        assert!(
            counted_in_pinned(range(0, 9)).is_err() && counted_in_pinned(range(47, 1)).is_err()
        );
        assert_eq!(
            (counted_in_pinned(range(0, 8)), counted_in_pinned(range(48, 9))),
            (Ok(8), Ok(9))
        );
        second.mark_lent();
        assert_eq!(counted_in_pinned(range(8, 40)), Ok(0), "it comes back");
        assert!(counted_in_pinned(range(8, 41)).is_err());
        drop(second);
        assert_eq!(counted_in_pinned(range(8, 41)), Ok(41));
    }
}
