//! The completed position of a stream, which every thread reads with one load, and its waiters.
//!
//! Without waiters, publishing a position costs one store and one load. No wake-up is lost because
//! all four accesses are sequentially consistent: the publisher stores `completed` and then loads
//! `waiter_count`; a waiter adds to `waiter_count` and then loads `completed`. So the publisher
//! sees the waiter, or the waiter sees the new position.

use std::hint;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar};

use resident_backend::sync::{BackendGuard, BackendLock};
use resident_backend::thread_pools::{PATIENCE, PoolWait};
use resident_backend::{Position, StreamId, TaskWaker, Tasks, WaitingTasks};

/// The number of checks before a thread sleeps: a few microseconds, since there may be few cores.
const SPINS: u32 = 200;

/// The completed position of one stream.
#[derive(Debug)]
pub(crate) struct StreamProgress {
    id: StreamId,
    completed: AtomicU64,
    /// The position of the last operation that ran. This operation no longer accesses memory, but
    /// may not have been dropped yet.
    ran: AtomicU64,
    /// The number of registered wakers plus the number of threads that sleep or are about to sleep.
    waiter_count: AtomicUsize,
    tasks: BackendLock<WaitingTasks>,
    advanced: Condvar,
}

impl StreamProgress {
    /// Nothing has completed.
    pub(crate) fn new(id: StreamId) -> Self {
        Self {
            id,
            completed: AtomicU64::new(0),
            ran: AtomicU64::new(0),
            waiter_count: AtomicUsize::new(0),
            tasks: BackendLock::default(),
            advanced: Condvar::new(),
        }
    }

    /// The stream's number.
    pub(crate) fn id(&self) -> StreamId {
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

    /// Records that `position` has completed, wakes sleeping threads, and returns the tasks for the
    /// caller to wake.
    #[must_use = "tasks must be woken"]
    pub(super) fn publish(&self, position: Position) -> Tasks {
        match self.publish_to_threads(position) {
            Some(mut tasks) => self.take_due(&mut tasks),
            None => Tasks::new(),
        }
    }

    /// As [`publish`](Self::publish), but leaves the tasks to a later `publish`. Returns whether
    /// there are any to wake.
    pub(super) fn publish_under_lock(&self, position: Position) -> bool {
        self.publish_to_threads(position)
            .is_some_and(|tasks| tasks.first().is_some_and(|due| self.is_complete(due)))
    }

    /// Returns the locked tasks if any thread or task may wait.
    fn publish_to_threads(&self, position: Position) -> Option<BackendGuard<'_, WaitingTasks>> {
        self.completed.store(position.0, Ordering::SeqCst);
        if self.waiter_count.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let tasks = self.lock();
        self.advanced.notify_all();
        Some(tasks)
    }

    /// Blocks until all work up to `position` has completed. A thread of a rayon pool may run
    /// jobs meanwhile.
    pub(super) fn block_until(&self, position: Position) {
        if spin_until(|| self.is_complete(position)) {
            return;
        }
        self.waiter_count.fetch_add(1, Ordering::SeqCst);
        let is_pending = || self.completed.load(Ordering::SeqCst) < position.0;
        let mut pool_wait = PoolWait::begin();
        let mut tasks = self.lock();
        while is_pending() {
            let Some(pool_wait) = &mut pool_wait else {
                tasks = tasks.wait(&self.advanced);
                continue;
            };
            drop(tasks.wait_while_for(&self.advanced, PATIENCE, |_| is_pending()));
            pool_wait.run_jobs(|| !is_pending());
            tasks = self.lock();
        }
        drop(tasks);
        self.waiter_count.fetch_sub(1, Ordering::SeqCst);
    }

    /// Registers a task for the completion of `position`. Returns the tasks that are due already.
    #[must_use = "tasks must be woken"]
    pub(crate) fn register(&self, position: Position, task: &Arc<TaskWaker>) -> Tasks {
        let mut tasks = self.lock();
        let is_new = tasks.add(position, task);
        self.waiter_count.fetch_add(usize::from(is_new), Ordering::SeqCst);
        let abandoned = tasks.take_abandoned();
        self.waiter_count.fetch_sub(abandoned.len(), Ordering::SeqCst);
        let due = self.take_due(&mut tasks);
        drop(tasks);
        drop(abandoned);
        due
    }

    /// Returns the tasks that are due, after a `publish` that left them.
    #[must_use = "tasks must be woken"]
    pub(super) fn take_all_due(&self) -> Tasks {
        self.take_due(&mut self.lock())
    }

    fn take_due(&self, tasks: &mut WaitingTasks) -> Tasks {
        let completed = Position(self.completed.load(Ordering::SeqCst));
        let due = tasks.take_due(completed);
        self.waiter_count.fetch_sub(due.len(), Ordering::SeqCst);
        due
    }

    #[cfg(test)]
    pub(crate) fn waiter_count(&self) -> usize {
        self.waiter_count.load(Ordering::SeqCst)
    }

    fn lock(&self) -> BackendGuard<'_, WaitingTasks> {
        self.tasks.lock()
    }
}

/// Wakes all of them. The stream continues even if a waker panics.
pub(crate) fn wake_all(tasks: Tasks) {
    tasks.iter().for_each(|task| task.wake());
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
