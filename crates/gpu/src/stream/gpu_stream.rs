//! The state that the handles and events of one stream share: its positions, its recorded events
//! and its operations in flight.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

#[cfg(feature = "cuda")]
use cudarc::driver::CudaStream;
use smallvec::SmallVec;

use super::driver_event::DriverEvent;
use super::fallible::Fallible;
use super::in_flight::{CompletionAction, InFlight, InFlightList};
#[cfg(feature = "cuda")]
use crate::context::make_current;
use crate::device::GpuDeviceState;
use crate::driver::{Driver, StreamHandle, status};
use crate::memory::external::ExternalAllocation;
use crate::owned_stream::OwnedStream;
use resident_backend::sync::{BackendGuard, BackendLock};
use resident_backend::{
    Address, BackendError, Dependencies, DeviceKind, EventTiming, FailureKind, FailureRecord,
    PageRange, Position, StreamId, failure,
};

/// The number of recorded events that are kept for waits on the host. When an old event has been
/// discarded, a wait for its position uses a later event, which covers more work.
const EVENTS_KEPT: usize = 32;

/// An event is recorded after this many operations with a completion action, so that their
/// completion can be detected while later work runs.
const OPERATIONS_PER_EVENT: usize = 16;

/// All streams of all GPUs. A stream looks up here the streams on which its work depends.
static STREAMS: BackendLock<BTreeMap<StreamId, Listed>> = BackendLock::new(BTreeMap::new());

/// A stream, without its handle.
#[derive(Debug)]
struct Listed {
    stream: Weak<GpuStream>,
    device: Weak<GpuDeviceState>,
    fallible: Arc<Fallible>,
}

/// One stream, kept alive by its handle and its events.
pub struct GpuStream {
    pub(super) id: StreamId,
    pub(super) device: Arc<GpuDeviceState>,
    stream: OwnedStream,
    /// Also says whether other code has the stream too, and may capture it.
    pub(super) fallible: Arc<Fallible>,
    /// The last position, readable without the lock.
    tail: AtomicU64,
    /// All work up to this position has completed, including its completion actions.
    pub(super) completed: AtomicU64,
    state: BackendLock<StreamState>,
    /// Whether so many operations have been queued that the next launch should complete those that
    /// have finished.
    pub(super) needs_reap: AtomicBool,
    /// The completion lock. It is held while completion actions run, so that only one thread runs
    /// them, in order. Actions may copy memory.
    pub(super) completion_lock: BackendLock<()>,
}

/// The state that the stream lock guards. The lock is held while work is queued.
#[derive(Debug, Default)]
pub(super) struct StreamState {
    pub(super) tail: u64,
    pub(super) in_flight: InFlightList,
    pub(super) events: VecDeque<(Position, Arc<DriverEvent>)>,
    operations_since_event: usize,
}

impl GpuStream {
    pub(crate) fn new(device: Arc<GpuDeviceState>, stream: OwnedStream) -> Arc<Self> {
        let stream = Arc::new(Self {
            id: StreamId::next(),
            device,
            stream,
            fallible: Arc::default(),
            tail: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            state: BackendLock::default(),
            needs_reap: AtomicBool::new(false),
            completion_lock: BackendLock::new(()),
        });
        let device = Arc::downgrade(&stream.device);
        let (handle, fallible) = (Arc::downgrade(&stream), Arc::clone(&stream.fallible));
        streams().insert(stream.id, Listed { stream: handle, device, fallible });
        stream
    }

    /// cudarc's object for the stream, on NVIDIA GPUs.
    #[cfg(feature = "cuda")]
    pub(super) fn cudarc(&self) -> Option<&Arc<CudaStream>> {
        self.stream.cudarc()
    }

    /// As `cudarc`, for other code, which may use the stream in any way from now on.
    #[cfg(feature = "cuda")]
    pub fn share(&self) -> Option<&Arc<CudaStream>> {
        let stream = self.stream.cudarc()?;
        self.fallible.share();
        Some(stream)
    }

