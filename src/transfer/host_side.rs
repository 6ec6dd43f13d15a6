//! Accesses on the host.

use std::sync::Arc;

use super::device_side::queued;
use super::fetch::by_source;
use super::window::{ANNOUNCED_BYTES_MIN, Chunk, Pipeline, announce, first_share};
use super::{Marks, Queued, Request, run_deferred};
use crate::access::Access;
use crate::audit::Direction;
use crate::backend::{
    Address, CopyWork, FailureKind, FailureRecord, HostMemory, Memory, Position, Work, failure,
    host_copy,
};
use crate::call_site::CallSite;
use crate::coherence::{Location, PlannedCopy, Region, Source, Span};
use crate::device::{self, Device, Stream};
use crate::error::Result;
use crate::layout::Selection;
use crate::ordering::{Mark, UseEnd};
use crate::storage::{ArrayState, Storage};
use smallvec::SmallVec;

/// Brings a part to the host as `access` needs it and waits until it is there and nothing queued
/// touches it in a way that would conflict.
pub(crate) fn acquire_host(request: &Request<'_>, access: Access) -> Result<()> {
    if request.is_empty() {
        return Ok(());
    }
    loop {
        let own = bring(request, access, HostOptions { may_wait: true, stream: None })?;
        let pending = {
            let mut state = request.storage.lock();
            let marks = request.marks_before(&state, Location::HOST, access, None);
            if marks.is_empty() {
                state.retire_host_uses(request.storage.memory_order(), request.selection);
                request.storage.publish(&state);
                let is_there =
                    access == Access::Overwrite || request.is_valid(&state, Location::HOST);
                // A copy that was queued here may have failed in between: then the elements are
                // stale again.
                if is_there && !state.has_new_failures() {
                    return Ok(());
                }
            }
            queued(&state, &marks)
        };
        request.wait_for_host(pending)?;
        if let Some((stream, record)) = first_own_failure(&own) {
            request.storage.lock().reconcile(request.storage.memory_order());
            return Err(device::late_error(stream.device_ref(), &record));
        }
    }
}

/// Queues what a prefetch to the host needs, and returns at once. Copies go on `stream` if it is of
/// the device that they come from.
pub(crate) fn prefetch_host(request: &Request<'_>, stream: Option<&Stream>) -> Result<()> {
    bring(request, Access::Read, HostOptions { may_wait: false, stream }).map(drop)
}

/// How contents are brought to the host.
#[derive(Clone, Copy, Debug)]
struct HostOptions<'a> {
    /// The caller is going to wait for the copies anyway.
    may_wait: bool,
    /// Asked for by the caller, for copies from this stream's device.
    stream: Option<&'a Stream>,
}

pub(super) fn allocate(request: &Request<'_>, state: &mut ArrayState) -> Result<()> {
    if request.storage.allocate_host(state) {
        Ok(())
    } else {
        Err(super::host_full(request.storage))
    }
}

/// A copy of this very call that failed by itself. What inherits a failure of its source is told by
/// the next plan.
fn first_own_failure(own: &Queued) -> Option<(&Stream, Arc<FailureRecord>)> {
    own.iter().find_map(|(stream, position)| {
        let record = failure::at(stream.id(), *position).filter(|record| !record.inherited)?;
        stream.core().tell(*position);
        Some((stream, record))
    })
}

/// Queues the copies that an access on the host needs, and tells of them. Copies that another
/// thread is queueing are waited for.
fn bring(request: &Request<'_>, access: Access, options: HostOptions<'_>) -> Result<Queued> {
    if request.is_empty() {
        return Ok(Queued::new());
    }
    let mut window = Pipeline::default();
    let brought = bring_pieces(request, access, options, &mut window);
    let queued = window.close(request);
    run_deferred();
    brought.map(|()| queued)
}

