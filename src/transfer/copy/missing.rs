//! The one loop that queues the copies of accesses: whatever elements a call needs and wherever,
//! this decides what is missing there, what must be waited for, and what is copied next. Accesses
//! of the host are here too, because the loop copies to the host what cannot go to a device
//! directly.
//!
//! There are two kinds of destination. Before a copy is queued, different uses must be complete for
//! each kind.

use std::sync::Arc;

use super::job::{CopyJob, Pipeline, Purpose, ReadFrom};
use super::plan::{Batch, Route, RoutedCopies, RoutedPlan, routed};
use super::report::run_deferred;
use crate::audit::Cause;
use crate::device::Stream;
use crate::error::Result;
use crate::storage::{self, ArrayState, Claim, StateGuard, notify_watchers};
use crate::transfer::access::acquired::Acquired;
use crate::transfer::access::request::{
    AwaitedGuards, CopyPlace, Marks, Queued, Request, users_of_other_kinds, users_to_wait_for,
};
use resident_backend::{Address, FailureRecord, Maker, failure, scope};
use resident_core::Access;
use resident_core::coherence::{Location, PlannedCopy, Source};
use resident_core::layout::Selection;

/// The location where a call needs elements, and how the copies to it are queued.
#[derive(Clone, Copy, Debug)]
pub(in crate::transfer) enum Destination<'a> {
    /// In host memory. The caller waits for the copies.
    Host,
    /// In host memory, ahead of their use. The copies run on this stream if it belongs to their
    /// device.
    HostAhead(Option<&'a Stream>),
    /// In the memory of the stream's device. The copies run on that stream.
    Device(&'a Stream),
}

/// What must happen next for an access.
enum Step {
    /// Nothing: the elements are at the destination, or copies to it are queued.
    Nothing,
    /// Another thread that copies some of the elements must end.
    EndOfClaim,
    /// The oldest chunk must complete.
    EndOfChunk,
    /// The host must wait for queued work, because no stream can wait for it.
    EndOf(Queued),
    /// These elements must be copied to the host first.
    CopyToHost(Selection),
    /// These copies must be queued.
    Copy(Batch),
}

/// The elements of one access that its destination does not have.
pub(in crate::transfer) struct Missing<'r, 's> {
    request: &'r Request<'s>,
    destination: Destination<'r>,
    pipeline: Pipeline,
    awaited: AwaitedGuards,
}

impl<'r, 's> Missing<'r, 's> {
    pub(in crate::transfer) fn of(request: &'r Request<'s>, destination: Destination<'r>) -> Self {
        let (pipeline, awaited) = (Pipeline::default(), AwaitedGuards::default());
        Self { request, destination, pipeline, awaited }
    }

    /// Queues the copies, one batch after the other. After each step the state is examined again,
    /// since the lock was released meanwhile. Returns with the lock held.
    pub(in crate::transfer) fn copy(&mut self) -> Result<(StateGuard<'s>, Location)> {
        if failure::is_forgetting_due() {
            storage::forget_failures();
        }
        let request = self.request;
        loop {
            let (mut state, location) = self.lock()?;
            if matches!(self.destination, Destination::Device(_))
                && !request.share_host_if_reached(&mut state, location)?
            {
                request.wait_for_claim(state)?;
                continue;
            }
            match self.next_step(&mut state, location)? {
                Step::Nothing => return Ok((state, location)),
                Step::EndOfClaim => request.wait_for_claim(state)?,
                Step::EndOfChunk => {
                    drop(state);
                    self.pipeline.wait(request)?;
                }
                Step::EndOf(pending) => {
                    drop(state);
                    request.wait_for(pending)?;
                }
                Step::CopyToHost(selection) => {
                    drop(state);
                    acquire_host(&request.of(&selection).reading())?;
                }
                Step::Copy(Batch { copies, is_last }) => {
                    self.pipeline.inquiry();
                    let claim = Claim::new(request.storage, state, location, request.selection);
                    self.queue(location, &copies)?;
                    drop(claim);
                    if !is_last {
                        self.pipeline.expect_more();
                    }
                }
            }
        }
    }

    /// Ends the call, and returns what it has queued. The caller holds no lock.
    pub(in crate::transfer) fn close(self) -> Pipeline {
        self.pipeline.close(self.request);
        run_deferred();
        self.pipeline
    }

    /// The state, and the destination's location in it.
    fn lock(&self) -> Result<(StateGuard<'s>, Location)> {
        let storage = self.request.storage;
        let (mut state, location) = match self.destination {
            Destination::Device(stream) => {
                let (state, location) = self.request.lock_at(stream.device_ref())?;
                (state, Some(location))
            }
            _ => (storage.lock(), None),
        };
        state.reconcile(storage.memory_order());
        let location = location.unwrap_or_else(|| state.host_location());
        Ok((state, location))
    }

    fn next_step(&mut self, state: &mut ArrayState, location: Location) -> Result<Step> {
        let request = self.request;
        let is_to_host = !matches!(self.destination, Destination::Device(_));
        if is_to_host && self.pipeline.has_failed() {
            // A chunk failed. The caller waits for that copy and reports the failure.
            return Ok(Step::Nothing);
        }
        let is_mapped = !is_to_host && location == state.host_location();
        if is_mapped {
            let device = &state.device_copy(location).device;
            let users = users_to_wait_for(state, device, &request.regions());
            let pending = self.awaited.ends_of(state, &users);
            if !pending.is_empty() {
                return Ok(Step::EndOf(pending));
            }
        }
        let is_missing = request.is_missing(state, location);
        if !is_missing && is_to_host {
            let allocated = match request.access {
                Access::Read => request.allocate_host(state),
                _ => request.allocate_writable_host(state),
            };
            return allocated.map(|()| Step::Nothing);
        }
        if !is_missing && request.address_at(state, location).is_some() {
            return Ok(Step::Nothing);
        }
        let waits_for_chunks = !matches!(self.destination, Destination::HostAhead(_));
        if waits_for_chunks && self.pipeline.is_full() {
            return Ok(Step::EndOfChunk);
        }
        if state.is_claimed(location, request.selection) {
            return Ok(Step::EndOfClaim);
        }
        let copies = if is_missing { request.coarse_plan(state, location)? } else { Vec::new() };
        if is_to_host {
            // After the plan, so that none is allocated for an array that cannot be read. Before
            // the routes: an owner's memory may be pinned, and its copy is not.
            request.allocate_writable_host(state)?;
        }
        let plan = routed(state, location, &copies);
        let batch = Batch::first_of(request.storage.memory_order(), plan);
        let mut marks = Marks::new();
        for copies in &batch.copies {
            marks.extend(self.must_end_before(state, copies));
        }
        let pending = self.awaited.ends_of(state, &marks);
        if !pending.is_empty() {
            return Ok(Step::EndOf(pending));
        }
        // The memory of a mapped array is that of the host, to which devices copy.
        let through_host = batch.regions_of(|copies| {
            let is_stored = matches!(copies.source, Source::Location(_));
            copies.route == Route::ThroughHost || is_mapped && is_stored
        });
        if through_host.is_empty() {
            return Ok(Step::Copy(batch));
        }
        Ok(Step::CopyToHost(Selection::Boxes(through_host)))
    }

    /// The uses that the host must wait for before these copies are queued.
    fn must_end_before(&self, state: &ArrayState, copies: &RoutedCopies) -> Marks {
        let (host, regions) = (state.host_location(), &copies.regions);
        let conflicts = |access| {
            let selection = Selection::Boxes(regions.iter().copied().collect());
            self.request.of(&selection).conflicts(state, host, access)
        };
        match (self.destination, copies.source) {
            // The host reads its memory at once, to stage it. Pinned memory is treated in the same
            // way.
            (Destination::Device(_), Source::Location(from)) if from == host => {
                conflicts(Access::Read)
            }
            (Destination::Device(_), _) => Marks::new(),
            // The host fills its memory at once.
            (_, Source::Constant(_)) => conflicts(Access::Overwrite),
            (_, Source::Location(from)) => {
                users_of_other_kinds(state, &state.device_copy(from).device, regions)
            }
        }
    }

    /// Queues one batch of copies to `location`. First allocates memory for the array at the
    /// destination, if it has none. The caller holds the claim on the elements.
    fn queue(&mut self, location: Location, copies: &RoutedPlan) -> Result<()> {
        let (request, pipeline) = (self.request, &mut self.pipeline);
        if let Destination::Device(stream) = self.destination {
            request.allocate_on_device(stream)?;
        }
        for copies in copies {
            let regions = &copies.regions;
            match (copies.source, self.destination) {
                (Source::Constant(value), Destination::Device(stream)) => {
                    request.fill_on_device(stream, location, value, regions)?;
                }
                (Source::Constant(value), _) => request.fill_on_host(value, regions),
                (Source::Location(from), Destination::Device(stream)) => match copies.route {
                    Route::Staged { chunk_bytes_max, .. } => {
                        let memory_order = request.storage.memory_order();
                        let chunks = memory_order.split_regions(regions, chunk_bytes_max);
                        request.upload(stream, from, location, chunks, pipeline)?;
                    }
                    _ => {
                        // The device accesses pinned memory, and that of a peer, itself.
                        let (from, to, maker) = (ReadFrom::Copy(from), location, Maker::Stream);
                        let purpose = Purpose::Use;
                        let job = CopyJob { request, stream, from, to, regions, maker, purpose };
                        job.run(request.storage.lock(), pipeline)?;
                    }
                },
                (Source::Location(from), Destination::HostAhead(asked)) => {
                    request.download(from, copies, asked, Maker::Stream, pipeline)?;
                }
                (Source::Location(from), Destination::Host) => {
                    // Inside a kernel body, calls that need a download are refused whether the
                    // stream is idle or not.
                    let in_body = scope::is_in_body();
                    let maker = if in_body { Maker::Stream } else { Maker::CallerOrStream };
                    request.download(from, copies, None, maker, pipeline)?;
                }
            }
        }
        Ok(())
    }
}

impl Request<'_> {
    /// The copies that are missing at `location`, made fewer by copies of more elements if there
    /// are very many.
    fn coarse_plan(&self, state: &mut ArrayState, location: Location) -> Result<Vec<PlannedCopy>> {
        let memory_order = self.storage.memory_order();
        self.expect_allowed(state, location)?;
        state.forget_padding();
        state.coarsen_before_plan(memory_order, location, self.selection);
        let copies = self.plan(state, location)?;
        if state.coarsen_after_plan(memory_order, location, copies.len()) {
            return self.plan(state, location);
        }
        Ok(copies)
    }
}

