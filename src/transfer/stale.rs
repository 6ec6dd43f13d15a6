//! Copies that have just become stale: noted, and poisoned where a device asks for it.

use smallvec::SmallVec;

use super::{Marks, Request};
use crate::access::Access;
use crate::backend::{Bytes, Dependencies, FailureKind, FillWork, Work};
use crate::coherence::{Location, Region};
use crate::device::{self, Stream};
use crate::ordering::{Mark, UseEnd};
use crate::storage::ArrayState;

/// What became stale, by location; only of devices that poison.
pub(super) type Spoiled = SmallVec<[(Location, Region); 1]>;

impl Request<'_> {
    /// The parts of the selection that are valid on other devices than `newest` and are about to be
    /// stale there.
    pub(super) fn stale_elsewhere(&self, state: &ArrayState, newest: Location) -> Spoiled {
        self.valid_on_poisoned(state, |location| location != newest)
    }

    /// The same for a write that has no location.
    pub(super) fn stale_elsewhere_than_none(&self, state: &ArrayState) -> Spoiled {
        self.valid_on_poisoned(state, |_| true)
    }

    fn valid_on_poisoned(&self, state: &ArrayState, wanted: impl Fn(Location) -> bool) -> Spoiled {
        let mut spoiled = Spoiled::new();
        let is_poisoned = |location: Location| {
            state.device_copy(location).device.poison().is_some()
                && state.device_copy(location).address.is_some()
        };
        for (location, _) in
            state.devices().filter(|(location, _)| wanted(*location) && is_poisoned(*location))
        {
            self.selection.for_each(self.storage.memory_order(), |region| {
                state.coherence.visit_contents(region, |part, content| {
                    if content.is_valid(location) {
                        spoiled.push((location, *part));
                    }
                });
            });
        }
        spoiled
    }

    /// Fills stale copies with the device's pattern, behind their pending uses. This is a help for
    /// finding bugs: where a call for it is refused, the stale bytes stay as they are.
    pub(super) fn poison(&self, state: &mut ArrayState, spoiled: Spoiled) {
        for (location, region) in spoiled {
            let slot = state.device_copy(location);
            let (Some(address), Some(pattern)) = (slot.address, slot.device.poison()) else {
                continue;
            };
            let stream = self.last_stream(state, location, &region);
            let mut marks = Marks::new();
            state.uses(location).visit_conflicts(Some(&region), Access::Overwrite, |mark| {
                if state.stream(mark.stream) != Some(&stream) && !state.is_retired(mark) {
                    marks.push(mark);
                }
            });
            if state.make_wait(&stream, &marks).is_err() {
                continue;
            }
            let work = FillWork {
                loss: FailureKind::Poison,
                address,
                parts: SmallVec::from_iter([self.storage.memory_order().footprint(&region)]),
                pattern: Bytes::from_elem(pattern, 1),
                depends: Dependencies::new(),
                label: self.storage.label(device::POISON, self.site),
            };
            if let Ok(position) = stream.queue().submit(Work::Fill(Box::new(work))) {
                let mark = Mark::lossless(state.assign_key(&stream), UseEnd::at(position));
                state.uses_mut(location).record(
                    self.storage.memory_order().extents(),
                    Some(&region),
                    Access::Overwrite,
                    mark,
                );
            }
        }
    }

    /// The stream that used this copy last, so that as a rule nothing has to be waited for.
    fn last_stream(&self, state: &ArrayState, location: Location, region: &Region) -> Stream {
        let mut last = None;
        state.uses(location).visit_conflicts(Some(region), Access::Overwrite, |mark| {
            last = state
                .stream(mark.stream)
                .filter(|stream| *stream.device_ref() == state.device_copy(location).device)
                .cloned()
                .or(last.take());
        });
        last.unwrap_or_else(|| state.device_copy(location).device.stream())
    }
}
