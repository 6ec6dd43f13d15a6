//! What is valid where, and who uses it: the part of an array that changes, behind its lock.

use std::sync::Arc;

use smallvec::SmallVec;

use super::since::{Parts, StaleOrigin};
use super::{HostBuffer, Validity};
use crate::access::Access;
use crate::backend::{Address, BackendError, Bytes, FailureRecord, Position, failure};
use crate::call_site::CallSite;
use crate::coherence::{Coherence, ConstantId, Content, Location, LocationSet, LossId, Region};
use crate::device::{Device, Stream};
use crate::layout::{MemoryOrder, Selection};
use crate::ordering::{Mark, StreamKey, UseEnd, Uses};
use crate::sync;
use crate::traffic::Traffic;

/// More streams than this are looked through for idle ones before another is kept.
const STREAMS_KEPT: usize = 8;

/// A line of the user's program.
pub(crate) type Line = CallSite;

/// The changing part of an array.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) coherence: Coherence,
    pub(crate) host: Option<Arc<HostBuffer>>,
    /// Made when something queued first touches the host's memory; idle until then.
    host_uses: Option<Box<Uses>>,
    /// Late failures were last looked for at this epoch.
    seen_failures: u64,
    pub(crate) slots: SmallVec<[Slot; 1]>,
    /// The streams that marks name by their number here.
    streams: SmallVec<[Option<Stream>; 1]>,
    /// Made at the first copy or launch.
    traffic: Option<Box<Traffic>>,
    /// The last call that made the host's copy stale, where there is one for all elements; else
    /// `ColdState::stale_parts` knows.
    host_stale_since: Option<Line>,
    /// Uses that were acquired on devices and are not marked yet: no device's copy is taken away
    /// meanwhile.
    pins: u32,
    cold: Option<Box<ColdState>>,
}

/// What most arrays never have.
#[derive(Debug, Default)]
struct ColdState {
    /// Values of constants that are not all zero bytes; constant n is entry n - 1.
    constants: Vec<Bytes>,
    losses: Vec<Arc<FailureRecord>>,
    claims: Vec<(Location, Selection)>,
    /// Since when copies are stale of which parts became so by calls of their own.
    stale_parts: Vec<(Location, Parts<Line>)>,
}

/// The whole array on a device, with nothing to be done before its use.
pub(crate) struct WholeAtHand {
    pub(crate) location: Location,
    pub(crate) address: Address,
    /// The number of the stream that asked.
    key: StreamKey,
    /// Work of that stream that made what is to be read, and may have failed.
    pub(crate) writer: Option<Mark>,
}

/// One device's copy.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) device: Device,
    pub(crate) address: Option<Address>,
    pub(crate) uses: Uses,
    /// As the host's.
    stale_since: Option<Line>,
}

impl State {
    #[inline]
    pub(super) fn new(coherence: Coherence) -> Self {
        Self {
            coherence,
            host: None,
            host_uses: None,
            seen_failures: 0,
            slots: SmallVec::new(),
            streams: SmallVec::new(),
            traffic: None,
            host_stale_since: None,
            pins: 0,
            cold: None,
        }
    }

    pub(super) fn on_host(coherence: Coherence, buffer: HostBuffer) -> Self {
        Self { host: Some(Arc::new(buffer)), ..Self::new(coherence) }
    }

    #[cfg(feature = "cuda")]
    pub(super) fn on_device(extents: &[u64], stream: &Stream, address: Address) -> Self {
        let mut state = Self::new(Coherence::undefined(extents));
        if let Some(location) = state.location_of(stream.device_ref()) {
            state.coherence = Coherence::stored(extents, location);
            // Other streams may use the memory only behind what made it.
            let made =
                Mark::lossless(state.key_of(stream), UseEnd::at(stream.queue().reserve_position()));
            let slot = state.slot_mut(location);
            slot.address = Some(address);
            slot.uses.record(extents, None, Access::Overwrite, made);
        }
        state
    }