fn bring_pieces(
    request: &Request<'_>,
    access: Access,
    options: HostOptions<'_>,
    window: &mut Pipeline,
) -> Result<()> {
    let storage = request.storage;
    let mut state = storage.lock();
    loop {
        state.reconcile(storage.memory_order());
        if window.has_failed() {
            // The caller waits for what is queued, and tells.
            return Ok(());
        }
        if access == Access::Overwrite || request.is_valid(&state, Location::HOST) {
            return allocate(request, &mut state);
        }
        if options.may_wait && window.is_full() {
            drop(state);
            window.wait(request)?;
            state = storage.lock();
            continue;
        }
        if state.is_claimed(Location::HOST, request.selection) {
            state = request.wait_for_claim(state)?;
            continue;
        }
        // Memory comes after the plan: what cannot be read takes none.
        let Chunk { pieces, is_last } =
            request.first_download(&state, &request.plan(&state, Location::HOST, Access::Read)?);
        allocate(request, &mut state)?;
        let filled = pieces.iter().any(|piece| matches!(piece.source, Source::Constant(_)));
        if filled {
            // The host writes these itself: nothing queued may access them any more.
            let marks = request.marks_before(&state, Location::HOST, Access::Overwrite, None);
            if !marks.is_empty() {
                let pending = queued(&state, &marks);
                drop(state);
                request.wait_for_host(pending)?;
                state = storage.lock();
                continue;
            }
        }
        let pending = request.of_other_kinds(&state, &pieces);
        if !pending.is_empty() {
            drop(state);
            request.wait_for_host(pending)?;
            state = storage.lock();
            continue;
        }
        request.claimed(state, Location::HOST, || {
            request.fetch_to_host(&pieces, options.stream, window)
        })?;
        if !is_last {
            window.expect_more();
        }
        state = storage.lock();
    }
}

