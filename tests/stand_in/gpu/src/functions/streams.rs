//! Streams, and host functions in stream order.

use std::ffi::c_void;
use std::sync::Arc;

use crate::arguments::{In, Out};
use crate::capture;
use crate::code::{Code, Outcome};
use crate::context::Context;
use crate::functions::check_current;
use crate::handle::{self, Handle};
use crate::kernel::{self, HostFunction};
use crate::stream::Stream;

/// Creates a stream. The only flag is that of streams that do not block.
pub fn create(place: Out<Handle>, flags: u32, priority: i32) -> Outcome {
    place.check()?;
    let context = Context::current()?;
    if flags > 1 {
        return Err(Code::INVALID_VALUE);
    }
    place.set(Stream::new(&context, flags, priority)?.handle)
}

/// Waits for the work of a stream.
pub fn synchronize(stream: Handle) -> Outcome {
    let (context, stream) = any(stream)?;
    stream.synchronize(&context)
}

/// Whether the work of a stream is complete.
pub fn query(stream: Handle) -> Outcome {
    let (context, stream) = any(stream)?;
    stream.query(&context)
}

/// Writes the flags of a stream.
pub fn flags(stream: Handle, flags: Out<u32>) -> Outcome {
    flags.set(any(stream)?.1.flags)
}

/// Writes the priority of a stream.
pub fn priority(stream: Handle, priority: Out<i32>) -> Outcome {
    priority.set(any(stream)?.1.priority)
}

/// Writes whether a stream is being captured.
pub fn is_capturing(stream: Handle, status: Out<u32>) -> Outcome {
    status.set(capture::status(any(stream)?.1.handle))
}

/// Begins the capture of a stream.
pub fn begin_capture(stream: Handle, mode: u32) -> Outcome {
    let (context, stream) = any(stream)?;
    capture::begin(stream.handle, context.handle, mode)
}

/// Ends the capture of a stream. There is no graph.
pub fn end_capture(stream: Handle, graph: Out<Handle>) -> Outcome {
    let (_, stream) = any(stream)?;
    graph.set(0)?;
    capture::end(stream.handle)
}

/// Replaces this thread's mode of captures by `mode`, which gets the previous one.
pub fn exchange_capture_mode(mode: In<u32>) -> Outcome {
    mode.place(0).set(capture::exchange_mode(mode.get()?)?)
}

/// A stream of any context, and its context. The NULL stream belongs to the current context.
pub fn any(stream: Handle) -> Outcome<(Arc<Context>, Arc<Stream>)> {
    check_current()?;
    Context::current_and_stream(stream).or_else(|refused| {
        let stream = handle::stream(stream).map_err(|_| refused)?;
        Ok((handle::context(stream.context)?, stream))
    })
}

/// Queues a host function.
pub fn launch_host(
    stream: Handle,
    function: Option<unsafe extern "C" fn(*mut c_void)>,
    data: *mut c_void,
) -> Outcome {
    let (context, stream) = Context::current_and_stream(stream)?;
    let function = function.ok_or(Code::INVALID_VALUE)?;
    kernel::launch_host(&context, &stream, HostFunction::Plain { function, data })
}

/// Queues a callback, which gets the outcome of the work before it.
pub fn add_callback(
    stream: Handle,
    function: Option<unsafe extern "C" fn(Handle, u32, *mut c_void)>,
    data: *mut c_void,
    flags: u32,
) -> Outcome {
    let (context, known) = Context::current_and_stream(stream)?;
    let function = function.filter(|_| flags == 0).ok_or(Code::INVALID_VALUE)?;
    kernel::launch_host(&context, &known, HostFunction::Callback { function, stream, data })
}
