//! The completed position of a stream, which every thread reads with one load, and its waiters.
//!
//! Without waiters, publishing a position costs one store and one load. No wake-up is lost because
//! all four accesses are sequentially consistent: the publisher stores `completed` and then loads
//! `waiter_count`; a waiter adds to `waiter_count` and then loads `completed`. So the publisher
//! sees the waiter, or the waiter sees the new position.

use std::hint;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use smallvec::SmallVec;

use super::panic_message::panic_message;
use crate::backend::{Position, QueueId};

/// The number of checks before a thread sleeps: a few microseconds, since there may be few cores.
const SPINS: u32 = 200;

/// Wakers whose position has completed, to be woken with no lock held.
pub(crate) type Wakers = SmallVec<[Waker; 2]>;

/// The completed position of one stream.
#[derive(Debug)]
pub(crate) struct Progress {
    id: QueueId,
    completed: AtomicU64,
    /// The position of the last operation that ran. This operation no longer accesses memory, but
    /// may not have been dropped yet.
    ran: AtomicU64,
    /// The number of registered wakers plus the number of threads that sleep or are about to sleep.
    waiter_count: AtomicUsize,
    wakers: Mutex<Vec<(Position, Waker)>>,
    advanced: Condvar,
}

impl Progress {
    /// Nothing has completed.
    pub(crate) fn new(id: QueueId) -> Self {
        Self {
            id,
            completed: AtomicU64::new(0),
            ran: AtomicU64::new(0),
            waiter_count: AtomicUsize::new(0),
            wakers: Mutex::new(Vec::new()),
            advanced: Condvar::new(),
        }
    }

    /// The queue of this stream.
    pub(crate) fn id(&self) -> QueueId {
        self.id
    }

    /// The completed position: all work up to it has completed.
    #[inline]
    pub(crate) fn completed(&self) -> Position {
        Position(self.completed.load(Ordering::Acquire))
    }

    /// Whether `position` has completed.
    #[inline]
    pub(crate) fn is_complete(&self, position: Position) -> bool {
        self.completed() >= position
    }

    /// Records that the operation at `position` accesses no memory any more. The operation has not
    /// been dropped yet.
    pub(super) fn mark_ran(&self, position: Position) {
        self.ran.store(position.0, Ordering::Release);
    }

    /// Whether the operation at `position` accesses no memory any more. When the operation drops,
    /// other work may get its memory before the position completes. So the race check uses this
    /// function rather than [`is_complete`](Self::is_complete).
    pub(crate) fn has_run(&self, position: Position) -> bool {
        self.ran.load(Ordering::Acquire) >= position.0 || self.is_complete(position)
    }

    /// Records that `position` has completed, wakes sleeping threads, and returns the wakers for
    /// the caller to wake.
    #[must_use = "wakers must be woken"]
    pub(super) fn publish(&self, position: Position) -> Wakers {
        self.completed.store(position.0, Ordering::SeqCst);
        if self.waiter_count.load(Ordering::SeqCst) == 0 {
            return Wakers::new();
        }
        let mut wakers = self.lock();
        let due = self.take_due(&mut wakers);
        self.advanced.notify_all();
        due
    }

    /// Blocks until all work up to `position` has completed.
    pub(super) fn block_until(&self, position: Position) {
        if spin_until(|| self.is_complete(position)) {
            return;
        }
        self.waiter_count.fetch_add(1, Ordering::SeqCst);
        let mut wakers = self.lock();
        while self.completed.load(Ordering::SeqCst) < position.0 {
            wakers = self.advanced.wait(wakers).unwrap_or_else(PoisonError::into_inner);
        }
        drop(wakers);
        self.waiter_count.fetch_sub(1, Ordering::SeqCst);
    }

    /// Registers `waker` for the completion of `position`. Returns the wakers whose positions have
    /// completed already.
    #[must_use = "wakers must be woken"]
    pub(crate) fn register(&self, position: Position, waker: Waker) -> Wakers {
        let mut wakers = self.lock();
        if !wakers.iter().any(|(other, known)| *other == position && known.will_wake(&waker)) {
            wakers.push((position, waker));
            self.waiter_count.fetch_add(1, Ordering::SeqCst);
        }
        self.take_due(&mut wakers)
    }

    fn take_due(&self, wakers: &mut Vec<(Position, Waker)>) -> Wakers {
        let completed = Position(self.completed.load(Ordering::SeqCst));
        let due: Wakers = wakers
            .extract_if(.., |(position, _)| *position <= completed)
            .map(|due| due.1)
            .collect();
        self.waiter_count.fetch_sub(due.len(), Ordering::SeqCst);
        due
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Position, Waker)>> {
        self.wakers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes all of them. Must be called with no lock held, because a waker runs user code. If a waker
/// panics, the panic hook has already reported the panic, and the stream continues.
pub(crate) fn wake_all(wakers: Wakers) {
    for waker in wakers {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
            let _reported_by_the_hook = panic_message(payload);
        }
    }
}

/// Checks a condition repeatedly for a short time, before the thread sleeps. Returns whether the
/// condition became true.
pub(super) fn spin_until(is_true: impl Fn() -> bool) -> bool {
    for _ in 0..SPINS {
        if is_true() {
            return true;
        }
        hint::spin_loop();
    }
    false
}
