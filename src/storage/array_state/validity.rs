//! How much of an array can be read at each location.

use smallvec::SmallVec;

use super::ArrayState;
use crate::storage::Validity;
use resident_core::coherence::{Content, Location, Region};
use resident_core::layout::{MemoryOrder, Selection};

impl ArrayState {
    /// Whether these regions are still valid at `location`. The source of a plan may have become
    /// invalid, by a failure that was noticed after the plan was made.
    pub(crate) fn holds(&self, location: Location, regions: &[Region]) -> bool {
        regions.iter().all(|region| self.coherence.is_valid(location, region))
    }

    /// The parts of a selection that have such contents.
    pub(crate) fn regions_where(
        &self,
        memory_order: &MemoryOrder,
        selection: &Selection,
        is_wanted: impl Fn(Content) -> bool,
    ) -> SmallVec<[Region; 1]> {
        let mut regions = SmallVec::new();
        selection.for_each_region(memory_order, |region| {
            self.coherence.visit_contents(region, |part, content| {
                if is_wanted(content) {
                    regions.push(*part);
                }
            });
        });
        regions
    }

    /// The validity of the whole array at a location.
    pub(crate) fn validity(&self, memory_order: &MemoryOrder, location: Location) -> Validity {
        let valid = self.coherence.valid_elements(memory_order.extents(), location);
        self.validity_of(memory_order, location, valid, memory_order.len())
    }

    /// The validity of a part at each location, the host's first.
    pub(crate) fn validities_of(
        &self,
        memory_order: &MemoryOrder,
        selection: &Selection,
    ) -> SmallVec<[Validity; 4]> {
        if matches!(selection, Selection::Whole) || memory_order.is_empty() {
            let whole = |location| self.validity(memory_order, location);
            return self.locations().map(whole).collect();
        }
        // The part is visited once for all locations.
        let mut valid = SmallVec::<[u64; 4]>::from_elem(0, 1 + self.device_copies.len());
        let mut len = 0;
        selection.for_each_region(memory_order, |region| {
            len += region.len();
            self.coherence.visit_contents(region, |part, content| {
                let elements = part.len();
                for (location, valid) in self.locations().zip(&mut valid) {
                    *valid += if content.is_valid(location) { elements } else { 0 };
                }
            });
        });
        let validity = |(location, valid)| {
            if valid == 0 && len > 0 && !self.has_memory_of(memory_order, location, selection) {
                return Validity::Absent;
            }
            self.validity_of(memory_order, location, valid, len)
        };
        self.locations().zip(valid).map(validity).collect()
    }

    /// The validity if `valid` of `len` elements are valid.
    fn validity_of(
        &self,
        memory_order: &MemoryOrder,
        location: Location,
        valid: u64,
        len: u64,
    ) -> Validity {
        match valid {
            _ if !memory_order.is_empty() && !self.has_memory(location) => Validity::Absent,
            _ if valid == len => Validity::Valid,
            0 => Validity::Stale,
            _ => Validity::Partial { valid_bytes: valid * u64::from(memory_order.unit_bytes()) },
        }
    }

    fn has_memory(&self, location: Location) -> bool {
        if location == Location::HOST {
            self.host.is_some()
        } else {
            self.device_copy(location).has_memory()
        }
    }

    /// Whether any of these elements have memory.
    fn has_memory_of(
        &self,
        memory_order: &MemoryOrder,
        location: Location,
        selection: &Selection,
    ) -> bool {
        if location == Location::HOST {
            return self.host.is_some();
        }
        let copy = self.device_copy(location);
        copy.address().is_some()
            || copy.reserved().is_some_and(|it| it.has_memory_of(memory_order, selection))
    }
}
