//! What is valid where, and who uses it: the part of an array that changes, behind its lock.

use std::panic::Location;
use std::sync::Arc;

use smallvec::SmallVec;

use super::since::{Parts, Since};
use super::{HostBuffer, Selection, Space};
use crate::audit::{Traffic, Validity};
use crate::backend::{Address, BackendError, Bytes, FailureRecord, Position, failure};
use crate::coherence::{Access, Coherence, ConstantId, Content, LossId, Place, PlaceSet, Region};
use crate::device::{Device, Stream};
use crate::order::{At, Mark, StreamKey, Touch, Uses};
use crate::sync;

/// More streams than this are looked through for idle ones before another is kept.
const STREAMS_KEPT: usize = 8;

/// A line of the user's program.
pub(crate) type Line = &'static Location<'static>;

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
    /// `Rare::stale_parts` knows.
    host_stale_since: Option<Line>,
    /// Uses that were acquired on devices and are not marked yet: no device's copy is taken away
    /// meanwhile.
    pins: u32,
    rare: Option<Box<Rare>>,
}

/// What most arrays never have.
#[derive(Debug, Default)]
struct Rare {
    /// Values of constants that are not all zero bytes; constant n is entry n - 1.
    constants: Vec<Bytes>,
    losses: Vec<Arc<FailureRecord>>,
    claims: Vec<(Place, Selection)>,
    /// Since when copies are stale of which parts became so by calls of their own.
    stale_parts: Vec<(Place, Parts<Line>)>,
}

