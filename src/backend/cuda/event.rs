//! Events: the driver's, taken from a store and put back, since making one costs more than
//! recording it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cudarc::driver::result;
use cudarc::driver::sys::{self, CUresult};

use super::call::{check, check_between, checked};
use super::context::Context;
use super::library::DRIVER;
use super::stream::QueueCore;
use crate::backend::{BackendError, BackendErrorKind, Position, QueueId, RawEvent};

/// Events of one device that nobody uses.
#[derive(Debug)]
pub(super) struct EventStore {
    context: Arc<Context>,
    /// With a time, and without.
    free: [Mutex<Vec<Handle>>; 2],
}

/// The driver's handle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Handle(sys::CUevent);

// SAFETY: an event may be used from any thread: the driver's functions are thread safe, and the
// handle is nothing but a name.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl EventStore {
    pub(super) fn new(context: Arc<Context>) -> Self {
        Self { context, free: [Mutex::default(), Mutex::default()] }
    }

    /// An event to be recorded; the context is current.
    pub(super) fn take(self: &Arc<Self>, timing: bool) -> Result<DriverEvent, BackendError> {
        let known = self.list(timing).pop();
        let handle = match known {
            Some(handle) => handle,
            None => self.create(timing)?,
        };
        Ok(DriverEvent { handle, timing, store: Arc::clone(self) })
    }

    fn create(&self, timing: bool) -> Result<Handle, BackendError> {
        let flags = if timing {
            sys::CUevent_flags::CU_EVENT_DEFAULT
        } else {
            sys::CUevent_flags::CU_EVENT_DISABLE_TIMING
        };
        self.context.note(checked(result::event::create(flags), "cuEventCreate")).map(Handle)
    }

    fn list(&self, timing: bool) -> std::sync::MutexGuard<'_, Vec<Handle>> {
        self.free[usize::from(timing)].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for EventStore {
    fn drop(&mut self) {
        // Where the context cannot be entered, the process ends or the context is dead: the driver
        // frees its events itself.
        if self.context.enter().is_err() {
            return;
        }
        for list in &self.free {
            for Handle(event) in list.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
                // SAFETY: the event was made by `create`, and its last user put it back.
                let _freed_with_the_context = unsafe { sys::cuEventDestroy_v2(event) };
            }
        }
    }
}

/// One of the driver's events, in use until dropped. What was recorded or is waited for stays so
/// when it is used again: waits are bound to the record that was current when they were queued.
#[derive(Debug)]
pub(super) struct DriverEvent {
    handle: Handle,
    timing: bool,
    store: Arc<EventStore>,
}

impl Drop for DriverEvent {
    fn drop(&mut self) {
        self.store.list(self.timing).push(self.handle);
    }
}

impl DriverEvent {
    /// Records it behind everything queued on `stream`, which is of the store's context; that is
    /// current.
    pub(super) fn record(&self, stream: sys::CUstream) -> Result<(), BackendError> {
        // SAFETY: both handles live, the stream by its owner who calls, the event by `self`.
        self.store
            .context
            .note(check(unsafe { sys::cuEventRecord(self.handle.0, stream) }, "cuEventRecord"))
    }

    /// Lets `stream` wait for it; the stream's context is current, which may be another than the
    /// event's.
    pub(super) fn hold_up(
        &self,
        stream: sys::CUstream,
        context: sys::CUcontext,
    ) -> Result<(), BackendError> {
        // SAFETY: as in `record`; a wait may be for an event of another context.
        let outcome = unsafe { sys::cuStreamWaitEvent(stream, self.handle.0, 0) };
        let is_own = self.store.context.cudarc().cu_ctx() == context;
        if is_own {
            check(outcome, "cuStreamWaitEvent")
        } else {
            check_between(outcome, "cuStreamWaitEvent")
        }
    }

    /// Whether it is past. An error is one of the context.
    pub(super) fn is_past(&self) -> Result<bool, BackendError> {
        self.store.context.enter()?;
        // SAFETY: the event lives.
        match unsafe { sys::cuEventQuery(self.handle.0) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            other => self.store.context.note(check(other, "cuEventQuery")).map(|()| true),
        }
    }

    /// Blocks until it is past.
    pub(super) fn wait(&self) -> Result<(), BackendError> {
        self.store.context.enter()?;
        // SAFETY: the event lives.
        self.store
            .context
            .note(check(unsafe { sys::cuEventSynchronize(self.handle.0) }, "cuEventSynchronize"))
    }
}

/// A recorded event: a point of a queue.
pub(super) struct CudaEvent {
    queue: Arc<QueueCore>,
    position: Position,
    event: Arc<DriverEvent>,
}

impl CudaEvent {
    pub(super) fn new(queue: Arc<QueueCore>, position: Position, event: Arc<DriverEvent>) -> Self {
        Self { queue, position, event }
    }

    pub(super) fn queue_core(&self) -> &Arc<QueueCore> {
        &self.queue
    }

    pub(super) fn driver_event(&self) -> &DriverEvent {
        &self.event
    }
}

impl RawEvent for CudaEvent {
    fn queue(&self) -> QueueId {
        self.queue.id()
    }

    fn position(&self) -> Position {
        self.position
    }

    fn is_complete(&self) -> Result<bool, BackendError> {
        self.queue.look_at(self.position, &self.event)
    }

    fn synchronize(&self) -> Result<(), BackendError> {
        self.queue.wait_for(self.position)
    }

    fn elapsed_since(&self, earlier: &dyn RawEvent) -> Result<Duration, BackendError> {
        let Some(earlier) = earlier.downcast_ref::<Self>() else {
            return Err(no_timing("the two events are timed by different clocks"));
        };
        if !(self.event.timing
            && earlier.event.timing
            && self.is_complete()?
            && earlier.is_complete()?)
        {
            return Err(no_timing("both events must be recorded with timing, and be complete"));
        }
        let context = &self.event.store.context;
        if context.ordinal() != earlier.event.store.context.ordinal() {
            return Err(no_timing("the two events are of two GPUs, whose clocks differ"));
        }
        context.enter()?;
        let milliseconds =
            context.note(milliseconds_between(earlier.event.handle, self.event.handle))?;
        Ok(Duration::from_secs_f64(f64::from(milliseconds.max(0.0)) / 1e3))
    }
}

impl fmt::Debug for CudaEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaEvent({:?}, position {})", self.queue.id(), self.position.0)
    }
}

/// The bindings call the function's newer form, and end the program where a driver before 12.8
/// lacks it: so the first form is looked for by name, which all have.
fn milliseconds_between(Handle(start): Handle, Handle(end): Handle) -> Result<f32, BackendError> {
    type ElapsedTime = unsafe extern "C" fn(*mut f32, sys::CUevent, sys::CUevent) -> CUresult;
    // SAFETY: this is the function's type.
    let function = unsafe { DRIVER.function::<ElapsedTime>("cuEventElapsedTime") };
    let function = function.ok_or_else(|| no_timing("the driver has no such function"))?;
    let mut milliseconds = 0.0;
    // SAFETY: the driver writes one number; both events live, were recorded with timing, and are
    // past: the caller looked.
    check(unsafe { function(&raw mut milliseconds, start, end) }, "cuEventElapsedTime")
        .map(|()| milliseconds)
}

fn no_timing(detail: &str) -> BackendError {
    BackendError {
        kind: BackendErrorKind::NoTiming,
        call: "cuEventElapsedTime",
        detail: detail.to_owned(),
    }
}
