//! Wakes tasks that wait for a stream. The driver tells one thread when the work of a task may be
//! complete (`wake_stream`). That thread asks the driver, completes the work, and wakes the task.
//! It also looks from time to time: the driver tells nothing of a context that died, and a task
//! beyond the streams that tell is found only in this way.

use std::ffi::c_void;
use std::sync::{Arc, Condvar};
use std::thread;
use std::time::Duration;

use super::core::StreamCore;
use super::wake_stream::WakeStream;
use crate::backend::gpu::capture_mode::relax_this_thread;
use crate::backend::{BackendError, BackendErrorKind, Position, TaskWaker};
use crate::sync::{BackendGuard, BackendLock};

/// The first pause between two looks. The pause doubles while nothing completes.
const PAUSE_MIN: Duration = Duration::from_micros(20);
/// The longest pause while the driver tells of each task's work.
const PAUSE_MAX: Duration = Duration::from_millis(8);
/// The longest pause while it does not.
const PAUSE_MAX_UNTOLD: Duration = Duration::from_millis(1);

static WAITERS: BackendLock<Waiters> =
    BackendLock::new(Waiters { list: Vec::new(), arrivals: 0, has_thread: false });
static ARRIVED: Condvar = Condvar::new();

/// No thread holds the lock during a driver call: the driver's own thread takes it.
#[derive(Debug)]
struct Waiters {
    list: Vec<Waiter>,
    /// How many tasks have come, and how often the driver has told of work.
    arrivals: u64,
    has_thread: bool,
}

/// A task that waits for a position of a stream.
#[derive(Debug)]
struct Waiter {
    core: Arc<StreamCore>,
    position: Position,
    task: Arc<TaskWaker>,
    /// The stream that tells of the position.
    told_by: Option<WakeStream>,
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
            .name("resident gpu".to_owned())
            .spawn(watch_forever)
            .map_err(|fault| no_thread(&fault))?;
        waiters.has_thread = true;
    }
    let is_known = |known: &Waiter| known.position == position && Arc::ptr_eq(&known.task, task);
    if !waiters.list.iter().any(is_known) {
        let (core, task) = (Arc::clone(core), Arc::clone(task));
        waiters.list.push(Waiter { core, position, task, told_by: None });
        waiters.arrive();
    }
    Ok(())
}

/// The thread's loop. The thread sleeps while no task waits.
fn watch_forever() {
    let mut pause = PAUSE_MIN;
    loop {
        let (list, arrivals) = next_round();
        let (complete, mut pending): (Vec<Waiter>, Vec<Waiter>) =
            list.into_iter().partition(Waiter::is_complete);
        let has_progress = !complete.is_empty();
        complete.into_iter().for_each(wake);
        pending.iter_mut().for_each(Waiter::have_told);
        let is_told = pending.iter().all(|waiter| waiter.told_by.is_some());
        let pause_max = if is_told { PAUSE_MAX } else { PAUSE_MAX_UNTOLD };
        pause = if has_progress { PAUSE_MIN } else { (pause * 2).min(pause_max) };
        wait_for_arrival(pending, arrivals, pause);
    }
}

/// All tasks that wait, as soon as there is one, and the number of arrivals so far.
fn next_round() -> (Vec<Waiter>, u64) {
    let mut waiters = waiters();
    while waiters.list.is_empty() {
        waiters = waiters.wait(&ARRIVED);
    }
    (std::mem::take(&mut waiters.list), waiters.arrivals)
}

/// Puts these tasks back, and pauses until something arrives that this thread has not seen.
fn wait_for_arrival(pending: Vec<Waiter>, seen: u64, pause: Duration) {
    let mut waiters = waiters();
    waiters.list.extend(pending);
    if !waiters.list.is_empty() {
        drop(waiters.wait_while_for(&ARRIVED, pause, |waiters| waiters.arrivals == seen));
    }
}

/// Runs on a thread of the driver, which may not be kept waiting.
unsafe extern "C" fn tell(_: *mut c_void) {
    waiters().arrive();
}

impl Waiters {
    fn arrive(&mut self) {
        self.arrivals = self.arrivals.wrapping_add(1);
        ARRIVED.notify_one();
    }
}

impl Waiter {
    fn is_complete(&self) -> bool {
        relax_this_thread(self.core.driver());
        self.core.is_complete(self.position)
    }

    /// Has the driver tell of the position. If it refuses, the position is polled.
    fn have_told(&mut self) {
        if self.told_by.is_none() {
            self.told_by = self.core.call_at(self.position, tell).unwrap_or_default();
        }
    }
}

/// The stream's handle drops first: the woken task may expect to hold the last handle.
fn wake(Waiter { core, task, told_by, .. }: Waiter) {
    drop(told_by);
    drop(core);
    task.wake();
}

fn waiters() -> BackendGuard<'static, Waiters> {
    WAITERS.lock()
}

fn no_thread(fault: &std::io::Error) -> BackendError {
    let kind = BackendErrorKind::Driver { code: fault.raw_os_error().map_or(-1, i64::from) };
    BackendError {
        kind,
        call: "register_waker",
        detail: format!("the thread that wakes tasks could not be started: {fault}"),
    }
}
