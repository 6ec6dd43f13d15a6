//! What of a stream's work is over: asked of the driver by whoever waits or looks, and cleared up
//! in order before it counts.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, TryLockError};

use cudarc::driver::sys::{self, CUresult};

use super::call::check;
use super::event::DriverEvent;
use super::flight::After;
use super::stream::{QueueCore, find};
use crate::backend::{
    BackendError, BackendErrorKind, FailureRecord, Position, QueueId, failure, scope,
};

impl QueueCore {
    /// Notes what a call found out about the context, and if it died, that everything in flight
    /// died with it.
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
        if scope::is_in_body() {
            return Err(BackendError {
                kind: BackendErrorKind::InsideKernel,
                call: "synchronize",
                detail: String::new(),
            });
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
                (
                    check(
                        unsafe { sys::cuStreamSynchronize(self.raw_stream()) },
                        "cuStreamSynchronize",
                    ),
                    tail,
                )
            }
        };
        self.note(outcome).map(|()| upto)
    }

    /// Makes the context current; a dead one takes with it what is in flight.
    pub(super) fn enter(&self) -> Result<(), BackendError> {
        self.note(self.device.context().enter())
    }

    /// Whether `position` is over; asks the driver.
    pub(super) fn poll(&self, position: Position) -> Result<bool, BackendError> {
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
    pub(super) fn look_at(
        &self,
        position: Position,
        event: &DriverEvent,
    ) -> Result<bool, BackendError> {
        if self.completed() < position {
            self.over_if(event.is_past(), position)?;
        }
        Ok(self.completed() >= position)
    }

    fn over_if(
        &self,
        past: Result<bool, BackendError>,
        upto: Position,
    ) -> Result<(), BackendError> {
        match self.note(past) {
            Ok(true) => self.clear_upto(upto, false),
            Ok(false) => {}
            Err(_) if self.completed() >= upto => {}
            Err(refusal) => return Err(refusal),
        }
        Ok(())
    }

    /// Does what remains to be done of work that the device is through with, then says that it is
    /// over: once what it depends on is, since that may turn out as failed, and once the host has
    /// done what it waited for. If another thread is at it, `waits` says whether to wait for that;
    /// it is not over yet if not.
    fn clear_upto(&self, upto: Position, waits: bool) {
        if self.settle_dependencies(upto, waits) {
            self.take_turn(upto, waits);
        }
    }

    /// Clears up on other streams as far as what is over here depends on them; says whether that is
    /// done. No turn is held meanwhile, and no stack is used for the way from stream to stream,
    /// which may be long.
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

    /// Work on another stream that is not cleared up, on which work up to `upto` here depends;
    /// `met` is as far as there is none.
    fn next_dependency(&self, met: &mut Position, upto: Position) -> Option<(Arc<Self>, Position)> {
        loop {
            let (position, depends) = self.line().ledger.prerequisites_behind(*met, upto)?;
            let others = depends.into_iter().filter(|(queue, _)| *queue != self.id);
            // A stream that is gone has nothing left to be cleared up.
            let unsettled = |(queue, at): (QueueId, Position)| {
                find(queue).map(|other| (other, at)).filter(|(other, at)| other.completed() < *at)
            };
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
            Err(TryLockError::WouldBlock) if waits => {
                self.clearing.lock().unwrap_or_else(PoisonError::into_inner)
            }
            Err(TryLockError::WouldBlock) => return false,
        };
        let defer_drop = self.clear(upto);
        drop(turn);
        // What is somebody else's may wait where it goes: nobody waits for that with a turn in
        // hand.
        drop(defer_drop);
        true
    }

    /// Returns what is to be dropped without the turn.
    fn clear(&self, upto: Position) -> Vec<After> {
        // Failures are entered before the work is taken out: whoever queues meanwhile finds one or
        // the other.
        let inheriting = self.line().ledger.inheriting(upto);
        for (position, depends, loss) in inheriting {
            if let Some(root) =
                depends.iter().find_map(|(queue, position)| failure::at(*queue, *position))
            {
                let record = FailureRecord {
                    kind: root.kind.max(loss),
                    inherited: true,
                    ..root.as_ref().clone()
                };
                failure::record(self.id, position, Arc::new(record));
            }
        }
        // What the host has yet to do of it is no secret meanwhile: a stream that is to wait for
        // this work waits for that too.
        let over = self.line().ledger.take_in_hand(upto);
        let is_any = !over.is_empty();
        let mut defer_drop = Vec::new();
        for flight in over {
            match flight.after {
                given_back @ After::GiveBack { .. } => defer_drop.push(given_back),
                after if failure::at(self.id, flight.position).is_none() => self.finish(after),
                _ => {}
            }
        }
        self.completed.fetch_max(upto.0, Ordering::AcqRel);
        if is_any {
            self.line().ledger.put_down();
        }
        defer_drop
    }

    /// Clears up what is over, without waiting. Nothing is locked: it may copy.
    pub(super) fn reap(&self) {
        // A stream that cannot be asked is cleared up by whoever is told so.
        let _asked = self.poll(self.tail());
        let front = || self.line().ledger.front();
        let mut next = front();
        while let Some(position) = next {
            let is_over = matches!(self.poll(position), Ok(true));
            next = front().filter(|left| is_over && *left > position);
        }
    }

    fn finish(&self, after: After) {
        match after {
            After::Nothing
            | After::LetGo { .. }
            | After::GiveBack { .. }
            | After::Behind { .. } => {}
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
        failure::record_queue_loss(self.id, completed, line.ledger.last_words(completed, cause));
        // What the device may have been writing to stays where it is, for good.
        line.ledger.take_upto(tail).into_iter().for_each(|flight| flight.after.give_up());
        line.events.clear();
        self.completed.store(tail.0, Ordering::Release);
    }

    /// Asks whether the context lives. Work of others that waited for this stream tells nothing of
    /// that: whoever waits for a dead device is let go.
    fn look_for_death(&self) {
        let asked = self.device.context().enter().and_then(|()| {
            // SAFETY: the stream lives as long as `self`.
            match unsafe { sys::cuStreamQuery(self.raw_stream()) } {
                CUresult::CUDA_SUCCESS | CUresult::CUDA_ERROR_NOT_READY => Ok(()),
                other => check(other, "cuStreamQuery"),
            }
        });
        // One that cannot be asked, and is not dead, is taken to be well: what waited for it is
        // through.
        let _noted = self.note(asked);
    }

    /// For the thread that watches.
    pub(super) fn is_over(&self, position: Position) -> bool {
        // One that cannot be asked will not get any further: whoever waits is to look for itself.
        self.poll(position).unwrap_or(true)
    }
}
