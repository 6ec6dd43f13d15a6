//! Wakes tasks that wait for a stream. One thread polls all these streams, because a host callback
//! of the driver may not call the driver.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::core::StreamCore;
use crate::backend::{BackendError, BackendErrorKind, Position, TaskWaker};

/// The first pause between two polls. The pause doubles while nothing completes.
const PAUSE_MIN: Duration = Duration::from_micros(20);
const PAUSE_MAX: Duration = Duration::from_millis(1);

static WAITERS: Mutex<Waiters> = Mutex::new(Waiters { list: Vec::new(), has_thread: false });
static ARRIVED: Condvar = Condvar::new();

#[derive(Debug)]
struct Waiters {
    list: Vec<Waiter>,
    has_thread: bool,
}

/// A task that waits for a position of a stream.
#[derive(Debug)]
struct Waiter {
    core: Arc<StreamCore>,
    position: Position,
    task: Arc<TaskWaker>,
}

/// Wakes a task once all work up to `position` has completed.
pub(super) fn wake_when_complete(
    core: &Arc<StreamCore>,
    position: Position,
    task: &Arc<TaskWaker>,
) -> Result<(), BackendError> {
    if core.is_complete(position) {
        task.wake();
        return Ok(());
    }
    // Without an event, only the whole stream can be polled, with all that is queued behind.
    core.ensure_event_covering(position)?;
    let mut waiters = waiters();
    if !waiters.has_thread {
        thread::Builder::new()
            .name("resident cuda".to_owned())
            .spawn(poll_forever)
            .map_err(|fault| no_thread(&fault))?;
        waiters.has_thread = true;
    }
    let is_known = |known: &Waiter| known.position == position && Arc::ptr_eq(&known.task, task);
    if !waiters.list.iter().any(is_known) {
        waiters.list.push(Waiter { core: Arc::clone(core), position, task: Arc::clone(task) });
        ARRIVED.notify_one();
    }
    Ok(())
}

/// The thread's loop. The thread sleeps while no task waits.
fn poll_forever() {
    let mut pause = PAUSE_MIN;
    loop {
        let mut waiters_guard = waiters();
        if waiters_guard.list.is_empty() {
            pause = PAUSE_MIN;
            waiters_guard = ARRIVED.wait(waiters_guard).unwrap_or_else(PoisonError::into_inner);
        }
        let list = std::mem::take(&mut waiters_guard.list);
        drop(waiters_guard);
        let (complete, pending): (Vec<Waiter>, Vec<Waiter>) =
            list.into_iter().partition(|waiter| waiter.core.is_complete(waiter.position));
        pause = if complete.is_empty() { (pause * 2).min(PAUSE_MAX) } else { PAUSE_MIN };
        complete.into_iter().for_each(wake);
        let is_any_pending = !pending.is_empty();
        waiters().list.extend(pending);
        if is_any_pending {
            thread::sleep(pause);
        }
    }
}

/// The stream's handle drops first: the woken task may expect to hold the last handle.
fn wake(Waiter { core, task, .. }: Waiter) {
    drop(core);
    task.wake();
}

fn waiters() -> MutexGuard<'static, Waiters> {
    WAITERS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn no_thread(fault: &std::io::Error) -> BackendError {
    let kind = BackendErrorKind::Driver { code: fault.raw_os_error().map_or(-1, i64::from) };
    BackendError {
        kind,
        call: "register_waker",
        detail: format!("the thread that wakes tasks could not be started: {fault}"),
    }
}
