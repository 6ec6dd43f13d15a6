//! A stream without its handle: its pending operations and its progress, which outlive the handle.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Weak};
use std::thread;
use std::time::Instant;

use super::clock::{self, Timestamp};
use super::description::Description;
use super::device_core::DeviceCore;
use super::execute;
use super::operation::{ControlOperation, Operation, OperationQueue, QueuedOperation};
use super::progress::{StreamProgress, wake_all};
use super::worker::{self, WorkerState};
use crate::errors::{CODE_STUCK, driver_error, inside_kernel};
use crate::race_check::VectorClock;
use crate::simulation::{CallDraft, CallKind, Simulation};
use resident_backend::scope::{self, BodyScope};
use resident_backend::sync::{BackendGuard, BackendLock};
use resident_backend::timeline;
use resident_backend::{
    BackendError, FailureRecord, LaunchCall, Position, StreamId, Tasks, failure,
};

/// One in-order stream.
#[derive(Debug)]
pub(crate) struct EmbeddedStream {
    /// The stream's number on its device, from 0.
    pub number: u32,
    pub device: Arc<DeviceCore>,
    pub progress: Arc<StreamProgress>,
    scheduler: Scheduler,
    /// The last submitted position, readable without the lock.
    submitted: AtomicU64,
    /// The position of the last submitted free or decommit.
    last_free: AtomicU64,
    /// The modelled clock of a seeded stream, in nanoseconds.
    modelled_ns: AtomicU64,
    state: BackendLock<StreamState>,
    arrived: Condvar,
}

/// The scheduler that picks the next operation.
#[derive(Debug)]
pub(super) enum Scheduler {
    /// The stream's own thread.
    Worker,
    /// The simulation, which a thread runs while it waits or polls. The simulation owns its
    /// streams, so they refer to it weakly.
    Seeded(Weak<Simulation>),
}

/// The part of a stream's state that its lock protects.
#[derive(Debug, Default)]
pub(crate) struct StreamState {
    pub queued: OperationQueue,
    pub(super) worker: WorkerState,
    /// Whether the handle has dropped, so that no more operations will be queued.
    pub is_closed: bool,
    /// The operations of emulated devices that happen before all later operations of this stream.
    clock: VectorClock,
    tail: u64,
}

/// A position of a stream for which other work waits.
#[derive(Clone, Debug)]
pub(crate) struct StreamPoint {
    pub stream: Arc<EmbeddedStream>,
    pub position: Position,
    /// The time at which the stream reached the position: modelled time if the stream is seeded.
    pub timestamp: Option<Timestamp>,
}

impl StreamPoint {
    /// Whether the stream has reached the position.
    pub(crate) fn is_complete(&self) -> bool {
        self.stream.progress.is_complete(self.position)
    }

    /// Waits until the stream has reached the position.
    pub(crate) fn wait(&self) -> Result<(), BackendError> {
        self.stream.wait_for(self.position)
    }
}

impl EmbeddedStream {
    /// An empty stream with this number on its device.
    pub(super) fn new(number: u32, device: Arc<DeviceCore>, scheduler: Scheduler) -> Self {
        Self {
            number,
            device,
            progress: Arc::new(StreamProgress::new(StreamId::next())),
            scheduler,
            submitted: AtomicU64::new(0),
            last_free: AtomicU64::new(0),
            modelled_ns: AtomicU64::new(0),
            state: BackendLock::default(),
            arrived: Condvar::new(),
        }
    }

    /// Whether a simulation runs this stream's operations.
    pub(crate) fn is_seeded(&self) -> bool {
        matches!(self.scheduler, Scheduler::Seeded(_))
    }

    /// The last submitted position.
    #[inline]
    pub(crate) fn tail(&self) -> Position {
        Position(self.submitted.load(Ordering::Acquire))
    }

    /// The position of the last submitted free or decommit.
    pub(super) fn last_free(&self) -> Position {
        Position(self.last_free.load(Ordering::Acquire))
    }

    /// Assigns the next position to an operation and queues it. Calls `observe` with the position,
    /// and with what happens before, when the operation cannot run yet. The worker is woken only if
    /// it sleeps.
    #[inline]
    pub(crate) fn enqueue(
        self: &Arc<Self>,
        operation: Operation,
        fault: Option<u64>,
        observe: impl FnOnce(Position, &Operation, &VectorClock),
    ) -> Result<Position, BackendError> {
        let (mut state, mut position) = self.begin_enqueue()?;
        if let Operation::Chain(chain) = &operation {
            position = self.advance(&mut state, chain.len() - 1);
        }
        observe(position, &operation, &state.clock);
        state.queued.push(position, fault, operation);
        self.end_enqueue(state);
        Ok(position)
    }

