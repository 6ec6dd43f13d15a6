//! The streams that use an array. Marks refer to a stream by a key.

use smallvec::SmallVec;

use super::stream_table::{Entry, StreamTable};
use super::{ArrayState, UseKind};
use crate::device::{Held, Stream};
use resident_backend::sync;
use resident_backend::{BackendError, failure};
use resident_core::Access;
use resident_core::coherence::{Location, Region};
use resident_core::layout::{MemoryOrder, Selection};
use resident_core::ordering::{Mark, StreamKey, UseEnd};

/// Up to this number of streams, none is removed.
const STREAMS_KEPT: usize = 8;

impl ArrayState {
    /// The key of a stream, assigned at first use.
    #[inline]
    pub(crate) fn assign_key(&mut self, stream: &Stream) -> StreamKey {
        self.find_key(stream).unwrap_or_else(|| self.insert_stream(stream))
    }

    #[inline]
    pub(crate) fn find_key(&self, stream: &Stream) -> Option<StreamKey> {
        match self.streams.first() {
            Some(first) if first == stream => Some(StreamKey::at(0)),
            _ => self.find_later_key(stream),
        }
    }

    #[inline(never)]
    fn find_later_key(&self, stream: &Stream) -> Option<StreamKey> {
        Some(StreamKey::at(self.streams.find_later(stream)?))
    }

    #[cold]
    fn insert_stream(&mut self, stream: &Stream) -> StreamKey {
        let free = self.free_key();
        if let Some(entry) = self.streams.iter_mut().nth(free.index()) {
            *entry = Some(Held::new(stream.clone()));
        }
        free
    }

    /// A key without a stream. If there is none, and there are not just a few streams, idle streams
    /// are removed. If this frees few keys, the table is doubled, so that many insertions share the
    /// cost of the next search for idle streams.
    fn free_key(&mut self) -> StreamKey {
        if let Some(free) = self.streams.first_free() {
            return StreamKey::at(free);
        }
        let len = self.streams.len();
        if len < STREAMS_KEPT {
            self.streams.grow(len + 1);
            return StreamKey::at(len);
        }
        self.close_dropped_reads();
        self.remove_idle_streams();
        if self.streams.iter().filter(|stream| stream.is_none()).count() < len / 4 {
            self.streams.grow(2 * len);
        }
        StreamKey::at(self.streams.first_free().unwrap_or(len))
    }

    fn remove_idle_streams(&mut self) {
        let mut used: SmallVec<[bool; 16]> = SmallVec::from_elem(false, self.streams.len());
        let streams = &self.streams;
        let host_uses = self.cold.iter_mut().filter_map(|cold| cold.host_uses.as_deref_mut());
        let device_uses = self.device_copies.iter_mut().map(|copy| &mut copy.uses);
        for uses in host_uses.chain(device_uses) {
            uses.retire_all(|mark| is_retired(streams, mark));
            let mark_used = |mark: Mark| used[mark.stream.index()] = true;
            uses.visit_conflicts(None, Access::Overwrite, |_| true, mark_used);
        }
        for (stream, used) in self.streams.iter_mut().zip(used) {
            if !used && let Some(idle) = stream.take() {
                sync::defer_drop(idle);
            }
        }
    }

    #[inline]
    pub(crate) fn stream(&self, key: StreamKey) -> Option<&Stream> {
        self.streams.get(key.index())
    }

    #[inline]
    pub(crate) fn find_stream(&self, id: u64) -> Option<(StreamKey, &Stream)> {
        match self.streams.first() {
            Some(first) if first.id().0 == id => Some((StreamKey::at(0), first)),
            _ => self.find_later_stream(id),
        }
    }

    #[inline(never)]
    fn find_later_stream(&self, id: u64) -> Option<(StreamKey, &Stream)> {
        let is_this = |entry: &Entry| entry.as_deref().is_some_and(|stream| stream.id().0 == id);
        let key = StreamKey::at(self.streams.iter().position(is_this)?);
        Some((key, self.stream(key)?))
    }

