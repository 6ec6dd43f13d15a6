//! The watchers of an array: who is told when queued work changes it.
//!
//! Whoever changes the state holds its lock, and watchers queue copies. So they are told later, by
//! the same thread, with no lock held: by [`tell_watchers`], before the call that made the change
//! returns. An array that has watchers has no summary (`storage/sole_use.rs`), so that launches
//! which find one need not ask.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use super::ArrayState;
use crate::sync;

/// Is told what queued work does with an array.
pub(crate) trait Watcher: Send + Sync {
    /// The array was used, and has been changed so often. Called with no lock held.
    fn tell(self: Arc<Self>, changes: u64);
    /// The array is about to lose its memory on devices, and has been changed so often. Called with
    /// no lock held.
    fn finish(self: Arc<Self>, changes: u64);
}

/// A watcher that may be gone.
#[derive(Clone)]
pub(super) struct WeakWatcher(Weak<dyn Watcher>);

impl std::fmt::Debug for WeakWatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Watcher")
    }
}

thread_local! {
    /// The watchers that this thread must tell, and how often their arrays have been changed.
    static DUE: RefCell<Vec<(Arc<dyn Watcher>, u64)>> = const { RefCell::new(Vec::new()) };
}

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

    /// Counts a change, and has this thread's next [`tell_watchers`] tell the watchers of it, or of
    /// another use.
    #[inline]
    pub(crate) fn note_use(&mut self, is_change: bool) {
        if self.is_watched() {
            self.note_use_of_watched(is_change);
        }
    }

    #[cold]
    fn note_use_of_watched(&mut self, is_change: bool) {
        let cold = self.cold();
        cold.changes += u64::from(is_change);
        let (watchers, changes) = (&mut cold.watchers, cold.changes);
        watchers.retain(|WeakWatcher(watcher)| watcher.strong_count() > 0);
        let live = watchers.iter().filter_map(|WeakWatcher(watcher)| watcher.upgrade());
        // While a thread's thread-locals are destroyed, nobody is told.
        let _ = DUE.try_with(|due| due.borrow_mut().extend(live.map(|it| (it, changes))));
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

/// Tells watchers what this thread has noted. The caller holds no lock.
#[inline]
pub(crate) fn tell_watchers() {
    let next = || DUE.try_with(|due| due.borrow_mut().pop()).ok().flatten();
    while let Some((watcher, changes)) = next() {
        sync::assert_none_held();
        watcher.tell(changes);
    }
}
