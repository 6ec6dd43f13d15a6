//! The driver's events. They are reused, because creating one costs more than recording it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::result;
use cudarc::driver::sys::{self, CUresult};

use crate::backend::cuda::call::{check, check_between, checked};
use crate::backend::cuda::capture_mode::Relaxed;
use crate::backend::cuda::context::Context;
use crate::backend::cuda::library::DRIVER;
use crate::backend::{BackendError, BackendErrorKind};

/// Unused events of one device.
#[derive(Debug)]
pub(crate) struct EventPool {
    context: Arc<Context>,
    /// Two lists: events without timing, and events with timing.
    free: [Mutex<Vec<Handle>>; 2],
}

/// One of the driver's events. Dropping it returns the event to its pool. The event may then be
/// recorded again even if a queued wait still refers to it: the driver's wait uses the last record
/// made before the wait was queued.
#[derive(Debug)]
pub(super) struct DriverEvent {
    handle: Handle,
    timing: bool,
    pool: Arc<EventPool>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Handle(sys::CUevent);

// SAFETY: the handle only names an event, and the driver's functions are thread-safe.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl EventPool {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context, free: [Mutex::default(), Mutex::default()] }
    }

    /// An event to be recorded; the context is current.
    pub(super) fn take(self: &Arc<Self>, timing: bool) -> Result<DriverEvent, BackendError> {
        let unused = self.list(timing).pop();
        let handle = match unused {
            Some(handle) => handle,
            None => self.create(timing)?,
        };
        Ok(DriverEvent { handle, timing, pool: Arc::clone(self) })
    }

    fn create(&self, timing: bool) -> Result<Handle, BackendError> {
        let flags = if timing {
            sys::CUevent_flags::CU_EVENT_DEFAULT
        } else {
            sys::CUevent_flags::CU_EVENT_DISABLE_TIMING
        };
        self.context.record_loss(checked(result::event::create(flags), "cuEventCreate")).map(Handle)
    }

    fn list(&self, timing: bool) -> MutexGuard<'_, Vec<Handle>> {
        self.free[usize::from(timing)].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for EventPool {
    fn drop(&mut self) {
        // If the context is dead or the process ends, the driver frees the events itself.
        if self.context.make_current().is_err() {
            return;
        }
        for list in &self.free {
            for Handle(event) in list.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
                // SAFETY: `create` made the event, and its last `DriverEvent` put it back.
                let _freed_with_the_context = unsafe { sys::cuEventDestroy_v2(event) };
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
    pub(super) fn record(&self, stream: sys::CUstream) -> Result<(), BackendError> {
        // SAFETY: the caller owns the stream, and `self` the event.
        let outcome = unsafe { sys::cuEventRecord(self.handle.0, stream) };
        self.pool.context.record_loss(check(outcome, "cuEventRecord"))
    }

    /// Makes `stream` wait for the event. The stream's context is current; the event may belong to
    /// another context.
    pub(super) fn make_wait(
        &self,
        stream: sys::CUstream,
        context: sys::CUcontext,
    ) -> Result<(), BackendError> {
        // SAFETY: as in `record`; the driver allows a wait for an event of another context.
        let outcome = unsafe { sys::cuStreamWaitEvent(stream, self.handle.0, 0) };
        if self.pool.context.cudarc().cu_ctx() == context {
            check(outcome, "cuStreamWaitEvent")
        } else {
            check_between(outcome, "cuStreamWaitEvent")
        }
    }

    /// Whether the device has reached the event. An error means that the context failed.
    pub(super) fn is_past(&self) -> Result<bool, BackendError> {
        self.pool.context.make_current()?;
        let _relaxed = Relaxed::enter();
        // SAFETY: `self` owns the event.
        match unsafe { sys::cuEventQuery(self.handle.0) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            other => self.pool.context.record_loss(check(other, "cuEventQuery")).map(|()| true),
        }
    }

    /// Blocks until the device has reached the event.
    pub(super) fn wait(&self) -> Result<(), BackendError> {
        self.pool.context.make_current()?;
        // SAFETY: `self` owns the event.
        let outcome = unsafe { sys::cuEventSynchronize(self.handle.0) };
        self.pool.context.record_loss(check(outcome, "cuEventSynchronize"))
    }

    pub(super) fn has_timing(&self) -> bool {
        self.timing
    }

    /// The time between two events with timing, both of which the device has reached. Events of two
    /// GPUs have no common clock.
    pub(super) fn milliseconds_since(&self, earlier: &Self) -> Result<f32, BackendError> {
        let context = &self.pool.context;
        if context.ordinal() != earlier.pool.context.ordinal() {
            return Err(no_timing("the two events are of two GPUs, whose clocks differ"));
        }
        context.make_current()?;
        context.record_loss(milliseconds_between(earlier.handle, self.handle))
    }
}

/// Calls the first version of the driver's function, which every driver has. The bindings call a
/// newer version, and panic if the driver lacks it (before CUDA 12.8).
fn milliseconds_between(Handle(start): Handle, Handle(end): Handle) -> Result<f32, BackendError> {
    type ElapsedTime = unsafe extern "C" fn(*mut f32, sys::CUevent, sys::CUevent) -> CUresult;
    // SAFETY: the type is that of the driver function.
    let function = unsafe { DRIVER.function::<ElapsedTime>("cuEventElapsedTime") };
    let function = function.ok_or_else(|| no_timing("the driver has no such function"))?;
    let mut milliseconds = 0.0;
    // SAFETY: the driver writes one number. The two events are alive, were recorded with timing,
    // and have completed: `CudaEvent::elapsed_since` checked that.
    let outcome = unsafe { function(&raw mut milliseconds, start, end) };
    check(outcome, "cuEventElapsedTime").map(|()| milliseconds)
}

pub(super) fn no_timing(detail: &str) -> BackendError {
    BackendError {
        kind: BackendErrorKind::NoTiming,
        call: "cuEventElapsedTime",
        detail: detail.to_owned(),
    }
}
