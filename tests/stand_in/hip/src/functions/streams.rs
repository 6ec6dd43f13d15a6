//! Streams, and host functions in stream order.

use std::ffi::c_void;

use super::hip_functions;
use resident_stand_in_gpu::arguments::{In, Out};
use resident_stand_in_gpu::code::Code;
use resident_stand_in_gpu::context::Context;
use resident_stand_in_gpu::functions::streams;
use resident_stand_in_gpu::handle::{self, Handle};
use resident_stand_in_gpu::machine::settings;

/// The lowest and the highest priority.
fn priorities() -> [i32; 2] {
    if settings().has_priorities { [1, -1] } else { [0, 0] }
}

hip_functions! {
    hipDeviceGetStreamPriorityRange(least: Out<i32>, greatest: Out<i32>) {
        least.set_if_wanted(priorities()[0]);
        greatest.set_if_wanted(priorities()[1]);
        Ok(())
    }

    hipStreamCreate(stream: Out<Handle>) {
        streams::create(stream, 0, 0)
    }

    hipStreamCreateWithFlags(stream: Out<Handle>, flags: u32) {
        streams::create(stream, flags, 0)
    }

    hipStreamCreateWithPriority(stream: Out<Handle>, flags: u32, priority: i32) {
        // A priority outside the range is clamped.
        streams::create(stream, flags, priority.clamp(priorities()[1], priorities()[0]))
    }

    hipStreamDestroy(stream: Handle) {
        let destroyed = handle::stream(stream)?;
        handle::remove(stream);
        destroyed.destroy();
        Ok(())
    }

    hipStreamSynchronize = streams::synchronize(stream: Handle);
    hipStreamQuery = streams::query(stream: Handle);

    hipStreamWaitEvent(stream: Handle, event: Handle, flags: u32) {
        let (context, stream) = Context::current_and_stream(stream)?;
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        handle::event(event)?.make_wait(&context, &stream)
    }

    hipStreamGetFlags = streams::flags(stream: Handle, flags: Out<u32>);
    hipStreamGetPriority = streams::priority(stream: Handle, priority: Out<i32>);
    hipStreamIsCapturing = streams::is_capturing(stream: Handle, status: Out<u32>);
    hipStreamBeginCapture = streams::begin_capture(stream: Handle, mode: u32);
    hipStreamEndCapture = streams::end_capture(stream: Handle, graph: Out<Handle>);
    hipThreadExchangeStreamCaptureMode = streams::exchange_capture_mode(mode: In<u32>);
    hipLaunchHostFunc = streams::launch_host(
        stream: Handle,
        function: Option<unsafe extern "C" fn(*mut c_void)>,
        data: *mut c_void,
    );

    hipStreamAddCallback = streams::add_callback(
        stream: Handle,
        function: Option<unsafe extern "C" fn(Handle, u32, *mut c_void)>,
        data: *mut c_void,
        flags: u32,
    );
}
