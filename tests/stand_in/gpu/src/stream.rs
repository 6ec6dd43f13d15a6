//! Streams: an engine's stream with CUDA's ordering rules.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::capture;
use crate::code::{Code, Outcome};
use crate::context::Context;
use crate::handle::{self, Handle, Object};
use crate::host;
use crate::machine::{Device, settings};
use crate::work;
use resident_backend::{
    Backend, BackendError, Dependencies, EventTiming, Memory, Position, RawEvent, RawStream,
    StreamId, Work,
};

/// One stream.
#[derive(Debug)]
pub struct Stream {
    pub handle: Handle,
    pub context: Handle,
    pub raw: Arc<dyn RawStream>,
    /// Whether this stream and the NULL stream wait for each other.
    pub is_blocking: bool,
    pub flags: u32,
    pub priority: i32,
    is_legacy: bool,
    /// See [`Context`].
    life: StreamId,
    is_destroyed: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The last queued work.
    last: Position,
    /// For each other stream of the context, the last work that this stream waits for.
    waited: HashMap<StreamId, Position>,
    /// For each other stream, the last work that this stream waits for because of the NULL stream.
    joined: HashMap<StreamId, Position>,
    /// The copies to the host that were not complete when the last one was queued.
    copies_to_host: Vec<Position>,
    /// The work that the host has waited for.
    awaited: Position,
    /// Whether a copy was queued whose bytes the host sees only behind a release.
    is_unreleased: bool,
}

impl Stream {
    /// Creates the NULL stream of a context.
    pub fn legacy(context: Handle, life: StreamId, device: &Device) -> Outcome<Arc<Self>> {
        let raw = device.engine.default_stream().map_err(|error| work::code_of_error(&error))?;
        Ok(Arc::new(Self::over(raw, 0, (context, life), 0, 0)))
    }

    /// Creates a stream of a context.
    pub fn new(context: &Context, flags: u32, priority: i32) -> Outcome<Arc<Self>> {
        let raw =
            context.device.engine.new_stream(None).map_err(|error| work::code_of_error(&error))?;
        let of_context = (context.handle, context.life());
        let stream = Arc::new(Self::over(raw, handle::next(), of_context, flags, priority));
        handle::insert(stream.handle, Object::Stream(Arc::clone(&stream)));
        context.add_stream(Arc::clone(&stream));
        Ok(stream)
    }

    fn over(
        raw: Arc<dyn RawStream>,
        handle: Handle,
        (context, life): (Handle, StreamId),
        flags: u32,
        priority: i32,
    ) -> Self {
        let is_legacy = handle == 0;
        let (is_destroyed, state) = (AtomicBool::new(false), Mutex::new(State::default()));
        Self {
            handle,
            context,
            raw,
            is_blocking: !is_legacy && flags & 1 == 0,
            flags,
            priority,
            is_legacy,
            life,
            is_destroyed,
            state,
        }
    }

    /// Destroys the handle. Queued work still runs.
    pub fn destroy(&self) {
        self.is_destroyed.store(true, Ordering::Release);
    }

    /// Whether the handle is destroyed.
    pub fn is_destroyed(&self) -> bool {
        self.is_destroyed.load(Ordering::Acquire)
    }

    /// Whether the handle is destroyed and all work is complete.
    pub fn is_over(&self) -> bool {
        self.is_destroyed.load(Ordering::Acquire) && self.raw.completed() >= self.raw.tail()
    }

    /// Queues work that `make` builds from its dependencies.
    pub fn submit(
        &self,
        context: &Context,
        make: impl FnOnce(Dependencies) -> Work,
    ) -> Outcome<Position> {
        self.join(context)?;
        let mut state = self.state();
        let work = make(self.depends_in(&state));
        let to_host = match &work {
            Work::Copy(copy) => match &copy.destination {
                Memory::Host(memory) => Some(memory.base().addr() as u64),
                Memory::Device(_) => None,
            },
            _ => None,
        };
        let position = self.raw.submit(work).map_err(|error| work::code_of_error(&error))?;
        state.last = position;
        if let Some(address) = to_host {
            state.is_unreleased |= host::around(address).is_some_and(|range| range.needs_release());
            let completed = self.raw.completed();
            state.copies_to_host.retain(|copy| *copy > completed);
            state.copies_to_host.push(position);
        }
        Ok(position)
    }

