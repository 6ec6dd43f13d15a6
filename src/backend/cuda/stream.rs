//! One stream of a GPU: draws positions together with queueing, and remembers what is in flight.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use cudarc::driver::CudaStream;
use cudarc::driver::sys::{self, CUresult, CUstreamCaptureStatus};

use super::call::{check, refusal};
use super::device::{CudaDevice, DeviceCore};
use super::event::{CudaEvent, DriverEvent};
use super::flight::{After, Flight, Ledger};
use super::lent::Lent;
use super::queue::enter_of;
use crate::backend::{
    Address, BackendError, Dependencies, FailureKind, FailureRecord, Position, QueueId, failure,
};

/// Recorded events that are remembered for waits on the host. Losing an old one only makes a later
/// wait cover more.
const EVENTS_KEPT: usize = 32;

/// So much work that leaves something to do, and an event is recorded behind it: then it can be
/// cleared up while the stream goes on.
const FLIGHTS_PER_EVENT: usize = 16;

/// So much such work, and whoever launches clears up what is over.
const FLIGHTS_MAX: usize = 64;

/// All streams of all GPUs, for looking at the work that other work depends on.
static QUEUES: Mutex<BTreeMap<QueueId, Weak<QueueCore>>> = Mutex::new(BTreeMap::new());

/// What of a stream its events hold.
pub(super) struct QueueCore {
    pub(super) id: QueueId,
    pub(super) device: Arc<DeviceCore>,
    stream: Arc<CudaStream>,
    /// Others have the stream as well, and may capture it.
    is_shared: AtomicBool,
    /// The position drawn last, for reading without the lock.
    tail: AtomicU64,
    /// Everything up to here is over, also what remained to be done on the host.
    pub(super) completed: AtomicU64,
    line: Mutex<Line>,
    /// So much is in flight that somebody should clear up.
    pub(super) is_crowded: AtomicBool,
    /// Held while work that is over is cleared up, which may copy: one thread does it, in order.
    pub(super) clearing: Mutex<()>,
}

/// What is under the lock of a stream, which is held while something is queued.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) tail: u64,
    pub(super) ledger: Ledger,
    pub(super) events: VecDeque<(Position, Arc<DriverEvent>)>,
    flights_since_event: usize,
}

impl QueueCore {
    /// The stream as a queue.
    pub(super) fn new(device: Arc<DeviceCore>, stream: Arc<CudaStream>) -> Arc<Self> {
        let core = Arc::new(Self {
            id: QueueId::next(),
            device,
            stream,
            is_shared: AtomicBool::new(false),
            tail: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            line: Mutex::default(),
            is_crowded: AtomicBool::new(false),
            clearing: Mutex::new(()),
        });
        let mut queues = QUEUES.lock().unwrap_or_else(PoisonError::into_inner);
        queues.insert(core.id, Arc::downgrade(&core));
        core
    }

    pub(super) fn id(&self) -> QueueId {
        self.id
    }

    pub(super) fn device(&self) -> &Arc<DeviceCore> {
        &self.device
    }

