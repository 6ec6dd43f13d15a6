//! Acquire: makes the elements of a request available at one location, and makes a stream or the
//! host wait for the uses that must be complete before the access.
//!
//! [`copy_missing`] is the one loop that queues copies. It has two kinds of destination. Before a
//! copy is queued, different uses must be complete for each kind.

use std::sync::Arc;

use super::chunk::{Chunk, Pipeline};
use super::report::run_deferred;
use super::request::{Marks, Queued, Queueing, Request, add_mark, ends_of};
use super::route::{Route, RoutedPlan, routed, through_host};
use crate::device::{self, Device, Stream};
use crate::error::Result;
use crate::storage::{self, ArrayState, ReadyCopy, StateGuard, Storage};
use resident_backend::failure::{self, Inquiry};
use resident_backend::{Address, Dependencies, FailureRecord};
use resident_core::Access;
use resident_core::coherence::{Location, Region, Source};
use resident_core::layout::Selection;
use resident_core::ordering::{Mark, StreamKey, UseEnd};

/// An array's copy on a device, acquired for a use that is not marked yet.
#[derive(Debug)]
#[must_use = "the copy stays where it is while this lives"]
pub(crate) struct Acquired<'a> {
    pub(crate) location: Location,
    /// The address of the whole array's copy. 0 if the array has no bytes.
    pub(crate) address: Address,
    /// The bytes that this call copied.
    pub(crate) copied_bytes: u64,
    /// Whether the access comes after a use on another stream.
    pub(crate) follows_other: bool,
    /// The pin, which is kept until the use is marked. An array without bytes needs none.
    pin: Option<Pin<'a>>,
}

/// Prevents eviction of an array's device copies while it lives.
#[derive(Debug)]
struct Pin<'a>(&'a Storage);

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.0.lock().unpin();
    }
}

impl<'a> Acquired<'a> {
    const EMPTY: Self = Self {
        location: Location::HOST,
        address: Address(0),
        copied_bytes: 0,
        follows_other: false,
        pin: None,
    };

    /// Pins the copy. The caller holds the array's lock.
    #[inline]
    pub(super) fn pin(
        storage: &'a Storage,
        state: &mut ArrayState,
        (location, address): (Location, Address),
    ) -> Self {
        state.pin();
        Self { location, address, copied_bytes: 0, follows_other: false, pin: Some(Pin(storage)) }
    }

    /// Passes the pin to the caller, who must unpin the copy. Returns whether there is a pin.
    #[inline]
    pub(super) fn into_pin(mut self) -> bool {
        self.pin.take().map(std::mem::forget).is_some()
    }

    /// Unpins the copy, because its use is marked. The caller holds the array's lock.
    #[inline]
    pub(super) fn unpin(&mut self, state: &mut ArrayState) {
        if let Some(pin) = self.pin.take() {
            state.unpin();
            std::mem::forget(pin);
        }
    }
}

/// Acquires the elements on `stream`'s device. Adds to `depends` the work that wrote the elements
/// to read and may still fail.
pub(crate) fn acquire_on<'a>(
    request: &Request<'a>,
    stream: &Stream,
    access: Access,
    depends: &mut Dependencies,
) -> Result<Acquired<'a>> {
    if request.is_empty() {
        return Ok(Acquired::EMPTY);
    }
    let mut state = request.storage.lock();
    match readiness(request, &mut state, stream, access, depends) {
        Readiness::Ready(copy) => Ok(Acquired::pin(request.storage, &mut state, copy)),
        Readiness::Used(copy) if copy.0 != state.host_location() => {
            wait_for_uses(request, &mut state, stream, access, copy, depends)
        }
        Readiness::Used(_) | Readiness::Missing => {
            drop(state);
            copy_to_device(request, stream, access, depends)
        }
    }
}

/// What an access of a device's copy needs.
pub(super) enum Readiness {
    /// Nothing.
    Ready((Location, Address)),
    /// The elements are there, but the stream has to wait for uses on other streams.
    Used((Location, Address)),
    /// Copies or memory, or it is not known.
    Missing,
}

