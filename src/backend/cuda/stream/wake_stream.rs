//! Streams that tell the host when an event is reached: each waits for one event, then runs a host
//! function. So no thread polls, and a task is told of exactly the work that it waits for. The host
//! function may not call the driver, and runs no user code.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys;

use super::driver_event::DriverEvent;
use crate::backend::BackendError;
use crate::backend::cuda::call::check;
use crate::backend::cuda::capture_mode::Relaxed;
use crate::backend::cuda::context::Context;

/// At most this many streams of a device tell at a time. Tasks beyond them are polled for.
const STREAMS_MAX: usize = 16;

/// What a stream runs on a thread of the driver. The argument is null.
pub(super) type HostFunction = unsafe extern "C" fn(*mut c_void);

/// The streams of one device.
#[derive(Debug)]
pub(crate) struct WakeStreams {
    context: Arc<Context>,
    streams: Mutex<Streams>,
}

#[derive(Debug, Default)]
struct Streams {
    free: Vec<Handle>,
    count: usize,
}

/// A stream in use. Dropping it returns it: a later event waits behind a host function that has not
/// run yet.
#[derive(Debug)]
pub(super) struct WakeStream {
    handle: Handle,
    pool: Arc<WakeStreams>,
}

#[derive(Clone, Copy, Debug)]
struct Handle(sys::CUstream);

// SAFETY: the handle only names a stream, and the driver's functions are thread-safe.
unsafe impl Send for Handle {}

impl WakeStreams {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context, streams: Mutex::default() }
    }

    /// Calls `function` when the device reaches `event`, unless the context dies before. Returns
    /// `None` if all streams are in use. The device's context is current.
    pub(super) fn call_at(
        self: &Arc<Self>,
        event: &DriverEvent,
        function: HostFunction,
    ) -> Result<Option<WakeStream>, BackendError> {
        let Some(stream) = self.take()? else { return Ok(None) };
        let Handle(handle) = stream.handle;
        event.make_wait(handle, self.context.cudarc().cu_ctx())?;
        // SAFETY: `stream` owns the handle. The function accepts null (`HostFunction`).
        let outcome = unsafe { sys::cuLaunchHostFunc(handle, Some(function), null_mut()) };
        self.context.record_loss(check(outcome, "cuLaunchHostFunc"))?;
        Ok(Some(stream))
    }

    fn take(self: &Arc<Self>) -> Result<Option<WakeStream>, BackendError> {
        let mut streams = self.streams();
        let unused = streams.free.pop();
        if unused.is_none() && streams.count == STREAMS_MAX {
            return Ok(None);
        }
        streams.count += usize::from(unused.is_none());
        drop(streams);
        let handle = match unused {
            Some(handle) => handle,
            None => self.create().inspect_err(|_| self.streams().count -= 1)?,
        };
        Ok(Some(WakeStream { handle, pool: Arc::clone(self) }))
    }

    fn create(&self) -> Result<Handle, BackendError> {
        const NON_BLOCKING: u32 = 1;
        let mut stream = null_mut();
        let _relaxed = Relaxed::enter();
        // SAFETY: the context is current; the driver writes one handle.
        let outcome = unsafe { sys::cuStreamCreate(&raw mut stream, NON_BLOCKING) };
        self.context.record_loss(check(outcome, "cuStreamCreate")).map(|()| Handle(stream))
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WakeStream {
    fn drop(&mut self) {
        self.pool.streams().free.push(self.handle);
    }
}

impl Drop for WakeStreams {
    fn drop(&mut self) {
        // If the context is dead or the process ends, the driver frees the streams itself.
        if self.context.make_current().is_err() {
            return;
        }
        let streams = self.streams.get_mut().unwrap_or_else(PoisonError::into_inner);
        for Handle(stream) in streams.free.drain(..) {
            // SAFETY: `create` made the stream, and its last `WakeStream` put it back. The driver
            // frees it after its work.
            let _freed_with_the_context = unsafe { sys::cuStreamDestroy_v2(stream) };
        }
    }
}
