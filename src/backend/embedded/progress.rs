//! How far a lane got, and who waits for it: one number, read by everyone with one load.
//!
//! Publishing costs a store and a load where nobody waits. That no wake-up is lost rests on all
//! four accesses being sequentially consistent: the publisher stores `completed` and then loads
//! `interested`, a waiter adds to `interested` and then loads `completed`, so at least one of them
//! sees the other.

use std::hint;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use smallvec::SmallVec;

use crate::backend::{Position, QueueId};

/// Looks before a waiter sleeps: a few microseconds, since there may be only one other core.
const SPINS: u32 = 200;

/// Wakers that are due, to be woken with no lock held.
pub(super) type Wakers = SmallVec<[Waker; 2]>;

/// The completed position of one lane.
#[derive(Debug)]
pub(super) struct Progress {
    id: QueueId,
    completed: AtomicU64,
    /// The position that ran last: its operation may still hold what it was given, but touches it
    /// no more.
    ran: AtomicU64,
    /// Threads that sleep, or are about to, and wakers that wait.
    interested: AtomicUsize,
    waiting: Mutex<Vec<(Position, Waker)>>,
    advanced: Condvar,
}

impl Progress {
    /// Nothing has completed.
    pub(super) fn new(id: QueueId) -> Self {
        let (completed, ran, interested) =
            (AtomicU64::new(0), AtomicU64::new(0), AtomicUsize::new(0));
        Self {
            id,
            completed,
            ran,
            interested,
            waiting: Mutex::new(Vec::new()),
            advanced: Condvar::new(),
        }
    }

    /// The queue whose progress this is.
    pub(super) fn id(&self) -> QueueId {
        self.id
    }

    /// Everything up to here has completed.
    #[inline]
    pub(super) fn completed(&self) -> Position {
        Position(self.completed.load(Ordering::Acquire))
    }

    /// Whether `position` has completed.
    #[inline]
    pub(super) fn is_complete(&self, position: Position) -> bool {
        self.completed() >= position
    }

    /// Says that the operation at `position` touches nothing any more, though it has not been
    /// dropped.
    pub(super) fn set_ran(&self, position: Position) {
        self.ran.store(position.0, Ordering::Release);
    }

    /// Whether the operation at `position` touches nothing any more. Memory that it alone held may
    /// be in other hands from then on, a moment before the position completes: the check of
    /// ordering must not take those for rivals.
    pub(super) fn has_run(&self, position: Position) -> bool {
        self.ran.load(Ordering::Acquire) >= position.0 || self.is_complete(position)
    }

    /// Says that `position` has completed, and wakes threads. The wakers that are due are the
    /// caller's to wake.
    #[must_use = "wakers must be woken"]
    pub(super) fn publish(&self, position: Position) -> Wakers {
        self.completed.store(position.0, Ordering::SeqCst);
        if self.interested.load(Ordering::SeqCst) == 0 {
            return Wakers::new();
        }
        let mut waiting = self.lock();
        let due = self.take_due(&mut waiting);
        self.advanced.notify_all();
        due
    }

    /// Sleeps until `position` has completed.
    pub(super) fn block_until(&self, position: Position) {
        if self.spin_until(position) {
            return;
        }
        self.interested.fetch_add(1, Ordering::SeqCst);
        let mut waiting = self.lock();
        while self.completed.load(Ordering::SeqCst) < position.0 {
            waiting = self.advanced.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        drop(waiting);
        self.interested.fetch_sub(1, Ordering::SeqCst);
    }

    /// Has `waker` woken once `position` has completed, or gives back what is due already.
    #[must_use = "wakers must be woken"]
    pub(super) fn register(&self, position: Position, waker: Waker) -> Wakers {
        let mut waiting = self.lock();
        if !waiting.iter().any(|(other, known)| *other == position && known.will_wake(&waker)) {
            waiting.push((position, waker));
            self.interested.fetch_add(1, Ordering::SeqCst);
        }
        self.take_due(&mut waiting)
    }

    fn take_due(&self, waiting: &mut Vec<(Position, Waker)>) -> Wakers {
        let completed = self.completed.load(Ordering::SeqCst);
        let mut due = Wakers::new();
        let mut index = 0;
        while index < waiting.len() {
            if waiting[index].0.0 <= completed {
                due.push(waiting.swap_remove(index).1);
            } else {
                index += 1;
            }
        }
        self.interested.fetch_sub(due.len(), Ordering::SeqCst);
        due
    }

    fn spin_until(&self, position: Position) -> bool {
        for _ in 0..SPINS {
            if self.is_complete(position) {
                return true;
            }
            hint::spin_loop();
        }
        false
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Position, Waker)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes all of them. Called with no lock held: a waker runs code of its own. If that panics, the
/// panic hook has told, and the lane goes on.
pub(super) fn wake(wakers: Wakers) {
    for waker in wakers {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
            let _told_by_the_hook = super::execute::panic_message(payload);
        }
    }
}