    pub(super) fn constant(coherence: Coherence, value: Bytes) -> Self {
        let mut state = Self::new(coherence);
        let id = state.constant_id(value);
        if id != ConstantId(0) {
            let shape: SmallVec<[u64; 6]> = SmallVec::from_slice(state.coherence.shape());
            state.coherence = Coherence::constant(&shape, id);
        }
        state
    }

    /// A number for a constant. All zero bytes are number 0 and kept nowhere.
    pub(crate) fn constant_id(&mut self, value: Bytes) -> ConstantId {
        if value.iter().all(|byte| *byte == 0) {
            return ConstantId(0);
        }
        let constants = &mut self.cold().constants;
        let index = constants.iter().position(|known| *known == value).unwrap_or_else(|| {
            constants.push(value);
            constants.len() - 1
        });
        ConstantId(u32::try_from(index + 1).unwrap_or(u32::MAX))
    }

    /// The bytes of a constant; zeros for number 0, `element_bytes` of them.
    pub(crate) fn constant_value(&self, id: ConstantId, element_bytes: usize) -> Bytes {
        let given =
            id.0.checked_sub(1).and_then(|index| self.cold.as_ref()?.constants.get(index as usize));
        given.cloned().unwrap_or_else(|| Bytes::from_elem(0, element_bytes))
    }

    /// Drops values that no element has any more, once there are many.
    pub(crate) fn forget_constants(&mut self, memory_order: &MemoryOrder) {
        let Some(cold) = self.cold.as_mut().filter(|cold| cold.constants.len() > 64) else {
            return;
        };
        let mut used = vec![false; cold.constants.len()];
        self.coherence.visit_contents(&memory_order.whole(), |_, content| {
            if let Content::Constant { value: ConstantId(number @ 1..), .. } = content {
                used[number as usize - 1] = true;
            }
        });
        let last = used.iter().rposition(|used| *used).map_or(0, |last| last + 1);
        cold.constants.truncate(last);
    }

    fn cold(&mut self) -> &mut ColdState {
        self.cold.get_or_insert_default()
    }

    pub(crate) fn traffic(&self) -> Traffic {
        self.traffic.as_deref().copied().unwrap_or_default()
    }

    pub(crate) fn traffic_mut(&mut self) -> &mut Traffic {
        self.traffic.get_or_insert_default()
    }

    #[inline]
    pub(crate) fn is_host_ready(&self) -> bool {
        self.host.is_some()
            && self.is_host_idle()
            && self.coherence.uniform().is_some_and(|content| content.is_valid(Location::HOST))
    }

    /// Nothing queued touches the host's memory, as far as is known.
    #[inline]
    pub(crate) fn is_host_idle(&self) -> bool {
        self.host_uses.as_ref().is_none_or(|uses| uses.is_empty())
    }

    pub(crate) fn devices(&self) -> impl Iterator<Item = (Location, &Device)> {
        self.slots
            .iter()
            .enumerate()
            .filter_map(|(index, slot)| Some((Location::slot(index + 1)?, &slot.device)))
    }

    /// The location of a device in this array, given at first use. `None` if all 63 are taken.
    pub(crate) fn location_of(&mut self, device: &Device) -> Option<Location> {
        if let Some(location) = self.find_location(device) {
            return Some(location);
        }
        let slot = Slot {
            device: device.clone(),
            address: None,
            uses: Uses::default(),
            stale_since: None,
        };
        match Location::slot(self.slots.len() + 1) {
            Some(location) => {
                self.slots.push(slot);
                Some(location)
            }
            None => {
                let location = self.free_location()?;
                sync::defer_drop(std::mem::replace(self.slot_mut(location), slot).device);
                Some(location)
            }
        }
    }

    /// A location without memory, which nobody uses or is bringing something to.
    fn free_location(&self) -> Option<Location> {
        let is_claimed = |location: Location| {
            self.cold.iter().flat_map(|cold| &cold.claims).any(|(claimed, _)| *claimed == location)
        };
        let is_free = |location: &Location| {
            self.slot(*location).address.is_none()
                && self.slot(*location).uses.is_empty()
                && !is_claimed(*location)
        };
        (1..=self.slots.len()).filter_map(Location::slot).find(is_free)
    }

