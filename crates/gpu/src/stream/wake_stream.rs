//! Streams that tell the host when an event is reached: each waits for one event, then runs a host
//! function. So no thread polls, and a task is told of exactly the work that it waits for. The host
//! function may not call the driver, and runs no user code.
//!
//! Only a stream's first awaited position needs one. An event with blocking synchronization for
//! each task would need a thread for each task, which sleeps in the driver. A thread that waits for
//! an array sleeps in `cuEventSynchronize` or spins there, as the context's flags say.

use std::ptr::null_mut;
use std::sync::Arc;

use super::driver_event::DriverEvent;
use crate::context::Context;
use crate::driver::HostFunction;
use crate::owned_stream::OwnedStream;
use resident_backend::BackendError;
use resident_backend::sync::{BackendGuard, BackendLock};

/// At most this many streams of a device tell at a time. Tasks beyond them are polled for.
const STREAMS_MAX: usize = 16;

/// The streams of one device.
#[derive(Debug)]
pub(crate) struct WakeStreams {
    context: Arc<Context>,
    streams: BackendLock<Streams>,
}

#[derive(Debug, Default)]
struct Streams {
    free: Vec<OwnedStream>,
    count: usize,
}

/// A stream in use. Dropping it returns it: a later event waits behind a host function that has not
/// run yet.
#[derive(Debug)]
pub(super) struct WakeStream {
    /// `Some` until the drop.
    stream: Option<OwnedStream>,
    pool: Arc<WakeStreams>,
}

impl WakeStreams {
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context, streams: BackendLock::default() }
    }

    /// Calls `function` when the device reaches `event`, unless the context dies before. Returns
    /// `None` if all streams are in use. The device's context is current.
    pub(super) fn call_at(
        self: &Arc<Self>,
        event: &DriverEvent,
        function: HostFunction,
    ) -> Result<Option<WakeStream>, BackendError> {
        let driver = self.context.driver();
        let Some(launch) = &driver.launch_host_function else { return Ok(None) };
        let Some(wake) = self.take()? else { return Ok(None) };
        let handle = wake.stream.as_ref().map_or(null_mut(), OwnedStream::handle);
        event.make_wait(handle, self.context.place().token)?;
        // SAFETY: `wake` owns the stream. The function accepts null (the caller's promise).
        let outcome = unsafe { (launch.function)(handle, function, null_mut()) };
        self.context.record_death(launch.check(outcome))?;
        Ok(Some(wake))
    }

    fn take(self: &Arc<Self>) -> Result<Option<WakeStream>, BackendError> {
        let mut streams = self.streams();
        let unused = streams.free.pop();
        if unused.is_none() && streams.count == STREAMS_MAX {
            return Ok(None);
        }
        streams.count += usize::from(unused.is_none());
        drop(streams);
        let stream = match unused {
            Some(stream) => stream,
            None => OwnedStream::unshared(&self.context, None)
                .inspect_err(|_| self.streams().count -= 1)?,
        };
        Ok(Some(WakeStream { stream: Some(stream), pool: Arc::clone(self) }))
    }

    fn streams(&self) -> BackendGuard<'_, Streams> {
        self.streams.lock()
    }
}

impl Drop for WakeStream {
    fn drop(&mut self) {
        self.pool.streams().free.extend(self.stream.take());
    }
}