/// Acquires the elements on the host: waits until they are valid there and no conflicting use is
/// pending. To overwrite them, call [`acquire_host_to_write`].
pub(crate) fn acquire_host(request: &Request<'_>) -> Result<()> {
    debug_assert!(request.access != Access::Overwrite, "an eviction may write them meanwhile");
    acquire_host_and(request, |_| ()).map(drop)
}

/// As [`acquire_host`], for a write. If it overwrites, no full device evicts its copy while the
/// result lives: it would copy to the host what is stale there, which the caller is about to write.
pub(crate) fn acquire_host_to_write<'a>(request: &Request<'a>) -> Result<Acquired<'a>> {
    let acquired = acquire_host_and(request, |state| {
        let place = CopyPlace { location: state.host_location(), address: Address(0) };
        let is_stale = request.access == Access::Overwrite;
        is_stale.then(|| Acquired::pin(request, state, place))
    })?;
    Ok(acquired.flatten().unwrap_or(Acquired::EMPTY))
}

/// Acquires the elements on the host, and calls `acquired` with the lock held, unless there are
/// none.
fn acquire_host_and<R>(
    request: &Request<'_>,
    acquired: impl FnOnce(&mut ArrayState) -> R,
) -> Result<Option<R>> {
    if request.is_empty() {
        return Ok(None);
    }
    let mut awaited = AwaitedGuards::default();
    let acquired = loop {
        let copies = copy_to_host(request, Destination::Host)?;
        let pending = {
            let mut state = request.storage.lock();
            let marks = request.uses_to_end(&mut state);
            let pending = awaited.ends_of(&state, &marks);
            if pending.is_empty() && is_acquired_on_host(request, &mut state) {
                // A copy that is made because its memory is freed is not read.
                if request.access != Access::Overwrite && request.cause != Cause::Evict {
                    request.reading().record_access(None);
                }
                break acquired(&mut state);
            }
            pending
        };
        request.wait_for(pending)?;
        if let Some((stream, record)) = first_own_failure(&copies.queued) {
            request.storage.lock().reconcile(request.storage.memory_order());
            notify_watchers();
            return Err(request.late_error(stream, &record));
        }
    };
    notify_watchers();
    Ok(Some(acquired))
}