    /// Makes a stream wait for these uses, and expects such waits from now on. Failures are
    /// handled by the dependencies of the work that the caller queues. For uses of devices of
    /// another kind, for which no stream can wait, the host has waited before it took the lock.
    pub(crate) fn make_wait(
        &mut self,
        stream: &Stream,
        marks: &[Mark],
    ) -> Result<(), BackendError> {
        for mark in marks {
            let Some(other) = self.stream(mark.stream) else { continue };
            if mark.end == UseEnd::OPEN && !stream.is_of_kind_of(other) {
                // That of a guard that is over: its mark stays open.
                continue;
            }
            if stream.order_after(other, mark.end)? {
                let is_write = mark.written_by().is_some();
                let kind = if is_write { UseKind::Write } else { UseKind::Read };
                self.expected_waits.expect(mark.stream, kind);
            }
        }
        Ok(())
    }

    /// Whether another stream is expected to wait for a use that `stream` has just made. If so, the
    /// caller records an event. Asking again returns `false`.
    #[inline]
    pub(crate) fn takes_expected_wait(&mut self, stream: &Stream, kind: UseKind) -> bool {
        !self.expected_waits.is_none()
            && self.find_key(stream).is_some_and(|key| self.expected_waits.take(key, kind))
    }

    /// Whether another stream is expected to wait for a use of the stream with this key.
    #[inline]
    pub(crate) fn expects_waits_for(&self, key: StreamKey) -> bool {
        self.expected_waits.include(key)
    }

    /// Whether a use has completed and its work has not failed. Later uses do not wait for such a
    /// use.
    pub(crate) fn is_retired(&self, mark: Mark) -> bool {
        is_retired(&self.streams, mark)
    }

    /// Records a use at `location`. Removes complete uses when there are many.
    #[inline]
    pub(crate) fn record_use(
        &mut self,
        location: Location,
        extents: &[u64],
        region: Option<&Region>,
        access: Access,
        mark: Mark,
    ) {
        let uses = self.uses_mut(location);
        uses.record(extents, region, access, mark);
        if uses.is_overgrown() {
            self.retire_uses(location);
        }
    }

    #[cold]
    pub(super) fn retire_uses(&mut self, location: Location) {
        let mut uses = std::mem::take(self.uses_mut(location));
        uses.retire_all(|mark| self.is_retired(mark));
        *self.uses_mut(location) = uses;
    }

    /// Removes completed uses of a device's copy if all elements have the same uses. Without them,
    /// later accesses take the fast path for whole arrays.
    pub(crate) fn retire_device_uses(&mut self, location: Location) {
        let Self { device_copies, streams, .. } = self;
        let uses = &mut device_copies[location.index() - 1].uses;
        if uses.uniform().is_some() {
            uses.retire_all(|mark| is_retired(streams, mark));
        }
    }

    /// Removes completed uses of the host memory.
    pub(crate) fn retire_host_uses(&mut self, memory_order: &MemoryOrder, selection: &Selection) {
        let Self { host_location, cold, device_copies, streams, .. } = self;
        let uses = match host_location.index().checked_sub(1) {
            None => cold.as_mut().and_then(|cold| cold.host_uses.as_deref_mut()),
            Some(copy) => device_copies.get_mut(copy).map(|copy| &mut copy.uses),
        };
        let Some(uses) = uses else { return };
        selection.visit_boxes_or_whole(|region| {
            uses.retire(memory_order.extents(), region, |mark| is_retired(streams, mark));
        });
    }
}

pub(super) fn is_retired(streams: &StreamTable, mark: Mark) -> bool {
    let Some(stream) = streams.get(mark.stream.index()) else {
        return true;
    };
    // The order of the two checks matters: a failure is recorded before its position counts as
    // completed.
    mark.end != UseEnd::OPEN
        && stream.core().is_done(mark.end)
        && mark.written_by().is_none_or(|work| failure::at(stream.id(), work).is_none())
}
