//! Poison: when a copy becomes stale, some devices overwrite it with *poison bytes* (a fixed
//! pattern), so that tests detect reads of stale bytes.

use smallvec::SmallVec;

use crate::device::{self, Stream};
use crate::storage::ArrayState;
use crate::transfer::access::request::{Marks, Request, collect_conflicts};
use resident_backend::{Bytes, Dependencies, FailureKind, FillWork};
use resident_core::Access;
use resident_core::coherence::{Content, Location, Region};
use resident_core::ordering::{Mark, UseEnd};

/// Regions that are about to become stale on devices that use poison bytes.
pub(super) type StaleCopies = SmallVec<[(Location, Region); 1]>;

impl Request<'_> {
    /// The valid parts of the selection on devices that use poison bytes, except at `newest`.
    pub(in crate::transfer) fn poisoned_copies(
        &self,
        state: &ArrayState,
        newest: Option<Location>,
    ) -> StaleCopies {
        let mut stale = StaleCopies::new();
        for location in state.devices().map(|(location, _)| location) {
            let copy = state.device_copy(location);
            let is_poisoned = copy.device.poison().is_some() && copy.has_memory();
            // Host memory is never poisoned.
            if [newest, Some(state.host_location())].contains(&Some(location)) || !is_poisoned {
                continue;
            }
            let (order, is_valid) =
                (self.storage.memory_order(), |content: Content| content.is_valid(location));
            let parts = state.regions_where(order, self.selection, is_valid);
            stale.extend(parts.into_iter().map(|part| (location, part)));
        }
        stale
    }

    /// Overwrites stale copies with the poison bytes of their device, after the pending uses of
    /// these copies. Poison only helps to find bugs: if the backend refuses it, the stale bytes
    /// stay.
    pub(in crate::transfer) fn poison(&self, state: &mut ArrayState, stale: StaleCopies) {
        for (location, region) in stale {
            self.poison_region(state, location, &region);
        }
    }

    fn poison_region(
        &self,
        state: &mut ArrayState,
        location: Location,
        region: &Region,
    ) -> Option<()> {
        let copy = state.device_copy(location);
        let (address, pattern) = (copy.base()?, copy.device.poison()?);
        let stream = last_stream(state, location, region);
        let mut marks = Marks::new();
        let access = Access::Overwrite;
        collect_conflicts(state, location, Some(region), access, &stream, &mut marks);
        state.make_wait(&stream, &marks).ok()?;
        let work = FillWork {
            loss: FailureKind::Poison,
            address,
            parts: SmallVec::from_iter([self.storage.memory_order().footprint(region)]),
            pattern: Bytes::from_elem(pattern, 1),
            depends: Dependencies::new(),
            label: self.storage.label(device::POISON, self.site),
        };
        let position = stream.raw().fill(Box::new(work)).ok()?;
        let mark = Mark::lossless(state.assign_key(&stream), UseEnd::at(position));
        let extents = self.storage.memory_order().extents();
        state.record_use(location, extents, Some(region), access, mark);
        Some(())
    }
}

/// The stream of the device that used this region last, so that the fill rarely has to wait for
/// another stream.
fn last_stream(state: &ArrayState, location: Location, region: &Region) -> Stream {
    let device = &*state.device_copy(location).device;
    let mut last = None;
    let is_on_device =
        |mark: Mark| state.stream(mark.stream).is_some_and(|stream| stream.device_ref() == device);
    state.uses(location).visit_conflicts(Some(region), Access::Overwrite, is_on_device, |mark| {
        if is_on_device(mark) {
            last = state.stream(mark.stream).cloned();
        }
    });
    last.unwrap_or_else(|| device.stream())
}
