//! Completion of a stream's work: waits and polls ask the driver for the device's progress, and run
//! the completion actions, in order, before the work counts as completed.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::driver_event::DriverEvent;
use super::gpu_stream::{GpuStream, find};
use super::in_flight::{CompletionAction, InFlight};
use super::wake_stream::WakeStream;
use crate::capture_mode::Relaxed;
use crate::driver::{HostFunction, status};
use resident_backend::sync;
use resident_backend::{
    BackendError, BackendErrorKind, FailureRecord, Position, StreamId, failure, scope,
};

/// What a thread does that finds another thread running a stream's completion actions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum IfBusy {
    Wait,
    /// The work stays incomplete for now.
    Leave,
}

impl GpuStream {
    /// Returns the outcome of a driver call. If the outcome is that the context has died, marks all
    /// work in flight as failed.
    #[inline]
    pub(super) fn record_death<T>(
        &self,
        outcome: Result<T, BackendError>,
    ) -> Result<T, BackendError> {
        if outcome.is_ok() {
            return outcome;
        }
        let outcome = self.record_death_locked(outcome);
        if self.device.context().death().is_some() {
            self.abandon_in_flight();
        }
        outcome
    }

    /// Fails all work that is not known to have completed, because the context died.
    fn abandon_in_flight(&self) {
        let _completion = self.completion_lock.lock();
        let mut state = self.state();
        let completed = self.completed();
        let tail = Position(state.tail);
        if completed >= tail {
            return;
        }
        let cause = self.device.context().death().map_or_else(String::new, ToString::to_string);
        let record = state.in_flight.device_loss_record(completed, cause);
        failure::record_stream_death(self.id, completed, record);
        let abandoned = state.in_flight.retire_upto(tail);
        abandoned.into_iter().for_each(|operation| operation.action.abandon());
        state.events.clear();
        self.completed.store(tail.0, Ordering::Release);
    }

    /// Makes the context current. If the context is dead, marks all work in flight as failed.
    #[inline]
    pub(super) fn make_current(&self) -> Result<(), BackendError> {
        self.record_death(self.device.context().make_current())
    }

