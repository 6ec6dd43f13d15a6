//! The watchers of an array, which are notified when it changes.
//!
//! A thread that changes the state holds its lock, and watchers queue copies. So the same thread
//! notifies them later, with no lock held: in [`notify_watchers`], before the call that made the
//! change returns. An array that has watchers has no summary (`sole_use`), so that launches which
//! find one need not look for watchers.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, Weak};

use resident_backend::sync;

/// Is notified of changes and uses of an array.
pub(crate) trait Watcher: Send + Sync {
    /// The array was used, and has been changed so often. Called with no lock held.
    fn notify(self: Arc<Self>, changes: u64);
    /// The array is about to lose its memory, and has been changed so often. Called with
    /// no lock held.
    fn finish(self: Arc<Self>, changes: u64);
}

/// An array that has watchers.
pub(crate) trait WatchedArray: Send + Sync {
    /// Ends a write by the host. Called with no lock held.
    fn end_host_write(&self, number: u64);
}

/// An array that may be gone.
#[derive(Clone)]
pub(super) struct WeakArray(pub(super) Weak<dyn WatchedArray>);

// As of `Storage`, which it refers to.
impl std::panic::RefUnwindSafe for WeakArray {}

impl fmt::Debug for WeakArray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Array")
    }
}

/// A write of an array's host copy. While it exists, watchers do not read the elements there, and
/// when it drops, with no lock held, they are notified of the change. Forgetting it is safe: the
/// write ends with the next use of the elements. It does not borrow the array, so that its drop
/// does not prolong the borrow of the guard that has it.
#[derive(Debug)]
#[must_use = "the write is over when this drops"]
pub(crate) struct HostWrite(Option<Box<WatchedWrite>>);

#[derive(Debug)]
struct WatchedWrite {
    /// `None` if the write is left open.
    array: Option<WeakArray>,
    number: u64,
}

impl HostWrite {
    /// A write of an array that has no watchers.
    pub(crate) const NONE: Self = Self(None);

    pub(super) fn of(array: WeakArray, number: u64) -> Self {
        Self(Some(Box::new(WatchedWrite { array: Some(array), number })))
    }

    /// Leaves the write open until the next use of the elements.
    pub(crate) fn leave_open(mut self) {
        self.0.iter_mut().for_each(|write| write.array = None);
    }
}

impl Drop for WatchedWrite {
    fn drop(&mut self) {
        let Some(array) = self.array.take().and_then(|WeakArray(array)| array.upgrade()) else {
            return;
        };
        array.end_host_write(self.number);
        notify_watchers();
    }
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
