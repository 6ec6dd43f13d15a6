//! The stand-in driver's record of calls, and the failures that tests inject. Tests run one at a
//! time, because both belong to the process.

use std::sync::{Mutex, MutexGuard, PoisonError};

use resident::cudarc::driver::sys::{self, CUresult};
use resident::cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg, result};
use resident::cudarc::nvrtc::Ptx;

use crate::shared::{Gate, code, context, scale_function};
use support::own_process;

fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    crate::shared::load();
    resident_stand_in::forget_faults();
    alone
}

fn names() -> Vec<String> {
    resident_stand_in::take_calls().iter().map(ToString::to_string).collect()
}

#[test]
fn all_calls_are_recorded_in_order() {
    own_process!();
    let _alone = alone();
    let context = context(0);
    let stream = context.new_stream().expect("a stream");
    // SAFETY: the test uses memory on one stream only.
    unsafe { context.disable_event_tracking() };
    let scale = scale_function(&context);
    resident_stand_in::take_calls();
    let mut memory = stream.clone_htod(&[1.0_f32; 8]).expect("a copy");
    for _ in 0..2 {
        let mut launch = stream.launch_builder(&scale);
        launch.arg(&mut memory).arg(&2.0_f32);
        // SAFETY: the host function accesses only the memory of its argument.
        unsafe { launch.launch(LaunchConfig::for_num_elems(8)) }.expect("a launch");
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
    own_process!();
    let _alone = alone();
    let context = context(0);
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

#[test]
fn the_nth_call_of_a_name_fails_once() {
    own_process!();
    let _alone = alone();
    let context = context(0);
    context.bind_to_thread().expect("a context");
    resident_stand_in::fail_nth("cuEventCreate", 2, 2);
    let outcomes: Vec<bool> = (0..4).map(|_| context.new_event(None).is_ok()).collect();
    assert_eq!(outcomes, [true, false, true, true]);
}

#[test]
fn the_nth_call_of_all_fails_once() {
    own_process!();
    let _alone = alone();
    let context = context(0);
    context.bind_to_thread().expect("a context");
    resident_stand_in::fail_any(2, 999);
    // SAFETY: all allocations are freed.
    unsafe {
        let address = result::malloc_sync(16).expect("the first");
        assert_eq!(code(result::free_sync(address)), CUresult::CUDA_ERROR_UNKNOWN);
        result::free_sync(address).expect("nothing was done");
    }
}

#[test]
fn queued_work_fails_late_and_loses_its_context() {
    own_process!();
    let _alone = alone();
    let context = context(1);
    let stream = context.new_stream().expect("a stream");
    let scale = scale_function(&context);
    let mut memory = stream.clone_htod(&[1.0_f32]).expect("a copy");
    stream.synchronize().expect("no error");
    let gate = Gate::in_front_of(&stream);
    resident_stand_in::fail_late(1, 214);
    let mut launch = stream.launch_builder(&scale);
    launch.arg(&mut memory).arg(&2.0_f32);
    // SAFETY: the host function does not run.
    unsafe { launch.launch(LaunchConfig::for_num_elems(1)) }.expect("it is queued");
    gate.open();
    assert_eq!(code(stream.synchronize()), CUresult::CUDA_ERROR_ECC_UNCORRECTABLE);
    std::mem::forget(memory);
}

#[test]
fn a_refused_call_queues_nothing() {
    own_process!();
    let _alone = alone();
    let context = context(0);
    let stream = context.new_stream().expect("a stream");
    let mut memory = stream.clone_htod(&[1_u8]).expect("a copy");
    resident_stand_in::fail_nth("cuMemcpyHtoDAsync_v2", 1, 719);
    assert_eq!(code(stream.memcpy_htod(&[2_u8], &mut memory)), CUresult::CUDA_ERROR_LAUNCH_FAILED);
    assert_eq!(stream.clone_dtoh(&memory).expect("the context works"), [1]);
}

#[test]
fn a_process_that_was_forked_cannot_use_its_parents_driver() {
    own_process!();
    let _alone = alone();
    CudaContext::device_count().expect("it is started");
    unsafe extern "C" {
        fn fork() -> i32;
        fn _exit(status: i32) -> !;
        fn waitpid(child: i32, status: *mut i32, options: i32) -> i32;
    }
    // SAFETY: no other thread uses the driver meanwhile (`alone`), so the child finds its locks
    // free; it exits at once.
    let child = unsafe { fork() };
    if child == 0 {
        // SAFETY: as above.
        unsafe { _exit(sys::cuInit(0) as i32) };
    }
    let mut status = 0;
    // SAFETY: the pointer's target lives during the call.
    unsafe { waitpid(child, &raw mut status, 0) };
    assert_eq!(status >> 8, CUresult::CUDA_ERROR_NOT_INITIALIZED as i32);
}

#[test]
fn a_host_function_that_panics_fails_its_launch() {
    own_process!();
    let _alone = alone();
    let context = context(2);
    resident_stand_in::register("panics", &[], |launch| {
        let missing = launch.scalar::<u32>(0);
        unreachable!("there is no parameter, and yet it is {missing}")
    });
    let ptx = ".version 8.0\n.target sm_80\n.entry panics() {}";
    let panics = context
        .load_module(Ptx::from_src(ptx))
        .expect("a module")
        .load_function("panics")
        .expect("a function");
    let stream = context.new_stream().expect("a stream");
    // SAFETY: the host function accesses no memory.
    unsafe { stream.launch_builder(&panics).launch(LaunchConfig::for_num_elems(1)) }
        .expect("it fails when it runs");
    assert_eq!(code(stream.synchronize()), CUresult::CUDA_ERROR_LAUNCH_FAILED);
}
