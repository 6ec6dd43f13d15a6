//! The route of each planned copy: whether the host's memory is pinned for the device, and whether
//! one device can access the other's. No other file of `transfer` makes this decision.

use smallvec::SmallVec;

use super::request::Regions;
use crate::device::Device;
use crate::storage::ArrayState;
use resident_backend::HostMemory;
use resident_core::coherence::{ConstantId, Location, PlannedCopy, Source};
use resident_core::layout::Selection;

/// How contents are copied from one location to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Route {
    /// The destination is filled with a constant.
    Fill(ConstantId),
    /// The host memory is pinned for the device, which accesses it directly.
    Pinned,
    /// The host memory is pageable: bytes are copied through staging memory. One operation should
    /// copy at most this number of bytes, and this number of operations should be in flight.
    Staged { chunk_bytes_max: u64, chunks_in_flight_max: usize },
    /// The destination's device accesses the memory of the source's device.
    Peer,
    /// Neither device can access the other: the contents are first copied to the host.
    ThroughHost,
}

/// The planned copies from one source.
#[derive(Debug)]
pub(super) struct RoutedCopies {
    pub(super) source: Source,
    pub(super) route: Route,
    pub(super) regions: Regions,
}

/// A plan with routes, in the order in which the sources first appear.
pub(super) type RoutedPlan = SmallVec<[RoutedCopies; 1]>;

/// Groups planned copies to `location` by source, each with its route.
pub(super) fn routed(state: &ArrayState, location: Location, copies: &[PlannedCopy]) -> RoutedPlan {
    let mut plan = RoutedPlan::new();
    for PlannedCopy { source, region } in copies {
        match plan.iter_mut().find(|known| known.source == *source) {
            Some(known) => known.regions.push(*region),
            None => plan.push(RoutedCopies {
                source: *source,
                route: route(state, *source, location),
                regions: SmallVec::from_slice(&[*region]),
            }),
        }
    }
    plan
}

fn route(state: &ArrayState, source: Source, to: Location) -> Route {
    let host = state.host_location();
    match (source, to) {
        (Source::Constant(value), _) => Route::Fill(value),
        (Source::Location(from), to) if from == host || to == host => {
            let device = &state.device_copy(if from == host { to } else { from }).device;
            match state.is_host_pinned_for(device.kind()) {
                true => Route::Pinned,
                false => Route::Staged {
                    chunk_bytes_max: device.backend().chunk_bytes_max(),
                    chunks_in_flight_max: device.backend().chunks_in_flight_max(),
                },
            }
        }
        (Source::Location(from), to) => {
            let (from, to) = (&state.device_copy(from).device, &state.device_copy(to).device);
            if can_access(to, from) { Route::Peer } else { Route::ThroughHost }
        }
    }
}

/// How many bytes one operation should copy between `device` and this memory, which no array owns.
pub(super) fn operation_bytes_max(memory: &dyn HostMemory, device: &Device) -> u64 {
    if memory.is_pinned_for(device.kind()) {
        return u64::MAX;
    }
    device.backend().chunk_bytes_max()
}

/// Whether `device` can access the memory of `peer`.
pub(super) fn can_access(device: &Device, peer: &Device) -> bool {
    device.backend().can_access_peer(&**peer.backend())
}

/// The elements that must be copied to the host first. Those are all, if the destination is a
/// device that accesses the host memory itself (`is_mapped`).
pub(super) fn through_host(plan: &RoutedPlan, is_mapped: bool) -> Option<Selection> {
    let is_through_host = |copies: &&RoutedCopies| match copies.source {
        Source::Constant(_) => false,
        Source::Location(_) => is_mapped || copies.route == Route::ThroughHost,
    };
    let through_host = plan.iter().filter(is_through_host);
    let regions: Regions = through_host.flat_map(|copies| copies.regions.iter().copied()).collect();
    (!regions.is_empty()).then_some(Selection::Boxes(regions))
}