    /// Blocks until all work up to `position`, clamped to the tail, has completed or failed.
    pub(super) fn wait_for(&self, position: Position) -> Result<(), BackendError> {
        let position = position.min(self.tail());
        if self.completed() >= position {
            return Ok(());
        }
        if scope::is_in_body() {
            return Err(BackendError {
                kind: BackendErrorKind::InsideKernel,
                call: "synchronize",
                detail: String::new(),
            });
        }
        match self.wait_on_device(position) {
            Ok(upto) => self.complete_upto(upto, IfBusy::Wait),
            // The device died. All work in flight has failed, and failed work counts as completed.
            Err(_) if self.completed() >= position => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Blocks until the device has completed `position`. Returns the position that the device has
    /// reached.
    fn wait_on_device(&self, position: Position) -> Result<Position, BackendError> {
        let (event, tail) = self.covering_event_and_tail(position);
        if let Some((upto, event)) = event {
            return self.record_death(event.wait()).map(|()| upto);
        }
        self.make_current()?;
        self.check_capture()?;
        let _relaxed = Relaxed::enter(self.driver());
        let wait = &self.driver().stream_synchronize;
        // SAFETY: the stream lives as long as `self`.
        let outcome = unsafe { (wait.function)(self.raw_stream()) };
        self.record_death(wait.check(outcome)).map(|()| tail)
    }

    fn covering_event_and_tail(
        &self,
        position: Position,
    ) -> (Option<(Position, Arc<DriverEvent>)>, Position) {
        let state = self.state();
        (state.event_covering(position), Position(state.tail))
    }

    /// Asks the driver whether all work up to `position`, clamped to the tail, has completed.
    pub(super) fn poll(&self, position: Position) -> Result<bool, BackendError> {
        let position = position.min(self.tail());
        if self.completed() >= position {
            return Ok(true);
        }
        let (event, tail) = self.covering_event_and_tail(position);
        match event {
            Some((upto, event)) => self.complete_if(event.is_past(), upto)?,
            None => {
                self.make_current()?;
                self.complete_if(self.is_idle(), tail)?;
            }
        }
        Ok(self.completed() >= position)
    }

    /// Whether the device has completed all work on the stream. The context is current. While
    /// other code captures the stream that is not known, because a query would end the capture.
    fn is_idle(&self) -> Result<bool, BackendError> {
        if self.is_captured()? {
            return Ok(false);
        }
        let _relaxed = Relaxed::enter(self.driver());
        let query = &self.driver().stream_query;
        // SAFETY: the stream lives as long as `self`.
        match unsafe { (query.function)(self.raw_stream()) } {
            status::NOT_READY => Ok(false),
            other => query.check(other).map(|()| true),
        }
    }

    /// Whether all work up to the event at `position` has completed.
    pub(super) fn poll_event(
        &self,
        position: Position,
        event: &DriverEvent,
    ) -> Result<bool, BackendError> {
        if self.completed() < position {
            self.complete_if(event.is_past(), position)?;
        }
        Ok(self.completed() >= position)
    }

    /// Calls `function` on a thread of the driver when the device has completed `position`. Returns
    /// `None` if no stream is free for that.
    pub(super) fn call_at(
        &self,
        position: Position,
        function: HostFunction,
    ) -> Result<Option<WakeStream>, BackendError> {
        let (Some((_, event)), _) = self.covering_event_and_tail(position) else {
            return Ok(None);
        };
        self.make_current()?;
        self.record_death(self.device.wake_streams().call_at(&event, function))
    }

    /// Whether the waker thread should wake a task that waits for `position`. If the stream cannot
    /// be polled, the task is woken and gets the error.
    pub(super) fn is_complete(&self, position: Position) -> bool {
        self.poll(position).unwrap_or(true)
    }

    /// Completes all finished work, without waiting. The caller holds no lock: an action may copy.
    pub(super) fn reap(&self) {
        // If the stream cannot be polled, the next caller that waits gets the error.
        let _outcome = self.poll(self.tail());
        let front = || self.state().in_flight.front();
        let mut next = front();
        while let Some(position) = next {
            let is_complete = matches!(self.poll(position), Ok(true));
            next = front().filter(|left| is_complete && *left > position);
        }
    }

    fn complete_if(
        &self,
        is_past: Result<bool, BackendError>,
        upto: Position,
    ) -> Result<(), BackendError> {
        match self.record_death(is_past) {
            Ok(true) => self.complete_upto(upto, IfBusy::Leave),
            Ok(false) => {}
            Err(_) if self.completed() >= upto => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Completes work that the device has finished: first the work of other streams on which it
    /// depends (which may have failed), then its own completion actions.
    pub(super) fn complete_upto(&self, upto: Position, if_busy: IfBusy) {
        let is_empty = self.state().in_flight.is_empty();
        if is_empty || self.complete_prerequisites(upto, if_busy) {
            self.run_actions(upto, if_busy);
        }
    }

    /// Completes the work of other streams on which work up to `upto` depends. Returns whether all
    /// of that work is complete. Meanwhile this thread holds no stream's completion lock. Uses an
    /// explicit stack instead of recursion, because a chain of streams may be long.
    fn complete_prerequisites(&self, upto: Position, if_busy: IfBusy) -> bool {
        let mut stack: Vec<(Arc<Self>, Position, Position)> = Vec::new();
        let (mut checked, mut reached) = (Position::START, Reached::default());
        loop {
            let (stream, upto, checked) = match stack.last_mut() {
                Some((stream, upto, checked)) => (&**stream, *upto, checked),
                None => (self, upto, &mut checked),
            };
            if let Some((other, position)) = stream.next_prerequisite(checked, upto, &mut reached) {
                if !Arc::ptr_eq(&other.device, &self.device) {
                    other.check_for_death();
                }
                stack.push((other, position, Position::START));
                continue;
            }
            let Some((stream, upto, _)) = stack.pop() else { return true };
            if !stream.run_actions(upto, if_busy) {
                return false;
            }
        }
    }

    /// Incomplete work of another stream on which work up to `upto` depends. Work up to `checked`
    /// has no such prerequisite.
    fn next_prerequisite(
        &self,
        checked: &mut Position,
        upto: Position,
        reached: &mut Reached,
    ) -> Option<(Arc<Self>, Position)> {
        loop {
            let is_complete = |stream, at| stream == self.id || reached.covers(stream, at);
            let (position, prerequisites) =
                self.state().in_flight.prerequisites_after(*checked, upto, is_complete)?;
            let mut incomplete = |(stream, at): (StreamId, Position)| {
                // A stream that no longer exists has no incomplete work.
                let other = find(stream)?;
                let completed = other.completed();
                reached.note(stream, completed);
                (completed < at).then_some((other, at))
            };
            if let Some(found) = prerequisites.into_iter().find_map(&mut incomplete) {
                return Some(found);
            }
            *checked = position;
        }
    }

    /// Runs the actions of work up to `upto`. Returns `false` if another thread is running actions
    /// and this call does not wait for it.
    fn run_actions(&self, upto: Position, if_busy: IfBusy) -> bool {
        let completion = match self.completion_lock.try_lock() {
            Some(guard) => guard,
            None if if_busy == IfBusy::Wait => self.completion_lock.lock(),
            None => return false,
        };
        let external = self.run_actions_locked(upto);
        drop(completion);
        // External slices are dropped without the lock, because dropping one may wait for the
        // device, and those of DLPack call other code.
        sync::assert_none_held();
        drop(external);
        true
    }

    /// Returns the actions whose values must be dropped after the completion lock is released.
    fn run_actions_locked(&self, upto: Position) -> Vec<CompletionAction> {
        // The completion lock is held, so no other thread runs an action of earlier work.
        if self.state().in_flight.complete_if_empty() {
            self.completed.fetch_max(upto.0, Ordering::AcqRel);
            return Vec::new();
        }
        // Failures are recorded before the operations are removed, so that a thread that queues
        // work meanwhile finds either the operation or its failure.
        self.record_inherited_failures(upto);
        let mut completing = self.state().in_flight.begin_completion(upto);
        let mut external = Vec::new();
        for InFlight { position, action, .. } in completing.drain(..) {
            match action {
                action @ CompletionAction::DropExternal { .. } => external.push(action),
                // What an aborted communicator of NCCL leaves behind is freed all the same.
                action @ (CompletionAction::Free(_)
                | CompletionAction::Unmap { .. }
                | CompletionAction::DropGraph { .. }) => self.run_action(action),
                action if failure::at(self.id, position).is_none() => self.run_action(action),
                _ => {}
            }
        }
        self.completed.fetch_max(upto.0, Ordering::AcqRel);
        self.state().in_flight.end_completion(completing);
        external
    }

    /// For each operation up to `upto`: if it depends on failed work, records its failure.
    fn record_inherited_failures(&self, upto: Position) {
        if failure::epoch() == 0 {
            return;
        }
        let dependents = self.state().in_flight.dependents(upto);
        for (position, depends, loss) in dependents {
            let mut failures =
                depends.iter().filter_map(|(stream, position)| failure::at(*stream, *position));
            if let Some(root) = failures.next() {
                failure::record(self.id, position, inherited(&root, loss));
            }
        }
    }

    /// Runs under the completion lock: what an action drops is memory of this library, or of `Pod`
    /// elements, and runs no code of others.
    fn run_action(&self, action: CompletionAction) {
        match action {
            CompletionAction::Nothing
            | CompletionAction::Release { .. }
            | CompletionAction::ReturnBlock(_)
            | CompletionAction::DropExternal { .. }
            | CompletionAction::DropGraph { .. }
            | CompletionAction::CompleteFirst { .. } => {}
            CompletionAction::Unpack(unpack) => unpack.unpack(),
            CompletionAction::Free(address) => {
                self.device.memory().mark_drained(address);
                if self.device.context().make_current().is_ok() {
                    self.device.memory().free_all_drained();
                }
            }
            CompletionAction::Unmap { reservation, at } => {
                self.device.memory().mark_unused(reservation, at);
                if self.device.context().make_current().is_ok() {
                    self.device.memory().unmap_unused();
                }
            }
        }
    }

    /// Asks the driver whether the context is alive. This is needed because the driver still runs
    /// work of another device that waits for this stream, so the completion of that work does not
    /// mean that this device is alive.
    fn check_for_death(&self) {
        let is_idle = self.device.context().make_current().and_then(|()| self.is_idle());
        // If the stream cannot be queried for another reason, the context counts as alive.
        let _outcome = self.record_death(is_idle);
    }
}

/// Positions that streams are known to have completed, so that a stream is not looked up for each
/// operation that depends on it.
#[derive(Default)]
struct Reached(SmallVec<[(StreamId, Position); 8]>);

impl Reached {
    fn covers(&self, stream: StreamId, at: Position) -> bool {
        self.0.iter().any(|(known, upto)| *known == stream && *upto >= at)
    }

    fn note(&mut self, stream: StreamId, completed: Position) {
        match self.0.iter_mut().find(|(known, _)| *known == stream) {
            Some((_, upto)) => *upto = completed,
            None => self.0.push((stream, completed)),
        }
    }
}

/// The failure of work that depends on failed work.
pub(super) fn inherited(
    root: &FailureRecord,
    loss: resident_backend::FailureKind,
) -> Arc<FailureRecord> {
    Arc::new(FailureRecord { kind: root.kind.max(loss), inherited: true, ..root.clone() })
}
