//! Streams, events, callbacks, captures; and which of them need their device to be current.

use std::ffi::c_void;
use std::sync::mpsc::{self, Receiver, Sender};

use resident_stand_in_hip::{Settings, take_notes};
use support::in_own_process;

use super::api::{Handle, Hip, function, get, load, ok, with_stream};

const INVALID_VALUE: u32 = 1;
const INVALID_HANDLE: u32 = 400;
const NOT_READY: u32 = 600;
const CAPTURE_UNSUPPORTED: u32 = 900;
const CAPTURE_INVALIDATED: u32 = 901;

/// Work in a stream that waits until the test opens the gate.
pub(super) struct Gate(Sender<()>);

impl Gate {
    pub(super) fn in_front_of(hip: &Hip, stream: Handle) -> Self {
        let (sender, receiver) = mpsc::channel::<()>();
        let data = Box::into_raw(Box::new(receiver)).cast();
        // SAFETY: the stand-in calls the function once, and the function takes the box.
        ok(unsafe { (hip.hipStreamAddCallback)(stream, wait, data, 0) });
        Self(sender)
    }

    pub(super) fn open(self) {
        drop(self.0);
    }
}

unsafe extern "C" fn wait(_stream: Handle, status: u32, data: *mut c_void) {
    // SAFETY: `in_front_of` passed this box, and the function is called once.
    let receiver = unsafe { Box::from_raw(data.cast::<Receiver<()>>()) };
    assert_eq!(status, 0);
    let _opened = receiver.recv();
}

unsafe extern "C" fn count(data: *mut c_void) {
    // SAFETY: the test passes a sender that lives until the wait ends.
    let sender = unsafe { &*data.cast::<Sender<u32>>() };
    sender.send(1).expect("the test listens");
}

#[test]
fn streams_have_priorities_from_1_to_minus_1() {
    let hip = in_own_process!(load(Settings::new()));
    let (mut least, mut greatest) = (0, 0);
    ok((hip.hipDeviceGetStreamPriorityRange)(&mut least, &mut greatest));
    assert_eq!((least, greatest), (1, -1));
    for (asked, given) in [(-5, -1), (0, 0), (9, 1)] {
        let stream = get(|stream| (hip.hipStreamCreateWithPriority)(stream, 1, asked));
        assert_eq!(get(|known| (hip.hipStreamGetPriority)(stream, known)), given);
        ok((hip.hipStreamDestroy)(stream));
        assert_eq!((hip.hipStreamSynchronize)(stream), INVALID_HANDLE, "it is destroyed");
    }
    let mut stream = 0;
    assert_eq!((hip.hipStreamCreateWithFlags)(&mut stream, 2), INVALID_VALUE);
}

#[test]
fn events_order_streams_and_measure_time() {
    let hip = in_own_process!(load(Settings::new()));
    let (one, two) = (hip.stream(), hip.stream());
    let event = |flags| get(|event| (hip.hipEventCreateWithFlags)(event, flags));
    // Without timing, released to the device; and with timing.
    let (order, start, end) = (event(0x4000_0002), event(0), event(1));
    ok((hip.hipEventQuery)(order));
    let memory = hip.upload(&[0_u32], one);
    let gate = Gate::in_front_of(&hip, one);
    ok((hip.hipMemsetD32Async)(memory, 5, 1, one));
    ok((hip.hipEventRecord)(order, one));
    ok((hip.hipStreamWaitEvent)(two, order, 0));
    assert_eq!((hip.hipStreamWaitEvent)(two, order, 1), INVALID_VALUE, "no flags");
    ok((hip.hipEventRecord)(start, two));
    assert_eq!((hip.hipEventQuery)(order), NOT_READY);
    assert_eq!((hip.hipStreamQuery)(two), NOT_READY);
    gate.open();
    assert_eq!(hip.download::<u32>(memory, 1, two), [5]);
    ok((hip.hipEventRecord)(end, two));
    ok((hip.hipEventSynchronize)(end));
    let time: f32 = get(|time| (hip.hipEventElapsedTime)(time, start, end));
    assert!(time >= 0.0, "{time}");
    assert_eq!((hip.hipEventElapsedTime)(&mut 0.0, order, end), INVALID_HANDLE);
    ok((hip.hipEventDestroy)(order));
    assert_eq!((hip.hipEventQuery)(order), INVALID_HANDLE, "it is destroyed");
    for flags in [4, 8, 0xC000_0000] {
        assert_eq!((hip.hipEventCreateWithFlags)(&mut 0, flags), INVALID_VALUE);
    }
}

