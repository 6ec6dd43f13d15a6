//! The driver's events. They are reused, because creating one costs more than recording it.

use std::sync::Arc;

use crate::capture_mode::Relaxed;
use crate::context::Context;
use crate::driver::{Driver, EventHandle, StreamHandle, status};
use resident_backend::sync::{BackendGuard, BackendLock};
use resident_backend::{BackendError, EventTiming};

/// Unused events of one device.
#[derive(Debug)]
pub(crate) struct EventPool {
    context: Arc<Context>,
    /// Two lists: events without timing, and events with timing.
    free: [BackendLock<Vec<Handle>>; 2],
}

/// One of the driver's events. Dropping it returns the event to its pool. The event may then be
/// recorded again even if a queued wait still refers to it: the driver's wait uses the last record
/// made before the wait was queued.
#[derive(Debug)]
pub(crate) struct DriverEvent {
    handle: Handle,
    timing: EventTiming,
    pool: Arc<EventPool>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Handle(EventHandle);

// SAFETY: the handle only names an event, and the driver's functions are thread-safe.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl EventPool {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context, free: [BackendLock::default(), BackendLock::default()] }
    }

    /// An event to be recorded; the context is current.
    pub(crate) fn take(self: &Arc<Self>, timing: EventTiming) -> Result<DriverEvent, BackendError> {
        let unused = self.list(timing).pop();
        let handle = match unused {
            Some(handle) => handle,
            None => self.create(timing)?,
        };
        Ok(DriverEvent { handle, timing, pool: Arc::clone(self) })
    }

    fn create(&self, timing: EventTiming) -> Result<Handle, BackendError> {
        const DISABLE_TIMING: u32 = 2;
        let driver = self.context.driver();
        let flags = match timing {
            EventTiming::Enabled => driver.vendor.event_flags,
            EventTiming::Disabled => driver.vendor.event_flags | DISABLE_TIMING,
        };
        let (mut event, create) = (std::ptr::null_mut(), &driver.event_create);
        // SAFETY: the context is current (the caller's promise); the driver writes one handle.
        let outcome = unsafe { (create.function)(&raw mut event, flags) };
        self.context.record_death(create.check(outcome)).map(|()| Handle(event))
    }

    fn list(&self, timing: EventTiming) -> BackendGuard<'_, Vec<Handle>> {
        self.free[timing as usize].lock()
    }
}

impl Drop for EventPool {
    fn drop(&mut self) {
        // If the context is dead or the process ends, the driver frees the events itself.
        if self.context.make_current().is_err() {
            return;
        }
        for list in &self.free {
            for Handle(event) in list.lock().drain(..) {
                // SAFETY: `create` made the event, and its last `DriverEvent` put it back.
                let _freed_with_the_context =
                    unsafe { (self.context.driver().event_destroy.function)(event) };
            }
        }
    }
}

impl Drop for DriverEvent {
    fn drop(&mut self) {
        self.pool.list(self.timing).push(self.handle);
    }
}

impl DriverEvent {
    /// Records the event after all work queued on `stream`. The stream belongs to the pool's
    /// context, which is current.
    pub(crate) fn record(&self, stream: StreamHandle) -> Result<(), BackendError> {
        let context = &self.pool.context;
        let record = &context.driver().event_record;
        // SAFETY: the caller owns the stream, and `self` the event.
        let outcome = unsafe { (record.function)(self.handle.0, stream) };
        context.record_death(record.check(outcome))
    }

    /// Makes `stream` wait for the event. The stream's context, whose token is given, is current;
    /// the event may belong to another context of the same driver.
    pub(crate) fn make_wait(&self, stream: StreamHandle, token: u64) -> Result<(), BackendError> {
        let wait = &self.pool.context.driver().stream_wait_event;
        // SAFETY: as in `record`; the driver allows a wait for an event of another context.
        let outcome = unsafe { (wait.function)(stream, self.handle.0, 0) };
        if self.pool.context.place().token == token {
            wait.check(outcome)
        } else {
            wait.check_between(outcome)
        }
    }

    /// Whether the device has reached the event. An error means that the context failed.
    pub(super) fn is_past(&self) -> Result<bool, BackendError> {
        let context = &self.pool.context;
        context.make_current()?;
        let _relaxed = Relaxed::enter(context.driver());
        let query = &context.driver().event_query;
        // SAFETY: `self` owns the event.
        match unsafe { (query.function)(self.handle.0) } {
            status::NOT_READY => Ok(false),
            other => context.record_death(query.check(other)).map(|()| true),
        }
    }

    /// Blocks until the device has reached the event.
    pub(super) fn wait(&self) -> Result<(), BackendError> {
        let context = &self.pool.context;
        context.make_current()?;
        let _relaxed = Relaxed::enter(context.driver());
        let wait = &context.driver().event_synchronize;
        // SAFETY: `self` owns the event.
        let outcome = unsafe { (wait.function)(self.handle.0) };
        context.record_death(wait.check(outcome))
    }

    pub(super) fn has_timing(&self) -> bool {
        self.timing == EventTiming::Enabled
    }

    /// The time between two events with timing, both of which the device has reached. Events of two
    /// GPUs have no common clock.
    pub(super) fn milliseconds_since(&self, earlier: &Self) -> Result<f32, BackendError> {
        let context = &self.pool.context;
        let other = &earlier.pool.context;
        if (context.kind(), context.ordinal()) != (other.kind(), other.ordinal()) {
            return Err(BackendError::no_timing(
                "the two events are of two GPUs, whose clocks differ",
            ));
        }
        context.make_current()?;
        let mut milliseconds = 0.0;
        let ask = &context.driver().event_elapsed_time;
        // SAFETY: the driver writes one number. The two events are alive, were recorded with
        // timing, and have completed: `GpuEvent::elapsed_since` checked that.
        let outcome =
            unsafe { (ask.function)(&raw mut milliseconds, earlier.handle.0, self.handle.0) };
        context.record_death(ask.check(outcome)).map(|()| milliseconds)
    }

    /// Whether the event belongs to this driver.
    pub(super) fn is_of(&self, driver: &Driver) -> bool {
        std::ptr::eq(self.pool.context.driver(), driver)
    }
}
