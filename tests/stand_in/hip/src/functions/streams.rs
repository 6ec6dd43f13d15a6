//! Streams, and host functions in stream order.

use std::ffi::c_void;
use std::sync::Arc;

use super::hip_functions;
use resident_stand_in_gpu::arguments::{In, Out};
use resident_stand_in_gpu::capture;
use resident_stand_in_gpu::code::{Code, Outcome};
use resident_stand_in_gpu::context::Context;
use resident_stand_in_gpu::handle::{self, Handle};
use resident_stand_in_gpu::kernel::{self, HostFunction};
use resident_stand_in_gpu::stream::Stream;

/// `hipStreamNonBlocking`.
const FLAGS_MAX: u32 = 1;
/// The lowest and the highest priority.
const PRIORITIES: [i32; 2] = [1, -1];

hip_functions! {
    hipDeviceGetStreamPriorityRange(least: Out<i32>, greatest: Out<i32>) {
        least.set_if_wanted(PRIORITIES[0]);
        greatest.set_if_wanted(PRIORITIES[1]);
        Ok(())
    }

    hipStreamCreate(stream: Out<Handle>) {
        create(stream, 0, 0)
    }

    hipStreamCreateWithFlags(stream: Out<Handle>, flags: u32) {
        create(stream, flags, 0)
    }

    hipStreamCreateWithPriority(stream: Out<Handle>, flags: u32, priority: i32) {
        // A priority outside the range is clamped.
        create(stream, flags, priority.clamp(PRIORITIES[1], PRIORITIES[0]))
    }

    hipStreamDestroy(stream: Handle) {
        let destroyed = handle::stream(stream)?;
        handle::remove(stream);
        destroyed.destroy();
        Ok(())
    }

    hipStreamSynchronize(stream: Handle) {
        let (context, stream) = any(stream)?;
        stream.synchronize(&context)
    }

    hipStreamQuery(stream: Handle) {
        let (context, stream) = any(stream)?;
        stream.query(&context)
    }

    hipStreamWaitEvent(stream: Handle, event: Handle, flags: u32) {
        let (context, stream) = own(stream)?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        handle::event(event)?.make_wait(&context, &stream)
    }

    hipStreamGetFlags(stream: Handle, flags: Out<u32>) {
        flags.set(any(stream)?.1.flags)
    }

    hipStreamGetPriority(stream: Handle, priority: Out<i32>) {
        priority.set(any(stream)?.1.priority)
    }

    hipStreamIsCapturing(stream: Handle, status: Out<u32>) {
        status.set(capture::status(any(stream)?.1.handle))
    }

    hipStreamBeginCapture(stream: Handle, mode: u32) {
        let (context, stream) = any(stream)?;
        capture::begin(stream.handle, context.handle, mode)
    }

    hipStreamEndCapture(stream: Handle, graph: Out<Handle>) {
        let (_, stream) = any(stream)?;
        graph.set(0)?;
        capture::end(stream.handle)
    }

    hipThreadExchangeStreamCaptureMode(mode: In<u32>) {
        mode.place(0).set(capture::exchange_mode(mode.get()?)?)
    }

    hipLaunchHostFunc(
        stream: Handle,
        function: Option<unsafe extern "C" fn(*mut c_void)>,
        data: *mut c_void,
    ) {
        let (context, stream) = own(stream)?;
        let function = function.ok_or(Code::INVALID_VALUE)?;
        kernel::launch_host(&context, &stream, HostFunction::Plain { function, data })
    }

    hipStreamAddCallback(
        stream: Handle,
        function: Option<unsafe extern "C" fn(Handle, u32, *mut c_void)>,
        data: *mut c_void,
        flags: u32,
    ) {
        let (context, queue) = own(stream)?;
        let function = function.filter(|_| flags == 0).ok_or(Code::INVALID_VALUE)?;
        kernel::launch_host(&context, &queue, HostFunction::Callback { function, stream, data })
    }
}

fn create(place: Out<Handle>, flags: u32, priority: i32) -> Outcome {
    place.check()?;
    if flags > FLAGS_MAX {
        return Err(Code::INVALID_VALUE);
    }
    let context = Context::current()?;
    place.set(Stream::new(&context, flags, priority)?.handle)
}

/// A stream of the current device, and its context. The number 1 is no stream before HIP 6.2.
pub(super) fn own(stream: Handle) -> Outcome<(Arc<Context>, Arc<Stream>)> {
    let context = Context::current()?;
    if stream == 1 {
        return Err(Code::INVALID_HANDLE);
    }
    let stream = context.stream(stream)?;
    Ok((context, stream))
}

/// A stream of any device, and its context. The NULL stream belongs to the current device.
fn any(stream: Handle) -> Outcome<(Arc<Context>, Arc<Stream>)> {
    own(stream).or_else(|refused| {
        let stream = handle::stream(stream).map_err(|_| refused)?;
        Ok((handle::context(stream.context)?, stream))
    })
}
