//! Whether an access may go on, or what it has to wait for. The answer for whole arrays is also
//! kept where the usual call finds it first: for the host in `storage/published.rs`, which takes no
//! lock, and for launches of one stream in `storage/sole_use.rs`. What is copied if elements are
//! missing, `copy/missing.rs` decides.

use super::request::Request;
use crate::device::Stream;
use crate::storage::{ArrayState, CopyPlace};
use resident_backend::{Dependencies, Position};
use resident_core::Access;
use resident_core::coherence::Location;
use resident_core::layout::Selection;
use resident_core::ordering::{Mark, StreamKey, UseEnd};

/// What an access of a device's copy needs.
pub(super) enum Readiness {
    /// Nothing.
    Ready(CopyPlace),
    /// The elements are there, but the stream has to wait for uses on other streams.
    Wait(CopyPlace),
    /// Copies or memory, or it is not known.
    Copy,
}

impl Request<'_> {
    /// Whether an access on `stream` may go on. Adds to `depends` the work on the stream itself
    /// that wrote the elements to read and may still fail.
    #[inline]
    pub(super) fn readiness(
        &self,
        state: &mut ArrayState,
        stream: &Stream,
        depends: &mut Dependencies,
    ) -> Readiness {
        if matches!(self.selection, Selection::Whole) {
            let ready = whole_on_device(state, stream, self.access, depends);
            return ready.map_or(Readiness::Copy, Readiness::Ready);
        }
        self.part_on_device(state, stream, depends).unwrap_or(Readiness::Copy)
    }

    /// Whether only `stream` has conflicting uses of the elements on its device. `None` if they are
    /// not there.
    fn part_on_device(
        &self,
        state: &mut ArrayState,
        stream: &Stream,
        depends: &mut Dependencies,
    ) -> Option<Readiness> {
        if state.has_new_failures() {
            return None;
        }
        let location = state.find_location(stream.device_ref())?;
        let address = state.device_copy(location).address()?;
        if self.is_missing(state, location) {
            return None;
        }
        let (key, access) = (state.find_key(stream).unwrap_or(StreamKey::NONE), self.access);
        let mut is_ready = true;
        let mut uses = std::mem::take(&mut state.device_copy_mut(location).uses);
        self.selection.visit_boxes_or_whole(|region| {
            is_ready &= uses.conflicts_only_with(region, access, key, |writer| {
                if access != Access::Overwrite && writer.stream == key {
                    add_own_writer(state, depends, stream, writer);
                }
            });
        });
        state.device_copy_mut(location).uses = uses;
        let copy = CopyPlace { location, address };
        Some(if is_ready { Readiness::Ready(copy) } else { Readiness::Wait(copy) })
    }

    /// Whether an access of the host may go on.
    #[inline]
    pub(super) fn is_ready_on_host(&self, state: &ArrayState) -> bool {
        state.host.is_some()
            && state.is_host_idle()
            && !state.has_new_failures()
            && !self.is_missing(state, state.host_location())
    }

    /// Whether the access needs elements that are not valid at `location`.
    #[inline]
    pub(in crate::transfer) fn is_missing(&self, state: &ArrayState, location: Location) -> bool {
        self.access != Access::Overwrite && !self.is_valid(state, location)
    }
}

/// The copy of the whole array on the stream's device, if it needs no copy and no wait.
#[inline(always)]
pub(super) fn whole_on_device(
    state: &mut ArrayState,
    stream: &Stream,
    access: Access,
    depends: &mut Dependencies,
) -> Option<CopyPlace> {
    let (copy, writer) = state.ready_whole(stream, access)?;
    if let Some(work) = writer.and_then(|writer| writer.written_by()) {
        depend_on(state, depends, stream, copy.location, work);
    }
    Some(copy)
}

/// Adds work on `stream` itself that wrote the whole array, unless it is complete: then forgets it,
/// so that it is not looked at again. For the first entry this is not checked, because that reads
/// memory which the executing thread writes.
fn depend_on(
    state: &mut ArrayState,
    depends: &mut Dependencies,
    stream: &Stream,
    location: Location,
    work: Position,
) {
    let dependency = (stream.id(), work);
    if depends.contains(&dependency) {
        return;
    }
    if !depends.is_empty() && stream.core().is_done(UseEnd::at(work)) {
        state.retire_device_uses(location);
        if state.uses(location).uniform().is_some_and(|uses| uses.writer().is_none()) {
            return;
        }
    }
    depends.push(dependency);
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
