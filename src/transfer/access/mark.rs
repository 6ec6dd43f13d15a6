//! Mark: records an acquired use, and its effect. A write makes its location the only holder of the
//! newest contents.

use smallvec::SmallVec;

use super::acquire::Acquired;
use super::request::Request;
use crate::device::Stream;
use crate::error::Result;
use crate::storage::{ArrayState, HostWrite, UseKind, notify_watchers};
use crate::transfer::copy::changed_bytes::before_host_write;
use crate::transfer::copy::missing::acquire_host;
use resident_backend::{Address, Bytes, Dependencies, FailureKind, FillWork, Position};
use resident_core::Access;
use resident_core::coherence::Location;
use resident_core::layout::Selection;
use resident_core::ordering::{Mark, UseEnd};

/// Marks a use on a device. The caller tells watchers once the whole call is done.
pub(in crate::transfer) fn mark(
    request: &Request<'_>,
    stream: &Stream,
    mut acquired: Acquired<'_>,
    access: Access,
    end: UseEnd,
) {
    if request.is_empty() {
        return;
    }
    let mut state = request.storage.lock();
    request.record_use_and_effect(&mut state, stream, acquired.location, access, end);
    acquired.unpin(&mut state);
}

/// Marks a write by foreign work (work that code outside this library queues), which ends at `end`.
/// Foreign work runs even if a failure damaged the elements that it reads (`depends`); then the
/// elements that it writes count as damaged too.
pub(crate) fn mark_foreign(
    request: &Request<'_>,
    stream: &Stream,
    acquired: Acquired<'_>,
    access: Access,
    end: UseEnd,
    depends: Dependencies,
) -> Result<()> {
    if request.is_empty() {
        return Ok(());
    }
    let written_by = match position_that_fails_with(stream, &depends) {
        Some(position) => position,
        None => queue_failure_marker(request, stream, acquired.address, depends)?,
    };
    let mut state = request.storage.lock();
    record_foreign(request, &mut state, stream, acquired, ForeignUse { access, end, written_by });
    if end != UseEnd::OPEN {
        request.record_access(Some(stream.device_ref()), access);
        state.note_use(UseKind::Write, request.selection);
        drop(state);
        notify_watchers();
    }
    Ok(())
}

/// A use by foreign work.
pub(super) struct ForeignUse {
    pub(super) access: Access,
    pub(super) end: UseEnd,
    /// A position that fails if elements which the work reads are damaged.
    pub(super) written_by: Position,
}

pub(super) fn record_foreign(
    request: &Request<'_>,
    state: &mut ArrayState,
    stream: &Stream,
    mut acquired: Acquired<'_>,
    ForeignUse { access, end, written_by }: ForeignUse,
) {
    let mark = Mark::foreign(state.assign_key(stream), end, written_by);
    request.record_mark(state, acquired.location, Access::Overwrite, mark);
    request.record_write(state, acquired.location, access);
    acquired.unpin(state);
}

/// A position of `stream` that fails if one of `depends` fails, if there is such a position without
/// new work. `START` if nothing can fail.
#[inline]
pub(super) fn position_that_fails_with(
    stream: &Stream,
    depends: &Dependencies,
) -> Option<Position> {
    match depends.as_slice() {
        [] => Some(Position::START),
        [(queue, position)] if *queue == stream.id() => Some(*position),
        _ => None,
    }
}

/// Queues empty work on `stream` that fails if one of `depends` fails.
pub(super) fn queue_failure_marker(
    request: &Request<'_>,
    stream: &Stream,
    address: Address,
    depends: Dependencies,
) -> Result<Position> {
    let label = request.storage.label("access to", request.site);
    let (parts, pattern) = (SmallVec::new(), Bytes::from_elem(0, 1));
    let work = FillWork { loss: FailureKind::Contents, address, parts, pattern, depends, label };
    let submitted = stream.queue().fill(Box::new(work));
    submitted.map_err(|error| request.call_error(stream.device_ref(), "handing out", &error))
}

