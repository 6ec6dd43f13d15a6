//! Accesses on a device: acquire, and the marks that follow.

use smallvec::SmallVec;

use super::window::{Chunk, Pipeline, first_share};
use super::{Marks, Request, acquire_host, run_deferred};
use crate::access::Access;
use crate::audit::Flow;
use crate::backend::{
    Address, Bytes, Dependencies, FailureKind, FillWork, HostMemory, Position, Work,
};
use crate::call_site::CallSite;
use crate::coherence::{Location, PlannedCopy, Region, Source};
use crate::device::{Device, Stream};
use crate::error::Result;
use crate::layout::Selection;
use crate::ordering::{Mark, StreamKey, UseEnd};
use crate::storage::{ArrayState, ReadyCopy, Storage};

/// What an acquired part is to its stream.
#[derive(Debug)]
#[must_use = "the copy stays where it is while this lives"]
pub(crate) struct Acquired<'a> {
    pub(crate) location: Location,
    /// Of the whole array's copy. 0 where the array has no bytes.
    pub(crate) address: Address,
    /// Bytes that were copied to get there.
    pub(crate) copied_bytes: u64,
    /// Until its use is marked. An array without bytes needs none.
    pin: Option<Pin<'a>>,
}

/// Keeps an array's copies on devices where they are while it lives.
#[derive(Debug)]
struct Pin<'a>(&'a Storage);

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.0.lock().unpin();
    }
}

impl<'a> Acquired<'a> {
    const NOWHERE: Self =
        Self { location: Location::HOST, address: Address(0), copied_bytes: 0, pin: None };

    /// At hand, with the lock held.
    #[inline]
    fn pinned(
        storage: &'a Storage,
        state: &mut ArrayState,
        (location, address): (Location, Address),
        copied_bytes: u64,
    ) -> Self {
        state.pin();
        Self { location, address, copied_bytes, pin: Some(Pin(storage)) }
    }

    /// Its use is marked, with the lock held.
    #[inline]
    fn release(&mut self, state: &mut ArrayState) {
        if let Some(pin) = self.pin.take() {
            state.unpin();
            std::mem::forget(pin);
        }
    }
}

/// Brings a part to `stream`'s device as `access` needs it, and orders `stream` behind what it must
/// come after. What is to be read and may still fail is added to `depends`.
pub(crate) fn acquire_on<'a>(
    request: &Request<'a>,
    stream: &Stream,
    access: Access,
    depends: &mut Dependencies,
) -> Result<Acquired<'a>> {
    let storage = request.storage;
    if request.is_empty() {
        return Ok(Acquired::NOWHERE);
    }
    let mut state = storage.lock();
    if let Some(there) = ready(request, &state, stream, access, depends) {
        return Ok(Acquired::pinned(storage, &mut state, there, 0));
    }
    drop(state);
    bring(request, stream, access, depends)
}

/// As `acquire_on` for a whole array, without a request, where everything is at hand; `None` if
/// there is more to do.
#[inline]
pub(crate) fn acquire_whole<'a>(
    storage: &'a Storage,
    stream: &Stream,
    access: Access,
    depends: &mut Dependencies,
) -> Option<Acquired<'a>> {
    if storage.memory_order().is_empty() {
        return None;
    }
    let mut state = storage.lock();
    let there = ready_whole(&state, stream, access, depends)?;
    Some(Acquired::pinned(storage, &mut state, there, 0))
}

/// `ready` for a whole array.
#[inline]
fn ready_whole(
    state: &ArrayState,
    stream: &Stream,
    access: Access,
    depends: &mut Dependencies,
) -> Option<(Location, Address)> {
    let ReadyCopy { location, address, writer, .. } = state.ready_whole(stream, access)?;
    writer.into_iter().for_each(|writer| depend(state, depends, stream, writer));
    Some((location, address))
}

