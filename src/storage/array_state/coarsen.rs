//! Joins many small stale parts to fewer large ones, where that makes copies cheaper.

use super::ArrayState;
use resident_core::coherence::{Location, LocationSet};
use resident_core::layout::{MemoryOrder, Selection};

/// Plans of up to this number of copies are exact to the byte.
const EXACT_COPIES_MAX: usize = 1_024;

/// From this number of stale boxes on, no plan is made to see how many copies it has, because that
/// takes longer than copying the array.
const PLANNED_BOXES_MAX: usize = 4_096;

/// The state is coarsened after a write when it has this number of boxes, and each time that the
/// number has doubled.
const BOXES_MAX: usize = 16_384;

/// The number of cells into which an array is divided. A coarsened plan has at most as many copies,
/// unless few parts lie in a cell.
const CELLS_MAX: u64 = 512;

/// The number of bytes whose copy takes as long as adding one part to a copy: about 2 µs at 8 GB/s.
/// BENCHMARKS.md ("Many parts") has measurements of it on the embedded device.
const BYTES_PER_PART: u64 = 16 << 10;

impl ArrayState {
    /// Coarsens the state before a plan for these elements at `location`, if the plan would have
    /// very many copies.
    pub(crate) fn coarsen_before_plan(
        &mut self,
        memory_order: &MemoryOrder,
        location: Location,
        selection: &Selection,
    ) {
        if self.is_of_host(location) || self.coherence.box_count() <= PLANNED_BOXES_MAX {
            return;
        }
        let mut is_many = false;
        selection.for_each_region(memory_order, |region| {
            is_many =
                is_many || self.coherence.has_many_stale_boxes(location, region, PLANNED_BOXES_MAX);
        });
        if is_many && self.may_withdraw(location) {
            self.coarsen(memory_order, LocationSet::of(location));
        }
    }

    /// Called before a copy is planned. If the contents of all elements are at the same places, the
    /// elements that coarsening made stale have been copied, or written since.
    #[inline]
    pub(crate) fn forget_padding(&mut self) {
        if let Some(cold) = &mut self.cold
            && self.coherence.uniform().is_some()
        {
            (cold.padding_bytes, cold.coarsened_again_at) = (0, 0);
        }
    }

    /// Coarsens the state after a plan for `location` with this number of copies, if they are too
    /// many. Returns whether another plan must be made.
    pub(crate) fn coarsen_after_plan(
        &mut self,
        memory_order: &MemoryOrder,
        location: Location,
        copies: usize,
    ) -> bool {
        let is_few = copies <= EXACT_COPIES_MAX;
        if is_few || self.is_of_host(location) || !self.may_withdraw(location) {
            return false;
        }
        let boxes_before = self.coherence.box_count();
        self.coarsen(memory_order, LocationSet::of(location));
        self.coherence.box_count() < boxes_before
    }

    /// Coarsens the state after a write, if it has too many boxes to be fast.
    #[inline]
    pub(crate) fn coarsen_after_write(&mut self, memory_order: &MemoryOrder) {
        let boxes = self.coherence.box_count();
        if boxes >= BOXES_MAX && boxes >= self.cold().coarsened_again_at {
            let devices = self.locations().filter(|location| !self.is_of_host(*location));
            let withdrawable = devices.filter(|location| self.may_withdraw(*location));
            let withdrawable = withdrawable.fold(LocationSet::empty(), LocationSet::with);
            self.coarsen(memory_order, withdrawable);
            self.cold().coarsened_again_at = 2 * self.coherence.box_count();
        }
    }

    /// Whether the host accesses the copy at a location. No element becomes stale there unless
    /// someone writes it elsewhere, because the program may have guards of it.
    fn is_of_host(&self, location: Location) -> bool {
        location == Location::HOST || location == self.host_location
    }

    /// Whether elements may become stale at a device although no one writes them, so that a later
    /// copy writes them. The copy waits only for uses that are marked. So this is false while a use
    /// is acquired but not marked, and while a guard uses the copy.
    fn may_withdraw(&self, location: Location) -> bool {
        let copy = self.device_copy(location);
        !self.has_pins()
            && !copy.uses.has_open()
            && !self.has_claim_at(location)
            && !self.has_poisoned_device()
    }

    fn coarsen(&mut self, memory_order: &MemoryOrder, withdrawable: LocationSet) {
        let unit_bytes = u64::from(memory_order.unit_bytes());
        let is_cheaper = |parts: usize, units: u64| {
            (parts as u64).saturating_mul(BYTES_PER_PART) > units.saturating_mul(unit_bytes)
        };
        let withdrawn = self.coherence.coarsen(CELLS_MAX, withdrawable, is_cheaper);
        if withdrawn > 0 {
            self.cold().padding_bytes += withdrawn.saturating_mul(unit_bytes);
        }
    }