impl Request<'_> {
    /// As much of a download as goes at once. To page-locked memory all of it does.
    fn first_download(&self, state: &ArrayState, planned: &[PlannedCopy]) -> Chunk {
        let of_place = |location: Location| {
            let device = &state.device_copy(location).device;
            let is_direct =
                state.host.as_ref().is_some_and(|host| host.is_pinned_for(device.kind()));
            if is_direct { u64::MAX } else { device.backend().chunk_bytes_max() }
        };
        let sources = planned.iter().filter_map(|piece| match piece.source {
            Source::Location(location) => Some(location),
            Source::Constant(_) => None,
        });
        let smallest = sources.map(of_place).min();
        let bytes_max = smallest.unwrap_or(u64::MAX);
        first_share(self.storage.memory_order(), planned, bytes_max, |source| {
            matches!(source, Source::Location(_))
        })
    }

    /// What other kinds of device than the pieces come from still do with the host's copy. No
    /// driver waits for another's events: the host does, beforehand, with no lock and no claim
    /// held.
    fn of_other_kinds(&self, state: &ArrayState, pieces: &[PlannedCopy]) -> Queued {
        let mut pending = Queued::new();
        for piece in pieces {
            let Source::Location(from) = piece.source else { continue };
            if from != Location::HOST {
                pending.extend(self.users_of_other_kinds(
                    state,
                    &state.device_copy(from).device,
                    &piece.region,
                ));
            }
        }
        pending
    }

    /// What devices of other kinds than `device` still do with a region of the host's copy.
    fn users_of_other_kinds(&self, state: &ArrayState, device: &Device, region: &Region) -> Queued {
        let mut marks = Marks::new();
        state.uses(Location::HOST).visit_conflicts(Some(region), Access::Overwrite, |mark| {
            let is_strange = state
                .stream(mark.stream)
                .is_some_and(|stream| stream.device_ref().kind() != device.kind());
            if is_strange && !state.is_retired(mark) && !marks.contains(&mark) {
                marks.push(mark);
            }
        });
        queued(state, &marks)
    }

    fn fetch_to_host(
        &self,
        pieces: &[PlannedCopy],
        asked: Option<&Stream>,
        window: &mut Pipeline,
    ) -> Result<()> {
        for (source, regions) in by_source(pieces) {
            match source {
                Source::Constant(value) => self.fill_on_host(value, &regions),
                Source::Location(from) => self.download(from, &regions, asked, window)?,
            }
        }
        Ok(())
    }

    fn fill_on_host(&self, value: crate::coherence::ConstantId, regions: &SmallVec<[Region; 1]>) {
        let memory_order = self.storage.memory_order();
        let pattern = self.storage.lock().constant_value(value, memory_order.element_bytes());
        for region in regions {
            // SAFETY: `host_base` is the start of `memory_order.len_bytes()` initialised bytes and
            // the footprint lies within. The elements are not valid on the host, so no view of them
            // exists; `bring` has seen that nothing queued touches them, and holds the claim on
            // them.
            unsafe {
                host_copy::fill(self.storage.host_base(), &memory_order.footprint(region), &pattern)
            };
        }
        let mut state = self.storage.lock();
        for region in regions {
            state.coherence.apply(Location::HOST, region, Access::Read);
        }
    }

    /// Announces a large download to ordinary memory, so that no pages have to be locked under the
    /// array's lock.
    fn announce(&self, from: Location, len_bytes: u64) {
        if len_bytes < ANNOUNCED_BYTES_MIN {
            return;
        }
        let device = {
            let state = self.storage.lock();
            let device = &state.device_copy(from).device;
            let is_direct =
                state.host.as_ref().is_some_and(|host| host.is_pinned_for(device.kind()));
            if is_direct { None } else { Some(device.clone()) }
        };
        if let Some(device) = device {
            announce(&device, std::iter::once(len_bytes));
        }
    }

    /// Queues a copy from a device's memory to the host's. Nobody waits for it here.
    fn download(
        &self,
        from: Location,
        regions: &SmallVec<[Region; 1]>,
        asked: Option<&Stream>,
        window: &mut Pipeline,
    ) -> Result<()> {
        let memory_order = self.storage.memory_order();
        let bytes = regions.iter().map(|region| memory_order.region_bytes(region)).sum();
        self.announce(from, bytes);
        let mut state = self.storage.lock();
        let Some(host) = state.host.clone() else { return Ok(()) };
        if !state.holds(from, regions) {
            // The caller finds the elements stale, and plans again.
            return Ok(());
        }
        let stream = self.download_stream(&state, from, regions, asked);
        if regions.iter().any(|region| {
            !self.users_of_other_kinds(&state, stream.device_ref(), region).is_empty()
        }) {
            // Somebody came in between: the caller finds the elements stale, and waits.
            return Ok(());
        }
        let depends = self.wait_for_writers(&state, &stream, from, regions)?;
        let between = self.between(&state, &stream, from, regions);
        let parts = regions
            .iter()
            .map(|region| self.storage.memory_order().footprint(region).copy_to_same_offsets())
            .collect();
        let work = CopyWork {
            may_read_between: between.is_some(),
            loss: FailureKind::Copy,
            source: Memory::Device(state.device_copy(from).address.unwrap_or(Address(0))),
            destination: Memory::Host(host),
            source_device: None,
            parts,
            depends,
            label: self.storage.label("download of", self.site),
        };
        let position = self.queue_write(
            &mut state,
            &stream,
            Location::HOST,
            regions,
            Work::Copy(Box::new(work)),
        )?;
        let since = self.since(&state, Location::HOST, regions);
        window.add(Direction::ToHost, stream.device_ref(), &stream, bytes, since);
        if let Some(between) = between {
            self.record_read(&mut state, &stream, from, &SmallVec::from_iter([between]), position);
        }
        self.record_download(&mut state, &stream, from, regions, position);
        window.push(stream, position);
        Ok(())
    }

    /// The box around all that lies between the first of the regions in memory and the last, if a
    /// copy may read that too: it holds contents, nothing queued elsewhere writes it, and nobody
    /// else is about to. Whoever comes later finds the read entered.
    fn between(
        &self,
        state: &ArrayState,
        stream: &Stream,
        from: Location,
        regions: &SmallVec<[Region; 1]>,
    ) -> Option<Region> {
        let memory_order = self.storage.memory_order();
        let is_alone = (matches!(self.selection, Selection::Whole) || !state.has_pins())
            && memory_order.whole().axes() > 0;
        let spans = || regions.iter().map(|region| region.span(0));
        let (start, end) =
            (spans().map(|span| span.start()).min()?, spans().map(|span| span.end()).max()?);
        let between = memory_order.whole().with_span(0, Span::new(start, end, 1));
        let is_quiet = || self.foreign_writers(state, from, &between, stream).is_empty();
        let is_more = regions.as_slice() != [between];
        (is_more && is_alone && state.holds(from, &[between]) && is_quiet()).then_some(between)
    }

    fn record_download(
        &self,
        state: &mut ArrayState,
        stream: &Stream,
        from: Location,
        regions: &SmallVec<[Region; 1]>,
        position: Position,
    ) {
        let memory_order = self.storage.memory_order();
        let key = state.assign_key(stream);
        let (read, written) =
            (Mark::lossless(key, UseEnd::at(position)), Mark::write(key, position));
        for region in regions {
            state.uses_mut(from).record(memory_order.extents(), Some(region), Access::Read, read);
            state.uses_mut(Location::HOST).record(
                memory_order.extents(),
                Some(region),
                Access::Overwrite,
                written,
            );
            state.coherence.apply(Location::HOST, region, Access::Read);
        }
        self.storage.publish(state);
        if self.is_ahead() {
            stream.record_in_time();
        }
    }

    /// The stream that was asked for, if it is of the device. Else behind the last writer on its
    /// own stream, which costs no event; but on the default stream where nothing has to be waited
    /// for, so that the copy does not queue behind unrelated work.
    pub(super) fn download_stream(
        &self,
        state: &ArrayState,
        from: Location,
        regions: &SmallVec<[Region; 1]>,
        asked: Option<&Stream>,
    ) -> Stream {
        if let Some(asked) =
            asked.filter(|stream| *stream.device_ref() == state.device_copy(from).device)
        {
            return asked.clone();
        }
        let mut writer = None;
        for region in regions {
            state.uses(from).visit_writers(Some(region), |mark| {
                if !state.is_retired(mark) {
                    writer = state
                        .stream(mark.stream)
                        .filter(|stream| *stream.device_ref() == state.device_copy(from).device)
                        .cloned();
                }
            });
        }
        writer.unwrap_or_else(|| state.device_copy(from).device.stream())
    }

    /// Blocks until queued work is complete. No lock is held.
    pub(super) fn wait_for_host(&self, queued: Queued) -> Result<()> {
        for (stream, position) in queued {
            stream
                .core()
                .wait_until_done(UseEnd::at(position))
                .map_err(|refusal| self.refused(stream.device_ref(), "waiting for", &refusal))?;
        }
        Ok(())
    }
}