/// What is there already, behind nothing but uses of the stream itself. The common case: nothing to
/// copy, to wait for or to allocate.
#[inline]
fn ready(
    request: &Request<'_>,
    state: &ArrayState,
    stream: &Stream,
    access: Access,
    depends: &mut Dependencies,
) -> Option<(Location, Address)> {
    if matches!(request.selection, Selection::Whole) {
        return ready_whole(state, stream, access, depends);
    }
    if state.has_new_failures() {
        return None;
    }
    let location = state.find_location(stream.device_ref())?;
    let address = state.device_copy(location).address?;
    if access != Access::Overwrite && !request.is_valid(state, location) {
        return None;
    }
    let key = state.find_key(stream).unwrap_or(StreamKey::NONE);
    let mut alone = true;
    request.selection.each(|region| {
        alone &= state.uses(location).conflicts_only_with(region, access, key, |writer| {
            if access != Access::Overwrite && writer.stream == key {
                depend(state, depends, stream, writer);
            }
        });
    });
    alone.then_some((location, address))
}

/// Adds a writer on `stream` itself. Whether it is over is asked only where the list would need the
/// heap: the answer lies with the thread that runs the work, and fetching it costs more than naming
/// work that is over.
#[inline]
fn depend(state: &ArrayState, depends: &mut Dependencies, stream: &Stream, writer: Mark) {
    let Some(work) = writer.written_by() else { return };
    let dependency = (stream.id(), work);
    let has_room = depends.len() < depends.inline_size();
    if !depends.contains(&dependency) && (has_room || !state.is_retired(writer)) {
        depends.push(dependency);
    }
}

/// Copies, allocates and waits as need be, and tells of the copies.
fn bring<'a>(
    request: &Request<'a>,
    stream: &Stream,
    access: Access,
    depends: &mut Dependencies,
) -> Result<Acquired<'a>> {
    let outcome = bring_untold(request, stream, access, depends);
    run_deferred();
    outcome
}

fn bring_untold<'a>(
    request: &Request<'a>,
    stream: &Stream,
    access: Access,
    depends: &mut Dependencies,
) -> Result<Acquired<'a>> {
    let mut window = Pipeline::default();
    let brought = bring_pieces(request, stream, access, depends, &mut window);
    let copied_bytes = window.bytes();
    window.close(request);
    brought.map(|acquired| Acquired { copied_bytes, ..acquired })
}

fn bring_pieces<'a>(
    request: &Request<'a>,
    stream: &Stream,
    access: Access,
    depends: &mut Dependencies,
    window: &mut Pipeline,
) -> Result<Acquired<'a>> {
    let storage = request.storage;
    let mut state = storage.lock();
    let (location, address) = loop {
        state.reconcile(storage.memory_order());
        let location = state
            .assign_location(stream.device_ref())
            .ok_or_else(|| request.no_location(stream.device_ref()))?;
        let needs_copies = access != Access::Overwrite && !request.is_valid(&state, location);
        match state.device_copy(location).address {
            Some(address) if !needs_copies => break (location, address),
            _ => {}
        }
        if state.is_claimed(location, request.selection) {
            state = request.wait_for_claim(state)?;
            continue;
        }
        if window.is_full() {
            drop(state);
            window.wait(request)?;
            state = storage.lock();
            continue;
        }
        let planned =
            if needs_copies { request.plan(&state, location, access)? } else { Vec::new() };
        let Chunk { pieces, is_last } = request.first_upload(&state, stream.device_ref(), &planned);
        if let Some(pending) = host_pending(request, &state, &pieces) {
            drop(state);
            request.wait_for_host(pending)?;
            state = storage.lock();
            continue;
        }
        if let Some(far) = request.out_of_reach(&state, location, &pieces) {
            // By way of the host, as an access of its own; then the plan is made anew.
            drop(state);
            acquire_host(&Request { selection: &far, ..*request }, Access::Read)?;
            state = storage.lock();
            continue;
        }
        request.claimed(state, location, || request.fetch(stream, location, &pieces, window))?;
        if !is_last {
            window.expect_more();
        }
        state = storage.lock();
    };
    order(request, &state, stream, location, access)?;
    if access != Access::Overwrite {
        request.dependencies(&state, location, depends);
    }
    Ok(Acquired::pinned(storage, &mut state, (location, address), 0))
}

