//! Copies that have just become stale: noted, and poisoned where a device asks for it.

use smallvec::SmallVec;

use super::{Marks, Request};
use crate::backend::{Bytes, Dependencies, FailureKind, FillWork, Work};
use crate::coherence::{Place, Region};
use crate::device::{self, Stream};
use crate::order::{At, Mark, Touch};
use crate::storage::State;

/// What became stale, by place; only of devices that poison.
pub(super) type Spoiled = SmallVec<[(Place, Region); 1]>;

impl Request<'_> {
    /// The parts of the selection that are valid on other devices than `newest` and are about to be
    /// stale there.
    pub(super) fn stale_elsewhere(&self, state: &State, newest: Place) -> Spoiled {
        self.valid_on_poisoned(state, |place| place != newest)
    }

    /// The same for a write that has no place.
    pub(super) fn stale_elsewhere_than_none(&self, state: &State) -> Spoiled {
        self.valid_on_poisoned(state, |_| true)
    }

    fn valid_on_poisoned(&self, state: &State, wanted: impl Fn(Place) -> bool) -> Spoiled {
        let mut spoiled = Spoiled::new();
        let is_poisoned = |place: Place| {
            state.slot(place).device.poison().is_some() && state.slot(place).address.is_some()
        };
        for (place, _) in state.devices().filter(|(place, _)| wanted(*place) && is_poisoned(*place))
        {
            self.selection.for_each(self.storage.space(), |region| {
                state.coherence.newest(region, |part, content| {
                    if content.is_valid(place) {
                        spoiled.push((place, *part));
                    }
                });
            });
        }
        spoiled
    }

    /// Fills stale copies with the device's pattern, behind their pending uses. This is a help for
    /// finding bugs: where a call for it is refused, the stale bytes stay as they are.
    pub(super) fn poison(&self, state: &mut State, spoiled: Spoiled) {
        for (place, region) in spoiled {
            let slot = state.slot(place);
            let (Some(address), Some(pattern)) = (slot.address, slot.device.poison()) else {
                continue;
            };
            let stream = self.last_stream(state, place, &region);
            let mut marks = Marks::new();
            state.uses(place).before(Some(&region), Touch::Write, |mark| {
                if state.stream(mark.stream) != Some(&stream) && !state.is_over(mark) {
                    marks.push(mark);
                }
            });
            if state.order(&stream, &marks).is_err() {
                continue;
            }
            let work = FillWork {
                loss: FailureKind::Copy,
                address,
                parts: SmallVec::from_iter([self.storage.space().footprint(&region)]),
                pattern: Bytes::from_elem(pattern, 1),
                poison: true,
                depends: Dependencies::new(),
                label: self.storage.label(device::POISON, self.site),
            };
            if let Ok(position) = stream.queue().submit(Work::Fill(Box::new(work))) {
                let mark = Mark::harmless(state.key_of(&stream), At::position(position));
                state.uses_mut(place).mark(
                    self.storage.space().extents(),
                    Some(&region),
                    Touch::Write,
                    mark,
                );
            }
        }
    }

    /// The stream that used this copy last, so that as a rule nothing has to be waited for.
    fn last_stream(&self, state: &State, place: Place, region: &Region) -> Stream {
        let mut last = None;
        state.uses(place).before(Some(region), Touch::Write, |mark| {
            last = state
                .stream(mark.stream)
                .filter(|stream| *stream.device_ref() == state.slot(place).device)
                .cloned()
                .or(last.take());
        });
        last.unwrap_or_else(|| state.slot(place).device.stream())
    }
}
