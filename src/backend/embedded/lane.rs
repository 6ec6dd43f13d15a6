//! A lane: what of a queue lives on when its handle is gone. The line of operations, and how far it
//! got.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use super::device::DeviceCore;
use super::execute;
use super::operation::{Operation, Queued, Upkeep};
use super::progress::{Progress, Wakers};
use super::seeded::World;
use super::{time, workers};
use crate::backend::scope::BodyScope;
use crate::backend::{BackendError, BackendErrorKind, FailureRecord, Position, QueueId, failure};

/// The driver code of a wait for work that nobody can run any more.
const CODE_STUCK: i64 = 2;

/// One in-order line of operations.
#[derive(Debug)]
pub(super) struct Lane {
    number: u32,
    device: Arc<DeviceCore>,
    progress: Arc<Progress>,
    engine: Engine,
    /// The position drawn last, for reading without the lock.
    submitted: AtomicU64,
    /// Position of the free queued last.
    last_free: AtomicU64,
    /// Modelled time in nanoseconds, of seeded lanes.
    modelled_ns: AtomicU64,
    line: Mutex<Line>,
    arrived: Condvar,
}

/// Who picks the next operation.
#[derive(Debug)]
pub(super) enum Engine {
    /// The lane's own thread.
    Worker,
    /// Whoever waits. The world holds its lanes, not the other way round.
    Seeded(Weak<World>),
}

/// The part of a lane under its lock.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) queued: VecDeque<Queued>,
    pub(super) worker: workers::State,
    /// The handle is gone: nothing is queued any more.
    pub(super) closed: bool,
    tail: u64,
}

impl Lane {
    /// An empty lane, the `number`-th of its device.
    pub(super) fn new(number: u32, device: Arc<DeviceCore>, engine: Engine) -> Self {
        Self {
            number,
            device,
            progress: Arc::new(Progress::new(QueueId::next())),
            engine,
            submitted: AtomicU64::new(0),
            last_free: AtomicU64::new(0),
            modelled_ns: AtomicU64::new(0),
            line: Mutex::new(Line::default()),
            arrived: Condvar::new(),
        }
    }

    /// Its number within its device, from 0.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Its device's memory and settings.
    pub(super) fn device(&self) -> &DeviceCore {
        &self.device
    }

    /// How far it got.
    pub(super) fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// Whether nothing runs here by itself.
    pub(super) fn is_seeded(&self) -> bool {
        matches!(self.engine, Engine::Seeded(_))
    }

    /// The position drawn last.
    #[inline]
    pub(super) fn tail(&self) -> Position {
        Position(self.submitted.load(Ordering::Acquire))
    }

    /// The position of the free queued last.
    pub(super) fn last_free(&self) -> Position {
        Position(self.last_free.load(Ordering::Acquire))
    }

    /// What an event recorded now reads: modelled time where there is one, else the process's.
    pub(super) fn time_ns(&self) -> u64 {
        if self.is_seeded() { self.modelled_ns.load(Ordering::Relaxed) } else { time::now_ns() }
    }

    /// Draws a position and queues an operation there; `observe` sees the position before the
    /// operation can run. The worker is woken only if it sleeps.
    #[inline]
    pub(super) fn enqueue(
        self: &Arc<Self>,
        operation: Operation,
        fault: Option<u64>,
        observe: impl FnOnce(Position, &Operation),
    ) -> Result<Position, BackendError> {
        let mut line = self.lock();
        if matches!(self.engine, Engine::Worker) {
            workers::ensure(self, &mut line)?;
        }
        let position =
            self.draw(&mut line, matches!(operation, Operation::Upkeep(Upkeep::Free(_))));
        observe(position, &operation);
        line.queued.push_back(Queued { position, fault, operation });
        let asleep = line.worker.rouse();
        drop(line);
        if asleep {
            self.arrived.notify_one();
        }
        Ok(position)
    }

    /// As `enqueue`, for upkeep so light (a free, a record, a wait for what is complete) that the
    /// submitting thread does it itself if the lane is idle: that is cheaper than waking its
    /// worker. Seeded lanes always queue it.
    pub(super) fn enqueue_light(
        self: &Arc<Self>,
        upkeep: Upkeep,
        observe: impl FnOnce(Position),
    ) -> Result<Position, BackendError> {
        let mut line = self.lock();
        // With nothing pending nobody else runs anything of this lane, nor can before the lock is
        // released.
        if self.is_seeded() || self.progress.completed().0 != line.tail {
            drop(line);
            return self.enqueue_upkeep(upkeep, observe);
        }
        let position = self.draw(&mut line, matches!(upkeep, Upkeep::Free(_)));
        observe(position);
        // It runs no user code, so that it may run under the lock.
        execute::keep_up(self, &upkeep);
        let due = self.progress.publish(position);
        drop(line);
        super::progress::wake(due);
        Ok(position)
    }

