//! Mark: records an acquired use, and its effect. A write makes its location the only holder of the
//! newest contents.

use smallvec::SmallVec;

use super::acquired::Acquired;
use super::request::{Regions, Request};
use crate::device::Stream;
use crate::error::Result;
use crate::storage::{ArrayState, HostWrite, UseKind, notify_watchers};
use crate::transfer::copy::changed_bytes::before_host_write;
use crate::transfer::copy::missing::acquire_host_to_write;
use resident_backend::{Address, Bytes, Dependencies, FailureKind, FillWork, Position};
use resident_core::Access;
use resident_core::coherence::Location;
use resident_core::layout::{Footprint, Selection};
use resident_core::ordering::{Mark, UseEnd};

/// Marks a use on a device. The caller tells watchers once the whole call is done.
pub(in crate::transfer) fn mark(
    request: &Request<'_>,
    stream: &Stream,
    mut acquired: Acquired<'_>,
    end: UseEnd,
) {
    if request.is_empty() {
        return;
    }
    let mut state = request.storage.lock();
    request.record_use_and_effect(&mut state, stream, acquired.location, end);
    acquired.unpin(&mut state);
}

/// Marks a write by foreign work (work that code outside this library queues), which ends at `end`.
/// Foreign work runs even if a failure damaged the elements that it reads (`depends`); then the
/// elements that it writes count as damaged too.
pub(crate) fn mark_foreign(
    request: &Request<'_>,
    stream: &Stream,
    acquired: Acquired<'_>,
    end: UseEnd,
    depends: Dependencies,
) -> Result<()> {
    if request.is_empty() {
        return Ok(());
    }
    let unseen = request.leftovers(stream, acquired.address);
    let written_by = match position_that_fails_with(stream, &depends) {
        Some(position) if unseen.is_empty() => position,
        _ => queue_failure_marker(request, stream, acquired.address, depends, unseen)?,
    };
    let mut state = request.storage.lock();
    record_foreign(request, &mut state, stream, acquired, end, written_by);
    if end != UseEnd::OPEN {
        request.record_access(Some(stream.device_ref()));
        state.note_use(UseKind::Write, request.selection);
        drop(state);
        notify_watchers();
    }
    Ok(())
}

/// Records a write by foreign work. `written_by` is a position that fails if elements which the
/// work reads are damaged.
pub(super) fn record_foreign(
    request: &Request<'_>,
    state: &mut ArrayState,
    stream: &Stream,
    mut acquired: Acquired<'_>,
    end: UseEnd,
    written_by: Position,
) {
    let mark = Mark::foreign(state.assign_key(stream), end, written_by);
    let number = state.number_of_other_use(acquired.location);
    request.record_last_use(state, acquired.location, number);
    request.record_mark(state, acquired.location, Access::Overwrite, mark);
    request.record_write(state, acquired.location);
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
        [(other, position)] if *other == stream.id() => Some(*position),
        _ => None,
    }
}

/// Queues work on `stream` that clears `parts`, and fails if one of `depends` fails.
pub(super) fn queue_failure_marker(
    request: &Request<'_>,
    stream: &Stream,
    address: Address,
    depends: Dependencies,
    parts: Parts,
) -> Result<Position> {
    let label = request.storage.label("access to", request.site);
    let pattern = Bytes::from_elem(0, 1);
    let work = FillWork { loss: FailureKind::Contents, address, parts, pattern, depends, label };
    let submitted = stream.raw().fill(Box::new(work));
    submitted.map_err(|error| request.call_error(stream.device_ref(), "handing out", &error))
}

/// Acquires the elements on the host for a write, and marks the write, which ends when the result
/// drops.
pub(crate) fn write_on_host(request: &Request<'_>) -> Result<HostWrite> {
    let mut state = request.storage.lock();
    if request.is_ready_on_host(&state) {
        return Ok(begin_write(request, &mut state));
    }
    drop(state);
    let _acquired = acquire_host_to_write(request)?;
    Ok(mark_host_written(request))
}

/// Marks a write by the host, which ends when the result drops.
pub(crate) fn mark_host_written(request: &Request<'_>) -> HostWrite {
    if request.is_empty() {
        return HostWrite::NONE;
    }
    begin_write(request, &mut request.storage.lock())
}

#[inline]
fn begin_write(request: &Request<'_>, state: &mut ArrayState) -> HostWrite {
    before_host_write(request.storage, request.selection, state);
    let write = state.begin_host_write(request.selection);
    request.record_write(state, state.host_location());
    request.record_access(None);
    write
}

/// Parts of one copy.
pub(super) type Parts = SmallVec<[Footprint; 1]>;

