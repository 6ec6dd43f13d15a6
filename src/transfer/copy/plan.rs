//! Plans: which copies a request needs, each from the cheapest source; the route of each, which
//! depends on whether the host's memory is pinned for the device and whether one device can access
//! the other's; and how many of them are queued at once. No other file of `transfer` makes these
//! decisions.

use smallvec::SmallVec;

use crate::device::Device;
use crate::error::Result;
use crate::storage::ArrayState;
use crate::transfer::access::error;
use crate::transfer::access::request::{Regions, Request};
use resident_backend::{DeviceProperties, HostMemory};
use resident_core::Access;
use resident_core::coherence::{ConstantId, CopyCosts, Location, PlannedCopy, Source};
use resident_core::layout::MemoryOrder;

impl Request<'_> {
    /// The copies that a read at `location` needs. If a copy is queued in several chunks, a new
    /// plan is made for each chunk.
    pub(in crate::transfer) fn plan(
        &self,
        state: &ArrayState,
        location: Location,
    ) -> Result<Vec<PlannedCopy>> {
        let costs = LinkCosts::to(state, location);
        let (mut all, mut undefined) = (Vec::new(), None);
        self.selection.for_each_region(self.storage.memory_order(), |region| {
            if undefined.is_none() {
                let mut copies = Vec::new();
                let planned =
                    state.coherence.plan(location, region, Access::Read, &costs, &mut copies);
                undefined = planned.err();
                if all.is_empty() {
                    all = copies;
                } else {
                    all.append(&mut copies);
                }
            }
        });
        undefined.map_or(Ok(all), |undefined| Err(error::undefined(self, state, &undefined)))
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
        let destination =
            (location != Location::HOST).then(|| &*state.device_copy(location).device);
        Self { state, destination }
    }
}

impl CopyCosts for LinkCosts<'_> {
    fn cost(&self, from: Location) -> u32 {
        let Some(destination) = self.destination else { return u32::from(from != Location::HOST) };
        if from == Location::HOST || from == self.state.host_location() {
            return 2;
        }
        if can_access(destination, &self.state.device_copy(from).device) { 1 } else { 3 }
    }
}

/// How contents are copied from one location to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::transfer) enum Route {
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
pub(in crate::transfer) struct RoutedCopies {
    pub(in crate::transfer) source: Source,
    pub(in crate::transfer) route: Route,
    pub(in crate::transfer) regions: Regions,
}

/// A plan with routes, in the order in which the sources first appear.
pub(super) type RoutedPlan = SmallVec<[RoutedCopies; 1]>;

/// Groups planned copies to `location` by source, each with its route.
pub(in crate::transfer) fn routed(
    state: &ArrayState,
    location: Location,
    copies: &[PlannedCopy],
) -> RoutedPlan {
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
            if state.is_host_pinned_for(device.kind()) {
                return Route::Pinned;
            }
            let &DeviceProperties { chunk_bytes_max, chunks_in_flight_max, .. } =
                device.properties();
            Route::Staged { chunk_bytes_max, chunks_in_flight_max }
        }
        (Source::Location(from), to) => {
            let (from, to) = (&state.device_copy(from).device, &state.device_copy(to).device);
            if can_access(to, from) { Route::Peer } else { Route::ThroughHost }
        }
    }
}

/// How many bytes one operation should copy between `device` and this memory, which no array owns.
pub(in crate::transfer) fn operation_bytes_max(memory: &dyn HostMemory, device: &Device) -> u64 {
    if memory.is_pinned_for(device.kind()) {
        return u64::MAX;
    }
    device.properties().chunk_bytes_max
}

/// Whether `device` can access the memory of `peer`.
pub(in crate::transfer) fn can_access(device: &Device, peer: &Device) -> bool {
    device.backend().can_access_peer(&**peer.backend())
}

/// The copies of a plan that are queued at once, among them several chunks that the host packs
/// together.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) copies: RoutedPlan,
    /// Whether these are the last copies of the plan.
    pub(super) is_last: bool,
}

/// The number of chunks that are packed together while as many are on their way.
pub(super) fn chunks_per_batch(chunks_in_flight_max: usize) -> usize {
    (chunks_in_flight_max / 2).max(1)
}

