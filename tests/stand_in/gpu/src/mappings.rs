//! Reserved addresses of a device, and the memory that is mapped to them.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::code::{Code, Outcome};
use crate::handle::Handle;
use crate::ledger::Allocation;

/// Memory that can be mapped.
#[derive(Debug)]
pub struct Memory {
    pub handle: Handle,
    pub ordinal: usize,
    pub len_bytes: u64,
}

/// What is known of memory that can be mapped.
#[derive(Clone, Copy, Debug)]
pub struct MemoryState {
    pub len_bytes: u64,
    pub is_mapped: bool,
    /// Whether it ends with its mapping.
    pub is_released: bool,
}

/// Memory at reserved addresses.
#[derive(Clone, Copy, Debug)]
pub struct Mapping {
    /// As queries see it.
    pub allocation: Allocation,
    pub memory: Handle,
    /// Whether the device may access it: then the engine has memory for it.
    pub is_accessible: bool,
}

/// The reservations of a device, and its mappings.
#[derive(Debug, Default)]
pub struct Mappings {
    /// The length of each reservation by address.
    pub reservations: BTreeMap<u64, u64>,
    pub mapped: BTreeMap<u64, Mapping>,
    pub memory: BTreeMap<Handle, MemoryState>,
}

impl Mappings {
    /// Where the reservation starts that has all of these bytes.
    pub fn reservation(&self, address: u64, len_bytes: u64) -> Option<u64> {
        let (start, reserved_bytes) = self.reservations.range(..=address).next_back()?;
        let offset = address - start;
        let is_within = offset < *reserved_bytes
            && offset.checked_add(len_bytes).is_some_and(|end| end <= *reserved_bytes);
        is_within.then_some(*start)
    }

    /// The mapping that contains an address.
    pub fn around(&self, address: u64) -> Option<Mapping> {
        let (start, mapping) = self.mapped.range(..=address).next_back()?;
        (address - start < mapping.allocation.len_bytes).then_some(*mapping)
    }

    /// The end of the memory around an address that the device may access; the byte after the
    /// address if it may not access that.
    pub fn end_of_access(&self, address: u64) -> u64 {
        let mut end = address;
        while let Some(mapping) = self.around(end).filter(|mapping| mapping.is_accessible)
            && self.reservation(end, 0) == self.reservation(address, 0)
        {
            end = mapping.allocation.address + mapping.allocation.len_bytes;
        }
        end.max(address + 1)
    }

    /// Whether memory is mapped to any of these addresses.
    pub fn has_any(&self, range: &Range<u64>) -> bool {
        let before = self.mapped.range(..range.end).next_back();
        before.is_some_and(|(start, mapping)| start + mapping.allocation.len_bytes > range.start)
    }

    /// The mappings that make up a range; INVALID_VALUE if there are others, or none.
    pub fn exactly(&self, range: &Range<u64>) -> Outcome<Vec<Mapping>> {
        let mut next = range.start;
        let mut found = Vec::new();
        while next < range.end {
            let mapping = self.mapped.get(&next).ok_or(Code::INVALID_VALUE)?;
            next += mapping.allocation.len_bytes;
            found.push(*mapping);
        }
        if next == range.end && !found.is_empty() { Ok(found) } else { Err(Code::INVALID_VALUE) }
    }
}
