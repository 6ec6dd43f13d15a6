//! Calls beside stream captures of other threads. Each test has its own process: a capture refuses
//! calls of all threads, those of other tests too.

use std::sync::Arc;

use resident::cudarc::driver::sys::{self, CUresult, CUstreamCaptureMode as Mode};
use resident::cudarc::driver::{CudaContext, CudaStream, DriverError, result};

use support::in_own_process;

use crate::driver::choice::context;
use crate::shared::code;

type Outcome = Result<(), DriverError>;

/// Runs a call on another thread, which is in this mode, while a stream of the context is captured
/// in global mode. Returns the outcomes of the call and of the capture's end.
fn beside_a_capture(
    context: &Arc<CudaContext>,
    mode: Mode,
    call: impl FnOnce() -> Outcome + Send,
) -> [Outcome; 2] {
    let captured = context.new_stream().expect("a stream");
    captured.begin_capture(Mode::CU_STREAM_CAPTURE_MODE_GLOBAL).expect("it begins");
    let called = std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            context.bind_to_thread().expect("it is current");
            exchange(mode);
            call()
        });
        other.join().expect("no panic")
    });
    // SAFETY: the stream is alive. An empty graph, or none, is left to the process.
    let ended = unsafe { result::stream::end_capture(captured.cu_stream()) };
    [called, ended.map(drop)]
}

fn exchange(mut mode: Mode) -> Mode {
    // SAFETY: the driver reads one mode, and writes another.
    unsafe { sys::cuThreadExchangeStreamCaptureMode(&raw mut mode) }.result().expect("a mode");
    mode
}

fn query_of_event(stream: &CudaStream) -> impl FnOnce() -> Outcome + Send {
    let event = stream.record_event(None).expect("an event");
    stream.synchronize().expect("nothing fails");
    move || {
        // SAFETY: the event is alive.
        unsafe { sys::cuEventQuery(event.cu_event()) }.result()
    }
}

fn pinned(context: &Arc<CudaContext>) -> impl FnOnce() -> Outcome + Send {
    let context = Arc::clone(context);
    move || {
        // SAFETY: nobody reads the memory.
        unsafe { context.alloc_pinned::<u8>(4096) }.map(drop)
    }
}

#[test]
fn a_global_capture_refuses_some_calls_of_other_threads_and_is_ended_by_them() {
    on_either_driver!(Gpu);
    let context = in_own_process!(context(10));
    let stream = context.new_stream().expect("a stream");
    let global = Mode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    for [called, ended] in [
        beside_a_capture(&context, global, query_of_event(&stream)),
        beside_a_capture(&context, global, pinned(&context)),
    ] {
        assert_eq!(code(called), CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        assert_eq!(code(ended), CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
}

#[test]
fn threads_in_another_mode_do_not_disturb_it() {
    on_either_driver!(Gpu);
    let context = in_own_process!(context(11));
    let stream = context.new_stream().expect("a stream");
    for mode in [Mode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, Mode::CU_STREAM_CAPTURE_MODE_RELAXED] {
        for outcomes in [
            beside_a_capture(&context, mode, query_of_event(&stream)),
            beside_a_capture(&context, mode, pinned(&context)),
        ] {
            assert_eq!(outcomes, [Ok(()), Ok(())], "{mode:?}");
        }
    }
    // What the library does beside captures without a mode of its own.
    let event = context.new_event(None).expect("an event");
    let [called, ended] = beside_a_capture(&context, Mode::CU_STREAM_CAPTURE_MODE_GLOBAL, || {
        event.record(&stream)?;
        let memory = stream.clone_htod(&[1_u8; 64])?;
        stream.wait(&event)?;
        drop(memory);
        Ok(())
    });
    assert_eq!((called, ended), (Ok(()), Ok(())));
}

#[test]
fn a_wait_for_the_context_ends_a_capture_in_any_mode() {
    on_either_driver!(Gpu);
    let context = in_own_process!(context(12));
    let relaxed = Mode::CU_STREAM_CAPTURE_MODE_RELAXED;
    let [called, ended] = beside_a_capture(&context, relaxed, || context.synchronize());
    assert_eq!(code(called), CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_eq!(code(ended), CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

#[test]
fn a_mode_is_that_of_a_thread() {
    on_either_driver!(Gpu);
    let _context = in_own_process!(context(13));
    let (global, relaxed) =
        (Mode::CU_STREAM_CAPTURE_MODE_GLOBAL, Mode::CU_STREAM_CAPTURE_MODE_RELAXED);
    assert_eq!(exchange(relaxed), global);
    std::thread::spawn(move || assert_eq!(exchange(relaxed), global)).join().expect("no panic");
    assert_eq!(exchange(global), relaxed);
}