    /// Somebody is about to use the copy at `location`, brings something there, or was handed it
    /// out.
    pub(crate) fn is_in_use(&self, location: Location) -> bool {
        let is_claimed = self.cold.as_ref().is_some_and(|cold| !cold.claims.is_empty());
        self.pins > 0 || is_claimed || self.slot(location).uses.has_open()
    }

    /// The copy at `location` is gone with its memory, because of the call at `site`. Nothing was
    /// newest there alone.
    pub(crate) fn vacate(&mut self, memory_order: &MemoryOrder, location: Location, site: Line) {
        self.note_gone(location, &memory_order.whole(), site);
        // No element is lost by it, so that no record of a loss stands behind this number.
        self.coherence.invalidate(location, &memory_order.whole(), LossId(u32::MAX));
        let slot = self.slot_mut(location);
        slot.address = None;
        slot.uses = Uses::default();
    }

    #[inline]
    pub(crate) fn find_location(&self, device: &Device) -> Option<Location> {
        let index = self.slots.iter().position(|slot| slot.device == *device)?;
        Location::slot(index + 1)
    }

    /// The whole array on a stream's device, if it is there as `access` needs it and nobody but
    /// that stream has a use to be waited for.
    #[inline]
    pub(crate) fn whole_at_hand(&self, stream: &Stream, access: Access) -> Option<WholeAtHand> {
        if self.needs_reconciling() {
            return None;
        }
        let index = self.slots.iter().position(|slot| slot.device == *stream.device_ref())?;
        let (location, slot) = (Location::slot(index + 1)?, &self.slots[index]);
        let (address, usage) = (slot.address?, slot.uses.uniform()?);
        let key = self.find_key(stream)?;
        if !usage.conflicts_only_with(access, key) {
            return None;
        }
        if access == Access::Overwrite {
            return Some(WholeAtHand { location, address, key, writer: None });
        }
        self.coherence.uniform()?.is_valid(location).then(|| WholeAtHand {
            location,
            address,
            key,
            writer: usage.writer(),
        })
    }

    /// Enters a write of the whole array that was found at hand, as a guard that is handed out.
    #[inline]
    pub(crate) fn open_whole(&mut self, at_hand: &WholeAtHand) {
        let WholeAtHand { location, key, writer, .. } = *at_hand;
        if let Some(usage) = self.slot_mut(location).uses.uniform_mut() {
            usage.record(
                Access::Overwrite,
                Mark::foreign(
                    key,
                    UseEnd::OPEN,
                    writer.and_then(|writer| writer.written_by()).unwrap_or(Position::START),
                ),
            );
        }
    }

    /// Enters queued work of `stream` on the whole array, if that changes nothing but the mark:
    /// false if there is more to do.
    #[inline]
    pub(crate) fn mark_whole(
        &mut self,
        stream: &Stream,
        location: Location,
        access: Access,
        position: Position,
    ) -> bool {
        let (Some(key), Some(index)) = (self.find_key(stream), location.index().checked_sub(1))
        else {
            return false;
        };

        if access.writes()
            && !self.coherence.uniform().is_some_and(|content| content.is_only_at(location))
        {
            return false;
        }
        let Some(usage) = self.slots[index].uses.uniform_mut() else { return false };
        let mark = if access.writes() {
            Mark::write(key, position)
        } else {
            Mark::lossless(key, UseEnd::at(position))
        };
        usage.record(access, mark);
        true
    }

    /// The selection is about to be newest at `newest` alone, or nowhere, because of the call at
    /// `site`: whatever is valid elsewhere becomes stale by it.
    pub(crate) fn note_stale(
        &mut self,
        memory_order: &MemoryOrder,
        selection: &Selection,
        newest: Option<Location>,
        site: Line,
    ) {
        if let (Selection::Whole, Some(content)) = (selection, self.coherence.uniform()) {
            return self.note_all_stale(readable(content), site);
        }
        let elsewhere = |content| {
            newest.map_or_else(|| readable(content), |newest| readable(content).without(newest))
        };
        selection.for_each(memory_order, |region| self.note_parts_stale(region, elsewhere, site));
    }