    /// As [`enqueue`](Self::enqueue), for a launch, which is made in its place in the queue: to
    /// move it there would cost as much as the lock.
    #[inline]
    pub(crate) fn enqueue_launch(
        self: &Arc<Self>,
        launch: &LaunchCall<'_>,
    ) -> Result<Position, BackendError> {
        let (mut state, position) = self.begin_enqueue()?;
        state.queued.push_launch(position, || launch.to_work());
        self.end_enqueue(state);
        Ok(position)
    }

    /// Assigns the next position. The caller queues the operation under the returned lock.
    #[inline]
    fn begin_enqueue(
        self: &Arc<Self>,
    ) -> Result<(BackendGuard<'_, StreamState>, Position), BackendError> {
        let mut state = self.lock();
        if matches!(self.scheduler, Scheduler::Worker) {
            worker::ensure_started(self, &mut state)?;
        }
        let position = self.next_position(&mut state);
        Ok((state, position))
    }

    #[inline]
    fn end_enqueue(&self, mut state: BackendGuard<'_, StreamState>) {
        let must_wake = state.worker.mark_awake();
        drop(state);
        if must_wake {
            self.arrived.notify_one();
        }
    }

    /// As [`enqueue`](Self::enqueue), for a control operation. If the operation is cheap and the
    /// stream is idle, the submitting thread runs it, which costs less than waking the worker.
    /// Seeded streams always queue the operation. `observe` may add to what happens before later
    /// operations.
    pub(crate) fn submit_control(
        self: &Arc<Self>,
        control: ControlOperation,
        observe: impl FnOnce(Position, &mut VectorClock),
    ) -> Result<Position, BackendError> {
        if !self.is_seeded()
            && self.is_cheap(&control)
            && let Some(idle) = self.lock_idle()
        {
            return Ok(self.run_control_now(idle, &control, observe));
        }
        self.enqueue_control(control, observe)
    }

    fn enqueue_control(
        self: &Arc<Self>,
        control: ControlOperation,
        observe: impl FnOnce(Position, &mut VectorClock),
    ) -> Result<Position, BackendError> {
        let (mut state, position) = self.begin_enqueue()?;
        self.note_free(&control, position);
        observe(position, &mut state.clock);
        state.queued.push_control(position, control);
        self.end_enqueue(state);
        Ok(position)
    }

    /// Whether a control operation takes so little time that the submitting thread may run it, with
    /// locks held.
    fn is_cheap(&self, control: &ControlOperation) -> bool {
        match control {
            ControlOperation::Free(address) => self.device.memory.is_cheap_to_free(*address),
            // The system takes its time for each page.
            ControlOperation::Decommit(_) => false,
            ControlOperation::Record(_) => true,
            ControlOperation::Wait(point) => point.is_complete(),
        }
    }

    /// Remembers the position of a free or a decommit, for threads that wait for memory.
    fn note_free(&self, control: &ControlOperation, position: Position) {
        if matches!(control, ControlOperation::Free(_) | ControlOperation::Decommit(_)) {
            self.last_free.store(position.0, Ordering::Release);
        }
    }

    /// The caller may hold locks of arrays, so this wakes no task: it leaves them to the worker.
    fn run_control_now(
        self: &Arc<Self>,
        mut state: BackendGuard<'_, StreamState>,
        control: &ControlOperation,
        observe: impl FnOnce(Position, &mut VectorClock),
    ) -> Position {
        let position = self.next_position(&mut state);
        self.note_free(control, position);
        observe(position, &mut state.clock);
        // A control operation runs no user code, so it may run under the lock.
        self.run_control(control);
        let has_due_tasks = self.progress.publish_under_lock(position);
        drop(state);
        if has_due_tasks {
            self.let_worker_wake();
        }
        position
    }

    /// Queues an operation that does nothing: the worker wakes due tasks after each operation. A
    /// worker that has ended has woken all of them.
    #[cold]
    fn let_worker_wake(self: &Arc<Self>) {
        if self.lock().worker == WorkerState::Ended {
            return;
        }
        let nothing = ControlOperation::Record(None);
        // Refused only if the worker cannot be started. Then no operation was ever queued that a
        // task could wait for.
        let _never_refused = self.enqueue_control(nothing, |_, _| ());
    }

    /// Whether submitting threads may run copies themselves: threads run the stream, and copies
    /// need no modelled time.
    pub(crate) fn lets_callers_copy(&self) -> bool {
        !self.is_seeded() && self.device.link.is_none()
    }

