//! Streams, and host functions in stream order.

use std::ffi::c_void;

use super::driver_functions;
use resident_stand_in_gpu::arguments::{In, Out};
use resident_stand_in_gpu::code::Code;
use resident_stand_in_gpu::context::Context;
use resident_stand_in_gpu::functions::streams;
use resident_stand_in_gpu::handle::{self, Handle};

driver_functions! {
    cuStreamCreate(stream: Out<Handle>, flags: u32) {
        streams::create(stream, flags, 0)
    }

    cuStreamCreateWithPriority(stream: Out<Handle>, flags: u32, priority: i32) {
        // A priority outside the range is clamped.
        streams::create(stream, flags, priority.clamp(-5, 0))
    }

    cuStreamDestroy_v2(stream: Handle) {
        let context = Context::current_if_lost()?;
        let destroyed = handle::stream(stream)?;
        handle::remove(stream);
        destroyed.destroy();
        context.check()
    }

    cuStreamSynchronize = streams::synchronize(stream: Handle);
    cuStreamQuery = streams::query(stream: Handle);

    cuStreamWaitEvent(stream: Handle, event: Handle, flags: u32) {
        let (context, stream) = Context::current_and_stream(stream)?;
        // Flag 1 marks events that are external to a capture.
        if flags > 1 {
            return Err(Code::INVALID_VALUE);
        }
        handle::event(event)?.make_wait(&context, &stream)
    }

    cuStreamGetCtx(stream: Handle, context: Out<Handle>) {
        context.set(streams::any(stream)?.1.context)
    }

    cuStreamGetFlags = streams::flags(stream: Handle, flags: Out<u32>);
    cuStreamGetPriority = streams::priority(stream: Handle, priority: Out<i32>);
    cuStreamIsCapturing = streams::is_capturing(stream: Handle, status: Out<u32>);
    cuStreamBeginCapture_v2 = streams::begin_capture(stream: Handle, mode: u32);
    cuStreamEndCapture = streams::end_capture(stream: Handle, graph: Out<Handle>);
    cuThreadExchangeStreamCaptureMode = streams::exchange_capture_mode(mode: In<u32>);

    cuStreamGetCaptureInfo_v2(
        stream: Handle,
        status: Out<u32>,
        id: Out<u64>,
        graph: Out<Handle>,
        dependencies: Out<Handle>,
        count: Out<usize>,
    ) {
        streams::is_capturing(stream, status)?;
        id.set_if_wanted(0);
        graph.set_if_wanted(0);
        dependencies.set_if_wanted(0);
        count.set_if_wanted(0);
        Ok(())
    }

    cuLaunchHostFunc = streams::launch_host(
        stream: Handle,
        function: Option<unsafe extern "C" fn(*mut c_void)>,
        data: *mut c_void,
    );

    cuStreamAddCallback = streams::add_callback(
        stream: Handle,
        function: Option<unsafe extern "C" fn(Handle, u32, *mut c_void)>,
        data: *mut c_void,
        flags: u32,
    );
}
