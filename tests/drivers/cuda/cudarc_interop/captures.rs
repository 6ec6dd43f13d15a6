//! The library beside stream captures of other code, and tasks that the driver tells of their work:
//! each test in its own process, on the stand-in driver.

use std::sync::{Arc, mpsc};

use resident::cudarc::driver::CudaStream;
use resident::cudarc::driver::sys::{CUgraphInstantiate_flags, CUresult, CUstreamCaptureMode};
use resident::ndarray::{Array2, Ix2};
use resident::{Device, Error, Grid, In, Kernel, Out, SmartArray};
use resident_stand_in::{self as driver, Settings};
use support::block_on::block_on;
use support::driver::{code, open};
use support::{in_own_process, own_process};

use super::bench::{Gate, gated, launch};

use CUstreamCaptureMode as Mode;

/// Writes one matrix from another and a number.
type Plus = Kernel<(u32, In<u32, Ix2>, Out<u32, Ix2>)>;

fn end(stream: &Arc<CudaStream>) -> Result<(), CUresult> {
    let flags = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    stream.end_capture(flags).map(drop).map_err(|refusal| refusal.0)
}

/// Captures a stream of other code while the work runs: on another thread, or on this one.
fn beside_a_capture(device: &Device, mode: Mode, is_elsewhere: bool, work: impl FnOnce()) {
    let stream = device.cuda_context().expect("a GPU").new_stream().expect("a stream");
    if !is_elsewhere {
        stream.begin_capture(mode).expect("it begins");
        work();
        assert_eq!(end(&stream), Ok(()), "{mode:?} on this thread");
        return;
    }
    let ((tell_begun, begun), (tell_over, over)) = (mpsc::channel(), mpsc::channel::<()>());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            stream.begin_capture(mode).expect("it begins");
            tell_begun.send(()).expect("the other thread waits");
            // A panic of the work drops the sender too.
            let _over = over.recv();
            assert_eq!(end(&stream), Ok(()), "{mode:?} on another thread");
        });
        begun.recv().expect("it begins");
        let _until_the_end = tell_over;
        work();
    });
}

/// One of everything that a program does with arrays.
fn program(device: &Device) {
    let _here = device.enter();
    let stream = device.new_stream().expect("a stream");
    // SAFETY: the host function reads all of one matrix and writes all of the other.
    let plus: Plus = unsafe { Kernel::new("plus").cuda(code("plus")) };
    let source = SmartArray::from(Array2::from_elem((64, 64), 1_u32));
    let mut made = SmartArray::<u32, Ix2>::uninit((64, 64));
    source.page_lock().expect("locked");
    plus.launch_on(&stream, Grid::cover(64 * 64), (1, &source, &mut made)).expect("queued");
    let snapshot = made.snapshot_on(&stream).expect("queued");
    let event = stream.record().expect("recorded");
    while !(event.is_complete().expect("asked") && stream.is_idle().expect("asked")) {
        std::thread::yield_now();
    }
    assert_eq!(block_on(snapshot).expect("copied").sum(), 2 * 64 * 64);
    assert_eq!(made.get((3, 3)).expect("copied"), 2);
    let mut large = SmartArray::from(vec![1_u8; 12 << 20]);
    drop(large.gpu_mut_on(&stream).expect("uploaded"));
    assert_eq!(large.host().expect("downloaded")[5], 1);
    assert!(device.capacity().expect("asked").free > 0 && device.memory().in_use > 0);
    drop((source, made, large));
    device.synchronize().expect("nothing fails");
    device.trim().expect("nothing fails");
    assert_eq!(device.memory().in_use, 0);
}

fn beside_captures_of_every_mode(settings: Settings) {
    let device = open(settings, 1).remove(0);
    for mode in [
        Mode::CU_STREAM_CAPTURE_MODE_GLOBAL,
        Mode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
        Mode::CU_STREAM_CAPTURE_MODE_RELAXED,
    ] {
        for is_elsewhere in [true, false] {
            beside_a_capture(&device, mode, is_elsewhere, || program(&device));
        }
    }
    assert!(driver::calls().iter().all(|call| call.name != "cuCtxSynchronize"));
    assert_eq!(driver::take_hazards(), Vec::<String>::new());
}

#[test]
fn captures_of_others_go_on_beside_the_library() {
    own_process!();
    beside_captures_of_every_mode(Settings::new());
}

#[test]
fn captures_of_others_go_on_beside_the_library_without_pools() {
    own_process!();
    beside_captures_of_every_mode(Settings::new().without_pools());
}

/// A thread that this library has used is in the mode that it was in before.
#[test]
fn a_thread_keeps_its_own_mode() {
    let device = in_own_process!(open(Settings::new(), 1).remove(0));
    program(&device);
    let context = device.cuda_context().expect("a GPU");
    let stream = context.new_stream().expect("a stream");
    stream.begin_capture(Mode::CU_STREAM_CAPTURE_MODE_GLOBAL).expect("it begins");
    assert!(context.new_stream().is_err(), "what other code does is checked as before");
    assert_eq!(end(&stream), Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED));
}