impl Request<'_> {
    /// As much of an upload as goes at once. Page-locked memory needs no staging.
    fn first_upload(&self, state: &ArrayState, device: &Device, planned: &[PlannedCopy]) -> Chunk {
        let is_direct = state.host.as_ref().is_some_and(|host| host.is_pinned_for(device.kind()));
        let bytes_max = if is_direct { u64::MAX } else { device.backend().chunk_bytes_max() };
        first_share(self.storage.memory_order(), planned, bytes_max, |source| {
            source == Source::Location(Location::HOST)
        })
    }

    /// The pieces whose source is a device that the destination does not reach.
    fn out_of_reach(
        &self,
        state: &ArrayState,
        location: Location,
        pieces: &[PlannedCopy],
    ) -> Option<Selection> {
        let destination = state.device_copy(location).device.backend();
        let is_far = |piece: &&PlannedCopy| match piece.source {
            Source::Location(from) if from != Location::HOST => {
                !destination.can_access_peer(&**state.device_copy(from).device.backend())
            }
            _ => false,
        };
        let far: SmallVec<[Region; 1]> =
            pieces.iter().filter(is_far).map(|piece| piece.region).collect();
        (!far.is_empty()).then_some(Selection::Boxes(far))
    }
}

/// Work that still writes host memory which the pieces would be read from.
fn host_pending(
    request: &Request<'_>,
    state: &ArrayState,
    pieces: &[PlannedCopy],
) -> Option<super::Queued> {
    let from_host = pieces.iter().any(|piece| piece.source == Source::Location(Location::HOST));
    if !from_host {
        return None;
    }
    let marks = request.marks_before(state, Location::HOST, Access::Read, None);
    (!marks.is_empty()).then(|| queued(state, &marks))
}

pub(super) fn queued(state: &ArrayState, marks: &Marks) -> super::Queued {
    let position = |stream: &Stream, at: UseEnd| {
        at.position().unwrap_or_else(|| stream.queue().reserve_position())
    };
    marks
        .iter()
        .filter_map(|mark| {
            state.stream(mark.stream).map(|stream| (stream.clone(), position(stream, mark.end)))
        })
        .collect()
}

fn order(
    request: &Request<'_>,
    state: &ArrayState,
    stream: &Stream,
    location: Location,
    access: Access,
) -> Result<()> {
    let marks = request.marks_before(state, location, access, Some(stream));
    state
        .make_wait(stream, &marks)
        .map_err(|refusal| request.refused(stream.device_ref(), "ordering uses of", &refusal))
}

/// Acquires a part for an access that is handed out as a guard, and marks it as open, in one step
/// where everything is at hand.
pub(crate) fn open_guard(
    request: &Request<'_>,
    stream: &Stream,
    access: Access,
) -> Result<(Location, Address)> {
    if request.is_empty() {
        return Ok((Location::HOST, Address(0)));
    }
    let mut state = request.storage.lock();
    let mut depends = Dependencies::new();
    let mut acquired = match ready(request, &state, stream, access, &mut depends) {
        Some(there) => Acquired::pinned(request.storage, &mut state, there, 0),
        None => {
            drop(state);
            let acquired = bring(request, stream, access, &mut depends)?;
            state = request.storage.lock();
            acquired
        }
    };
    let there = (acquired.location, acquired.address);
    if access == Access::Read {
        enter(request, &mut state, stream, acquired.location, access, UseEnd::OPEN);
        publish_reader(request, &state, stream, &acquired);
        acquired.release(&mut state);
    } else if let Some(work) = inherited_at_hand(stream, &depends) {
        enter_foreign(request, &mut state, stream, acquired, access, (UseEnd::OPEN, work));
    } else {
        drop(state);
        mark_foreign(request, stream, acquired, access, UseEnd::OPEN, depends)?;
    }
    Ok(there)
}