/// Acquires a copy that needs no other copies: makes the stream wait for other uses of it.
fn wait_for_uses<'a>(
    request: &Request<'a>,
    state: &mut ArrayState,
    stream: &Stream,
    access: Access,
    copy: (Location, Address),
    depends: &mut Dependencies,
) -> Result<Acquired<'a>> {
    let location = copy.0;
    let (marks, follows_other) =
        request.conflicts_and_dependencies(state, location, access, stream, depends);
    request.make_wait(state, stream, &marks)?;
    if follows_other {
        state.retire_device_uses(location);
    }
    let acquired = Acquired::pin(request.storage, state, copy);
    Ok(Acquired { follows_other, ..acquired })
}

/// Whether the copy on `stream`'s device needs no copy, no wait and no memory: the usual case.
#[inline]
pub(super) fn readiness(
    request: &Request<'_>,
    state: &mut ArrayState,
    stream: &Stream,
    access: Access,
    depends: &mut Dependencies,
) -> Readiness {
    if matches!(request.selection, Selection::Whole) {
        let ready = whole_ready_on(state, stream, access, depends);
        return ready.map_or(Readiness::Missing, Readiness::Ready);
    }
    match part_ready_on(request, state, stream, access, depends) {
        None => Readiness::Missing,
        Some((copy, true)) => Readiness::Ready(copy),
        Some((copy, false)) => Readiness::Used(copy),
    }
}

/// The copy on `stream`'s device, if the elements are there, and whether only `stream` has
/// conflicting uses of them.
fn part_ready_on(
    request: &Request<'_>,
    state: &mut ArrayState,
    stream: &Stream,
    access: Access,
    depends: &mut Dependencies,
) -> Option<((Location, Address), bool)> {
    if state.has_new_failures() {
        return None;
    }
    let location = state.find_location(stream.device_ref())?;
    let address = state.device_copy(location).address()?;
    if access != Access::Overwrite && !request.is_valid(state, location) {
        return None;
    }
    let key = state.find_key(stream).unwrap_or(StreamKey::NONE);
    let mut is_ready = true;
    let mut uses = std::mem::take(&mut state.device_copy_mut(location).uses);
    request.selection.visit_boxes_or_whole(|region| {
        is_ready &= uses.conflicts_only_with(region, access, key, |writer| {
            if access != Access::Overwrite && writer.stream == key {
                add_own_writer(state, depends, stream, writer);
            }
        });
    });
    state.device_copy_mut(location).uses = uses;
    Some(((location, address), is_ready))
}

#[inline(always)]
fn whole_ready_on(
    state: &ArrayState,
    stream: &Stream,
    access: Access,
    depends: &mut Dependencies,
) -> Option<(Location, Address)> {
    let ReadyCopy { location, address, writer, .. } = state.ready_whole(stream, access)?;
    writer.into_iter().for_each(|writer| add_own_writer(state, depends, stream, writer));
    Some((location, address))
}

/// Adds a writer on `stream` itself. A writer of several boxes is visited several times in a row.
/// Others that are added twice do no harm while there is room. It checks whether the writer has
/// completed only if the list would otherwise need the heap: the check reads memory that the
/// executing thread writes, and so costs more than an unnecessary entry.
#[inline]
fn add_own_writer(state: &ArrayState, depends: &mut Dependencies, stream: &Stream, writer: Mark) {
    let Some(work) = writer.written_by() else { return };
    let dependency = (stream.id(), work);
    if depends.last() == Some(&dependency) {
        return;
    }
    let has_room = depends.len() < depends.inline_size();
    if has_room || !depends.contains(&dependency) && !state.is_retired(writer) {
        depends.push(dependency);
    }
}

/// [`acquire_on`], if copies, waits or memory are needed.
pub(super) fn copy_to_device<'a>(
    request: &Request<'a>,
    stream: &Stream,
    access: Access,
    depends: &mut Dependencies,
) -> Result<Acquired<'a>> {
    let mut pipeline = Pipeline::default();
    let outcome = copy_to_device_by(request, stream, access, depends, &mut pipeline);
    let copied_bytes = pipeline.copied_bytes();
    pipeline.close(request);
    run_deferred();
    outcome.map(|acquired| Acquired { copied_bytes, ..acquired })
}

