//! Streams, and host functions in stream order.

use std::ffi::c_void;
use std::sync::Arc;

use super::driver_functions;
use resident_stand_in_gpu::arguments::{In, Out};
use resident_stand_in_gpu::capture;
use resident_stand_in_gpu::code::{Code, Outcome};
use resident_stand_in_gpu::context::Context;
use resident_stand_in_gpu::handle::{self, Handle};
use resident_stand_in_gpu::kernel::{self, HostFunction};
use resident_stand_in_gpu::stream::Stream;

/// `CU_STREAM_NON_BLOCKING`.
const FLAGS_MAX: u32 = 1;

driver_functions! {
    cuStreamCreate(stream: Out<Handle>, flags: u32) {
        create(stream, flags, 0)
    }

    cuStreamCreateWithPriority(stream: Out<Handle>, flags: u32, priority: i32) {
        // A priority outside the range is clamped.
        create(stream, flags, priority.clamp(-5, 0))
    }

    cuStreamDestroy_v2(stream: Handle) {
        let context = Context::current_if_lost()?;
        let destroyed = handle::stream(stream)?;
        handle::remove(stream);
        destroyed.destroy();
        context.check()
    }

    cuStreamSynchronize(stream: Handle) {
        let (context, stream) = any(stream)?;
        stream.synchronize(&context)
    }

    cuStreamQuery(stream: Handle) {
        let (context, stream) = any(stream)?;
        stream.query(&context)
    }

    cuStreamWaitEvent(stream: Handle, event: Handle, flags: u32) {
        let context = Context::current()?;
        let stream = context.stream(stream)?;
        // Flag 1 marks events that are external to a capture.
        if flags > 1 {
            return Err(Code::INVALID_VALUE);
        }
        handle::event(event)?.make_wait(&context, &stream)
    }

    cuStreamGetCtx(stream: Handle, context: Out<Handle>) {
        context.set(any(stream)?.1.context)
    }

    cuStreamGetFlags(stream: Handle, flags: Out<u32>) {
        flags.set(any(stream)?.1.flags)
    }

    cuStreamGetPriority(stream: Handle, priority: Out<i32>) {
        priority.set(any(stream)?.1.priority)
    }

    cuStreamIsCapturing(stream: Handle, status: Out<u32>) {
        status.set(capture::status(any(stream)?.1.handle))
    }

    cuStreamBeginCapture_v2(stream: Handle, mode: u32) {
        let (context, stream) = any(stream)?;
        capture::begin(stream.handle, context.handle, mode)
    }

    cuStreamEndCapture(stream: Handle, graph: Out<Handle>) {
        let (_, stream) = any(stream)?;
        graph.set(0)?;
        capture::end(stream.handle)
    }

    cuThreadExchangeStreamCaptureMode(mode: In<u32>) {
        mode.place(0).set(capture::exchange_mode(mode.get()?)?)
    }

    cuStreamGetCaptureInfo_v2(
        stream: Handle,
        status: Out<u32>,
        id: Out<u64>,
        graph: Out<Handle>,
        dependencies: Out<Handle>,
        count: Out<usize>,
    ) {
        status.set(capture::status(any(stream)?.1.handle))?;
        id.set_if_wanted(0);
        graph.set_if_wanted(0);
        dependencies.set_if_wanted(0);
        count.set_if_wanted(0);
        Ok(())
    }

    cuLaunchHostFunc(
        stream: Handle,
        function: Option<unsafe extern "C" fn(*mut c_void)>,
        data: *mut c_void,
    ) {
        let context = Context::current()?;
        let stream = context.stream(stream)?;
        let function = function.ok_or(Code::INVALID_VALUE)?;
        kernel::launch_host(&context, &stream, HostFunction::Plain { function, data })
    }

    cuStreamAddCallback(
        stream: Handle,
        function: Option<unsafe extern "C" fn(Handle, u32, *mut c_void)>,
        data: *mut c_void,
        flags: u32,
    ) {
        let context = Context::current()?;
        let queue = context.stream(stream)?;
        let function = function.filter(|_| flags == 0).ok_or(Code::INVALID_VALUE)?;
        kernel::launch_host(&context, &queue, HostFunction::Callback { function, stream, data })
    }
}

fn create(place: Out<Handle>, flags: u32, priority: i32) -> Outcome {
    place.check()?;
    let context = Context::current()?;
    if flags > FLAGS_MAX {
        return Err(Code::INVALID_VALUE);
    }
    place.set(Stream::new(&context, flags, priority)?.handle)
}

/// A stream of any context, and its context. The NULL stream belongs to the current context.
fn any(stream: Handle) -> Outcome<(Arc<Context>, Arc<Stream>)> {
    let current = Context::current()?;
    let own = current.stream(stream);
    let foreign =
        || handle::stream(stream).and_then(|stream| Ok((handle::context(stream.context)?, stream)));
    own.map_or_else(|_| foreign(), |stream| Ok((current, stream)))
}
