//! The stand-in driver's record of calls. Each test has a process of its own, because the record
//! belongs to the process.

use resident::cudarc::driver::{PushKernelArg, result};

use crate::kernels::{registered, threads};
use crate::shared::context;
use support::in_own_process;

fn names() -> Vec<String> {
    resident_stand_in::take_calls().iter().map(ToString::to_string).collect()
}

#[test]
fn all_calls_are_recorded_in_order() {
    let context = in_own_process!(context(0));
    let stream = context.new_stream().expect("a stream");
    // SAFETY: the test uses memory on one stream only.
    unsafe { context.disable_event_tracking() };
    let scale = registered(&context, "scale");
    resident_stand_in::take_calls();
    let mut memory = stream.clone_htod(&[1.0_f32; 8]).expect("a copy");
    for _ in 0..2 {
        let mut launch = stream.launch_builder(&scale);
        launch.arg(&mut memory).arg(&2.0_f32);
        // SAFETY: the host function accesses only the memory of its argument.
        unsafe { launch.launch(threads(8)) }.expect("a launch");
    }
    let result = stream.clone_dtoh(&memory).expect("a copy");
    drop(memory);
    assert_eq!(result, [4.0; 8]);
    let calls: Vec<String> = names().into_iter().filter(|name| name != "cuCtxGetCurrent").collect();
    let expected = [
        "cuMemAllocAsync, 32 bytes",
        "cuMemcpyHtoDAsync_v2, 32 bytes",
        "cuLaunchKernel",
        "cuLaunchKernel",
        "cuMemcpyDtoHAsync_v2, 32 bytes",
        "cuMemFreeAsync, 32 bytes",
    ];
    assert_eq!(calls, expected);
    assert!(resident_stand_in::calls().is_empty(), "they were taken");
}

#[test]
fn a_call_says_what_it_returned_and_on_which_stream() {
    let context = in_own_process!(context(0));
    let stream = context.new_stream().expect("a stream");
    resident_stand_in::take_calls();
    stream.synchronize().expect("nothing is queued");
    // SAFETY: nothing is allocated.
    let _refused = unsafe { result::malloc_sync(0) };
    let calls = resident_stand_in::take_calls();
    let synchronize =
        calls.iter().find(|call| call.name == "cuStreamSynchronize").expect("it was called");
    assert_eq!((synchronize.code, synchronize.stream), (0, stream.cu_stream().addr() as u64));
    assert_eq!(calls.last().map(ToString::to_string).as_deref(), Some("cuMemAlloc_v2 = 1"));
}
