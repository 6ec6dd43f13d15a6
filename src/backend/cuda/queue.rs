//! One stream of a GPU: draws positions together with queueing, and knows what is over.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::task::Waker;

use cudarc::driver::sys::{self, CUresult};
use cudarc::driver::{CudaContext, CudaStream};

use super::call::{check, invalid};
use super::device::{CudaDevice, DeviceCore};
use super::event::{CudaEvent, DriverEvent};
use super::flight::{After, Flight, Ledger, Name};
use super::lent::Lent;
use super::{submit, watch};
use crate::backend::{
    Address, BackendError, BackendErrorKind, Dependencies, FailureKind, FailureRecord, Label, Position, Queue, QueueId, RawEvent, Work,
    failure, scope,
};

/// Recorded events that are remembered for waits on the host. Losing an old one only makes a later wait cover more.
const EVENTS_KEPT: usize = 32;

/// So much work that leaves something to do, and an event is recorded behind it: then it can be cleared up while the stream goes on.
const FLIGHTS_PER_EVENT: usize = 16;

/// So much such work, and whoever launches clears up what is over.
const FLIGHTS_MAX: usize = 64;

/// All streams of all GPUs, for looking at the work that other work depends on.
static QUEUES: Mutex<BTreeMap<QueueId, Weak<QueueCore>>> = Mutex::new(BTreeMap::new());

/// What of a stream its events hold.
pub(super) struct QueueCore {
    id: QueueId,
    device: Arc<DeviceCore>,
    stream: Arc<CudaStream>,
    /// The position drawn last, for reading without the lock.
    tail: AtomicU64,
    /// Everything up to here is over, also what remained to be done on the host.
    completed: AtomicU64,
    line: Mutex<Line>,
    /// So much is in flight that somebody should clear up.
    is_crowded: AtomicBool,
    /// Held while work that is over is cleared up, which may copy: one thread does it, in order.
    clearing: Mutex<()>,
}

/// What is under the lock of a stream, which is held while something is queued.
#[derive(Debug, Default)]
pub(super) struct Line {
    tail: u64,
    pub(super) ledger: Ledger,
    events: VecDeque<(Position, Arc<DriverEvent>)>,
    flights_since_event: usize,
}