/// The whole array on a device, with nothing to be done before its use.
pub(crate) struct WholeAtHand {
    pub(crate) place: Place,
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
            rare: None,
        }
    }

    pub(super) fn on_host(coherence: Coherence, buffer: HostBuffer) -> Self {
        Self { host: Some(Arc::new(buffer)), ..Self::new(coherence) }
    }

    #[cfg(feature = "cuda")]
    pub(super) fn on_device(extents: &[u64], stream: &Stream, address: Address) -> Self {
        let mut state = Self::new(Coherence::undefined(extents));
        if let Some(place) = state.place_of(stream.device_ref()) {
            state.coherence = Coherence::stored(extents, place);
            // Other streams may use the memory only behind what made it.
            let made = Mark::harmless(state.key_of(stream), At::position(stream.queue().fence()));
            let slot = state.slot_mut(place);
            slot.address = Some(address);
            slot.uses.mark(extents, None, Touch::Write, made);
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
        let constants = &mut self.rare().constants;
        let index = constants.iter().position(|known| *known == value).unwrap_or_else(|| {
            constants.push(value);
            constants.len() - 1
        });
        ConstantId(u32::try_from(index + 1).unwrap_or(u32::MAX))
    }

    /// The bytes of a constant; zeros for number 0, `element_bytes` of them.
    pub(crate) fn constant_value(&self, id: ConstantId, element_bytes: usize) -> Bytes {
        let given =
            id.0.checked_sub(1).and_then(|index| self.rare.as_ref()?.constants.get(index as usize));
        given.cloned().unwrap_or_else(|| Bytes::from_elem(0, element_bytes))
    }

    /// Drops values that no element has any more, once there are many.
    pub(crate) fn forget_constants(&mut self, space: &Space) {
        let Some(rare) = self.rare.as_mut().filter(|rare| rare.constants.len() > 64) else {
            return;
        };
        let mut used = vec![false; rare.constants.len()];
        self.coherence.newest(&space.whole(), |_, content| {
            if let Content::Constant { value: ConstantId(number @ 1..), .. } = content {
                used[number as usize - 1] = true;
            }
        });
        let last = used.iter().rposition(|used| *used).map_or(0, |last| last + 1);
        rare.constants.truncate(last);
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
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
            && self.coherence.uniform().is_some_and(|content| content.is_valid(Place::HOST))
    }

    /// Nothing queued touches the host's memory, as far as is known.
    #[inline]
    pub(crate) fn is_host_idle(&self) -> bool {
        self.host_uses.as_ref().is_none_or(|uses| uses.is_idle())
    }

    pub(crate) fn devices(&self) -> impl Iterator<Item = (Place, &Device)> {
        self.slots
            .iter()
            .enumerate()
            .filter_map(|(index, slot)| Some((Place::slot(index + 1)?, &slot.device)))
    }

    /// The place of a device in this array, given at first use. `None` if all 63 are taken.
    pub(crate) fn place_of(&mut self, device: &Device) -> Option<Place> {
        if let Some(place) = self.find_place(device) {
            return Some(place);
        }
        let slot = Slot {
            device: device.clone(),
            address: None,
            uses: Uses::default(),
            stale_since: None,
        };
        match Place::slot(self.slots.len() + 1) {
            Some(place) => {
                self.slots.push(slot);
                Some(place)
            }
            None => {
                let place = self.free_place()?;
                sync::let_go(std::mem::replace(self.slot_mut(place), slot).device);
                Some(place)
            }
        }
    }

    /// A place without memory, which nobody uses or is bringing something to.
    fn free_place(&self) -> Option<Place> {
        let is_claimed = |place: Place| {
            self.rare.iter().flat_map(|rare| &rare.claims).any(|(claimed, _)| *claimed == place)
        };
        let is_free = |place: &Place| {
            self.slot(*place).address.is_none()
                && self.slot(*place).uses.is_idle()
                && !is_claimed(*place)
        };
        (1..=self.slots.len()).filter_map(Place::slot).find(is_free)
    }

    /// Somebody is about to use the copy at `place`, brings something there, or was handed it out.
    pub(crate) fn is_in_use(&self, place: Place) -> bool {
        let is_claimed = self.rare.as_ref().is_some_and(|rare| !rare.claims.is_empty());
        self.pins > 0 || is_claimed || self.slot(place).uses.has_open()
    }

    /// The copy at `place` is gone with its memory, because of the call at `site`. Nothing was
    /// newest there alone.
    pub(crate) fn vacate(&mut self, space: &Space, place: Place, site: Line) {
        self.note_gone(place, &space.whole(), site);
        // No element is lost by it, so that no record of a loss stands behind this number.
        self.coherence.withdraw(place, &space.whole(), LossId(u32::MAX));
        let slot = self.slot_mut(place);
        slot.address = None;
        slot.uses = Uses::default();
    }

    #[inline]
    pub(crate) fn find_place(&self, device: &Device) -> Option<Place> {
        let index = self.slots.iter().position(|slot| slot.device == *device)?;
        Place::slot(index + 1)
    }

    /// The whole array on a stream's device, if it is there as `access` needs it and nobody but
    /// that stream has a use to be waited for.
    #[inline]
    pub(crate) fn whole_at_hand(&self, stream: &Stream, access: Access) -> Option<WholeAtHand> {
        if self.needs_reconciling() {
            return None;
        }
        let index = self.slots.iter().position(|slot| slot.device == *stream.device_ref())?;
        let (place, slot) = (Place::slot(index + 1)?, &self.slots[index]);
        let (address, usage) = (slot.address?, slot.uses.uniform()?);
        let key = self.find_key(stream)?;
        if !usage.is_alone(access.touch(), key) {
            return None;
        }
        if access == Access::Overwrite {
            return Some(WholeAtHand { place, address, key, writer: None });
        }
        self.coherence.uniform()?.is_valid(place).then(|| WholeAtHand {
            place,
            address,
            key,
            writer: usage.writer(),
        })
    }

    /// Enters a write of the whole array that was found at hand, as a guard that is handed out.
    #[inline]
    pub(crate) fn open_whole(&mut self, at_hand: &WholeAtHand) {
        let WholeAtHand { place, key, writer, .. } = *at_hand;
        if let Some(usage) = self.slot_mut(place).uses.uniform_mut() {
            usage.after(
                Touch::Write,
                Mark::foreign(
                    key,
                    At::OPEN,
                    writer.and_then(|writer| writer.work()).unwrap_or(Position::START),
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
        place: Place,
        access: Access,
        position: Position,
    ) -> bool {
        let (Some(key), Some(index)) = (self.find_key(stream), place.index().checked_sub(1)) else {
            return false;
        };
        let touch = access.touch();
        if touch == Touch::Write
            && !self.coherence.uniform().is_some_and(|content| content.is_only_at(place))
        {
            return false;
        }
        let Some(usage) = self.slots[index].uses.uniform_mut() else { return false };
        let mark = if touch == Touch::Write {
            Mark::written(key, position)
        } else {
            Mark::harmless(key, At::position(position))
        };
        usage.after(touch, mark);
        true
    }

    /// The selection is about to be newest at `newest` alone, or nowhere, because of the call at
    /// `site`: whatever is valid elsewhere becomes stale by it.
    pub(crate) fn note_stale(
        &mut self,
        space: &Space,
        selection: &Selection,
        newest: Option<Place>,
        site: Line,
    ) {
        if let (Selection::Whole, Some(content)) = (selection, self.coherence.uniform()) {
            return self.note_all_stale(readable(content), site);
        }
        let elsewhere = |content| {
            newest.map_or_else(|| readable(content), |newest| readable(content).without(newest))
        };
        selection.for_each(space, |region| self.note_parts_stale(region, elsewhere, site));
    }

    /// The whole array is about to be stale at `places`, where all of it is valid.
    #[inline]
    fn note_all_stale(&mut self, places: PlaceSet, site: Line) {
        if self.rare.as_ref().is_some_and(|rare| !rare.stale_parts.is_empty()) {
            return self.note_all_in_parts(places, site);
        }
        if places.contains(Place::HOST) {
            self.host_stale_since = Some(site);
        }
        for (index, slot) in self.slots.iter_mut().enumerate() {
            if Place::slot(index + 1).is_some_and(|place| places.contains(place)) {
                slot.stale_since = Some(site);
            }
        }
    }

    #[cold]
    fn note_all_in_parts(&mut self, places: PlaceSet, site: Line) {
        let whole = Region::whole(self.coherence.shape());
        self.note_parts_stale(&whole, |_| places, site);
    }

    /// Parts of a region are about to be stale at the places that `places` makes of what is known
    /// of them.
    fn note_parts_stale(
        &mut self,
        region: &Region,
        places: impl Fn(Content) -> PlaceSet,
        site: Line,
    ) {
        let Self { coherence, host_stale_since, slots, rare, .. } = self;
        coherence.newest(region, |part, content| {
            for place in places(content).iter() {
                let whole = stale_since(host_stale_since, slots, place);
                parts_of(rare, place, coherence.shape(), *whole).note(part, site);
            }
        });
    }

    /// What is valid of a region at one place is about to be taken away there.
    fn note_gone(&mut self, place: Place, region: &Region, site: Line) {
        let there = |content: Content| {
            if content.is_valid(place) { PlaceSet::of(place) } else { PlaceSet::empty() }
        };
        match self.coherence.uniform() {
            Some(content) if *region == Region::whole(self.coherence.shape()) => {
                self.note_all_stale(there(content), site)
            }
            _ => self.note_parts_stale(region, there, site),
        }
    }

    /// The last call that made any of these regions stale at `place`, before they come there. Of
    /// what is valid there nothing can be told.
    pub(crate) fn stale_since(&self, place: Place, regions: &[Region]) -> Since<Line> {
        let whole =
            if place == Place::HOST { self.host_stale_since } else { self.slot(place).stale_since };
        let parts = self
            .rare
            .iter()
            .flat_map(|rare| &rare.stale_parts)
            .find(|(known, _)| *known == place)
            .map(|(_, parts)| parts);
        let mut latest: Option<Since<Line>> = None;
        for region in regions {
            self.coherence.newest(region, |part, content| {
                if !content.is_valid(place) {
                    let since =
                        parts.map_or_else(|| Since::of_whole(whole), |parts| parts.latest(part));
                    latest = Some(latest.map_or(since, |latest| latest.or_later(since)));
                }
            });
        }
        latest.unwrap_or(Since::Untold)
    }

    /// Makes `place` the only holder of the whole array, if that is all there is to do: false where
    /// contents differ or stale copies are poisoned.
    #[inline]
    pub(crate) fn become_only_holder(&mut self, place: Place, site: Line) -> bool {
        match self.coherence.uniform() {
            None => false,
            Some(content) if content.is_only_at(place) => true,
            Some(_) if self.slots.iter().any(|slot| slot.device.poison().is_some()) => false,
            Some(content) => {
                // Here too if it is valid here: that says nothing until it is not.
                self.note_all_stale(readable(content), site);
                self.coherence.apply_to_all(place, Access::Overwrite);
                true
            }
        }
    }

    /// The slot of a device's place. The host has none: do not ask.
    #[inline]
    pub(crate) fn slot(&self, place: Place) -> &Slot {
        &self.slots[place.index() - 1]
    }

    #[inline]
    pub(crate) fn slot_mut(&mut self, place: Place) -> &mut Slot {
        &mut self.slots[place.index() - 1]
    }

    pub(crate) fn uses(&self, place: Place) -> &Uses {
        static IDLE: Uses = Uses::IDLE;
        if place == Place::HOST {
            self.host_uses.as_deref().unwrap_or(&IDLE)
        } else {
            &self.slot(place).uses
        }
    }

    pub(crate) fn uses_mut(&mut self, place: Place) -> &mut Uses {
        if place == Place::HOST {
            self.host_uses.get_or_insert_default()
        } else {
            &mut self.slot_mut(place).uses
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
            uses.settle(&shape, None, |mark| is_over(streams, mark));
            uses.before(None, Touch::Write, |mark| used[mark.stream.0 as usize] = true);
        }
        for (stream, used) in self.streams.iter_mut().zip(used) {
            if !used && let Some(idle) = stream.take() {
                sync::let_go(idle);
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
    pub(crate) fn settle_host(&mut self, space: &Space, selection: &Selection) {
        let Self { host_uses: Some(host_uses), streams, .. } = self else { return };
        selection.each(|region| {
            host_uses.settle(space.extents(), region, |mark| is_over(streams, mark))
        });
    }

    /// Takes in late failures: a copy that a failed piece of work was to write is withdrawn, region
    /// by region.
    pub(crate) fn reconcile(&mut self, space: &Space) {
        let epoch = failure::epoch();
        if epoch == self.seen_failures {
            return;
        }
        self.seen_failures = epoch;
        for place in (0..=self.slots.len()).filter_map(Place::slot) {
            for (region, record) in self.failed_at(place, space) {
                if let Some(site) = record.site {
                    self.note_gone(place, &region, site);
                }
                let loss = self.loss_id(record);
                self.coherence.withdraw(place, &region, loss);
                self.uses_mut(place).forget_writer(space.extents(), &region);
            }
        }
    }

    /// Whether a place still holds what a plan was to take from there: a failure that somebody has
    /// taken in since may have withdrawn it, and its writer is forgotten then.
    pub(crate) fn holds(&self, place: Place, regions: &[Region]) -> bool {
        regions.iter().all(|region| self.coherence.is_valid(place, region))
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

    fn failed_at(&self, place: Place, space: &Space) -> Vec<(Region, Arc<FailureRecord>)> {
        let mut failed = Vec::new();
        self.uses(place).all_writers(space.extents(), |region, mark| {
            if let (Some(stream), Some(position)) = (self.stream(mark.stream), mark.work())
                && let Some(record) = failure::of(stream.id(), position)
            {
                failed.push((*region, record));
            }
        });
        failed
    }

    fn loss_id(&mut self, record: Arc<FailureRecord>) -> LossId {
        let losses = &mut self.rare().losses;
        let index =
            losses.iter().position(|known| Arc::ptr_eq(known, &record)).unwrap_or_else(|| {
                losses.push(record);
                losses.len() - 1
            });
        LossId(u32::try_from(index).unwrap_or(u32::MAX))
    }

    pub(crate) fn loss(&self, id: LossId) -> Option<&Arc<FailureRecord>> {
        self.rare.as_ref()?.losses.get(id.0 as usize)
    }

    /// Whether somebody is bringing any of these elements to that place right now.
    pub(crate) fn is_claimed(&self, place: Place, selection: &Selection) -> bool {
        let claims = self.rare.iter().flat_map(|rare| &rare.claims);
        claims.into_iter().any(|(claimed, other)| *claimed == place && other.overlaps(selection))
    }

    pub(crate) fn claim(&mut self, place: Place, selection: &Selection) {
        self.rare().claims.push((place, selection.clone()));
    }

    pub(crate) fn unclaim(&mut self, place: Place, selection: &Selection) {
        let Some(rare) = &mut self.rare else { return };
        if let Some(index) =
            rare.claims.iter().position(|(claimed, other)| *claimed == place && other == selection)
        {
            rare.claims.swap_remove(index);
        }
        // A transfer is long against an allocation, and most arrays are moved seldom: no memory is
        // kept for the next.
        if rare.claims.is_empty() {
            rare.claims = Vec::new();
            if rare.constants.is_empty() && rare.losses.is_empty() && rare.stale_parts.is_empty() {
                self.rare = None;
            }
        }
    }

    /// What of a part can be read at each place, the host's first: its boxes are looked for once,
    /// not once for each place.
    pub(crate) fn validities_of(
        &self,
        space: &Space,
        selection: &Selection,
    ) -> SmallVec<[Validity; 4]> {
        let places = || (0..=self.slots.len()).filter_map(Place::slot);
        if matches!(selection, Selection::Whole) || space.is_empty() {
            return places().map(|place| self.validity(space, place)).collect();
        }
        let (mut valid, mut len): (SmallVec<[u64; 4]>, _) =
            (SmallVec::from_elem(0, self.slots.len() + 1), 0);
        selection.for_each(space, |region| {
            len += region.len();
            self.coherence.newest(region, |part, content| {
                let elements = part.len();
                places()
                    .zip(&mut valid)
                    .filter(|(place, _)| content.is_valid(*place))
                    .for_each(|(_, valid)| *valid += elements);
            });
        });
        places()
            .zip(valid)
            .map(|(place, valid)| self.validity_at(space, place, valid, len))
            .collect()
    }

    /// How `valid` of `len` elements at a place are called.
    fn validity_at(&self, space: &Space, place: Place, valid: u64, len: u64) -> Validity {
        match valid {
            _ if !self.has_memory(place) => Validity::Absent,
            _ if valid == len => Validity::Valid,
            0 => Validity::Stale,
            _ => Validity::Partial { valid_bytes: valid * space.element_bytes() as u64 },
        }
    }

    fn has_memory(&self, place: Place) -> bool {
        if place == Place::HOST { self.host.is_some() } else { self.slot(place).address.is_some() }
    }

    /// What of this place can be read.
    pub(crate) fn validity(&self, space: &Space, place: Place) -> Validity {
        if !self.has_memory(place) && !space.is_empty() {
            return Validity::Absent;
        }
        match self.coherence.valid_elements(place) {
            valid if valid == space.len() => Validity::Valid,
            0 => Validity::Stale,
            valid => Validity::Partial { valid_bytes: valid * space.element_bytes() as u64 },
        }
    }

    /// Orders `stream` behind marks of this array; what failed already or may still fail is left to
    /// the caller's dependencies.
    pub(crate) fn order(&self, stream: &Stream, marks: &[Mark]) -> Result<(), BackendError> {
        for mark in marks {
            if let Some(other) = self.stream(mark.stream) {
                stream.order_after(other, mark.at)?;
            }
        }
        Ok(())
    }
}

/// Where elements can be read without a copy. On the host a constant can, wherever it stands: that
/// is where the program made it.
#[inline]
fn readable(content: Content) -> PlaceSet {
    match content {
        Content::Undefined(_) => PlaceSet::empty(),
        Content::Constant { filled, .. } => filled.with(Place::HOST),
        Content::Stored(holders) => holders.places(),
    }
}

/// The one line for all of a place's copy.
#[inline]
fn stale_since<'a>(
    host: &'a mut Option<Line>,
    slots: &'a mut [Slot],
    place: Place,
) -> &'a mut Option<Line> {
    if place == Place::HOST { host } else { &mut slots[place.index() - 1].stale_since }
}

/// The lines for parts of a place's copy, made from the one for all of it.
fn parts_of<'a>(
    rare: &'a mut Option<Box<Rare>>,
    place: Place,
    shape: &[u64],
    whole: Option<Line>,
) -> &'a mut Parts<Line> {
    let known = &mut rare.get_or_insert_default().stale_parts;
    let index = known.iter().position(|(other, _)| *other == place).unwrap_or_else(|| {
        known.push((place, Parts::new(shape, whole)));
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
    mark.at != At::OPEN
        && stream.core().is_done(mark.at)
        && mark.work().is_none_or(|work| failure::of(stream.id(), work).is_none())
}