impl Batch {
    /// The regions of some of the copies.
    pub(super) fn regions_of(&self, is_wanted: impl Fn(&RoutedCopies) -> bool) -> Regions {
        let wanted = self.copies.iter().filter(|copies| is_wanted(copies));
        wanted.flat_map(|copies| copies.regions.iter().copied()).collect()
    }

    /// The first copies of a plan. Only the bytes that are copied through staging memory count
    /// against the size of a chunk.
    pub(super) fn first_of(memory_order: &MemoryOrder, plan: RoutedPlan) -> Self {
        let limits = plan.iter().filter_map(|copies| match copies.route {
            Route::Staged { chunk_bytes_max, chunks_in_flight_max } => {
                Some(chunk_bytes_max.saturating_mul(chunks_per_batch(chunks_in_flight_max) as u64))
            }
            _ => None,
        });
        let Some(bytes_max) = limits.min() else { return Self { copies: plan, is_last: true } };
        let (mut first, mut room_bytes, mut is_last) = (RoutedPlan::new(), bytes_max, true);
        for RoutedCopies { source, route, regions } in plan {
            let regions = match route {
                Route::Staged { .. } => {
                    let head = head(memory_order, &regions, bytes_max, &mut room_bytes);
                    is_last &= head == regions;
                    head
                }
                _ => regions,
            };
            if !regions.is_empty() {
                first.push(RoutedCopies { source, route, regions });
            }
        }
        Self { copies: first, is_last }
    }
}

/// Takes the first regions, as many bytes as the chunk has room for, but at least one element if
/// the chunk is empty.
fn head(
    memory_order: &MemoryOrder,
    regions: &Regions,
    bytes_max: u64,
    room_bytes: &mut u64,
) -> Regions {
    let mut head = Regions::new();
    for region in regions {
        let len_bytes = memory_order.region_bytes(region);
        if len_bytes > *room_bytes {
            if *room_bytes == bytes_max {
                head.push(memory_order.head(*region, bytes_max));
            }
            *room_bytes = 0;
            break;
        }
        head.push(*region);
        *room_bytes -= len_bytes;
    }
    head
}

#[cfg(test)]
mod tests {
    use smallvec::SmallVec;

    use super::{Batch, MemoryOrder, Regions, Route, RoutedCopies};
    use resident_core::coherence::{ConstantId, Location, Region, Source, Span};

    fn memory_order() -> MemoryOrder {
        MemoryOrder::of(&[10, 20, 30], &[600, 30, 1], 4).expect("contiguous").0
    }

    fn rows() -> Regions {
        (0..3).map(|row| memory_order().whole().with_span(0, Span::single(row))).collect()
    }

    fn first_of(route: Route) -> (Vec<Region>, bool) {
        let source = match route {
            Route::Fill(value) => Source::Constant(value),
            _ => Source::Location(Location::HOST),
        };
        let copies = RoutedCopies { source, route, regions: rows() };
        let batch = Batch::first_of(&memory_order(), SmallVec::from_iter([copies]));
        (batch.copies[0].regions.to_vec(), batch.is_last)
    }

    #[test]
    fn a_chunk_takes_regions_until_it_is_full() {
        let staged =
            |chunk_bytes_max| first_of(Route::Staged { chunk_bytes_max, chunks_in_flight_max: 2 });
        assert_eq!(staged(u64::MAX), (rows().to_vec(), true));
        assert_eq!(staged(5000), (rows()[..2].to_vec(), false));
        assert_eq!(staged(2400), (rows()[..1].to_vec(), false));
        assert_eq!(staged(1200).0[0].len(), 300);
        assert!(!staged(1200).1);
        let several = Route::Staged { chunk_bytes_max: 2400, chunks_in_flight_max: 5 };
        assert_eq!(first_of(several), (rows()[..2].to_vec(), false));
    }

    #[test]
    fn copies_without_staging_memory_are_never_split() {
        assert_eq!(first_of(Route::Pinned), (rows().to_vec(), true));
        assert_eq!(first_of(Route::Fill(ConstantId(0))), (rows().to_vec(), true));
    }
}