fn copy_to_device_by<'a>(
    request: &Request<'a>,
    stream: &Stream,
    access: Access,
    depends: &mut Dependencies,
    pipeline: &mut Pipeline,
) -> Result<Acquired<'a>> {
    let (mut state, location) =
        copy_missing(request, access, Destination::Device(stream), pipeline)?;
    let (marks, follows_other) =
        request.conflicts_and_dependencies(&state, location, access, stream, depends);
    request.make_wait(&mut state, stream, &marks)?;
    if follows_other {
        state.retire_device_uses(location);
    }
    let address = state.device_copy(location).address().unwrap_or(Address(0));
    let acquired = Acquired::pin(request.storage, &mut state, (location, address));
    Ok(Acquired { follows_other, ..acquired })
}

/// Acquires the elements on the host: waits until they are valid there and no conflicting use is
/// pending.
pub(crate) fn acquire_host(request: &Request<'_>, access: Access) -> Result<()> {
    if request.is_empty() {
        return Ok(());
    }
    let mut waited = Marks::new();
    loop {
        let open;
        let (queued, _inquiry) = copy_to_host(request, access, Destination::Host)?;
        let pending = {
            let mut state = request.storage.lock();
            let marks = request.uses_to_end(&mut state, access, &waited);
            if marks.is_empty() && is_acquired_on_host(request, &mut state, access) {
                if access != Access::Overwrite {
                    request.record_access(None, Access::Read);
                }
                return Ok(());
            }
            let pending = ends_of(&state, &marks);
            open = marks;
            pending
        };
        request.wait_for(pending)?;
        waited.extend(open.into_iter().filter(|mark| mark.end == UseEnd::OPEN));
        if let Some((stream, record)) = first_own_failure(&queued) {
            request.storage.lock().reconcile(request.storage.memory_order());
            return Err(device::late_error(stream.device_ref(), &record).at(request.site));
        }
    }
}

/// Removes the uses that have completed, and returns whether the elements can be accessed. `false`
/// means that a copy has failed meanwhile, so that the elements are stale again.
fn is_acquired_on_host(request: &Request<'_>, state: &mut ArrayState, access: Access) -> bool {
    state.retire_host_uses(request.storage.memory_order(), request.selection);
    request.storage.publish(state);
    let is_valid = access == Access::Overwrite || request.is_valid(state, state.host_location());
    is_valid && !state.has_new_failures()
}

/// The first failure of a copy that this call queued. A failure of the work that wrote the source
/// is not included: the next plan finds the lost contents.
fn first_own_failure(queued: &Queued) -> Option<(&Stream, Arc<FailureRecord>)> {
    queued.iter().find_map(|(stream, position)| {
        let record = failure::at(stream.id(), *position).filter(|record| !record.inherited)?;
        stream.core().mark_reported(*position);
        Some((stream, record))
    })
}

/// Queues the copies to the host that a read needs, and returns at once. Copies run on `stream` if
/// the contents are on its device.
pub(crate) fn prefetch_host(request: &Request<'_>, stream: Option<&Stream>) -> Result<()> {
    let request = request.ahead_of_use();
    copy_to_host(&request, Access::Read, Destination::HostAhead(stream)).map(drop)
}

/// Queues the copies to the host that an access needs.
fn copy_to_host(
    request: &Request<'_>,
    access: Access,
    destination: Destination<'_>,
) -> Result<(Queued, Option<Inquiry>)> {
    if request.is_empty() {
        return Ok((Queued::new(), None));
    }
    let mut pipeline = Pipeline::default();
    let outcome = copy_missing(request, access, destination, &mut pipeline).map(drop);
    let queued = pipeline.close(request);
    run_deferred();
    outcome.map(|()| queued)
}

/// The location where a call needs elements, and how it waits for them.
#[derive(Clone, Copy, Debug)]
enum Destination<'a> {
    /// In host memory. The caller waits for the copies.
    Host,
    /// In host memory. The caller does not wait, so all chunks are queued at once. The copies run
    /// on the given stream if the contents are on its device.
    HostAhead(Option<&'a Stream>),
    /// In the memory of the stream's device. The copies run on that stream.
    Device(&'a Stream),
}

impl Destination<'_> {
    fn location(self, request: &Request<'_>, state: &mut ArrayState) -> Result<Location> {
        let Self::Device(stream) = self else { return Ok(state.host_location()) };
        let device = stream.device_ref();
        state.assign_location(device).ok_or_else(|| request.no_location(device))
    }

    fn is_device(self) -> bool {
        matches!(self, Self::Device(_))
    }

    fn waits_for_chunks(self) -> bool {
        !matches!(self, Self::HostAhead(_))
    }
}

