//! Which calls of HIP's runtime the library makes: for each launch, and for a download.

use resident::ndarray::{Array2, Ix2};
use resident::{Device, Grid, InOut, Kernel, SmartArray, Stream};
use support::hip::driver::{code, open};
use support::hip::face::{Settings, take_calls, take_hazards};
use support::in_own_process;

const LAUNCHES: usize = 100;

type Matrix = SmartArray<u32, Ix2>;
type Add = (u32, InOut<u32, Ix2>);

fn add() -> Kernel<Add> {
    // SAFETY: a host function replaces it, which accesses only the view's elements.
    unsafe { Kernel::<Add>::new("add").cuda(code("add")) }
}

/// A device whose work runs only when a thread waits, so that the calls are the same in every run.
fn device() -> Device {
    open(Settings::new().seed(1), 1).remove(0)
}

fn launch(kernel: &Kernel<Add>, stream: &Stream, array: &mut Matrix) {
    kernel.launch_on(stream, Grid::cover(64), (1, array)).expect("it runs");
}

/// The names of the calls since the last time, all of which succeeded, without hazards.
fn calls() -> Vec<String> {
    assert_eq!(take_hazards(), Vec::<String>::new());
    let calls = take_calls();
    calls.iter().for_each(|call| assert!(call.code == 0 || call.name.ends_with("Query"), "{call}"));
    calls.into_iter().map(|call| call.name).collect()
}

/// Asserts that each of many launches made two calls, and nothing else made any.
fn assert_two_calls_each(calls: &[String]) {
    let each = ["hipGetDevice", "hipModuleLaunchKernel"];
    let more = calls.chunks(2).position(|calls| calls != each);
    assert_eq!(more, None, "{:?}", calls.chunks(2).nth(more.unwrap_or(0)));
    assert_eq!(calls.len(), 2 * LAUNCHES);
}

#[test]
fn a_steady_launch_asks_for_the_device_and_launches() {
    let (device, kernel) = in_own_process!((device(), add()));
    let (stream, mut array) = (device.stream(), Matrix::zeros((8, 8)));
    launch(&kernel, &stream, &mut array);
    calls();
    (0..LAUNCHES).for_each(|_| launch(&kernel, &stream, &mut array));
    assert_two_calls_each(&calls());
    assert_eq!(array.get((7, 7)).expect("a download"), LAUNCHES as u32 + 1);
}

/// The first launch waits for the upload; once both are complete, no launch makes a call more.
#[test]
fn launches_after_a_prefetch_on_another_stream_wait_once() {
    let (device, kernel) = in_own_process!((device(), add()));
    let [up, compute] = [(); 2].map(|()| device.new_stream().expect("a stream"));
    // Loads the kernel, and makes what the streams keep.
    for stream in [&up, &compute] {
        launch(&kernel, stream, &mut Matrix::zeros((8, 8)));
        stream.synchronize().expect("it works");
    }
    let mut array = Matrix::from(Array2::from_elem((8, 8), 5));
    array.prefetch(&up).expect("it uploads");
    calls();
    launch(&kernel, &compute, &mut array);
    let first = calls();
    let waits = first.iter().filter(|call| *call == "hipStreamWaitEvent").count();
    assert_eq!(waits, 1, "{first:?}");
    // Until the upload is known to be complete, every sixteenth launch records an event.
    compute.synchronize().expect("it works");
    calls();
    (0..LAUNCHES).for_each(|_| launch(&kernel, &compute, &mut array));
    assert_two_calls_each(&calls());
    assert_eq!(array.get((0, 0)).expect("a download"), LAUNCHES as u32 + 6);
}

#[test]
fn a_blocking_download_makes_no_event() {
    let (device, kernel) = in_own_process!((device(), add()));
    let mut array = Matrix::zeros((8, 8));
    // The first download allocates the host's memory.
    for turn in 0..2 {
        launch(&kernel, &device.stream(), &mut array);
        calls();
        assert_eq!(array.host().expect("a download").sum(), 64 * (turn + 1));
    }
    assert_eq!(
        calls(),
        [
            "hipGetDevice",
            "hipMemcpyDtoHAsync",
            "hipGetDevice",
            // The thread's mode beside captures of other code, before the wait and after it.
            "hipThreadExchangeStreamCaptureMode",
            "hipStreamSynchronize",
            "hipThreadExchangeStreamCaptureMode",
        ]
    );
}

#[test]
fn the_priorities_of_streams_are_those_of_the_runtime() {
    let device = in_own_process!(open(Settings::new(), 1).remove(0));
    let range = device.stream_priorities().expect("the runtime tells");
    assert_eq!((range.least, range.greatest), (1, -1));
    for (asked, given) in [(i32::MIN, -1), (-1, -1), (0, 0), (1, 1), (i32::MAX, 1)] {
        let stream = device.new_stream_with_priority(asked).expect("a stream");
        assert_eq!(stream.priority().expect("the runtime tells"), given, "{asked}");
    }
}
