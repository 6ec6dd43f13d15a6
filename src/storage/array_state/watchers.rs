//! Which watchers an array has, and the changes that they are told of.

use std::sync::{Arc, Weak};

use super::{ArrayState, UseKind};
use crate::storage::watchers::{Watcher, WeakWatcher, notify_later};

impl ArrayState {
    /// Adds a watcher.
    pub(crate) fn watch(&mut self, watcher: Weak<dyn Watcher>) {
        self.cold().watchers.push(WeakWatcher(watcher));
    }

    /// How often queued work has changed the array while it had watchers.
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
    pub(crate) fn note_use(&mut self, kind: UseKind) {
        if self.is_watched() {
            self.note_use_of_watched(kind);
        }
    }

    #[cold]
    fn note_use_of_watched(&mut self, kind: UseKind) {
        let cold = self.cold();
        cold.changes += u64::from(kind == UseKind::Write);
        let (watchers, changes) = (&mut cold.watchers, cold.changes);
        watchers.retain(|WeakWatcher(watcher)| watcher.strong_count() > 0);
        let live = watchers.iter().filter_map(|WeakWatcher(watcher)| watcher.upgrade());
        notify_later(live, changes);
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