/// The next step for a request.
enum Step {
    /// Nothing: the elements are at the destination, or copies to it are queued.
    Done,
    /// Wait for another thread that copies some of the elements.
    WaitForClaim,
    /// Wait for the oldest chunk.
    WaitForChunk,
    /// Wait on the host for queued work, because no stream can wait for it.
    WaitFor(Queued),
    /// Copy these elements to the host first.
    CopyToHost(Selection),
    /// Queue these copies.
    Copy(Chunk),
}

/// Queues the copies that an access needs, chunk by chunk. After each step the state is examined
/// again, since the lock was released meanwhile. Returns with the lock held.
fn copy_missing<'s>(
    request: &Request<'s>,
    access: Access,
    destination: Destination<'_>,
    pipeline: &mut Pipeline,
) -> Result<(StateGuard<'s>, Location)> {
    if failure::is_forgetting_due() {
        storage::forget_failures();
    }
    loop {
        let mut state = request.storage.lock();
        state.reconcile(request.storage.memory_order());
        let location = destination.location(request, &mut state)?;
        match next_step(request, &mut state, location, access, destination, pipeline)? {
            Step::Done => return Ok((state, location)),
            Step::WaitForClaim => request.wait_for_claim(state)?,
            Step::WaitForChunk => {
                drop(state);
                pipeline.wait(request)?;
            }
            Step::WaitFor(pending) => {
                drop(state);
                request.wait_for(pending)?;
            }
            Step::CopyToHost(selection) => {
                drop(state);
                acquire_host(&request.of(&selection), Access::Read)?;
            }
            Step::Copy(Chunk { copies, is_last }) => {
                pipeline.inquiry();
                request.with_claim(state, location, || {
                    request.queue_copies(location, destination, &copies, pipeline)
                })?;
                if !is_last {
                    pipeline.expect_more();
                }
            }
        }
    }
}

fn next_step(
    request: &Request<'_>,
    state: &mut ArrayState,
    location: Location,
    access: Access,
    destination: Destination<'_>,
    pipeline: &Pipeline,
) -> Result<Step> {
    if !destination.is_device() && pipeline.has_failed() {
        // A chunk failed. The caller waits for that copy and reports the failure.
        return Ok(Step::Done);
    }
    let is_mapped = destination.is_device() && location == state.host_location();
    if is_mapped {
        let device = &state.device_copy(location).device;
        let pending = users_of_other_kinds(state, device, &request.regions());
        if !pending.is_empty() {
            return Ok(Step::WaitFor(pending));
        }
    }
    let is_missing = access != Access::Overwrite && !request.is_valid(state, location);
    if !is_missing && !destination.is_device() {
        return request.allocate_host(state).map(|()| Step::Done);
    }
    if !is_missing && state.device_copy(location).address().is_some() {
        return Ok(Step::Done);
    }
    if pipeline.is_full() && destination.waits_for_chunks() {
        return Ok(Step::WaitForChunk);
    }
    if state.is_claimed(location, request.selection) {
        return Ok(Step::WaitForClaim);
    }
    let memory_order = request.storage.memory_order();
    let mut copies = Vec::new();
    if is_missing {
        request.expect_allowed(state, location)?;
        state.forget_padding();
        state.coarsen_before_plan(memory_order, location, request.selection);
        copies = request.plan(state, location)?;
        if state.coarsen_after_plan(memory_order, location, copies.len()) {
            copies = request.plan(state, location)?;
        }
    }
    let chunk = Chunk::first_of(memory_order, routed(state, location, &copies));
    if !destination.is_device() {
        // The allocation follows the plan, so that no memory is allocated for an array that cannot
        // be read.
        request.allocate_host(state)?;
    }
    let pending = request.must_complete_first(state, destination, &chunk.copies);
    if !pending.is_empty() {
        return Ok(Step::WaitFor(pending));
    }
    Ok(through_host(&chunk.copies, is_mapped).map_or(Step::Copy(chunk), Step::CopyToHost))
}

