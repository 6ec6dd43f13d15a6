//! Which memory of other code a device takes over: memory that no array uses, and memory that the
//! device handed out, when it comes back.

use std::fmt;

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
