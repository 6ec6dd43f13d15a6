//! Which watchers an array has, the changes that they are told of, and the writes by the host
//! during which no watcher reads the host's copy.

use std::sync::{Arc, Weak};

use super::cold_state::OpenHostWrite;
use super::{ArrayState, UseKind};
use crate::storage::watchers::{
    HostWrite, WatchedArray, Watcher, WeakArray, WeakWatcher, notify_later,
};
use resident_core::coherence::Region;
use resident_core::layout::Selection;

impl ArrayState {
    /// Adds a watcher of this array.
    pub(crate) fn watch(&mut self, array: Weak<dyn WatchedArray>, watcher: Weak<dyn Watcher>) {
        let cold = self.cold();
        cold.watched = Some(WeakArray(array));
        cold.watchers.push(WeakWatcher(watcher));
    }

    /// How often the array has been changed while it had watchers.
    pub(crate) fn changes(&self) -> u64 {
        self.cold.as_ref().map_or(0, |cold| cold.changes)
    }

    /// Whether the array may have watchers.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.cold.as_ref().is_some_and(|cold| !cold.watchers.is_empty())
    }

    /// Counts a write as a change, and has this thread's next `notify_watchers` notify the watchers
    /// of the use.
    #[inline]
    pub(crate) fn note_use(&mut self, kind: UseKind, selection: &Selection) {
        if self.is_watched() {
            self.note_use_of_watched(kind, selection);
        }
    }

    #[cold]
    fn note_use_of_watched(&mut self, kind: UseKind, selection: &Selection) {
        self.end_host_writes(selection);
        self.cold().changes += u64::from(kind == UseKind::Write);
        self.notify_later();
    }

    fn notify_later(&mut self) {
        let cold = self.cold();
        let (watchers, changes) = (&mut cold.watchers, cold.changes);
        watchers.retain(|WeakWatcher(watcher)| watcher.strong_count() > 0);
        let live = watchers.iter().filter_map(|WeakWatcher(watcher)| watcher.upgrade());
        notify_later(live, changes);
    }

    /// Begins a write of these elements by the host. Watchers do not read them on the host until
    /// the result drops, or until a later use of the elements shows that the write is over.
    #[inline]
    pub(crate) fn begin_host_write(&mut self, selection: &Selection) -> HostWrite {
        if self.is_watched() { self.begin_watched_host_write(selection) } else { HostWrite::NONE }
    }

    #[cold]
    fn begin_watched_host_write(&mut self, selection: &Selection) -> HostWrite {
        self.end_host_writes(selection);
        self.note_host_memory_write();
        let cold = self.cold();
        let number = cold.host_version;
        cold.host_writes.push(OpenHostWrite { number, selection: selection.clone() });
        cold.watched.clone().map_or(HostWrite::NONE, |array| HostWrite::of(array, number))
    }

    /// Ends a write by the host, and has this thread's next `notify_watchers` notify the watchers
    /// of the change. Does nothing if the write has ended.
    pub(in crate::storage) fn end_host_write(&mut self, number: u64) {
        let Some(cold) = self.cold.as_mut() else { return };
        let before = cold.host_writes.len();
        cold.host_writes.retain(|write| write.number != number);
        if cold.host_writes.len() < before {
            cold.changes += 1;
            self.notify_later();
        }
    }

    /// Ends the writes by the host of elements that are used now: their guards were forgotten, or
    /// gave their views away. Each counts as a change.
    pub(crate) fn end_host_writes(&mut self, selection: &Selection) {
        let Some(cold) = self.cold.as_mut() else { return };
        let before = cold.host_writes.len();
        cold.host_writes.retain(|write| !write.selection.overlaps(selection));
        cold.changes += (before - cold.host_writes.len()) as u64;
    }

    /// Ends the writes by the host of elements that the host reads, since the borrow of such a
    /// write excludes the read, and has this thread's next `notify_watchers` notify the watchers.
    #[inline]
    pub(crate) fn note_host_read(&mut self, selection: &Selection) {
        if self.has_open_host_writes() {
            self.note_use_of_watched(UseKind::Read, selection);
        }
    }

    /// Whether a write by the host of a watched array has not ended, so that reads must end it.
    #[inline]
    pub(crate) fn has_open_host_writes(&self) -> bool {
        self.cold.as_ref().is_some_and(|cold| !cold.host_writes.is_empty())
    }

    /// Whether the host may be writing some of these regions.
    pub(crate) fn is_host_writing(&self, regions: &[Region]) -> bool {
        let writes = self.cold.iter().flat_map(|cold| &cold.host_writes);
        let parts = || Selection::Boxes(regions.iter().copied().collect());
        writes.into_iter().any(|write| write.selection.overlaps(&parts()))
    }

    /// Records that the host or queued work is about to write the host memory.
    #[inline]
    pub(crate) fn note_host_memory_write(&mut self) {
        if self.is_watched() {
            self.cold().host_version += 1;
        }
    }

    /// While this number stays the same, the host memory is not written.
    pub(crate) fn host_version(&self) -> u64 {
        self.cold.as_ref().map_or(0, |cold| cold.host_version)
    }

    /// The watchers that exist.
    pub(crate) fn watchers(&self) -> Vec<Arc<dyn Watcher>> {
        let all = self.cold.iter().flat_map(|cold| &cold.watchers);
        all.filter_map(|WeakWatcher(watcher)| watcher.upgrade()).collect()
    }

    /// Forgets all watchers. From now on they queue nothing.
    pub(crate) fn forget_watchers(&mut self) {
        self.cold().watchers = Vec::new();
    }
}