    /// The dependencies of work that is queued now: earlier work of this stream, work that the
    /// stream waits for, and the life of the context.
    pub fn depends(&self) -> Dependencies {
        self.depends_in(&self.state())
    }

    fn depends_in(&self, state: &State) -> Dependencies {
        let waited = state.waited.iter().map(|(raw, position)| (*raw, *position));
        let own = [(self.raw.id(), state.last), (self.life, Position(1))];
        waited.chain(own).collect()
    }

    /// If the stream is running a copy to the host, waits for its end. The context is lost, so that
    /// no other copy begins. Other work is not waited for: it may wait for the caller.
    pub fn end_copy_to_host(&self) {
        let next = Position(self.raw.completed().0 + 1);
        let is_copy = self.state().copies_to_host.contains(&next);
        if is_copy {
            // A failure has the same effect as success: the copy has ended.
            let _outcome = self.wait_until(next);
        }
    }

    /// Queues another ordered operation: a free or an event record.
    pub fn ordered<T>(
        &self,
        context: &Context,
        call: impl FnOnce(&dyn RawStream) -> Result<T, BackendError>,
    ) -> Outcome<T> {
        self.join(context)?;
        call(self.raw.as_ref()).map_err(|error| work::code_of_error(&error))
    }

    /// Takes note of an event that releases all bytes to the host, or of another. Returns whether
    /// there are bytes that it does not release.
    pub fn release(&self, is_to_host: bool) -> bool {
        let mut state = self.state();
        state.is_unreleased &= !is_to_host;
        state.is_unreleased
    }

    /// Makes later work wait for an event. `work` is the work that precedes the event in its
    /// stream, if that stream belongs to the same context.
    pub fn wait_for(
        &self,
        context: &Context,
        event: &dyn RawEvent,
        work: Option<Position>,
    ) -> Outcome {
        self.ordered(context, |raw| raw.wait(event))?;
        if let Some(position) = work {
            let mut state = self.state();
            let known = state.waited.entry(event.stream()).or_default();
            *known = position.max(*known);
        }
        Ok(())
    }

    /// The last queued work.
    pub fn last(&self) -> Position {
        self.state().last
    }

    /// Waits until all work up to a position is complete.
    pub fn wait_until(&self, position: Position) -> Outcome {
        self.raw.synchronize_to(position).map_err(|error| work::code_of_error(&error))?;
        let mut state = self.state();
        state.awaited = state.awaited.max(position);
        Ok(())
    }

    /// Waits until all work queued so far is complete, then returns an error if the context is
    /// lost.
    pub fn synchronize(&self, context: &Context) -> Outcome {
        capture::check_stream(self.handle)?;
        self.wait_until(self.raw.tail())?;
        self.release(true);
        context.device.ledger().settle();
        context.check()
    }

    /// Whether all work queued so far is complete.
    pub fn query(&self, context: &Context) -> Outcome {
        capture::check_stream(self.handle)?;
        let is_done =
            self.raw.poll(self.raw.tail()).map_err(|error| work::code_of_error(&error))?;
        context.check()?;
        let is_told = settings().says_idle || self.state().awaited >= self.raw.tail();
        if is_done && is_told { Ok(()) } else { Err(Code::NOT_READY) }
    }

    /// Applies the rule of the NULL stream: the NULL stream and blocking streams wait for each
    /// other.
    fn join(&self, context: &Context) -> Outcome {
        if capture::status(self.handle) != 0 {
            return Err(Code::STREAM_CAPTURE_UNSUPPORTED);
        }
        if self.is_legacy {
            let others = context.streams();
            others
                .iter()
                .filter(|stream| stream.is_blocking)
                .try_for_each(|stream| self.come_behind(stream))
        } else if self.is_blocking {
            self.come_behind(&context.legacy)
        } else {
            Ok(())
        }
    }

    fn come_behind(&self, other: &Self) -> Outcome {
        let (id, last) = (other.raw.id(), other.raw.tail());
        if last == Position::START
            || self.state().joined.get(&id).is_some_and(|joined| *joined >= last)
        {
            return Ok(());
        }
        let failed = |error| work::code_of_error(&error);
        let event = other.raw.record(EventTiming::Disabled).map_err(failed)?;
        self.raw.wait(event.as_ref()).map_err(failed)?;
        self.state().joined.insert(id, event.position());
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