impl Request<'_> {
    /// The elements, if other code is to overwrite them in memory that may have bytes of an array
    /// that was freed: they must be cleared before, since that code may leave them as they are.
    pub(super) fn leftovers(&self, stream: &Stream, address: Address) -> Parts {
        let mut parts = Parts::new();
        let backend = stream.device_ref().backend();
        if self.access == Access::Overwrite && backend.may_have_leftovers(address) {
            let order = self.storage.memory_order();
            self.selection.for_each_region(order, |region| parts.push(order.footprint(region)));
        }
        parts
    }

    /// Records a use. If queued work writes, its failure damages the elements that it writes.
    #[inline]
    pub(in crate::transfer) fn record_use(
        &self,
        state: &mut ArrayState,
        location: Location,
        stream: &Stream,
        end: UseEnd,
    ) {
        let number = state.number_of_other_use(location);
        self.record_numbered_use(state, location, stream, end, number);
    }

    /// As [`record_use`](Self::record_use), of a use with this number.
    #[inline]
    fn record_numbered_use(
        &self,
        state: &mut ArrayState,
        location: Location,
        stream: &Stream,
        end: UseEnd,
        number: u64,
    ) {
        let key = state.assign_key(stream);
        self.record_last_use(state, location, number);
        let mark = match (self.access.writes(), end.position()) {
            (true, Some(position)) => Mark::write(key, position),
            _ => Mark::lossless(key, end),
        };
        self.record_mark(state, location, self.access, mark);
    }

    #[inline]
    fn record_mark(&self, state: &mut ArrayState, location: Location, access: Access, mark: Mark) {
        let extents = self.storage.memory_order().extents();
        self.selection.visit_boxes_or_whole(|region| {
            state.record_use(location, extents, region, access, mark);
        });
    }

    /// Uses of the host's copy have no number.
    #[inline]
    fn record_last_use(&self, state: &mut ArrayState, location: Location, number: u64) {
        if location != Location::HOST {
            state.set_last_use(self.storage.memory_order(), location, self.selection, number);
        }
    }

    /// Records that queued work reads `regions` at `from`. Later writes there wait for it. Does not
    /// number the use.
    pub(in crate::transfer) fn record_read(
        &self,
        state: &mut ArrayState,
        stream: &Stream,
        from: Location,
        regions: &Regions,
        position: Position,
    ) {
        let mark = Mark::lossless(state.assign_key(stream), UseEnd::at(position));
        let extents = self.storage.memory_order().extents();
        for region in regions {
            state.record_use(from, extents, Some(region), Access::Read, mark);
        }
    }

    /// Records that queued work copies `regions` to `location`, where they are valid from now on.
    pub(in crate::transfer) fn record_copy(
        &self,
        state: &mut ArrayState,
        stream: &Stream,
        location: Location,
        regions: &Regions,
        position: Position,
    ) {
        let mark = Mark::write(state.assign_key(stream), position);
        let extents = self.storage.memory_order().extents();
        if location == state.host_location() {
            state.note_host_memory_write();
        }
        state.number_use_of(self.storage.memory_order(), location, regions);
        for region in regions {
            state.record_use(location, extents, Some(region), Access::Overwrite, mark);
            state.coherence.apply(extents, location, region, Access::Read);
        }
        self.storage.publish(state);
        let is_expected =
            location != Location::HOST && state.takes_expected_wait(stream, UseKind::Write);
        if self.is_ahead_of_use || is_expected {
            stream.ensure_event_at_tail();
        }
    }

    pub(super) fn record_use_and_effect(
        &self,
        state: &mut ArrayState,
        stream: &Stream,
        location: Location,
        end: UseEnd,
    ) {
        let number = state.number_of_other_use(location);
        self.record_numbered_use_and_effect(state, stream, location, end, number);
    }

    pub(super) fn record_numbered_use_and_effect(
        &self,
        state: &mut ArrayState,
        stream: &Stream,
        location: Location,
        end: UseEnd,
        number: u64,
    ) {
        self.record_numbered_use(state, location, stream, end, number);
        state.note_use(UseKind::of(self.access), self.selection);
        if self.access.writes() {
            self.record_write(state, location);
        } else {
            self.storage.publish(state);
        }
    }

    /// Records that a write makes `location` the only holder.
    #[inline]
    pub(in crate::transfer) fn record_write(&self, state: &mut ArrayState, location: Location) {
        self.storage.published.forget_readers();
        self.become_only_holder(state, location);
        self.storage.publish(state);
    }

    #[inline]
    fn become_only_holder(&self, state: &mut ArrayState, location: Location) {
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
            None => state.coherence.apply_to_all(location, Access::Overwrite),
            Some(region) => {
                let extents = self.storage.memory_order().extents();
                state.coherence.apply(extents, location, region, Access::Overwrite);
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
