//! Plans: which copies a request needs, each from the cheapest source.

use super::error;
use super::request::Request;
use super::route::can_access;
use crate::device::Device;
use crate::error::Result;
use crate::storage::ArrayState;
use resident_core::Access;
use resident_core::coherence::{CopyCosts, Location, PlannedCopy};

impl Request<'_> {
    /// The copies that a read at `location` needs. If a copy is queued in several chunks, a new
    /// plan is made for each chunk.
    pub(super) fn plan(&self, state: &ArrayState, location: Location) -> Result<Vec<PlannedCopy>> {
        let costs = LinkCosts::to(state, location);
        let (mut all, mut refusal) = (Vec::new(), None);
        self.selection.for_each_region(self.storage.memory_order(), |region| {
            if refusal.is_none() {
                let mut copies = Vec::new();
                let planned =
                    state.coherence.plan(location, region, Access::Read, &costs, &mut copies);
                refusal = planned.err();
                if all.is_empty() {
                    all = copies;
                } else {
                    all.append(&mut copies);
                }
            }
        });
        refusal.map_or(Ok(all), |refusal| Err(error::undefined(self, state, &refusal)))
    }
}

/// The costs of copies to one location. The cheapest source is a device whose memory the
/// destination can access; then the host; then any other device.
struct LinkCosts<'a> {
    state: &'a ArrayState,
    /// `None` for the host.
    destination: Option<&'a Device>,
}

impl<'a> LinkCosts<'a> {
    fn to(state: &'a ArrayState, location: Location) -> Self {
        let destination = (location != Location::HOST).then(|| &state.device_copy(location).device);
        Self { state, destination }
    }
}

impl CopyCosts for LinkCosts<'_> {
    fn cost(&self, from: Location) -> u32 {
        let Some(destination) = self.destination else { return u32::from(from != Location::HOST) };
        if from == Location::HOST {
            return 2;
        }
        if can_access(destination, &self.state.device_copy(from).device) { 1 } else { 3 }
    }
}
