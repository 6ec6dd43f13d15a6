//! Wakes tasks that wait for a stream. The driver tells one thread when the work of a task may be
//! complete (`wake_stream`). That thread asks the driver, completes the work, and wakes the task.
//! It also looks from time to time: the driver tells nothing of a context that died, and a task
//! beyond the streams that tell is found only in this way.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, Condvar};
use std::thread;
use std::time::Duration;

use super::gpu_stream::GpuStream;
use super::wake_stream::WakeStream;
use crate::capture_mode::relax_this_thread;
use resident_backend::sync::{self, BackendGuard, BackendLock};
use resident_backend::unwinding::contain_panic;
use resident_backend::{
    BackendError, BackendErrorKind, Position, StreamId, TaskWaker, Tasks, WaitingTasks,
};

/// The first pause between two looks. The pause doubles while nothing completes.
const PAUSE_MIN: Duration = Duration::from_micros(20);
/// The longest pause while the driver tells of each task's work.
const PAUSE_MAX: Duration = Duration::from_millis(8);
/// The longest pause while it does not.
const PAUSE_MAX_UNTOLD: Duration = Duration::from_millis(1);

static WAITERS: BackendLock<Waiters> =
    BackendLock::new(Waiters { streams: BTreeMap::new(), arrivals: 0, has_thread: false });
static ARRIVED: Condvar = Condvar::new();

/// No thread holds the lock during a driver call: the driver's own thread takes it.
#[derive(Debug)]
struct Waiters {
    streams: BTreeMap<StreamId, StreamWaiters>,
    /// How many tasks have come, and how often the driver has told of work.
    arrivals: u64,
    has_thread: bool,
}

/// The tasks that wait for positions of a stream.
#[derive(Debug)]
struct StreamWaiters {
    stream: Arc<GpuStream>,
    tasks: WaitingTasks,
    /// The position that the driver tells of, and the stream that does so.
    told: Option<(Position, WakeStream)>,
}

/// Wakes a task once all work up to `position` has completed.
pub(super) fn wake_when_complete(
    stream: &Arc<GpuStream>,
    position: Position,
    task: &Arc<TaskWaker>,
) -> Result<(), BackendError> {
    if stream.is_complete(position) {
        task.wake();
        return Ok(());
    }
    // Without an event, only the whole stream can be polled, with all that is queued behind.
    stream.ensure_event_covering(position)?;
    let mut waiters = waiters();
    if !waiters.has_thread {
        thread::Builder::new()
            .name("resident gpu".to_owned())
            .spawn(watch_forever)
            .map_err(|fault| no_thread(&fault))?;
        waiters.has_thread = true;
    }
    let abandoned = waiters.add(stream, position, task);
    drop(waiters);
    drop(abandoned);
    Ok(())
}

/// The thread's loop. The thread sleeps while no task waits.
fn watch_forever() {
    let mut pause = PAUSE_MIN;
    loop {
        let (mut streams, arrivals) = next_round();
        let due: Vec<_> = streams.values_mut().flat_map(StreamWaiters::take_due).collect();
        // Before the tasks are woken: a task may expect to hold the last handle of its stream.
        streams.retain(|_, stream| stream.tasks.first().is_some());
        due.iter().for_each(|task| task.wake());
        // What completed may have kept memory of an owner, whose drop is code of the program.
        contain_panic(sync::run_deferred_drops);
        streams.values_mut().for_each(StreamWaiters::have_told);
        let is_told = streams.values().all(|stream| stream.told.is_some());
        let pause_max = if is_told { PAUSE_MAX } else { PAUSE_MAX_UNTOLD };
        pause = if due.is_empty() { (pause * 2).min(pause_max) } else { PAUSE_MIN };
        wait_for_arrival(streams, arrivals, pause);
    }
}

/// All tasks that wait, as soon as there is one, and the number of arrivals so far.
fn next_round() -> (BTreeMap<StreamId, StreamWaiters>, u64) {
    let mut waiters = waiters();
    while waiters.streams.is_empty() {
        waiters = waiters.wait(&ARRIVED);
    }
    (std::mem::take(&mut waiters.streams), waiters.arrivals)
}

/// Puts these streams back, and pauses until something arrives that this thread has not seen.
fn wait_for_arrival(mut pending: BTreeMap<StreamId, StreamWaiters>, seen: u64, pause: Duration) {
    let mut waiters = waiters();
    for (id, arrived) in std::mem::take(&mut waiters.streams) {
        pending.entry(id).and_modify(|known| known.tasks.merge(&arrived.tasks)).or_insert(arrived);
    }
    waiters.streams = pending;
    if !waiters.streams.is_empty() {
        drop(waiters.wait_while_for(&ARRIVED, pause, |waiters| waiters.arrivals == seen));
    }
}

/// Runs on a thread of the driver, which may not be kept waiting.
unsafe extern "C" fn tell(_: *mut c_void) {
    waiters().arrive();
}

impl Waiters {
    /// Adds a task, and returns tasks for the caller to drop.
    fn add(&mut self, stream: &Arc<GpuStream>, position: Position, task: &Arc<TaskWaker>) -> Tasks {
        let new = || StreamWaiters {
            stream: Arc::clone(stream),
            tasks: WaitingTasks::default(),
            told: None,
        };
        let stream = self.streams.entry(stream.id).or_insert_with(new);
        let is_new = stream.tasks.add(position, task);
        let abandoned = stream.tasks.take_abandoned();
        if is_new {
            self.arrive();
        }
        abandoned
    }

    fn arrive(&mut self) {
        self.arrivals = self.arrivals.wrapping_add(1);
        ARRIVED.notify_one();
    }
}

impl StreamWaiters {
    /// Removes and returns the tasks whose work is complete.
    fn take_due(&mut self) -> Tasks {
        relax_this_thread(self.stream.driver());
        let mut due = Tasks::new();
        while let Some(first) = self.tasks.first().filter(|first| self.stream.is_complete(*first)) {
            drop(self.told.take_if(|(told, _)| *told <= first));
            due.extend(self.tasks.take_due(first));
        }
        due
    }

    /// Has the driver tell of the first position. If it refuses, the position is polled.
    fn have_told(&mut self) {
        let Some(first) = self.tasks.first() else { return };
        if self.told.as_ref().is_none_or(|(told, _)| *told > first) {
            let told_by = self.stream.call_at(first, tell).unwrap_or_default();
            self.told = told_by.map(|stream| (first, stream));
        }
    }
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
