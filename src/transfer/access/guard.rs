//! Opens and closes guards, by which code outside this library uses a device's copy. Until a guard
//! drops, its use counts as incomplete, because the library cannot see the work that other code
//! queues meanwhile.

use super::acquire::acquire_locked;
use super::acquired::Acquired;
#[cfg(feature = "nccl")]
use super::mark::{Parts, queue_failure_marker};
use super::mark::{mark_foreign, position_that_fails_with, record_foreign};
use super::request::Request;
use crate::device::Stream;
use crate::error::Result;
use crate::storage::{ArrayState, OpenRead, Storage, UseKind, notify_watchers};
use resident_backend::{Address, Dependencies};
use resident_core::Access;
use resident_core::coherence::Location;
use resident_core::layout::Selection;
use resident_core::ordering::UseEnd;

/// A device copy in use by a guard.
pub(crate) struct Opened {
    pub(crate) location: Location,
    /// The address of the whole array's copy. 0 if the guard has no elements.
    pub(crate) address: Address,
    /// For reads, except those of the whole array on streams that are published to the fast path.
    pub(crate) read: Option<OpenRead>,
}

/// Acquires the elements on `stream`'s device and marks an open use.
pub(crate) fn open_guard(request: &Request<'_>, stream: &Stream) -> Result<Opened> {
    if request.is_empty() {
        return Ok(Opened { location: Location::HOST, address: Address(0), read: None });
    }
    let mut depends = Dependencies::new();
    let (mut acquired, mut state) = acquire_locked(request, stream, &mut depends)?;
    let (location, address) = (acquired.location, acquired.address);
    request.record_access(Some(stream.device_ref()));
    let mut read = None;
    if request.access == Access::Read {
        read = open_read(request, &mut state, stream, &acquired);
        acquired.unpin(&mut state);
        drop(state);
        notify_watchers();
    } else if let Some(written_by) = position_that_fails_with(stream, &depends)
        && request.leftovers(stream, address).is_empty()
    {
        record_foreign(request, &mut state, stream, acquired, UseEnd::OPEN, written_by);
    } else {
        drop(state);
        mark_foreign(request, stream, acquired, UseEnd::OPEN, depends)?;
    }
    Ok(Opened { location, address, read })
}

/// Marks an open read, and returns the guard's token. Guards of the whole array on a published
/// stream need none. The mark that such a stream has of the whole array covers all its reads.
fn open_read(
    request: &Request<'_>,
    state: &mut ArrayState,
    stream: &Stream,
    acquired: &Acquired<'_>,
) -> Option<OpenRead> {
    let is_published = || request.storage.published.is_published(stream.id().0);
    let location = acquired.location;
    if is_published() {
        request.storage.publish(state);
    } else {
        request.record_use_and_effect(state, stream, location, UseEnd::OPEN);
        publish_reader(request, state, stream, acquired);
    }
    let is_published = is_published();
    let needs_token = !is_published || !matches!(request.selection, Selection::Whole);
    let token = needs_token.then(|| state.open_read(stream, location));
    if is_published {
        state.publish_reads(stream);
    }
    token
}

/// Publishes to the fast path that a guard on this stream reads the whole array.
fn publish_reader(
    request: &Request<'_>,
    state: &ArrayState,
    stream: &Stream,
    acquired: &Acquired<'_>,
) {
    let is_valid = |content: resident_core::coherence::Content| content.is_valid(acquired.location);
    let is_whole = matches!(request.selection, Selection::Whole);
    // Of guards on published streams no one knows whether they live.
    let must_be_known = stream.device_ref().is_scarce();
    if is_whole && !must_be_known && state.coherence.uniform().is_some_and(is_valid) {
        let (epoch, address) = (state.failure_epoch(), acquired.address.0);
        request.storage.published.publish_reader(epoch, stream.id().0, address);
    }
}

/// Closes the mark of a write guard that has dropped: all work that other code has queued for the
/// guard is now on its stream.
pub(crate) fn close_guard(
    storage: &Storage,
    selection: &Selection,
    stream: u64,
    location: Location,
) {
    if storage.memory_order().is_empty() || selection.is_empty() {
        return;
    }
    let mut state = storage.lock();
    let Some((key, stream)) = state.find_stream(stream) else { return };
    let end = stream.raw().reserve_position();
    let extents = storage.memory_order().extents();
    selection
        .visit_boxes_or_whole(|region| state.uses_mut(location).close(extents, region, key, end));
    if state.is_watched() {
        state.note_use(UseKind::Write, selection);
        drop(state);
        notify_watchers();
    }
}

/// As [`close_guard`], for work that the library is told of if it fails (`failure::record`). Later
/// uses of the elements then fail too.
#[cfg(feature = "nccl")]
pub(crate) fn close_fallible_guard(
    request: &Request<'_>,
    stream: &Stream,
    location: Location,
) -> Result<()> {
    if request.is_empty() {
        return Ok(());
    }
    let depends = damaging(request, stream, location);
    let end = if depends.is_empty() {
        stream.raw().reserve_position()
    } else {
        let address = request.storage.lock().device_copy(location).base();
        queue_failure_marker(request, stream, address.unwrap_or(Address(0)), depends, Parts::new())?
    };
    let extents = request.storage.memory_order().extents();
    let mut state = request.storage.lock();
    let Some(key) = state.find_key(stream) else { return Ok(()) };
    request.selection.visit_boxes_or_whole(|region| {
        state.uses_mut(location).close_fallible(extents, region, key, end);
    });
    Ok(())
}

/// The work whose failure damages what the guard's work has written.
#[cfg(feature = "nccl")]
fn damaging(request: &Request<'_>, stream: &Stream, location: Location) -> Dependencies {
    let mut depends = Dependencies::new();
    let state = request.storage.lock();
    let key = state.find_key(stream);
    let extents = request.storage.memory_order().extents();
    state.uses(location).visit_written_regions(extents, |_, mark| {
        let dependency = mark.written_by().map(|position| (stream.id(), position));
        if let Some(dependency) = dependency
            && Some(mark.stream) == key
            && mark.end == UseEnd::OPEN
            && !depends.contains(&dependency)
        {
            depends.push(dependency);
        }
    });
    depends
}