/// Host memory is not coherent if it is allocated with a flag that does not say otherwise.
#[test]
fn events_release_to_the_host_only_if_they_are_made_to() {
    const RELEASE_TO_SYSTEM: u32 = 0x8000_0002;
    let hip = in_own_process!(load(Settings::new()));
    let (stream, memory) = (hip.stream(), hip.memory(64));
    for (host_flags, event_flags, notes) in
        [(1, 2, 1), (1, RELEASE_TO_SYSTEM, 0), (0, 2, 0), (2, 2, 0), (0x8000_0000, 0x4000_0002, 1)]
    {
        let pinned = get(|pointer| (hip.hipHostMalloc)(pointer, 64, host_flags));
        let event = get(|event| (hip.hipEventCreateWithFlags)(event, event_flags));
        // SAFETY: the pinned memory is freed below.
        ok(unsafe { (hip.hipMemcpyDtoHAsync)(pinned, memory, 64, stream) });
        ok((hip.hipEventRecord)(event, stream));
        ok((hip.hipEventSynchronize)(event));
        assert_eq!(take_notes().len(), notes, "{host_flags:#x}, {event_flags:#x}");
        // A stream releases by itself.
        ok((hip.hipStreamSynchronize)(stream));
        ok((hip.hipEventRecord)(event, stream));
        ok((hip.hipEventSynchronize)(event));
        assert_eq!(take_notes(), [""; 0]);
        ok((hip.hipHostFree)(pinned));
    }
}

#[test]
fn host_functions_run_in_stream_order() {
    let (hip, stream) = in_own_process!(with_stream(Settings::new()));
    type Launch =
        unsafe extern "C" fn(Handle, unsafe extern "C" fn(*mut c_void), *mut c_void) -> u32;
    let launch: Launch = function("hipLaunchHostFunc");
    let (sender, receiver) = mpsc::channel::<u32>();
    let gate = Gate::in_front_of(&hip, stream);
    // SAFETY: the sender lives until the wait ends.
    unsafe {
        ok(launch(stream, count, (&raw const sender).cast_mut().cast()));
        assert!(receiver.try_recv().is_err(), "the gate is closed");
        gate.open();
        ok((hip.hipStreamSynchronize)(stream));
    }
    assert_eq!(receiver.try_recv(), Ok(1));
}

#[test]
fn work_needs_its_device_to_be_current() {
    let (hip, stream) = in_own_process!(with_stream(Settings::new().devices(2)));
    let memory = hip.upload(&[1_u32], stream);
    let event = get(|event| (hip.hipEventCreateWithFlags)(event, 2));
    ok((hip.hipSetDevice)(1));
    assert_eq!((hip.hipMemsetD32Async)(memory, 2, 1, stream), INVALID_HANDLE);
    assert_eq!((hip.hipEventRecord)(event, stream), INVALID_HANDLE);
    let other = hip.stream();
    assert_eq!((hip.hipEventRecord)(event, other), INVALID_HANDLE, "an event of device 0");
    ok((hip.hipStreamWaitEvent)(other, event, 0));
    ok((hip.hipStreamQuery)(stream));
    ok((hip.hipStreamSynchronize)(stream));
    ok((hip.hipEventSynchronize)(event));
    ok((hip.hipStreamDestroy)(stream));
    ok((hip.hipEventDestroy)(event));
    ok((hip.hipFree)(memory));
}

#[test]
fn captures_refuse_work_and_unsafe_calls() {
    let (hip, stream) = in_own_process!(with_stream(Settings::new()));
    let memory = hip.upload(&[1_u32], stream);
    ok((hip.hipStreamBeginCapture)(stream, 0));
    assert_eq!(get(|status| (hip.hipStreamIsCapturing)(stream, status)), 1);
    assert_eq!((hip.hipMemsetD32Async)(memory, 2, 1, stream), CAPTURE_UNSUPPORTED);
    let mut mode = 2;
    ok((hip.hipThreadExchangeStreamCaptureMode)(&mut mode));
    assert_eq!(mode, 0);
    let allowed = hip.memory(8);
    ok((hip.hipThreadExchangeStreamCaptureMode)(&mut mode));
    assert_eq!((hip.hipMalloc)(&mut 0, 8), CAPTURE_UNSUPPORTED);
    assert_eq!((hip.hipStreamEndCapture)(stream, &mut 0), CAPTURE_INVALIDATED);
    ok((hip.hipFree)(allowed));
}