/// Whether [`acquire_host`] for a read needs neither a copy from a device nor a wait. It may fill
/// in constants.
///
/// # Errors
///
/// The elements have no contents.
pub(crate) fn is_host_at_hand(request: &Request<'_>) -> Result<bool> {
    if request.is_empty() {
        return Ok(true);
    }
    let mut state = request.storage.lock();
    state.reconcile(request.storage.memory_order());
    let host = state.host_location();
    let copies =
        if request.is_missing(&state, host) { request.plan(&state, host)? } else { Vec::new() };
    let is_copied = copies.iter().any(|copy| matches!(copy.source, Source::Location(_)));
    let is_busy =
        state.is_claimed(host, request.selection) || !request.uses_to_end(&mut state).is_empty();
    Ok(!is_copied && !is_busy)
}

/// Removes the uses that have completed, and returns whether the elements can be accessed. `false`
/// means that a copy has failed meanwhile, so that the elements are stale again.
fn is_acquired_on_host(request: &Request<'_>, state: &mut ArrayState) -> bool {
    state.retire_host_uses(request.storage.memory_order(), request.selection);
    state.note_host_read(request.selection);
    request.storage.publish(state);
    !request.is_missing(state, state.host_location()) && !state.has_new_failures()
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
    copy_to_host(&request, Destination::HostAhead(stream)).map(drop)
}

/// Queues the copies to the host that an access needs.
fn copy_to_host(request: &Request<'_>, destination: Destination<'_>) -> Result<Pipeline> {
    let mut missing = Missing::of(request, destination);
    let outcome = if request.is_empty() { Ok(()) } else { missing.copy().map(drop) };
    let copies = missing.close();
    outcome.map(|()| copies)
}

impl Request<'_> {
    /// The uses of the host memory that must end before an access of the host.
    pub(in crate::transfer) fn uses_to_end(&self, state: &mut ArrayState) -> Marks {
        if state.is_host_mapped() {
            state.close_dropped_reads();
        }
        self.conflicts(state, state.host_location(), self.access)
    }

    /// Blocks until queued work has completed. The caller holds no lock.
    pub(in crate::transfer) fn wait_for(&self, pending: Queued) -> Result<()> {
        for (stream, position) in pending {
            stream
                .wait_until(position, self.site)
                .map_err(|error| self.call_error(stream.device_ref(), "waiting for", &error))?;
        }
        Ok(())
    }
}