    /// The whole array is about to be stale at `locations`, where all of it is valid.
    #[inline]
    fn note_all_stale(&mut self, locations: LocationSet, site: Line) {
        if self.cold.as_ref().is_some_and(|cold| !cold.stale_parts.is_empty()) {
            return self.note_all_in_parts(locations, site);
        }
        if locations.contains(Location::HOST) {
            self.host_stale_since = Some(site);
        }
        for (index, slot) in self.slots.iter_mut().enumerate() {
            if Location::slot(index + 1).is_some_and(|location| locations.contains(location)) {
                slot.stale_since = Some(site);
            }
        }
    }

    #[cold]
    fn note_all_in_parts(&mut self, locations: LocationSet, site: Line) {
        let whole = Region::whole(self.coherence.shape());
        self.note_parts_stale(&whole, |_| locations, site);
    }

    /// Parts of a region are about to be stale at the locations that `locations` makes of what is
    /// known of them.
    fn note_parts_stale(
        &mut self,
        region: &Region,
        locations: impl Fn(Content) -> LocationSet,
        site: Line,
    ) {
        let Self { coherence, host_stale_since, slots, cold, .. } = self;
        coherence.visit_contents(region, |part, content| {
            for location in locations(content).iter() {
                let whole = stale_since(host_stale_since, slots, location);
                parts_of(cold, location, coherence.shape(), *whole).note(part, site);
            }
        });
    }

    /// What is valid of a region at one location is about to be taken away there.
    fn note_gone(&mut self, location: Location, region: &Region, site: Line) {
        let there = |content: Content| {
            if content.is_valid(location) {
                LocationSet::of(location)
            } else {
                LocationSet::empty()
            }
        };
        match self.coherence.uniform() {
            Some(content) if *region == Region::whole(self.coherence.shape()) => {
                self.note_all_stale(there(content), site)
            }
            _ => self.note_parts_stale(region, there, site),
        }
    }

    /// The last call that made any of these regions stale at `location`, before they come there. Of
    /// what is valid there nothing can be told.
    pub(crate) fn stale_since(&self, location: Location, regions: &[Region]) -> StaleOrigin<Line> {
        let whole = if location == Location::HOST {
            self.host_stale_since
        } else {
            self.slot(location).stale_since
        };
        let parts = self
            .cold
            .iter()
            .flat_map(|cold| &cold.stale_parts)
            .find(|(known, _)| *known == location)
            .map(|(_, parts)| parts);
        let mut latest: Option<StaleOrigin<Line>> = None;
        for region in regions {
            self.coherence.visit_contents(region, |part, content| {
                if !content.is_valid(location) {
                    let since = parts
                        .map_or_else(|| StaleOrigin::of_whole(whole), |parts| parts.latest(part));
                    latest = Some(latest.map_or(since, |latest| latest.or_later(since)));
                }
            });
        }
        latest.unwrap_or(StaleOrigin::Unreported)
    }

    /// Makes `location` the only holder of the whole array, if that is all there is to do: false
    /// where contents differ or stale copies are poisoned.
    #[inline]
    pub(crate) fn become_only_holder(&mut self, location: Location, site: Line) -> bool {
        match self.coherence.uniform() {
            None => false,
            Some(content) if content.is_only_at(location) => true,
            Some(_) if self.slots.iter().any(|slot| slot.device.poison().is_some()) => false,
            Some(content) => {
                // Here too if it is valid here: that says nothing until it is not.
                self.note_all_stale(readable(content), site);
                self.coherence.apply_to_all(location, Access::Overwrite);
                true
            }
        }
    }

    /// The slot of a device's location. The host has none: do not ask.
    #[inline]
    pub(crate) fn slot(&self, location: Location) -> &Slot {
        &self.slots[location.index() - 1]
    }

