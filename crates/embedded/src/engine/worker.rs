//! The worker thread of a stream. The first operation starts it. It ends when the stream's handle
//! has dropped and no operation is queued.

use std::sync::Arc;
use std::thread;

use super::operation::OperationQueue;
use super::progress::{spin_until, wake_all};
use super::stream::{EmbeddedStream, StreamState};
use crate::errors::{CODE_NO_THREAD, driver_error};
use resident_backend::scope::BodyScope;
use resident_backend::{BackendError, Position};

/// The state of a stream's worker thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum WorkerState {
    /// The thread has not been started.
    #[default]
    NotStarted,
    /// The thread runs, and will check for operations again before it sleeps.
    Awake,
    /// The thread sleeps, or holds the lock and is about to sleep.
    Asleep,
    /// The thread runs no more operations. It wakes the last tasks.
    Ended,
}

impl WorkerState {
    /// Marks a sleeping worker as awake. Returns whether the caller must wake the thread.
    pub(super) fn mark_awake(&mut self) -> bool {
        let was_asleep = *self == Self::Asleep;
        if was_asleep {
            *self = Self::Awake;
        }
        was_asleep
    }
}

/// Starts the worker if it does not run yet. Called before an operation is queued.
pub(super) fn ensure_started(
    stream: &Arc<EmbeddedStream>,
    state: &mut StreamState,
) -> Result<(), BackendError> {
    if state.worker == WorkerState::NotStarted {
        start(stream)?;
        state.worker = WorkerState::Awake;
    }
    Ok(())
}

#[cold]
fn start(stream: &Arc<EmbeddedStream>) -> Result<(), BackendError> {
    let name = format!("resident cpu:{}.{}", stream.device.ordinal, stream.number);
    let stream = Arc::clone(stream);
    let spawned = thread::Builder::new().name(name).spawn(move || run_until_closed(&stream));
    spawned.map(drop).map_err(|error| {
        let code = error.raw_os_error().map_or(CODE_NO_THREAD, i64::from);
        driver_error(code, "submit", format!("the stream's thread could not be started: {error}"))
    })
}

/// The thread's loop: takes all queued operations at once, runs them, and repeats.
fn run_until_closed(stream: &EmbeddedStream) {
    // Wakers run on this thread too. Marked as running queued work, it cannot be made to wait by
    // them.
    let _running = BodyScope::enter();
    let mut batch = OperationQueue::default();
    while take_batch(stream, &mut batch) {
        while let Some(mut queued) = batch.pop() {
            wake_all(stream.run(&mut queued));
        }
    }
}

/// Swaps the list of queued operations with the empty list `batch`, so that both lists keep their
/// capacity. Sleeps until an operation arrives. Returns `false` if none will arrive.
fn take_batch(stream: &EmbeddedStream, batch: &mut OperationQueue) -> bool {
    let completed = stream.progress.completed();
    spin_until(|| stream.tail() != completed);
    let mut state = stream.lock();
    loop {
        if let Some((next, _)) = state.queued.front() {
            let before = Position(next.0 - 1);
            if stream.progress.is_complete(before) {
                std::mem::swap(&mut state.queued, batch);
                return true;
            }
            // Another thread runs the operation before, and then perhaps this one too.
            drop(state);
            stream.progress.block_until(before);
            state = stream.lock();
            continue;
        }
        if state.is_closed {
            let tail = stream.tail();
            if stream.progress.is_complete(tail) {
                state.worker = WorkerState::Ended;
                drop(state);
                wake_all(stream.progress.take_all_due());
                return false;
            }
            // A thread that waits runs the last operation, and leaves it to this one to wake tasks.
            drop(state);
            stream.progress.block_until(tail);
            state = stream.lock();
            continue;
        }
        state.worker = WorkerState::Asleep;
        state = stream.sleep(state);
        state.worker = WorkerState::Awake;
    }
}
