//! The watchers of an array, which are notified when queued work changes it.
//!
//! A thread that changes the state holds its lock, and watchers queue copies. So the same thread
//! notifies them later, with no lock held: in [`notify_watchers`], before the call that made the
//! change returns. An array that has watchers has no summary (`sole_use`), so that launches which
//! find one need not look for watchers.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, Weak};

use resident_backend::sync;

/// Is notified of what queued work does with an array.
pub(crate) trait Watcher: Send + Sync {
    /// The array was used, and has been changed so often. Called with no lock held.
    fn notify(self: Arc<Self>, changes: u64);
    /// The array is about to lose its memory on devices, and has been changed so often. Called with
    /// no lock held.
    fn finish(self: Arc<Self>, changes: u64);
}

/// A watcher that may be gone.
#[derive(Clone)]
pub(super) struct WeakWatcher(pub(super) Weak<dyn Watcher>);

impl fmt::Debug for WeakWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watcher")
    }
}

thread_local! {
    /// The watchers that this thread must notify, and how often their arrays have been changed.
    static DUE: RefCell<Vec<(Arc<dyn Watcher>, u64)>> = const { RefCell::new(Vec::new()) };
}

/// Has this thread's next [`notify_watchers`] notify watchers of an array that has been changed so
/// often. While the thread's thread-locals are destroyed, no watcher is notified.
pub(super) fn notify_later(watchers: impl Iterator<Item = Arc<dyn Watcher>>, changes: u64) {
    let _ = DUE.try_with(|due| due.borrow_mut().extend(watchers.map(|it| (it, changes))));
}

/// Notifies watchers of what this thread has noted. The caller holds no lock.
#[inline]
pub(crate) fn notify_watchers() {
    let next = || DUE.try_with(|due| due.borrow_mut().pop()).ok().flatten();
    while let Some((watcher, changes)) = next() {
        sync::assert_none_held();
        watcher.notify(changes);
    }
}