    #[inline]
    pub(crate) fn slot_mut(&mut self, location: Location) -> &mut Slot {
        &mut self.slots[location.index() - 1]
    }

    pub(crate) fn uses(&self, location: Location) -> &Uses {
        static IDLE: Uses = Uses::EMPTY;
        if location == Location::HOST {
            self.host_uses.as_deref().unwrap_or(&IDLE)
        } else {
            &self.slot(location).uses
        }
    }

    pub(crate) fn uses_mut(&mut self, location: Location) -> &mut Uses {
        if location == Location::HOST {
            self.host_uses.get_or_insert_default()
        } else {
            &mut self.slot_mut(location).uses
        }
    }

    /// The number of a stream in this array's marks.
    #[inline]
    pub(crate) fn key_of(&mut self, stream: &Stream) -> StreamKey {
        self.find_key(stream).unwrap_or_else(|| self.keep(stream))
    }

    #[inline]
    pub(crate) fn find_key(&self, stream: &Stream) -> Option<StreamKey> {
        let index = self
            .streams
            .iter()
            .position(|known| known.as_ref().is_some_and(|known| known == stream))?;
        Some(StreamKey(index as u32))
    }

    #[cold]
    fn keep(&mut self, stream: &Stream) -> StreamKey {
        if self.streams.len() >= STREAMS_KEPT {
            self.forget_idle_streams();
        }
        let free = self.streams.iter().position(Option::is_none).unwrap_or_else(|| {
            self.streams.push(None);
            self.streams.len() - 1
        });
        self.streams[free] = Some(stream.clone());
        StreamKey(free as u32)
    }

    fn forget_idle_streams(&mut self) {
        let shape: SmallVec<[u64; 6]> = SmallVec::from_slice(self.coherence.shape());
        let mut used: SmallVec<[bool; 16]> = SmallVec::from_elem(false, self.streams.len());
        let streams = &self.streams;
        for uses in self
            .host_uses
            .as_deref_mut()
            .into_iter()
            .chain(self.slots.iter_mut().map(|slot| &mut slot.uses))
        {
            uses.retire(&shape, None, |mark| is_over(streams, mark));
            uses.visit_conflicts(None, Access::Overwrite, |mark| {
                used[mark.stream.0 as usize] = true
            });
        }
        for (stream, used) in self.streams.iter_mut().zip(used) {
            if !used && let Some(idle) = stream.take() {
                sync::defer_drop(idle);
            }
        }
    }

    pub(crate) fn stream(&self, key: StreamKey) -> Option<&Stream> {
        self.streams.get(key.0 as usize)?.as_ref()
    }

    #[inline]
    pub(crate) fn find_stream(&self, id: u64) -> Option<(StreamKey, &Stream)> {
        let mut known = self
            .streams
            .iter()
            .enumerate()
            .filter_map(|(index, stream)| Some((StreamKey(index as u32), stream.as_ref()?)));
        known.find(|(_, stream)| stream.id().0 == id)
    }

    /// Somebody has acquired a use that is not marked yet.
    pub(crate) fn is_pinned(&self) -> bool {
        self.pins > 0
    }

    /// Keeps all devices' copies where they are, until `unpin`.
    #[inline]
    pub(crate) fn pin(&mut self) {
        self.pins += 1;
    }

    #[inline]
    pub(crate) fn unpin(&mut self) {
        debug_assert!(self.pins > 0, "unpinned more often than pinned");
        self.pins = self.pins.saturating_sub(1);
    }

    /// Others than one stream may have to wait for uses of this array: they are worth an event in
    /// time.
    pub(crate) fn is_worth_events(&self) -> bool {
        self.streams.len() > 1
    }

    /// Whether a use is over, and well: then nobody has to wait for it or to look at it again.
    pub(crate) fn is_over(&self, mark: Mark) -> bool {
        is_over(&self.streams, mark)
    }

    /// Forgets uses of the host's copy that are over.
    pub(crate) fn settle_host(&mut self, memory_order: &MemoryOrder, selection: &Selection) {
        let Self { host_uses: Some(host_uses), streams, .. } = self else { return };
        selection.each(|region| {
            host_uses.retire(memory_order.extents(), region, |mark| is_over(streams, mark))
        });
    }