impl Request<'_> {
    /// The work that the host must wait for before these copies are queued.
    fn must_complete_first(
        &self,
        state: &ArrayState,
        destination: Destination<'_>,
        copies: &RoutedPlan,
    ) -> Queued {
        let host = state.host_location();
        if destination.is_device() {
            // The host reads its memory at once, to stage it. Pinned memory is treated in the same
            // way.
            let is_from_host = |source| source == Source::Location(host);
            return match copies.iter().any(|copies| is_from_host(copies.source)) {
                true => ends_of(state, &self.conflicts(state, host, Access::Read)),
                false => Queued::new(),
            };
        }
        let mut pending = Queued::new();
        if copies.iter().any(|copies| matches!(copies.route, Route::Fill(_))) {
            // The host fills its memory at once.
            let marks = self.conflicts(state, host, Access::Overwrite);
            pending.extend(ends_of(state, &marks));
        }
        for copies in copies {
            if let Source::Location(from) = copies.source {
                let device = &state.device_copy(from).device;
                pending.extend(users_of_other_kinds(state, device, &copies.regions));
            }
        }
        pending
    }

    /// The uses of the host memory that must end before an access of the host, without open ones
    /// for which the host has `waited`: those of guards that are over, so that the work that other
    /// code queued for them was queued before the wait.
    pub(super) fn uses_to_end(
        &self,
        state: &mut ArrayState,
        access: Access,
        waited: &Marks,
    ) -> Marks {
        if state.is_host_mapped() {
            state.close_dropped_reads();
        }
        let mut marks = self.conflicts(state, state.host_location(), access);
        marks.retain(|mark| mark.end != UseEnd::OPEN || !waited.contains(mark));
        marks
    }

    /// Queues one chunk of copies to `location`. First allocates memory for the array at the
    /// destination, if it has none. The caller holds the claim on the elements.
    fn queue_copies(
        &self,
        location: Location,
        destination: Destination<'_>,
        copies: &RoutedPlan,
        pipeline: &mut Pipeline,
    ) -> Result<()> {
        if let Destination::Device(stream) = destination {
            self.allocate_on_device(stream, location)?;
        }
        for copies in copies {
            match (copies.source, destination) {
                (Source::Constant(value), Destination::Device(stream)) => {
                    self.fill_on_device(stream, location, value, &copies.regions)?;
                }
                (Source::Constant(value), _) => self.fill_on_host(value, &copies.regions),
                (Source::Location(from), Destination::Device(stream)) => match copies.route {
                    Route::Peer => {
                        self.copy_from_peer(stream, location, from, &copies.regions, pipeline)?;
                    }
                    _ => self.upload(stream, location, copies, pipeline)?,
                },
                (Source::Location(from), Destination::Host) => {
                    self.download(from, copies, Queueing::Awaited, pipeline)?;
                }
                (Source::Location(from), Destination::HostAhead(stream)) => {
                    self.download(from, copies, Queueing::Ahead(stream), pipeline)?;
                }
            }
        }
        Ok(())
    }

    /// Blocks until queued work has completed. The caller holds no lock.
    pub(super) fn wait_for(&self, pending: Queued) -> Result<()> {
        for (stream, position) in pending {
            stream
                .wait_until(position, self.site)
                .map_err(|refusal| self.refused(stream.device_ref(), "waiting for", &refusal))?;
        }
        Ok(())
    }
}

/// The uses of regions of the host memory by devices of another kind than `device`. The host waits
/// for these uses, with no lock and no claim held, because no driver can wait for the events of
/// another driver.
pub(super) fn users_of_other_kinds(
    state: &ArrayState,
    device: &Device,
    regions: &[Region],
) -> Queued {
    let mut marks = Marks::new();
    let is_other = |mark: Mark| {
        let stream = state.stream(mark.stream);
        stream.is_some_and(|stream| stream.device_ref().kind() != device.kind())
            && !state.is_retired(mark)
    };
    for region in regions {
        let uses = state.uses(state.host_location());
        uses.visit_conflicts(Some(region), Access::Overwrite, is_other, |mark| {
            if is_other(mark) {
                add_mark(&mut marks, mark);
            }
        });
    }
    ends_of(state, &marks)
}
