//! The waker of a task that waits for queued work.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

use crate::sync::{self, Mutex};

/// The waker that a task passed when it polled last. The task keeps one `TaskWaker` for all polls,
/// so that each poll replaces the waker instead of adding one.
///
/// A waker is user code: it is cloned, dropped and woken with no lock held.
#[derive(Debug, Default)]
pub struct TaskWaker(Mutex<Option<Waker>>);

impl TaskWaker {
    /// Replaces the waker.
    pub fn set(&self, waker: &Waker) {
        sync::assert_none_held();
        let new = waker.clone();
        let old = self.0.lock().replace(new);
        drop(old);
    }

    /// Drops the waker: no task waits any more.
    pub fn clear(&self) {
        sync::assert_none_held();
        let old = self.0.lock().take();
        drop(old);
    }

    /// Wakes the task, once for each `set`. If the waker panics, the panic hook has reported that.
    pub fn wake(&self) {
        sync::assert_none_held();
        let Some(waker) = self.0.lock().take() else { return };
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
            // Dropping the payload may panic again.
            std::mem::forget(payload);
        }
    }
}