/// A device that is full waits for its own streams, not for those of others.
#[test]
fn a_full_device_makes_room_beside_a_capture() {
    own_process!();
    const LEN: usize = 8 << 20;
    let device = open(Settings::new().without_pools().memory(LEN as u64 * 3 / 2), 1).remove(0);
    let (stream, other) =
        (device.new_stream().expect("a stream"), device.new_stream().expect("a stream"));
    let gate = Gate::default();
    let wait = gated(&device, "wait_before_free", &gate);
    beside_a_capture(&device, Mode::CU_STREAM_CAPTURE_MODE_GLOBAL, true, || {
        let mut array = SmartArray::<u8, _>::uninit(LEN);
        drop(array.gpu_overwrite_on(&stream).expect("there is enough memory"));
        launch(&stream.cudarc(), &wait);
        drop(array);
        driver::take_calls();
        let opened = gate.open_after("cuMemAlloc_v2");
        let mut next = SmartArray::<u8, _>::uninit(LEN);
        drop(next.gpu_overwrite_on(&other).expect("the array before is freed"));
        opened.join().expect("it opens");
    });
    let allocations = driver::take_calls().into_iter().filter(|call| call.name == "cuMemAlloc_v2");
    assert_eq!(allocations.map(|call| call.code).collect::<Vec<_>>(), [2, 0], "it was full");
}

/// Memory that was freed on a stream is found after the stream is gone, though its work goes on.
#[test]
fn memory_that_a_stream_freed_is_found_when_the_stream_is_gone() {
    let device = in_own_process!(open(Settings::new(), 1).remove(0));
    let stream = device.new_stream().expect("a stream");
    let gate = Gate::default();
    let wait = gated(&device, "wait_and_go", &gate);
    let mut array = SmartArray::<u8, _>::uninit(1 << 20);
    drop(array.gpu_overwrite_on(&stream).expect("there is enough memory"));
    launch(&stream.cudarc(), &wait);
    drop((array, stream));
    driver::take_calls();
    let opened = gate.open_after("cuStreamSynchronize");
    device.trim().expect("nothing fails");
    assert_eq!((device.memory().pooled, driver::memory_in_use(0)), (0, 0));
    opened.join().expect("the device waited");
}

/// Looking at a captured stream, or waiting for it, is refused before it ends the capture.
#[test]
fn a_captured_stream_is_looked_at_without_harm() {
    let device = in_own_process!(open(Settings::new(), 1).remove(0));
    let stream = device.new_stream().expect("a stream");
    let array = SmartArray::from(vec![1_u8; 100]);
    array.prefetch(&stream).expect("queued");
    stream.cudarc().begin_capture(Mode::CU_STREAM_CAPTURE_MODE_GLOBAL).expect("it begins");
    assert_eq!(stream.is_idle(), Ok(false));
    let refused = stream.synchronize().unwrap_err();
    assert!(
        matches!(refused, Error::Backend { .. }) && refused.to_string().contains("end the capture"),
        "{refused}"
    );
    device.trim().expect("other streams are waited for");
    assert_eq!(end(&stream.cudarc()), Ok(()));
    stream.synchronize().expect("it is free again");
}

/// Each of many tasks is woken by its own work, while the work of all others waits; the streams
/// that tell are few, and serve again.
#[test]
fn tasks_are_told_of_their_own_work() {
    own_process!();
    const TASKS: usize = 40;
    let device = open(Settings::new(), 1).remove(0);
    let streams: Vec<_> = (0..TASKS).map(|_| device.new_stream().expect("a stream")).collect();
    for round in 0..3 {
        driver::take_calls();
        std::thread::scope(|scope| {
            let waiting = streams.iter().enumerate().map(|(index, stream)| {
                let gate = Gate::default();
                let wait = gated(&device, &format!("wait_{round}_{index}"), &gate);
                let mut array = SmartArray::from(vec![1_u32; 64]);
                drop(array.gpu_mut_on(stream).expect("queued"));
                launch(&stream.cudarc(), &wait);
                let snapshot = array.snapshot_on(stream).expect("queued");
                let task = move || assert_eq!(block_on(snapshot).expect("copied").sum(), 64);
                (gate, scope.spawn(task))
            });
            let waiting: Vec<_> = waiting.collect();
            for (gate, task) in waiting.into_iter().rev() {
                gate.open();
                task.join().expect("it is woken, and no other gate is open");
            }
        });
        let calls = driver::take_calls();
        let count = |name: &str| calls.iter().filter(|call| call.name == name).count();
        assert!(count("cuLaunchHostFunc") > 0);
        assert!(count("cuStreamCreate") <= if round == 0 { 16 } else { 0 });
    }
}

/// A dead device runs no host function, so the thread that wakes tasks also looks by itself.
#[test]
fn a_task_is_woken_when_its_device_dies() {
    own_process!();
    const ILLEGAL_ADDRESS: u32 = 700;
    let device = open(Settings::new(), 1).remove(0);
    let stream = device.new_stream().expect("a stream");
    let gate = Gate::default();
    let wait = gated(&device, "wait_and_die", &gate);
    let mut array = SmartArray::from(vec![1_u32; 64]);
    drop(array.gpu_mut_on(&stream).expect("queued"));
    launch(&stream.cudarc(), &wait);
    driver::fail_late(1, ILLEGAL_ADDRESS);
    let snapshot = array.snapshot_on(&stream).expect("queued");
    driver::take_calls();
    let opened = gate.open_after("cuLaunchHostFunc");
    let outcome = block_on(snapshot);
    assert!(matches!(outcome, Err(Error::DeviceLost { .. } | Error::Lost { .. })), "{outcome:?}");
    opened.join().expect("it opens");
}