impl QueueCore {
    /// The stream as a queue.
    pub(super) fn new(device: Arc<DeviceCore>, stream: Arc<CudaStream>) -> Arc<Self> {
        let core = Arc::new(Self {
            id: QueueId::next(),
            device,
            stream,
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

    pub(super) fn raw_stream(&self) -> sys::CUstream {
        self.stream.cu_stream()
    }

    fn tail(&self) -> Position {
        Position(self.tail.load(Ordering::Acquire))
    }

    fn completed(&self) -> Position {
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

    /// Notes what a call found out about the context, and if it died, that everything in flight died with it.
    pub(super) fn note<T>(&self, outcome: Result<T, BackendError>) -> Result<T, BackendError> {
        let outcome = self.device.context().note(outcome);
        if outcome.is_err() && self.device.context().death().is_some() {
            self.give_up();
        }
        outcome
    }

    /// Blocks until everything up to `position` is over, well or not.
    pub(super) fn wait_for(&self, position: Position) -> Result<(), BackendError> {
        // What was not drawn yet is nothing to wait for.
        let position = position.min(self.tail());
        if self.completed() >= position {
            return Ok(());
        }
        if scope::in_body() {
            return Err(BackendError { kind: BackendErrorKind::InsideKernel, call: "synchronize", detail: String::new() });
        }
        match self.wait_on_device(position) {
            Ok(upto) => self.clear_upto(upto, true),
            // The device is gone, and with it what was in flight: that is over, though not well.
            Err(_) if self.completed() >= position => {}
            Err(refusal) => return Err(refusal),
        }
        Ok(())
    }

    /// Has the device come up to `position`; returns how far it is known to be.
    fn wait_on_device(&self, position: Position) -> Result<Position, BackendError> {
        let (event, tail) = {
            let line = self.line();
            (line.event_at(position), Position(line.tail))
        };
        let (outcome, upto) = match event {
            Some((upto, event)) => (event.wait(), upto),
            None => {
                self.enter()?;
                // SAFETY: the stream lives as long as `self`.
                (check(unsafe { sys::cuStreamSynchronize(self.raw_stream()) }, "cuStreamSynchronize"), tail)
            }
        };
        self.note(outcome).map(|()| upto)
    }

    /// Makes the context current; a dead one takes with it what is in flight.
    pub(super) fn enter(&self) -> Result<(), BackendError> {
        self.note(self.device.context().enter())
    }

    /// Whether `position` is over; asks the driver.
    fn poll(&self, position: Position) -> Result<bool, BackendError> {
        let position = position.min(self.tail());
        if self.completed() >= position {
            return Ok(true);
        }
        let (event, tail) = {
            let line = self.line();
            (line.event_at(position), Position(line.tail))
        };
        match event {
            Some((upto, event)) => self.look_at(upto, &event).map(|_| self.completed() >= position),
            None => {
                self.enter()?;
                // SAFETY: the stream lives as long as `self`.
                let past = match unsafe { sys::cuStreamQuery(self.raw_stream()) } {
                    CUresult::CUDA_ERROR_NOT_READY => Ok(false),
                    other => check(other, "cuStreamQuery").map(|()| true),
                };
                self.over_if(past, tail).map(|()| self.completed() >= position)
            }
        }
    }

    /// Whether the event at `position` is past and everything before it is cleared up.
    pub(super) fn look_at(&self, position: Position, event: &DriverEvent) -> Result<bool, BackendError> {
        if self.completed() < position {
            self.over_if(event.is_past(), position)?;
        }
        Ok(self.completed() >= position)
    }

    fn over_if(&self, past: Result<bool, BackendError>, upto: Position) -> Result<(), BackendError> {
        match self.note(past) {
            Ok(true) => self.clear_upto(upto, false),
            Ok(false) => {}
            Err(_) if self.completed() >= upto => {}
            Err(refusal) => return Err(refusal),
        }
        Ok(())
    }

    /// Does what remains to be done of work that the device is through with, then says that it is over: once what it depends on is, since that may turn out
    /// as failed, and once the host has done what it waited for. If another thread is at it, `waits` says whether to wait for that; it is not over yet if not.
    fn clear_upto(&self, upto: Position, waits: bool) {
        if self.settle_dependencies(upto, waits) {
            self.take_turn(upto, waits);
        }
    }

    /// Clears up on other streams as far as what is over here depends on them; says whether that is done. No turn is held meanwhile, and no stack is used
    /// for the way from stream to stream, which may be long.
    fn settle_dependencies(&self, upto: Position, waits: bool) -> bool {
        let mut way: Vec<(Arc<Self>, Position, Position)> = Vec::new();
        let mut met = Position::START;
        loop {
            let (queue, upto, met) = match way.last_mut() {
                Some((queue, upto, met)) => (&**queue, *upto, met),
                None => (self, upto, &mut met),
            };
            match queue.next_dependency(met, upto) {
                Some((other, position)) => {
                    if !Arc::ptr_eq(&other.device, &self.device) {
                        other.look_for_death();
                    }
                    way.push((other, position, Position::START));
                }
                None => {
                    let Some((queue, upto, _)) = way.pop() else { return true };
                    if !queue.take_turn(upto, waits) {
                        return false;
                    }
                }
            }
        }
    }

    /// Work on another stream that is not cleared up, on which work up to `upto` here depends; `met` is as far as there is none.
    fn next_dependency(&self, met: &mut Position, upto: Position) -> Option<(Arc<Self>, Position)> {
        loop {
            let (position, depends) = self.line().ledger.prerequisites_behind(*met, upto)?;
            let others = depends.into_iter().filter(|(queue, _)| *queue != self.id);
            // A stream that is gone has nothing left to be cleared up.
            let unsettled =
                |(queue, at): (QueueId, Position)| find(queue).map(|other| (other, at)).filter(|(other, at)| other.completed() < *at);
            let found = { others }.find_map(unsettled);
            if found.is_some() {
                return found;
            }
            *met = position;
        }
    }

    fn take_turn(&self, upto: Position, waits: bool) -> bool {
        let turn = match self.clearing.try_lock() {
            Ok(turn) => turn,
            Err(TryLockError::Poisoned(turn)) => turn.into_inner(),
            Err(TryLockError::WouldBlock) if waits => self.clearing.lock().unwrap_or_else(PoisonError::into_inner),
            Err(TryLockError::WouldBlock) => return false,
        };
        self.clear(upto);
        drop(turn);
        true
    }

    /// What a stream remembers that waits for `position` of this one, if anything is to be done there that is of matter elsewhere.
    fn to_be_done_first(&self, position: Position) -> After {
        let matters = self.completed() < position && self.line().ledger.matters_elsewhere(position);
        if matters { After::Behind { queue: self.id, position } } else { After::Nothing }
    }

    fn clear(&self, upto: Position) {
        // Failures are entered before the work is taken out: whoever queues meanwhile finds one or the other.
        let inheriting = self.line().ledger.inheriting(upto);
        for (position, depends, loss) in inheriting {
            if let Some(root) = depends.iter().find_map(|(queue, position)| failure::of(*queue, *position)) {
                let record = FailureRecord { kind: root.kind.max(loss), inherited: true, ..root.as_ref().clone() };
                failure::enter(self.id, position, Arc::new(record));
            }
        }
        let over = self.line().ledger.take_upto(upto);
        for flight in over {
            if failure::of(self.id, flight.position).is_none() {
                self.finish(flight.after);
            }
        }
        self.completed.fetch_max(upto.0, Ordering::AcqRel);
    }

    /// Clears up what is over, without waiting. Nothing is locked: it may copy.
    fn look_around(&self) {
        // A stream that cannot be asked is cleared up by whoever is told so.
        let _asked = self.poll(self.tail());
        let front = || self.line().ledger.front();
        let mut next = front();
        while let Some(position) = next {
            let is_over = matches!(self.poll(position), Ok(true));
            next = front().filter(|left| is_over && *left > position);
        }
    }

    /// Behind so much work that leaves something to do, an event is recorded. Where that is refused, one behind later work will do.
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

    fn finish(&self, after: After) {
        match after {
            After::Nothing | After::LetGo { .. } | After::GiveBack { .. } | After::Behind { .. } => {}
            After::Unpack(landing) => landing.unpack(),
            After::Free(address) => {
                let is_current = self.device.context().enter().is_ok();
                self.device.memory().release(address, is_current);
            }
        }
    }

    /// The context died: what is not known to be over failed with it.
    fn give_up(&self) {
        let _turn = self.clearing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut line = self.line();
        let (completed, tail) = (self.completed(), Position(line.tail));
        if completed >= tail {
            return;
        }
        let cause = self.device.context().death().map_or_else(String::new, ToString::to_string);
        failure::enter_rest(self.id, completed, line.ledger.last_words(completed, cause));
        // What the device may have been writing to stays where it is, for good.
        line.ledger.take_upto(tail).into_iter().for_each(|flight| flight.after.give_up());
        line.events.clear();
        self.completed.store(tail.0, Ordering::Release);
    }

    /// Dependencies that may still spoil what reads them, or the failure of one that has.
    pub(super) fn pending(&self, line: &Line, depends: Dependencies) -> Result<Dependencies, Arc<FailureRecord>> {
        let mut pending = Dependencies::new();
        for (queue, position) in depends {
            if let Some(root) = failure::of(queue, position) {
                return Err(root);
            }
            // Work of this very stream fails with its device alone, unless it depends on other streams itself.
            if queue != self.id || line.ledger.may_inherit(position) {
                pending.push((queue, position));
            }
        }
        Ok(pending)
    }

    /// Draws a position without queueing anything. Others queue on this stream too, unseen: what they queued so far lies before it, which cannot be
    /// said of the tail, and nothing is known to be over up to it.
    fn fence(&self) -> Position {
        self.draw(&mut self.line())
    }

    /// Queues an event behind everything, and remembers it. It has a position of its own: what others queued behind the last work of ours lies before
    /// it, and no earlier event stands for it.
    fn record(self: &Arc<Self>, timing: bool) -> Result<CudaEvent, BackendError> {
        self.enter()?;
        let event = Arc::new(self.device.events().take(timing)?);
        let mut line = self.line();
        self.note_locked(event.record(self.raw_stream()))?;
        // A position of its own: before it may stand a wait alone, which is no work and takes its time all the same.
        let position = self.draw(&mut line);
        line.keep(position, Arc::clone(&event));
        Ok(CudaEvent::new(Arc::clone(self), position, event))
    }

    /// As `note`, by a thread that holds the line: the rest is given up by whoever asks next.
    pub(super) fn note_locked<T>(&self, outcome: Result<T, BackendError>) -> Result<T, BackendError> {
        self.device.context().note(outcome)
    }

    fn free(self: &Arc<Self>, address: Address) -> Result<Position, BackendError> {
        self.enter()?;
        let memory = self.device.memory();
        if let Some(lent) = memory.let_go(address.0) {
            return self.give_back(address, lent);
        }
        let mut line = self.line();
        if memory.frees_in_order() {
            self.note_locked(memory.free(address, self.raw_stream()))?;
            return Ok(self.draw(&mut line));
        }
        memory.drain(address)?;
        let position = self.draw(&mut line);
        line.push(Flight { position, depends: Dependencies::new(), after: After::Free(address), loss: FailureKind::Copy });
        self.mark_the_way(&mut line);
        Ok(position)
    }
}

impl QueueCore {
    /// Gives memory of somebody else's back behind what is queued here: its owner frees it on a stream of its own, which waits.
    fn give_back(self: &Arc<Self>, address: Address, lent: Lent) -> Result<Position, BackendError> {
        if !lent.frees_in_order() {
            let mut line = self.line();
            let position = self.draw(&mut line);
            line.push(Flight { position, depends: Dependencies::new(), after: After::GiveBack { _lent: lent }, loss: FailureKind::Copy });
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

    /// Lets a stream of somebody else's wait for everything that is queued here so far; its context is current afterwards.
    fn hold_up(self: &Arc<Self>, other: &CudaStream) -> Result<(), BackendError> {
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
        // Nobody waited for what is still in flight, and nobody can any more. What it touches must outlive it.
        if !self.poll(self.tail()).unwrap_or(false) {
            std::mem::forget(self.line().ledger.take_upto(Position(u64::MAX)));
        }
    }
}

impl Line {
    /// The earliest event known to be recorded at or behind `position`.
    fn event_at(&self, position: Position) -> Option<(Position, Arc<DriverEvent>)> {
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
fn find(queue: QueueId) -> Option<Arc<QueueCore>> {
    QUEUES.lock().unwrap_or_else(PoisonError::into_inner).get(&queue)?.upgrade()
}

/// Clears up on all streams of a device. Nothing is locked.
pub(super) fn look_around_on(device: &DeviceCore) {
    let all: Vec<Arc<QueueCore>> = {
        let queues = QUEUES.lock().unwrap_or_else(PoisonError::into_inner);
        // In the order in which they were made, so that a run can be repeated.
        queues.values().filter_map(Weak::upgrade).collect()
    };
    all.iter().filter(|queue| std::ptr::eq(Arc::as_ptr(&queue.device), device)).for_each(|queue| queue.look_around());
}

/// A stream's handle.
#[derive(Debug)]
pub(crate) struct CudaQueue(Arc<QueueCore>);

impl CudaQueue {
    pub(super) fn new(core: Arc<QueueCore>) -> Self {
        Self(core)
    }

    pub(super) fn device(&self) -> &DeviceCore {
        self.0.device()
    }

    /// cudarc's object.
    pub(crate) fn stream(&self) -> &Arc<CudaStream> {
        self.0.stream()
    }

    /// Whether an object of cudarc's is of this very stream.
    pub(crate) fn is(&self, other: &CudaStream) -> bool {
        same_stream(&self.0.stream, other)
    }

    /// Lets a stream of somebody else's wait for everything that is queued here so far; its context is current afterwards.
    pub(crate) fn hold_up(&self, other: &CudaStream) -> Result<(), BackendError> {
        self.0.hold_up(other)
    }

    /// Waits on the host for everything that is queued here so far, and makes the context of `other` current.
    pub(crate) fn wait_before(&self, other: &CudaStream) -> Result<(), BackendError> {
        self.0.wait_for(self.0.fence())?;
        enter_of(other.context())
    }
}

/// Makes somebody else's context current. Not by cudarc, which would return what some drop left to be told instead.
fn enter_of(context: &CudaContext) -> Result<(), BackendError> {
    // SAFETY: the handle is that of a context which its object keeps.
    check(unsafe { sys::cuCtxSetCurrent(context.cu_ctx()) }, "cuCtxSetCurrent")
}

/// The driver's two names for the legacy default stream, which every context has one of, are one.
fn same_stream(one: &CudaStream, other: &CudaStream) -> bool {
    const LEGACY: usize = 1;
    let handle = |stream: &CudaStream| match stream.cu_stream() as usize {
        LEGACY => 0,
        handle => handle,
    };
    handle(one) == handle(other) && one.context().cu_ctx() == other.context().cu_ctx()
}

impl Queue for CudaQueue {
    fn id(&self) -> QueueId {
        self.0.id
    }

    fn allocate(&self, len_bytes: u64, label: &Label) -> Result<Address, BackendError> {
        self.0.enter()?;
        let address = self.0.note(self.0.device.allocate(len_bytes, self.0.raw_stream()))?;
        let mut line = self.0.line();
        let position = self.0.draw(&mut line);
        line.ledger.name(position, Name::of_label(label));
        Ok(address)
    }

    fn free(&self, address: Address) -> Result<Position, BackendError> {
        self.0.note(self.0.free(address))
    }

    fn submit(&self, work: Work) -> Result<Position, BackendError> {
        self.0.enter()?;
        // Launches alone: copies are queued with an array's lock held.
        let may_clear = matches!(work, Work::Launch(_));
        let position = self.0.note(submit::queue(&self.0, work))?;
        if may_clear && self.0.is_crowded.load(Ordering::Relaxed) {
            self.0.is_crowded.store(false, Ordering::Relaxed);
            self.0.look_around();
        }
        Ok(position)
    }

    fn record(&self, timing: bool) -> Result<Arc<dyn RawEvent>, BackendError> {
        self.0.note(self.0.record(timing)).map(|event| Arc::new(event) as Arc<dyn RawEvent>)
    }

    fn wait(&self, event: &dyn RawEvent) -> Result<(), BackendError> {
        let Some(event) = event.as_any().downcast_ref::<CudaEvent>() else {
            return Err(invalid("cuStreamWaitEvent", "the event belongs to another kind of device".to_owned()));
        };
        self.0.enter()?;
        let other = event.queue_core();
        let after = if Arc::ptr_eq(other, &self.0) { After::Nothing } else { other.to_be_done_first(event.position()) };
        let mut line = self.0.line();
        let own = self.0.device.context().cudarc().cu_ctx();
        self.0.note_locked(event.driver_event().hold_up(self.0.raw_stream(), own))?;
        // Whoever waits for this stream waits for that too.
        let position = self.0.draw(&mut line);
        line.push(Flight { position, depends: Dependencies::new(), after, loss: FailureKind::Copy });
        self.0.mark_the_way(&mut line);
        Ok(())
    }

    fn tail(&self) -> Position {
        self.0.tail()
    }

    fn fence(&self) -> Position {
        self.0.fence()
    }

    fn completed(&self) -> Position {
        self.0.completed()
    }

    fn synchronize_to(&self, position: Position) -> Result<(), BackendError> {
        self.0.wait_for(position)
    }

    fn poll(&self, position: Position) -> Result<bool, BackendError> {
        self.0.poll(position)
    }

    fn notify(&self, waker: Waker) -> Result<(), BackendError> {
        watch::wake_when_over(&self.0, self.0.tail(), waker)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl QueueCore {
    /// Asks whether the context lives. Work of others that waited for this stream tells nothing of that: whoever waits for a dead device is let go.
    fn look_for_death(&self) {
        let asked = self.device.context().enter().and_then(|()| {
            // SAFETY: the stream lives as long as `self`.
            match unsafe { sys::cuStreamQuery(self.raw_stream()) } {
                CUresult::CUDA_SUCCESS | CUresult::CUDA_ERROR_NOT_READY => Ok(()),
                other => check(other, "cuStreamQuery"),
            }
        });
        // One that cannot be asked, and is not dead, is taken to be well: what waited for it is through.
        let _noted = self.note(asked);
    }

    /// For the thread that watches.
    pub(super) fn is_over(&self, position: Position) -> bool {
        // One that cannot be asked will not get any further: whoever waits is to look for itself.
        self.poll(position).unwrap_or(true)
    }
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