/// Acquires the elements on the host for a write, and marks the write, which ends when the result
/// drops.
pub(crate) fn write_on_host(request: &Request<'_>, access: Access) -> Result<HostWrite> {
    if let Some(write) = write_ready_on_host(request, access) {
        return Ok(write);
    }
    acquire_host(request, access)?;
    Ok(mark_host_written(request, access))
}

/// As [`write_on_host`], for an access that needs no copy and no wait. If the access needs either,
/// does nothing and returns `None`.
#[inline]
fn write_ready_on_host(request: &Request<'_>, access: Access) -> Option<HostWrite> {
    let mut state = request.storage.lock();
    if !request.is_ready_on_host(&state, access) {
        return None;
    }
    Some(begin_write(request, &mut state, access))
}

/// Marks a write by the host, which ends when the result drops.
pub(crate) fn mark_host_written(request: &Request<'_>, access: Access) -> HostWrite {
    if request.is_empty() {
        return HostWrite::NONE;
    }
    begin_write(request, &mut request.storage.lock(), access)
}

#[inline]
fn begin_write(request: &Request<'_>, state: &mut ArrayState, access: Access) -> HostWrite {
    before_host_write(request.storage, request.selection, state);
    let write = state.begin_host_write(request.selection);
    request.record_write(state, state.host_location(), access);
    request.record_access(None, access);
    write
}

impl Request<'_> {
    /// Records a use. If queued work writes, its failure damages the elements that it writes.
    #[inline]
    pub(in crate::transfer) fn record_use(
        &self,
        state: &mut ArrayState,
        location: Location,
        access: Access,
        stream: &Stream,
        end: UseEnd,
    ) {
        let key = state.assign_key(stream);
        let mark = match (access.writes(), end.position()) {
            (true, Some(position)) => Mark::write(key, position),
            _ => Mark::lossless(key, end),
        };
        self.record_mark(state, location, access, mark);
    }

    #[inline]
    fn record_mark(&self, state: &mut ArrayState, location: Location, access: Access, mark: Mark) {
        let extents = self.storage.memory_order().extents();
        self.selection.visit_boxes_or_whole(|region| {
            state.record_use(location, extents, region, access, mark);
        });
    }

    pub(super) fn record_use_and_effect(
        &self,
        state: &mut ArrayState,
        stream: &Stream,
        location: Location,
        access: Access,
        end: UseEnd,
    ) {
        self.record_use(state, location, access, stream, end);
        state.note_use(UseKind::of(access), self.selection);
        if access.writes() {
            self.record_write(state, location, access);
        } else {
            self.storage.publish(state);
        }
    }

    /// Records that a write makes `location` the only holder.
    #[inline]
    pub(in crate::transfer) fn record_write(
        &self,
        state: &mut ArrayState,
        location: Location,
        access: Access,
    ) {
        self.storage.forget_readers();
        self.become_only_holder(state, location, access);
        self.storage.publish(state);
    }

    #[inline]
    fn become_only_holder(&self, state: &mut ArrayState, location: Location, access: Access) {
        let is_whole = matches!(self.selection, Selection::Whole);
        let already = state.coherence.uniform().is_some_and(|content| content.is_only_at(location));
        if already
            || is_whole && state.become_only_holder(location, self.site)
            || self.is_only_at(state, location)
        {
            return;
        }
        let stale = self.poisoned_copies(state, Some(location));
        state.record_stale(self.storage.memory_order(), self.selection, Some(location), self.site);
        self.selection.visit_boxes_or_whole(|region| match region {
            None => state.coherence.apply_to_all(location, access),
            Some(region) => {
                let extents = self.storage.memory_order().extents();
                state.coherence.apply(extents, location, region, access);
            }
        });
        state.coarsen_after_write(self.storage.memory_order());
        self.poison(state, stale);
    }

    /// Whether `location` is already the only holder of every box. Not called for whole arrays.
    fn is_only_at(&self, state: &ArrayState, location: Location) -> bool {
        match self.selection {
            Selection::Whole => false,
            Selection::Boxes(boxes) => {
                boxes.iter().all(|region| state.coherence.is_only_at(location, region))
            }
        }
    }
}