    /// As `enqueue`, for upkeep.
    pub(super) fn enqueue_upkeep(
        self: &Arc<Self>,
        upkeep: Upkeep,
        observe: impl FnOnce(Position),
    ) -> Result<Position, BackendError> {
        self.enqueue(Operation::Upkeep(upkeep), None, |position, _| observe(position))
    }

    /// Runs one operation, drops it, and only then says that it has completed. The wakers are to be
    /// woken without locks.
    #[must_use = "wakers must be woken"]
    pub(super) fn run(&self, queued: Queued) -> Wakers {
        let _running = BodyScope::enter();
        let position = queued.position;
        let outcome = self.run_timed(&queued);
        self.progress.set_ran(position);
        let dropped = execute::discard(queued);
        if let Err(record) = outcome.and(dropped) {
            failure::record(self.progress.id(), position, Arc::new(record));
            self.device
                .instruments
                .iter()
                .for_each(|instruments| instruments.failed(self, position));
        }
        self.progress.publish(position)
    }

    /// Sees to it that `position` completes: sleeps, or runs ready work of the world.
    pub(super) fn wait_until(self: &Arc<Self>, position: Position) -> Result<(), BackendError> {
        let Engine::Seeded(world) = &self.engine else {
            self.progress.block_until(position);
            return Ok(());
        };
        let finished = match world.upgrade() {
            Some(world) => world.run_until(self, position),
            None => self.progress.is_complete(position),
        };
        if finished { Ok(()) } else { Err(stuck(position)) }
    }

    /// Runs one ready operation of the world, if nothing else does so by itself.
    pub(super) fn nudge(&self) {
        if let Engine::Seeded(world) = &self.engine {
            world.upgrade().map(|world| world.step());
        }
    }

    /// No handle is left: what is queued is the last.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_one();
    }

    /// Drops what is queued, as if it had completed. For a world that nobody can run any more.
    pub(super) fn abandon(&self) {
        let queued = std::mem::take(&mut self.lock().queued);
        for queued in queued {
            // What panics here has told through the panic hook, and nobody is left who would ask.
            let _told_by_the_hook = execute::discard(queued);
        }
        super::progress::wake(self.progress.publish(self.tail()));
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until something arrives; for the worker.
    pub(super) fn sleep<'a>(&self, line: MutexGuard<'a, Line>) -> MutexGuard<'a, Line> {
        self.arrived.wait(line).unwrap_or_else(PoisonError::into_inner)
    }

    fn draw(&self, line: &mut Line, frees: bool) -> Position {
        line.tail += 1;
        if frees {
            self.last_free.store(line.tail, Ordering::Release);
        }
        self.submitted.store(line.tail, Ordering::Release);
        Position(line.tail)
    }

    fn run_timed(&self, queued: &Queued) -> Result<(), FailureRecord> {
        if self.is_seeded() {
            let outcome = execute::execute(self, queued);
            self.advance(&queued.operation);
            return outcome;
        }
        let due = time::link_cost(self, &queued.operation).map(|cost| (Instant::now(), cost));
        let outcome = execute::execute(self, queued);
        if let Some((start, cost)) = due {
            thread::sleep(cost.saturating_sub(start.elapsed()));
        }
        outcome
    }

    /// Moves modelled time on. Only the thread whose turn it is does this, so load and store need
    /// not be one.
    fn advance(&self, operation: &Operation) {
        let now_ns = self.modelled_ns.load(Ordering::Relaxed);
        let cost_ns = |cost: Duration| u64::try_from(cost.as_nanos()).unwrap_or(u64::MAX);
        let next_ns = match operation {
            Operation::Upkeep(Upkeep::Wait(point)) if point.lane.is_seeded() => {
                now_ns.max(point.stamp.as_ref().map_or(0, |stamp| stamp.get()))
            }
            other => now_ns.saturating_add(cost_ns(time::modelled_cost(self, other))),
        };
        self.modelled_ns.store(next_ns, Ordering::Relaxed);
    }
}

fn stuck(position: Position) -> BackendError {
    let detail =
        format!("position {} cannot complete: the devices that it waits for are gone", position.0);
    BackendError {
        kind: BackendErrorKind::Driver { code: CODE_STUCK },
        call: "synchronize",
        detail,
    }
}