    /// Takes in late failures: a copy that a failed piece of work was to write is withdrawn, region
    /// by region.
    pub(crate) fn reconcile(&mut self, memory_order: &MemoryOrder) {
        let epoch = failure::epoch();
        if epoch == self.seen_failures {
            return;
        }
        self.seen_failures = epoch;
        for location in (0..=self.slots.len()).filter_map(Location::slot) {
            for (region, record) in self.failed_at(location, memory_order) {
                if let Some(site) = record.site {
                    self.note_gone(location, &region, site);
                }
                let loss = self.loss_id(record);
                self.coherence.invalidate(location, &region, loss);
                self.uses_mut(location).forget_write_failure(memory_order.extents(), &region);
            }
        }
    }

    /// Whether a location still holds what a plan was to take from there: a failure that somebody
    /// has taken in since may have withdrawn it, and its writer is forgotten then.
    pub(crate) fn holds(&self, location: Location, regions: &[Region]) -> bool {
        regions.iter().all(|region| self.coherence.is_valid(location, region))
    }

    /// Whether work has failed since failures were last taken in.
    #[inline]
    pub(crate) fn needs_reconciling(&self) -> bool {
        failure::epoch() != self.seen_failures
    }

    /// The epoch of failures up to which this state is reconciled.
    pub(crate) fn seen_failures(&self) -> u64 {
        self.seen_failures
    }

    fn failed_at(
        &self,
        location: Location,
        memory_order: &MemoryOrder,
    ) -> Vec<(Region, Arc<FailureRecord>)> {
        let mut failed = Vec::new();
        self.uses(location).visit_written_regions(memory_order.extents(), |region, mark| {
            if let (Some(stream), Some(position)) = (self.stream(mark.stream), mark.written_by())
                && let Some(record) = failure::at(stream.id(), position)
            {
                failed.push((*region, record));
            }
        });
        failed
    }

    fn loss_id(&mut self, record: Arc<FailureRecord>) -> LossId {
        let losses = &mut self.cold().losses;
        let index =
            losses.iter().position(|known| Arc::ptr_eq(known, &record)).unwrap_or_else(|| {
                losses.push(record);
                losses.len() - 1
            });
        LossId(u32::try_from(index).unwrap_or(u32::MAX))
    }

    pub(crate) fn loss(&self, id: LossId) -> Option<&Arc<FailureRecord>> {
        self.cold.as_ref()?.losses.get(id.0 as usize)
    }

    /// Whether somebody is bringing any of these elements to that location right now.
    pub(crate) fn is_claimed(&self, location: Location, selection: &Selection) -> bool {
        let claims = self.cold.iter().flat_map(|cold| &cold.claims);
        claims.into_iter().any(|(claimed, other)| *claimed == location && other.overlaps(selection))
    }

    pub(crate) fn claim(&mut self, location: Location, selection: &Selection) {
        self.cold().claims.push((location, selection.clone()));
    }

    pub(crate) fn unclaim(&mut self, location: Location, selection: &Selection) {
        let Some(cold) = &mut self.cold else { return };
        if let Some(index) = cold
            .claims
            .iter()
            .position(|(claimed, other)| *claimed == location && other == selection)
        {
            cold.claims.swap_remove(index);
        }
        // A transfer is long against an allocation, and most arrays are moved seldom: no memory is
        // kept for the next.
        if cold.claims.is_empty() {
            cold.claims = Vec::new();
            if cold.constants.is_empty() && cold.losses.is_empty() && cold.stale_parts.is_empty() {
                self.cold = None;
            }
        }
    }