/// Acquires a part on the host for a write, and makes it the newest copy: in one step where
/// everything is at hand.
pub(crate) fn write_on_host(request: &Request<'_>, access: Access) -> Result<()> {
    if !written_at_hand(request, access) {
        acquire_host(request, access)?;
        mark_host_written(request, access);
    }
    Ok(())
}

/// As `write_on_host` for a whole array, without a request, where everything is at hand; false if
/// there is more to do: nothing was done then.
pub(crate) fn write_whole_on_host(storage: &Storage, access: Access, site: CallSite) -> bool {
    let mut state = storage.lock();
    let is_valid = || {
        access == Access::Overwrite
            || state.coherence.uniform().is_some_and(|content| content.is_valid(Location::HOST))
    };
    let is_there =
        state.host.is_some() && state.is_host_idle() && !state.has_new_failures() && is_valid();
    if !is_there || !state.become_only_holder(Location::HOST, site) {
        return false;
    }
    storage.forget_readers();
    storage.publish(&state);
    true
}

#[inline]
fn written_at_hand(request: &Request<'_>, access: Access) -> bool {
    let mut state = request.storage.lock();
    let is_there = state.host.is_some()
        && !state.has_new_failures()
        && (access == Access::Overwrite || request.is_valid(&state, Location::HOST));
    if !is_there || !state.is_host_idle() {
        return false;
    }
    request.storage.forget_readers();
    request.become_newest(&mut state, Location::HOST, access);
    request.storage.publish(&state);
    true
}

/// The host is about to write the part: it becomes the newest copy, alone.
pub(crate) fn mark_host_written(request: &Request<'_>, access: Access) {
    if request.is_empty() {
        return;
    }
    let mut state = request.storage.lock();
    request.storage.forget_readers();
    request.become_newest(&mut state, Location::HOST, access);
    request.storage.publish(&state);
}
