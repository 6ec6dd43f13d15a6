//! Joins many small stale parts to fewer large ones, where that makes copies cheaper.

use super::ArrayState;
use crate::coherence::{Location, LocationSet};
use crate::layout::MemoryOrder;

/// Plans of up to this number of copies are exact to the byte.
const EXACT_COPIES_MAX: usize = 1_024;

/// The state is coarsened when it has this number of boxes, and each time that number has doubled.
const BOXES_MAX: usize = 16_384;

/// The number of cells into which an array is divided.
const CELLS_MAX: u64 = 1_024;

/// The number of bytes whose copy takes as long as adding one part to a copy: about 2 µs at 8 GB/s.
const BYTES_PER_PART: u64 = 16 << 10;

impl ArrayState {
    /// Coarsens the state if a plan for `location` has this number of copies. Returns whether
    /// another plan must be made.
    pub(crate) fn coarsen_for_plan(
        &mut self,
        memory_order: &MemoryOrder,
        location: Location,
        copies: usize,
    ) -> bool {
        let may_withdraw = location != Location::HOST && self.may_withdraw(location);
        let boxes_before = self.coherence.box_count();
        if copies <= EXACT_COPIES_MAX || !may_withdraw {
            return false;
        }
        self.coarsen(memory_order, LocationSet::of(location));
        self.coherence.box_count() < boxes_before
    }

    /// Coarsens the state after a write, if it has too many boxes to be fast.
    #[inline]
    pub(crate) fn coarsen_after_write(&mut self, memory_order: &MemoryOrder) {
        let boxes = self.coherence.box_count();
        if boxes >= BOXES_MAX && boxes.is_power_of_two() {
            let devices = self.locations().filter(|location| *location != Location::HOST);
            let withdrawable = devices.filter(|location| self.may_withdraw(*location));
            let withdrawable = withdrawable.fold(LocationSet::empty(), LocationSet::with);
            self.coarsen(memory_order, withdrawable);
        }
    }

    /// Whether elements may become stale at a device although no one writes them. Not while a guard
    /// uses the copy, since the library does not see all of its uses.
    fn may_withdraw(&self, location: Location) -> bool {
        let copy = self.device_copy(location);
        !copy.uses.has_open() && !self.has_claim_at(location) && !self.has_poisoned_device()
    }

    fn coarsen(&mut self, memory_order: &MemoryOrder, withdrawable: LocationSet) {
        let element_bytes = memory_order.element_bytes() as u64;
        let is_cheaper = |parts: usize, elements: u64| {
            (parts as u64).saturating_mul(BYTES_PER_PART) > elements.saturating_mul(element_bytes)
        };
        let withdrawn = self.coherence.coarsen(CELLS_MAX, withdrawable, is_cheaper);
        if withdrawn > 0 {
            self.cold().padding_bytes += withdrawn.saturating_mul(element_bytes);
        }
    }

    /// How many of the bytes of an upload are padding.
    pub(crate) fn take_padding(&mut self, bytes: u64) -> u64 {
        let Some(cold) = &mut self.cold else { return 0 };
        let padding = cold.padding_bytes.min(bytes);
        cold.padding_bytes -= padding;
        padding
    }
}