    pub(super) fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }

    /// The stream for others, who may do with it what they like from now on.
    pub(super) fn share(&self) -> &Arc<CudaStream> {
        self.is_shared.store(true, Ordering::Relaxed);
        &self.stream
    }

    /// Makes the context current, to queue something. Refuses while others capture the stream: what
    /// is queued would not run, but be recorded, and run at their will, over memory that is
    /// somebody else's by then.
    pub(super) fn enter_to_queue(&self) -> Result<(), BackendError> {
        self.enter()?;
        if self.is_shared.load(Ordering::Relaxed) { self.check_capture() } else { Ok(()) }
    }

    #[cold]
    fn check_capture(&self) -> Result<(), BackendError> {
        const CALL: &str = "cuStreamIsCapturing";
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: the stream lives as long as `self`; the driver writes one status.
        self.note_locked(check(
            unsafe { sys::cuStreamIsCapturing(self.raw_stream(), &raw mut status) },
            CALL,
        ))?;
        if status == CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE {
            return Ok(());
        }
        let refused = refusal(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, CALL);
        let advice = "the stream is being captured: end the capture before arrays are used on it, or capture a stream that they are not used on";
        Err(BackendError { detail: format!("{}: {advice}", refused.detail), ..refused })
    }

    pub(super) fn raw_stream(&self) -> sys::CUstream {
        self.stream.cu_stream()
    }

    pub(super) fn tail(&self) -> Position {
        Position(self.tail.load(Ordering::Acquire))
    }

    pub(super) fn completed(&self) -> Position {
        Position(self.completed.load(Ordering::Acquire))
    }

    /// Draws the next position. What was queued before it is queued.
    pub(super) fn draw(&self, line: &mut Line) -> Position {
        line.tail += 1;
        self.tail.store(line.tail, Ordering::Release);
        Position(line.tail)
    }

    pub(super) fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a stream remembers that waits for `position` of this one, if anything is to be done
    /// there that is of matter elsewhere.
    pub(super) fn to_be_done_first(&self, position: Position) -> After {
        let matters = self.completed() < position && self.line().ledger.matters_elsewhere(position);
        if matters { After::Behind { queue: self.id, position } } else { After::Nothing }
    }

    /// Behind so much work that leaves something to do, an event is recorded. Where that is
    /// refused, one behind later work will do.
    pub(super) fn mark_the_way(&self, line: &mut Line) {
        if line.flights_since_event < FLIGHTS_PER_EVENT || line.ledger.len() < FLIGHTS_PER_EVENT {
            return;
        }
        line.flights_since_event = 0;
        self.is_crowded.store(line.ledger.len() >= FLIGHTS_MAX, Ordering::Relaxed);
        let Ok(event) = self.device.events().take(false) else { return };
        if self.note_locked(event.record(self.raw_stream())).is_ok() {
            let position = self.draw(line);
            line.keep(position, Arc::new(event));
        }
    }

    /// Dependencies that may still spoil what reads them, or the failure of one that has.
    pub(super) fn pending(
        &self,
        line: &Line,
        depends: Dependencies,
    ) -> Result<Dependencies, Arc<FailureRecord>> {
        let mut pending = Dependencies::new();
        for (queue, position) in depends {
            if let Some(root) = failure::at(queue, position) {
                return Err(root);
            }
            // Work of this very stream fails with its device alone, unless it depends on other
            // streams itself.
            if queue != self.id || line.ledger.may_inherit(position) {
                pending.push((queue, position));
            }
        }
        Ok(pending)
    }

    /// Draws a position without queueing anything. Others queue on this stream too, unseen: what
    /// they queued so far lies before it, which cannot be said of the tail, and nothing is known to
    /// be over up to it.
    pub(super) fn reserve_position(&self) -> Position {
        self.draw(&mut self.line())
    }

    /// Queues an event behind everything, and remembers it. It has a position of its own: what
    /// others queued behind the last work of ours lies before it, and no earlier event stands for
    /// it.
    pub(super) fn record(self: &Arc<Self>, timing: bool) -> Result<CudaEvent, BackendError> {
        self.enter_to_queue()?;
        let event = Arc::new(self.device.events().take(timing)?);
        let mut line = self.line();
        self.note_locked(event.record(self.raw_stream()))?;
        // A position of its own: before it may stand a wait alone, which is no work and takes its
        // time all the same.
        let position = self.draw(&mut line);
        line.keep(position, Arc::clone(&event));
        Ok(CudaEvent::new(Arc::clone(self), position, event))
    }

    /// As `note`, by a thread that holds the line: the rest is given up by whoever asks next.
    pub(super) fn note_locked<T>(
        &self,
        outcome: Result<T, BackendError>,
    ) -> Result<T, BackendError> {
        self.device.context().note(outcome)
    }

    pub(super) fn free(self: &Arc<Self>, address: Address) -> Result<Position, BackendError> {
        self.enter_to_queue()?;
        let memory = self.device.memory();
        if let Some(lent) = memory.defer_drop(address.0) {
            return self.give_back(address, lent);
        }
        let mut line = self.line();
        if memory.frees_in_order() {
            self.note_locked(memory.free(address, self.raw_stream()))?;
            return Ok(self.draw(&mut line));
        }
        memory.drain(address)?;
        let position = self.draw(&mut line);
        line.push(Flight {
            position,
            depends: Dependencies::new(),
            after: After::Free(address),
            loss: FailureKind::Copy,
        });
        self.mark_the_way(&mut line);
        Ok(position)
    }

    /// Gives memory of somebody else's back behind what is queued here: its owner frees it on a
    /// stream of its own, which waits.
    fn give_back(self: &Arc<Self>, address: Address, lent: Lent) -> Result<Position, BackendError> {
        if !lent.frees_in_order() {
            let mut line = self.line();
            let position = self.draw(&mut line);
            line.push(Flight {
                position,
                depends: Dependencies::new(),
                after: After::GiveBack { _lent: lent },
                loss: FailureKind::Copy,
            });
            self.mark_the_way(&mut line);
            return Ok(position);
        }
        if let Err(refusal) = self.hold_up(lent.stream()) {
            self.device.memory().keep(address.0, lent)?;
            return Err(refusal);
        }
        drop(lent);
        Ok(self.tail())
    }

    /// Lets a stream of somebody else's wait for everything that is queued here so far; its context
    /// is current afterwards.
    pub(super) fn hold_up(self: &Arc<Self>, other: &CudaStream) -> Result<(), BackendError> {
        let event = self.note(self.record(false))?;
        enter_of(other.context())?;
        event.driver_event().hold_up(other.cu_stream(), other.context().cu_ctx())
    }
}