    /// How many of the bytes of a copy to a device are padding. Exact if nothing was written
    /// between the coarsening and the copy; else at most the bytes that coarsening made stale.
    pub(crate) fn take_padding(&mut self, bytes: u64) -> u64 {
        let Some(cold) = &mut self.cold else { return 0 };
        let padding = cold.padding_bytes.min(bytes);
        cold.padding_bytes -= padding;
        padding
    }
}

#[cfg(test)]
mod tests {
    use super::{ArrayState, BOXES_MAX, EXACT_COPIES_MAX};
    use crate::device::Device;
    use resident_core::Access;
    use resident_core::coherence::{Coherence, Location, Region, Span};
    use resident_core::layout::MemoryOrder;

    /// Writes that add two boxes each pass by the number at which the state is coarsened.
    #[test]
    fn a_write_coarsens_the_state_at_any_number_of_boxes_above_the_limit() {
        let len = 3 * BOXES_MAX;
        let (memory_order, mut state) = on_host_and_device(len);
        let mut most = 0;
        for index in 0..len as u64 / 6 {
            // The first write makes the number of boxes even or odd.
            for place in [6 * index, 6 * index + 2] {
                write(&mut state, &memory_order, place);
            }
            most = most.max(state.coherence.box_count());
            if index > 0 {
                state.coarsen_after_write(&memory_order);
            }
        }
        assert!((BOXES_MAX..BOXES_MAX + 2).contains(&most), "{most} boxes");
    }

    #[test]
    fn padding_is_forgotten_when_all_contents_are_at_the_same_places() {
        let (memory_order, mut state) = on_host_and_device(4 * EXACT_COPIES_MAX);
        (0..EXACT_COPIES_MAX as u64 + 1).for_each(|at| write(&mut state, &memory_order, place(at)));
        let boxes = state.coherence.box_count();
        assert!(state.coarsen_after_plan(&memory_order, Location::slot(1).expect("one"), boxes));
        state.forget_padding();
        assert_eq!(state.take_padding(8), 8);
        state.coherence.apply_to_all(Location::HOST, Access::Overwrite);
        state.forget_padding();
        assert_eq!(state.take_padding(8), 0);
    }

    /// An array of 4-byte elements that is valid at both places.
    fn on_host_and_device(len: usize) -> (MemoryOrder, ArrayState) {
        let (memory_order, _) = MemoryOrder::of(&[len], &[1], 4).expect("an order");
        let mut state = ArrayState::new(Coherence::stored(Location::HOST));
        let location = state.assign_location(&Device::cpu()).expect("a location");
        state.coherence.apply_to_all(location, Access::Read);
        (memory_order, state)
    }

    /// Places at unequal distances: elements at equal ones become one box with a step.
    fn place(index: u64) -> u64 {
        3 * index + index % 2
    }

    fn write(state: &mut ArrayState, memory_order: &MemoryOrder, place: u64) {
        let element = Region::new(&[Span::single(place)]);
        state.coherence.apply(memory_order.extents(), Location::HOST, &element, Access::Overwrite);
    }

    #[test]
    fn few_copies_stay_exact() {
        let (memory_order, mut state) = on_host_and_device(4 * EXACT_COPIES_MAX);
        (0..EXACT_COPIES_MAX as u64).for_each(|at| write(&mut state, &memory_order, place(at)));
        let (boxes, location) = (state.coherence.box_count(), Location::slot(1).expect("one"));
        assert!(!state.coarsen_after_plan(&memory_order, location, EXACT_COPIES_MAX));
        assert_eq!(state.coherence.box_count(), boxes);
        assert!(state.coarsen_after_plan(&memory_order, location, EXACT_COPIES_MAX + 1));
    }

    /// A launch that has acquired the copy, and has not marked its use yet, may read any element.
    #[test]
    fn nothing_is_withdrawn_while_a_use_is_not_marked() {
        let len = 4 * EXACT_COPIES_MAX;
        let (memory_order, mut state) = on_host_and_device(len);
        let location = Location::slot(1).expect("the device");
        (0..len as u64 / 3).for_each(|index| write(&mut state, &memory_order, place(index)));
        let boxes = state.coherence.box_count();
        assert!(boxes > EXACT_COPIES_MAX, "{boxes} boxes");
        state.pin();
        assert!(!state.coarsen_after_plan(&memory_order, location, boxes));
        assert_eq!(state.coherence.box_count(), boxes);
        state.unpin();
        assert!(state.coarsen_after_plan(&memory_order, location, boxes));
    }
}