    /// What of a part can be read at each location, the host's first: its boxes are looked for
    /// once, not once for each location.
    pub(crate) fn validities_of(
        &self,
        memory_order: &MemoryOrder,
        selection: &Selection,
    ) -> SmallVec<[Validity; 4]> {
        let locations = || (0..=self.slots.len()).filter_map(Location::slot);
        if matches!(selection, Selection::Whole) || memory_order.is_empty() {
            return locations().map(|location| self.validity(memory_order, location)).collect();
        }
        let (mut valid, mut len): (SmallVec<[u64; 4]>, _) =
            (SmallVec::from_elem(0, self.slots.len() + 1), 0);
        selection.for_each(memory_order, |region| {
            len += region.len();
            self.coherence.visit_contents(region, |part, content| {
                let elements = part.len();
                locations()
                    .zip(&mut valid)
                    .filter(|(location, _)| content.is_valid(*location))
                    .for_each(|(_, valid)| *valid += elements);
            });
        });
        locations()
            .zip(valid)
            .map(|(location, valid)| self.validity_at(memory_order, location, valid, len))
            .collect()
    }

    /// How `valid` of `len` elements at a location are called.
    fn validity_at(
        &self,
        memory_order: &MemoryOrder,
        location: Location,
        valid: u64,
        len: u64,
    ) -> Validity {
        match valid {
            _ if !self.has_memory(location) => Validity::Absent,
            _ if valid == len => Validity::Valid,
            0 => Validity::Stale,
            _ => Validity::Partial { valid_bytes: valid * memory_order.element_bytes() as u64 },
        }
    }

    fn has_memory(&self, location: Location) -> bool {
        if location == Location::HOST {
            self.host.is_some()
        } else {
            self.slot(location).address.is_some()
        }
    }

    /// What of this location can be read.
    pub(crate) fn validity(&self, memory_order: &MemoryOrder, location: Location) -> Validity {
        if !self.has_memory(location) && !memory_order.is_empty() {
            return Validity::Absent;
        }
        match self.coherence.valid_elements(location) {
            valid if valid == memory_order.len() => Validity::Valid,
            0 => Validity::Stale,
            valid => Validity::Partial { valid_bytes: valid * memory_order.element_bytes() as u64 },
        }
    }

    /// Orders `stream` behind marks of this array; what failed already or may still fail is left to
    /// the caller's dependencies.
    pub(crate) fn order(&self, stream: &Stream, marks: &[Mark]) -> Result<(), BackendError> {
        for mark in marks {
            if let Some(other) = self.stream(mark.stream) {
                stream.order_after(other, mark.end)?;
            }
        }
        Ok(())
    }
}

/// Where elements can be read without a copy. On the host a constant can, wherever it stands: that
/// is where the program made it.
#[inline]
fn readable(content: Content) -> LocationSet {
    match content {
        Content::Undefined(_) => LocationSet::empty(),
        Content::Constant { filled, .. } => filled.with(Location::HOST),
        Content::Stored(holders) => holders.locations(),
    }
}

/// The one line for all of a location's copy.
#[inline]
fn stale_since<'a>(
    host: &'a mut Option<Line>,
    slots: &'a mut [Slot],
    location: Location,
) -> &'a mut Option<Line> {
    if location == Location::HOST { host } else { &mut slots[location.index() - 1].stale_since }
}

/// The lines for parts of a location's copy, made from the one for all of it.
fn parts_of<'a>(
    cold: &'a mut Option<Box<ColdState>>,
    location: Location,
    shape: &[u64],
    whole: Option<Line>,
) -> &'a mut Parts<Line> {
    let known = &mut cold.get_or_insert_default().stale_parts;
    let index = known.iter().position(|(other, _)| *other == location).unwrap_or_else(|| {
        known.push((location, Parts::new(shape, whole)));
        known.len() - 1
    });
    &mut known[index].1
}

fn is_over(streams: &[Option<Stream>], mark: Mark) -> bool {
    let Some(stream) = streams.get(mark.stream.0 as usize).and_then(Option::as_ref) else {
        return true;
    };
    // Completion first, then the failure: a failure is entered before its position counts as
    // complete.
    mark.end != UseEnd::OPEN
        && stream.core().is_done(mark.end)
        && mark.written_by().is_none_or(|work| failure::at(stream.id(), work).is_none())
}