    pub(super) fn kind(&self) -> DeviceKind {
        self.device.context().kind()
    }

    #[inline]
    pub(super) fn driver(&self) -> &'static Driver {
        self.device.context().driver()
    }

    /// Whether other code has the stream too.
    #[inline]
    pub(super) fn is_shared(&self) -> bool {
        self.fallible.is_shared()
    }

    pub(super) fn raw_stream(&self) -> StreamHandle {
        self.stream.handle()
    }

    /// The priority that the driver gave the stream.
    pub(super) fn priority(&self) -> Result<i32, BackendError> {
        self.make_current()?;
        let mut priority = 0;
        let ask = &self.driver().stream_priority;
        // SAFETY: the stream lives as long as `self`; the driver writes one number.
        let outcome = unsafe { (ask.function)(self.raw_stream(), &raw mut priority) };
        self.record_death(ask.check(outcome)).map(|()| priority)
    }

    pub(super) fn tail(&self) -> Position {
        Position(self.tail.load(Ordering::Acquire))
    }

    pub(super) fn completed(&self) -> Position {
        Position(self.completed.load(Ordering::Acquire))
    }

    pub(super) fn state(&self) -> BackendGuard<'_, StreamState> {
        self.state.lock()
    }

    /// Makes the context current before work is queued. Refuses while the stream is being captured:
    /// captured work would run later, and its memory may have been reused by then.
    #[inline(always)]
    pub(super) fn prepare_to_queue(&self) -> Result<(), BackendError> {
        let current = self.device.context().make_current();
        if current.is_ok() && !self.is_shared() {
            return Ok(());
        }
        self.record_death(current).and_then(|()| self.check_capture())
    }

    #[cold]
    pub(super) fn check_capture(&self) -> Result<(), BackendError> {
        if !self.is_captured()? {
            return Ok(());
        }
        let refused = self.driver().stream_is_capturing.error(status::STREAM_CAPTURE_UNSUPPORTED);
        let advice = "the stream is being captured: end the capture before arrays are used on it, \
                      or capture a stream that they are not used on";
        Err(BackendError { detail: format!("{}: {advice}", refused.detail), ..refused })
    }

    /// Whether other code captures the stream now. The context is current.
    pub(super) fn is_captured(&self) -> Result<bool, BackendError> {
        if !self.is_shared() {
            return Ok(false);
        }
        const NONE: i32 = 0;
        let mut capture = NONE;
        let ask = &self.driver().stream_is_capturing;
        // SAFETY: the stream lives as long as `self`; the driver writes one status.
        let outcome = unsafe { (ask.function)(self.raw_stream(), &raw mut capture) };
        self.record_death_locked(ask.check(outcome))?;
        Ok(capture != NONE)
    }

    /// Assigns the next position. All earlier work is queued.
    #[inline]
    pub(super) fn next_position(&self, state: &mut StreamState) -> Position {
        self.next_positions(state, 1)
    }

    /// Assigns the next positions, and returns the last.
    #[inline]
    fn next_positions(&self, state: &mut StreamState, count: u64) -> Position {
        state.tail += count;
        self.tail.store(state.tail, Ordering::Release);
        Position(state.tail)
    }

    /// Assigns positions to the steps of a queued chain, with what is lost if each fails, and
    /// returns the last. No event comes between them.
    #[inline]
    pub(super) fn enter_steps(
        &self,
        state: &mut StreamState,
        depends: &Dependencies,
        losses: impl ExactSizeIterator<Item = FailureKind>,
    ) -> Position {
        let first = state.tail + 1;
        let last = self.next_positions(state, losses.len() as u64);
        if !depends.is_empty() {
            self.fallible.note(last);
            for (position, loss) in (first..).map(Position).zip(losses) {
                let (depends, action) = (depends.clone(), CompletionAction::Nothing);
                if state.push(InFlight { position, depends, action, loss }) {
                    self.needs_reap.store(true, Ordering::Relaxed);
                }
            }
            self.record_checkpoint(state);
        }
        last
    }

    /// Assigns a position to queued work, and adds the work to the in-flight list if the host must
    /// act on its completion.
    #[inline]
    pub(super) fn enter_queued(
        &self,
        state: &mut StreamState,
        depends: Dependencies,
        action: CompletionAction,
        loss: FailureKind,
    ) -> Position {
        let position = self.next_position(state);
        if !depends.is_empty() {
            self.fallible.note(position);
        }
        if state.push(InFlight { position, depends, action, loss }) {
            self.needs_reap.store(true, Ordering::Relaxed);
        }
        self.record_checkpoint(state);
        position
    }

    /// Records an event after every `OPERATIONS_PER_EVENT` operations with completion actions. If
    /// the driver refuses, a later event covers these operations.
    fn record_checkpoint(&self, state: &mut StreamState) {
        if state.operations_since_event < OPERATIONS_PER_EVENT
            || state.in_flight.len() < OPERATIONS_PER_EVENT
        {
            return;
        }
        state.operations_since_event = 0;
        let event = match state.take_oldest_event() {
            Some(event) => event,
            None => match self.device.events().take(EventTiming::Disabled) {
                Ok(event) => Arc::new(event),
                Err(_) => return,
            },
        };
        if self.record_death_locked(event.record(self.raw_stream())).is_ok() {
            let position = self.next_position(state);
            state.keep_event(position, event);
        }
    }

    /// Whether no dependency can fail alone, as far as is known at once.
    #[inline]
    pub(super) fn is_independent(
        &self,
        state: &StreamState,
        depends: &[(StreamId, Position)],
    ) -> bool {
        let is_own = |(stream, _): &(StreamId, Position)| *stream == self.id;
        let cannot_fail = || state.in_flight.is_empty() && failure::epoch() == 0;
        match depends {
            [] => true,
            [only] => is_own(only) && cannot_fail(),
            several => cannot_fail() && several.iter().all(is_own),
        }
    }

    /// The dependencies that may still fail alone, or the failure of one that has.
    pub(super) fn pending_dependencies(
        &self,
        state: &StreamState,
        depends: &[(StreamId, Position)],
    ) -> Result<Dependencies, Arc<FailureRecord>> {
        let mut pending = Dependencies::new();
        for &(stream, position) in depends {
            if let Some(root) = failure::at(stream, position) {
                return Err(root);
            }
            let may_fail = if stream == self.id {
                state.in_flight.has_dependencies(position)
            } else {
                self.outlives_failure_of(stream, position)
            };
            if may_fail {
                pending.push((stream, position));
            }
        }
        Ok(pending)
    }

    /// Whether this stream's work goes on if the work at `position` of another stream fails.
    /// Upgrades no handle: the stream lock is held, and to drop the last one takes other locks.
    fn outlives_failure_of(&self, other: StreamId, position: Position) -> bool {
        let streams = streams();
        let Some(other) = streams.get(&other) else { return true };
        other.device.as_ptr() != Arc::as_ptr(&self.device) || position <= other.fallible.upto()
    }

    /// The action that a stream must complete before it waits for `position` of this one.
    pub(super) fn action_for_waiter(&self, position: Position) -> CompletionAction {
        let matters =
            self.completed() < position && self.state().in_flight.matters_to_waiters(position);
        if matters {
            CompletionAction::CompleteFirst { stream: self.id, position }
        } else {
            CompletionAction::Nothing
        }
    }

    /// Reserves a position without queueing anything. Unlike the tail, this position lies after all
    /// work that other libraries have queued on this stream so far.
    pub(super) fn reserve_position(&self) -> Position {
        self.next_position(&mut self.state())
    }

    /// Records an event after all work on the stream and keeps it. The event gets its own position,
    /// because work of other libraries, or a wait, may have been queued after the last position.
    pub(super) fn record(
        &self,
        timing: EventTiming,
    ) -> Result<(Position, Arc<DriverEvent>), BackendError> {
        self.prepare_to_queue()?;
        let event = Arc::new(self.device.events().take(timing)?);
        let mut state = self.state();
        self.record_death_locked(event.record(self.raw_stream()))?;
        let position = self.next_position(&mut state);
        state.keep_event(position, Arc::clone(&event));
        Ok((position, event))
    }

    /// Records an event if none is kept that covers `position`.
    pub(super) fn ensure_event_covering(&self, position: Position) -> Result<(), BackendError> {
        let is_covered = self.state().event_covering(position).is_some();
        if is_covered {
            Ok(())
        } else {
            self.record_death(self.record(EventTiming::Disabled)).map(drop)
        }
    }

    /// As `record_death`, for a thread that holds the stream lock: the next caller of
    /// `record_death` abandons the work in flight.
    #[inline]
    pub(super) fn record_death_locked<T>(
        &self,
        outcome: Result<T, BackendError>,
    ) -> Result<T, BackendError> {
        self.device.context().record_death(outcome)
    }

    pub(super) fn free(&self, address: Address) -> Result<Position, BackendError> {
        self.prepare_to_queue()?;
        let memory = self.device.memory();
        if let Some(external) = memory.take_external(address.0) {
            return self.free_external(address, external);
        }
        let mut state = self.state();
        if let Some(mapped) = memory.take_mapped(address) {
            let memory = SmallVec::from_iter([mapped]);
            return Ok(self.enter_action(&mut state, CompletionAction::Release { memory }));
        }
        if memory.is_reserved(address) {
            let at = (self.id, Position(state.tail + 1));
            memory.free_reservation(address, at)?;
            let action = CompletionAction::Unmap { reservation: address, at };
            return Ok(self.enter_action(&mut state, action));
        }
        if memory.frees_in_order() {
            self.record_death_locked(memory.free(address, self.raw_stream()))?;
            return Ok(self.next_position(&mut state));
        }
        memory.start_draining(address)?;
        Ok(self.enter_action(&mut state, CompletionAction::Free(address)))
    }

    /// Unmaps the memory of pages after the work queued here.
    pub(super) fn decommit(&self, pages: &PageRange) -> Result<Position, BackendError> {
        self.prepare_to_queue()?;
        let mut state = self.state();
        let at = (self.id, Position(state.tail + 1));
        self.device.memory().decommit(pages, at)?;
        let reservation = pages.reservation;
        let action = CompletionAction::Unmap { reservation, at };
        Ok(self.enter_action(&mut state, action))
    }

    /// Drops external memory after the work queued here. cudarc frees a slice on the slice's own
    /// stream, which waits for this one.
    fn free_external(
        &self,
        #[cfg_attr(not(feature = "cuda"), expect(unused_variables, reason = "only cudarc orders"))]
        address: Address,
        external: ExternalAllocation,
    ) -> Result<Position, BackendError> {
        #[cfg(feature = "cuda")]
        if let ExternalAllocation::Slice(slice) = &external
            && let Some(stream) = slice.freeing_stream()
        {
            if let Err(error) = self.make_wait(stream) {
                self.device.memory().insert_external(address.0, external)?;
                return Err(error);
            }
            drop(external);
            return Ok(self.tail());
        }
        let action = CompletionAction::DropExternal { _external: external };
        Ok(self.enter_action(&mut self.state(), action))
    }

    /// Assigns a position to an action that depends on no other work.
    pub(super) fn enter_action(
        &self,
        state: &mut StreamState,
        action: CompletionAction,
    ) -> Position {
        self.enter_queued(state, Dependencies::new(), action, FailureKind::Copy)
    }

    /// As [`enter_action`](Self::enter_action), of a wait. Waits count as operations in flight: as
    /// many let the next launch complete what has finished, so that later ones are spared.
    pub(super) fn enter_wait(&self, state: &mut StreamState, action: CompletionAction) {
        if !matches!(action, CompletionAction::Nothing) {
            self.enter_action(state, action);
            return;
        }
        self.next_position(state);
        if state.in_flight.count_wait() {
            self.needs_reap.store(true, Ordering::Relaxed);
        }
    }

    /// As [`enter_action`](Self::enter_action), without any driver call: the context need not be
    /// current, and the stream may be captured.
    pub(super) fn enter_without_call(&self, action: CompletionAction) {
        let mut state = self.state();
        let position = self.next_position(&mut state);
        let (depends, loss) = (Dependencies::new(), FailureKind::Copy);
        if state.push(InFlight { position, depends, action, loss }) {
            self.needs_reap.store(true, Ordering::Relaxed);
        }
    }

    /// Makes a stream of another library wait for all work queued here so far. The other stream's
    /// context is current afterwards.
    #[cfg(feature = "cuda")]
    pub(super) fn make_wait(&self, other: &CudaStream) -> Result<(), BackendError> {
        let (_, event) = self.record_death(self.record(EventTiming::Disabled))?;
        make_current(self.driver(), other.context())?;
        let token = other.context().cu_ctx().expose_provenance() as u64;
        event.make_wait(other.cu_stream().cast(), token)
    }
}