impl Drop for QueueCore {
    fn drop(&mut self) {
        let mut queues = QUEUES.lock().unwrap_or_else(PoisonError::into_inner);
        queues.remove(&self.id);
        drop(queues);
        // Nobody waited for what is still in flight, and nobody can any more. What it touches must
        // outlive it.
        if !self.poll(self.tail()).unwrap_or(false) {
            std::mem::forget(self.line().ledger.take_upto(Position(u64::MAX)));
        }
    }
}

impl Line {
    /// The earliest event known to be recorded at or behind `position`.
    pub(super) fn event_at(&self, position: Position) -> Option<(Position, Arc<DriverEvent>)> {
        self.events.iter().find(|(at, _)| *at >= position).cloned()
    }

    /// Remembers work that leaves something to do.
    pub(super) fn push(&mut self, flight: Flight) {
        self.flights_since_event += usize::from(self.ledger.push(flight));
    }

    fn keep(&mut self, position: Position, event: Arc<DriverEvent>) {
        self.flights_since_event = 0;
        if self.events.len() == EVENTS_KEPT {
            self.events.pop_front();
        }
        self.events.push_back((position, event));
    }
}

/// The stream of that number, while it is alive.
pub(super) fn find(queue: QueueId) -> Option<Arc<QueueCore>> {
    QUEUES.lock().unwrap_or_else(PoisonError::into_inner).get(&queue)?.upgrade()
}

/// Clears up on all streams of a device. Nothing is locked.
pub(super) fn look_around_on(device: &DeviceCore) {
    let all: Vec<Arc<QueueCore>> = {
        let queues = QUEUES.lock().unwrap_or_else(PoisonError::into_inner);
        // In the order in which they were made, so that a run can be repeated.
        queues.values().filter_map(Weak::upgrade).collect()
    };
    all.iter()
        .filter(|queue| std::ptr::eq(Arc::as_ptr(&queue.device), device))
        .for_each(|queue| queue.reap());
}

impl fmt::Debug for QueueCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "QueueCore({:?} of {}, {} of {} done)",
            self.id,
            CudaDevice::name_of(self.device.context()),
            self.completed().0,
            self.tail().0
        )
    }
}