/// As `open_guard` of a whole array for a write, without a request, where everything is at hand;
/// `None` if there is more to do: nothing was done then.
pub(crate) fn open_whole(
    storage: &Storage,
    stream: &Stream,
    access: Access,
    site: CallSite,
) -> Option<(Location, Address)> {
    if storage.memory_order().is_empty() {
        return None;
    }
    let mut state = storage.lock();
    let ready = state.ready_whole(stream, access)?;
    if !state.become_only_holder(ready.location, site) {
        return None;
    }
    state.record_open_write(&ready);
    storage.forget_readers();
    storage.publish(&state);
    Some((ready.location, ready.address))
}

/// Enters a write of foreign work, which is queued at `at` or still to come. It reads what
/// `depends` may still spoil: nobody can keep foreign work from running then, but what it made of
/// spoilt bytes is no contents.
pub(crate) fn mark_foreign(
    request: &Request<'_>,
    stream: &Stream,
    acquired: Acquired<'_>,
    access: Access,
    at: UseEnd,
    depends: Dependencies,
) -> Result<()> {
    if request.is_empty() {
        return Ok(());
    }
    let work = match inherited_at_hand(stream, &depends) {
        Some(work) => work,
        None => inherited(request, stream, acquired.address, depends)?,
    };
    let mut state = request.storage.lock();
    enter_foreign(request, &mut state, stream, acquired, access, (at, work));
    Ok(())
}

fn enter_foreign(
    request: &Request<'_>,
    state: &mut ArrayState,
    stream: &Stream,
    mut acquired: Acquired<'_>,
    access: Access,
    (at, work): (UseEnd, Position),
) {
    let mark = Mark::foreign(state.assign_key(stream), at, work);
    request.enter_mark(state, acquired.location, Access::Overwrite, mark);
    written(request, state, acquired.location, access);
    acquired.release(state);
}

/// Work of `stream` that fails if one of `depends` does, where nothing has to be queued to have
/// one; the start if there is none.
#[inline]
fn inherited_at_hand(stream: &Stream, depends: &Dependencies) -> Option<Position> {
    match depends.as_slice() {
        [] => Some(Position::START),
        [(queue, position)] if *queue == stream.id() => Some(*position),
        _ => None,
    }
}

/// Queues work of `stream` that does nothing but fail if one of `depends` does.
fn inherited(
    request: &Request<'_>,
    stream: &Stream,
    address: Address,
    depends: Dependencies,
) -> Result<Position> {
    let label = request.storage.label("access to", request.site);
    let (parts, pattern) = (SmallVec::new(), Bytes::from_elem(0, 1));
    let work = FillWork { loss: FailureKind::Contents, address, parts, pattern, depends, label };
    let submitted = stream.queue().submit(Work::Fill(Box::new(work)));
    submitted.map_err(|refusal| request.refused(stream.device_ref(), "handing out", &refusal))
}

/// Remembers an open reader of the whole for the fast path.
fn publish_reader(
    request: &Request<'_>,
    state: &ArrayState,
    stream: &Stream,
    acquired: &Acquired<'_>,
) {
    let all_valid =
        state.coherence.uniform().is_some_and(|content| content.is_valid(acquired.location));
    if all_valid && matches!(request.selection, Selection::Whole) {
        request.storage.publish_reader(state, stream.id().0, acquired.address.0);
    }
}

/// Enters a use that was queued at `at`, and its effect.
pub(crate) fn mark(
    request: &Request<'_>,
    stream: &Stream,
    mut acquired: Acquired<'_>,
    access: Access,
    at: UseEnd,
) {
    if request.is_empty() {
        return;
    }
    let mut state = request.storage.lock();
    enter(request, &mut state, stream, acquired.location, access, at);
    acquired.release(&mut state);
}