impl Drop for GpuStream {
    fn drop(&mut self) {
        streams().remove(&self.id);
        // No thread waited for the work that is still in flight, and none can wait any more. The
        // memory that this work uses must be kept until it ends.
        if !self.poll(self.tail()).unwrap_or(false) {
            std::mem::forget(self.state().in_flight.retire_upto(Position(u64::MAX)));
        }
    }
}

impl StreamState {
    /// The earliest kept event at or after `position`.
    pub(super) fn event_covering(
        &self,
        position: Position,
    ) -> Option<(Position, Arc<DriverEvent>)> {
        self.events.iter().find(|(at, _)| *at >= position).cloned()
    }

    /// Adds an operation. Returns whether it is time to complete those that have finished.
    /// That does not depend on events, which other streams may have recorded here at any time.
    fn push(&mut self, operation: InFlight) -> bool {
        let is_new = self.in_flight.push(operation);
        self.operations_since_event += usize::from(is_new);
        is_new && self.in_flight.is_reap_due()
    }

    /// If there is no room for another event, the oldest, to be recorded again unless somebody else
    /// has it.
    fn take_oldest_event(&mut self) -> Option<Arc<DriverEvent>> {
        if self.events.len() < EVENTS_KEPT {
            return None;
        }
        let (_, event) = self.events.pop_front()?;
        (Arc::strong_count(&event) == 1 && !event.has_timing()).then_some(event)
    }