    /// The locked state, if no operation is pending. Then no thread runs an operation of this
    /// stream, or can start one before the lock is released.
    pub(crate) fn lock_idle(&self) -> Option<BackendGuard<'_, StreamState>> {
        let state = self.lock();
        (self.progress.completed().0 == state.tail).then_some(state)
    }

    /// Assigns the next position to an operation that the caller passes to
    /// [`run_own`](Self::run_own). Operations that are queued meanwhile wait for it.
    pub(crate) fn begin_own(
        &self,
        mut idle: BackendGuard<'_, StreamState>,
        operation: Operation,
        fault: Option<u64>,
        observe: impl FnOnce(Position, &Operation, &VectorClock),
    ) -> QueuedOperation {
        let position = self.next_position(&mut idle);
        observe(position, &operation, &idle.clock);
        QueuedOperation { position, fault, operation }
    }

    /// Runs an operation on a thread that submits or waits. The thread may be about to use what a
    /// task uses, so this wakes no task: it leaves them to the worker.
    pub(crate) fn run_own(self: &Arc<Self>, mut queued: QueuedOperation) {
        let position = queued.position;
        self.run_unpublished(&mut queued);
        if self.progress.publish_under_lock(position) {
            self.let_worker_wake();
        }
    }

    /// Assigns the next position to a launch that the caller passes to
    /// [`run_launch`](Self::run_launch), if it can run at once: to wake the worker would take
    /// longer than a brief launch.
    pub(crate) fn begin_launch(&self) -> Option<Position> {
        if self.is_seeded() || scope::is_in_body() || !resident_host_code::can_run_blocks() {
            return None;
        }
        let mut idle = self.lock_idle()?;
        Some(self.next_position(&mut idle))
    }

    /// Runs a launch on the thread that submits it, as [`run_own`](Self::run_own) does. The
    /// arguments stay the caller's.
    pub(crate) fn run_launch(self: &Arc<Self>, launch: &LaunchCall<'_>, position: Position) {
        let running = BodyScope::enter();
        let outcome = timeline::timed(self.progress.id().0, position.0, || {
            let description = Description::of_launch(launch.code, launch.site, launch.depends);
            description.check_runnable(None)?;
            let LaunchCall { code, grid, words, arrays, .. } = launch;
            execute::launch(&self.device, code, **grid, words, arrays)
                .map_err(|fault| description.failure(fault))
        });
        self.progress.mark_ran(position);
        drop(running);
        if let Err(record) = outcome {
            failure::record(self.progress.id(), position, Arc::new(record));
        }
        if self.progress.publish_under_lock(position) {
            self.let_worker_wake();
        }
    }

    fn next_position(&self, state: &mut StreamState) -> Position {
        self.advance(state, 1)
    }

    /// Takes so many positions, and returns the last.
    fn advance(&self, state: &mut StreamState, count: u64) -> Position {
        state.tail += count;
        self.submitted.store(state.tail, Ordering::Release);
        Position(state.tail)
    }

    /// Runs one operation, drops it, and then publishes its position. The caller wakes the returned
    /// tasks with no lock held.
    #[must_use = "tasks must be woken"]
    pub(crate) fn run(&self, queued: &mut QueuedOperation) -> Tasks {
        let position = queued.position;
        self.run_unpublished(queued);
        self.progress.publish(position)
    }

    fn run_unpublished(&self, queued: &mut QueuedOperation) {
        let _running = BodyScope::enter();
        let position = queued.position;
        let outcome = match &queued.operation {
            Operation::Control(_) => self.run_timed(queued),
            _ => timeline::timed(self.progress.id().0, position.0, || self.run_timed(queued)),
        };
        self.progress.mark_ran(position);
        let dropped = queued.drop_caught();
        if let Err(record) = outcome.and(dropped) {
            failure::record(self.progress.id(), position, Arc::new(record));
            if let Some(instruments) = &self.device.instruments {
                instruments.log.record_failure(self.number, position);
            }
        }
    }

    /// Runs an operation. On a stream whose order a seed determines, modelled time then advances.
    /// On others, a transfer takes at least the time that the emulated link needs: the thread
    /// sleeps for the rest.
    fn run_timed(&self, queued: &QueuedOperation) -> Result<(), FailureRecord> {
        if self.is_seeded() {
            let outcome = self.run_operation(queued);
            self.advance_clock(&queued.operation);
            return outcome;
        }
        let link_time = queued.operation.link_time(self.device.link);
        let timed = link_time.map(|link_time| (Instant::now(), link_time));
        let outcome = self.run_operation(queued);
        if let Some((start, link_time)) = timed {
            thread::sleep(link_time.saturating_sub(start.elapsed()));
        }
        outcome
    }

    fn run_operation(&self, queued: &QueuedOperation) -> Result<(), FailureRecord> {
        if let Operation::Control(control) = &queued.operation {
            self.run_control(control);
            return Ok(());
        }
        queued.run_work(&self.device, self.progress.id())
    }

    fn run_control(&self, control: &ControlOperation) {
        match control {
            ControlOperation::Free(address) => self.device.memory.release(*address),
            ControlOperation::Decommit(pages) => self.device.memory.decommit(pages),
            ControlOperation::Record(None) => {}
            ControlOperation::Record(Some(timestamp)) => timestamp.set(self.time_ns()),
            ControlOperation::Wait(point) => {
                // A wait fails only if the other stream's work was dropped, and then nothing
                // remains for which this stream must wait.
                let _dropped = point.wait();
            }
        }
    }

    /// The time of an event recorded now: modelled time on a seeded stream, else the process's.
    fn time_ns(&self) -> u64 {
        if self.is_seeded() { self.modelled_ns.load(Ordering::Relaxed) } else { timeline::now_ns() }
    }

    /// Advances modelled time. Only the thread that has locked the simulation's turn (which it does
    /// to run an operation) calls this, so the load and the store need not be a single atomic
    /// operation.
    fn advance_clock(&self, operation: &Operation) {
        let now_ns = self.modelled_ns.load(Ordering::Relaxed);
        let next_ns = match operation {
            Operation::Control(ControlOperation::Wait(point)) if point.stream.is_seeded() => {
                now_ns.max(point.timestamp.as_ref().map_or(0, Timestamp::get))
            }
            other => now_ns.saturating_add(clock::whole_ns(other.modelled_time(self.device.link))),
        };
        self.modelled_ns.store(next_ns, Ordering::Relaxed);
    }

    /// Waits until `position` has completed, on behalf of a caller. A wait that would block is
    /// counted as a call, and refused on a thread that runs queued work. The caller holds no lock:
    /// this thread runs ready work, which may be user code.
    pub(crate) fn synchronize(self: &Arc<Self>, position: Position) -> Result<(), BackendError> {
        if self.progress.is_complete(position) {
            return Ok(());
        }
        if scope::is_in_body() {
            return Err(inside_kernel("synchronize"));
        }
        let wait = || {
            self.run_ready_until(position);
            self.wait_for(position)
        };
        match &self.device.instruments {
            None => wait(),
            Some(instruments) => {
                let draft = CallDraft::unlabelled(CallKind::Synchronize, Some(self.number));
                instruments.counted(draft, |_| wait().map(|()| ((), Position::START)))
            }
        }
    }

    /// Whether `position` has completed. On a seeded stream, this first runs one ready operation of
    /// the simulation, or of one that it waits for, unless the thread already runs one.
    pub(crate) fn poll(&self, position: Position) -> bool {
        if let Scheduler::Seeded(simulation) = &self.scheduler
            && !self.progress.is_complete(position)
            && !scope::is_in_body()
            && let Some(simulation) = simulation.upgrade()
        {
            simulation.poll(self, position);
        }
        self.progress.is_complete(position)
    }

    /// Waits until `position` has completed: blocks, or runs ready operations of the simulation.
    pub(super) fn wait_for(self: &Arc<Self>, position: Position) -> Result<(), BackendError> {
        let Scheduler::Seeded(simulation) = &self.scheduler else {
            self.progress.block_until(position);
            return Ok(());
        };
        let is_complete = match simulation.upgrade() {
            Some(simulation) => simulation.run_until(self, position),
            None => self.progress.is_complete(position),
        };
        if is_complete { Ok(()) } else { Err(stuck(position)) }
    }

    /// Records that the last handle has dropped, so that no more operations will be queued.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.arrived.notify_one();
    }

    /// Drops the queued operations and marks them as completed. Called when the simulation ends.
    pub(crate) fn drop_queued(&self) {
        let mut queue = std::mem::take(&mut self.lock().queued);
        while let Some(mut queued) = queue.pop() {
            // If a drop panics, the panic hook has already reported the panic. It cannot be passed
            // on, because there is no caller.
            let _reported_by_the_hook = queued.drop_caught();
        }
        wake_all(self.progress.publish(self.tail()));
    }

    pub(crate) fn lock(&self) -> BackendGuard<'_, StreamState> {
        self.state.lock()
    }

    /// Sleeps until an operation arrives or the stream is closed.
    pub(super) fn sleep<'a>(
        &self,
        state: BackendGuard<'a, StreamState>,
    ) -> BackendGuard<'a, StreamState> {
        state.wait(&self.arrived)
    }
}

fn stuck(position: Position) -> BackendError {
    let detail =
        format!("position {} cannot complete: the devices that it waits for are gone", position.0);
    driver_error(CODE_STUCK, "synchronize", detail)
}