/// As `mark`, for an argument of a launch: counts what was not copied for it, and says whether
/// others may have to wait for the use.
pub(crate) fn mark_launched(
    request: &Request<'_>,
    stream: &Stream,
    acquired: &mut Acquired<'_>,
    access: Access,
    position: Position,
    spared: Flow,
) -> bool {
    if request.is_empty() {
        return false;
    }
    let mut state = request.storage.lock();
    state.traffic_mut().avoided += spared;
    enter(request, &mut state, stream, acquired.location, access, UseEnd::at(position));
    acquired.release(&mut state);
    state.has_several_streams()
}

/// As `mark_launched` for a whole array, without a request, where nothing changes but the mark;
/// `None` if there is more to do: nothing was done then.
#[inline]
pub(crate) fn mark_whole_launched(
    storage: &Storage,
    stream: &Stream,
    acquired: &mut Acquired<'_>,
    access: Access,
    position: Position,
    spared: Flow,
) -> Option<bool> {
    let mut state = storage.lock();
    if !state.record_whole(stream, acquired.location, access, position) {
        return None;
    }
    acquired.release(&mut state);
    state.traffic_mut().avoided += spared;
    if access != Access::Read {
        storage.forget_readers();
    }
    Some(state.has_several_streams())
}

pub(super) fn enter(
    request: &Request<'_>,
    state: &mut ArrayState,
    stream: &Stream,
    location: Location,
    access: Access,
    at: UseEnd,
) {
    request.mark_use(state, location, access, stream, at);
    if access.writes() {
        written(request, state, location, access);
    } else {
        request.storage.publish(state);
    }
}

#[inline]
fn written(request: &Request<'_>, state: &mut ArrayState, location: Location, access: Access) {
    request.storage.forget_readers();
    request.become_newest(state, location, access);
    request.storage.publish(state);
}

impl Request<'_> {
    /// `location` is about to hold the newest contents of the selection, alone.
    #[inline]
    pub(super) fn become_newest(&self, state: &mut ArrayState, location: Location, access: Access) {
        let is_whole = matches!(self.selection, Selection::Whole);
        let already = state.coherence.uniform().is_some_and(|content| content.is_only_at(location));
        if already
            || is_whole && state.become_only_holder(location, self.site)
            || self.is_only_at(state, location)
        {
            return;
        }
        let memory_order = self.storage.memory_order();
        if state.device_copies.iter().any(|slot| slot.device.poison().is_some()) {
            let spoiled = self.stale_elsewhere(state, location);
            state.record_stale(memory_order, self.selection, Some(location), self.site);
            self.apply(state, location, access);
            self.poison(state, spoiled);
        } else {
            state.record_stale(memory_order, self.selection, Some(location), self.site);
            self.apply(state, location, access);
        }
    }

    /// Whether every box of the selection is newest there alone already. Of the whole that is asked
    /// elsewhere.
    fn is_only_at(&self, state: &ArrayState, location: Location) -> bool {
        match self.selection {
            Selection::Whole => false,
            Selection::Boxes(boxes) => {
                boxes.iter().all(|region| state.coherence.is_only_at(location, region))
            }
        }
    }
}

/// As `close_write`, for a whole array.
pub(crate) fn close_whole(storage: &Storage, stream: u64, location: Location) {
    if storage.memory_order().is_empty() {
        return;
    }
    let mut state = storage.lock();
    let Some((key, stream)) = state.find_stream(stream) else { return };
    let end = stream.queue().reserve_position();
    state.uses_mut(location).close(storage.memory_order().extents(), None, key, end);
}

/// The guard of a write was dropped: foreign work comes no later than what is queued on its stream
/// by now.
pub(crate) fn close_write(request: &Request<'_>, stream: u64, location: Location) {
    if request.is_empty() {
        return;
    }
    let mut state = request.storage.lock();
    let Some((key, stream)) = state.find_stream(stream) else { return };
    let end = stream.queue().reserve_position();
    let memory_order = request.storage.memory_order();
    request
        .selection
        .each(|region| state.uses_mut(location).close(memory_order.extents(), region, key, end));
}