    fn keep_event(&mut self, position: Position, event: Arc<DriverEvent>) {
        self.operations_since_event = 0;
        if self.events.len() == EVENTS_KEPT {
            self.events.pop_front();
        }
        self.events.push_back((position, event));
    }
}

/// The stream with this number, if it is alive.
pub(super) fn find(stream: StreamId) -> Option<Arc<GpuStream>> {
    streams().get(&stream)?.stream.upgrade()
}

/// Completes finished work on all streams of a device. The caller holds no lock.
pub(crate) fn reap_all(device: &GpuDeviceState) {
    all_of(device).iter().for_each(|stream| stream.reap());
}

/// The streams of a device, in the order of their creation, so that runs are repeatable.
pub(super) fn all_of(device: &GpuDeviceState) -> Vec<Arc<GpuStream>> {
    let all: Vec<Arc<GpuStream>> =
        streams().values().filter_map(|listed| listed.stream.upgrade()).collect();
    all.into_iter().filter(|stream| std::ptr::eq(Arc::as_ptr(&stream.device), device)).collect()
}

fn streams() -> BackendGuard<'static, BTreeMap<StreamId, Listed>> {
    STREAMS.lock()
}

impl fmt::Debug for GpuStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "GpuStream({:?} of {}, {} of {} done)",
            self.id,
            self.device.context().name(),
            self.completed().0,
            self.tail().0
        )
    }
}
