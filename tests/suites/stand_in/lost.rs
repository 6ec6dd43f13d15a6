//! What makes a context lost, and the behaviour of a lost context. Each test has its own device.

use std::sync::atomic::{AtomicU32, Ordering};

use resident::cudarc::driver::sys::{self, CUresult};
use resident::cudarc::driver::{CudaStream, DevicePtr, LaunchConfig, PushKernelArg, result};
use resident::cudarc::nvrtc::Ptx;
use resident_stand_in::Fault;

use crate::shared::{Gate, SCALE, code, context, scale_function};

#[test]
fn a_copy_that_leaves_its_memory_loses_the_context() {
    let context = context(1);
    let stream = context.new_stream().expect("a stream");
    let memory = stream.clone_htod(&[1_u8; 16]).expect("a copy");
    stream.synchronize().expect("no error");
    let address = { memory.device_ptr(&stream).0 };
    // SAFETY: the stand-in driver checks that the bytes lie within its memory, and refuses all
    // other bytes.
    let queued = unsafe { result::memset_d8_async(address + 8, 0, 9, stream.cu_stream()) };
    assert_eq!(queued, Ok(()), "the error occurs when the work runs");
    assert_eq!(code(stream.synchronize()), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_eq!(code(stream.synchronize()), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS, "each time");
    assert_eq!(
        code(context.new_stream().map(drop)),
        CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
        "and of all its calls"
    );
    assert!(context.name().is_ok(), "the device itself still answers");
    std::mem::forget(memory);
}

#[test]
fn memory_that_was_freed_is_gone() {
    let context = context(2);
    let stream = context.new_stream().expect("a stream");
    context.bind_to_thread().expect("a context");
    // SAFETY: the stand-in driver checks that the bytes lie within its memory, and refuses all
    // other bytes.
    unsafe {
        let address = result::malloc_async(stream.cu_stream(), 16).expect("memory");
        result::free_async(address, stream.cu_stream()).expect("it is there");
        result::memset_d8_async(address, 0, 1, stream.cu_stream())
            .expect("the error occurs when the work runs");
    }
    assert_eq!(code(stream.synchronize()), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
}

#[test]
fn a_kernel_may_say_that_an_address_is_illegal() {
    let context = context(3);
    let stream = context.new_stream().expect("a stream");
    resident_stand_in::register("astray", &[], |_| Err(Fault::IllegalAddress));
    let ptx = SCALE.replace(
        ".visible .entry scale(\n.param .u64 scale_0,\n.param .f32 scale_1\n)",
        ".visible .entry astray()",
    );
    let astray = context
        .load_module(Ptx::from_src(ptx))
        .expect("a module")
        .load_function("astray")
        .expect("a function");
    let scale = scale_function(&context);
    let mut memory = stream.clone_htod(&[1.0_f32]).expect("a copy");
    let address = { memory.device_ptr(&stream).0 };
    // SAFETY: the host functions access only their arguments.
    unsafe {
        stream
            .launch_builder(&astray)
            .launch(LaunchConfig::for_num_elems(1))
            .expect("it fails when it runs");
        // The context may have detected the error by now.
        let _either = stream
            .launch_builder(&scale)
            .arg(&mut memory)
            .arg(&2.0_f32)
            .launch(LaunchConfig::for_num_elems(1));
    }
    assert_eq!(code(stream.synchronize()), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    let mut seen = [0.0_f32];
    // SAFETY: each address is that of live memory of four bytes.
    let outcome = unsafe { sys::cuMemcpyDtoH_v2(seen.as_mut_ptr().cast(), address, 4) };
    assert_eq!(
        (outcome, seen),
        (CUresult::CUDA_ERROR_ILLEGAL_ADDRESS, [0.0]),
        "the lost context copies nothing"
    );
    std::mem::forget(memory);
}

static STATUS: AtomicU32 = AtomicU32::new(u32::MAX);

unsafe extern "C" fn keep_status(
    _stream: sys::CUstream,
    status: CUresult,
    _data: *mut std::ffi::c_void,
) {
    STATUS.store(status as u32, Ordering::SeqCst);
}

unsafe extern "C" fn never(_data: *mut std::ffi::c_void) {
    STATUS.store(0, Ordering::SeqCst);
}

#[test]
fn a_callback_is_given_failures_and_a_host_function_is_not_called() {
    let context = context(11);
    let stream = context.new_stream().expect("a stream");
    let gate = Gate::in_front_of(&stream);
    // SAFETY: no memory is there, which the stand-in detects; the functions take no data.
    unsafe {
        result::memset_d8_async(0x1000, 0, 1, stream.cu_stream())
            .expect("the error occurs when the work runs");
        sys::cuStreamAddCallback(stream.cu_stream(), Some(keep_status), std::ptr::null_mut(), 0)
            .result()
            .expect("a callback");
        result::stream::launch_host_function(stream.cu_stream(), never, std::ptr::null_mut())
            .expect("a host function");
    }
    gate.open();
    assert_eq!(code(stream.synchronize()), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_eq!(STATUS.load(Ordering::SeqCst), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS as u32);
}

#[test]
fn work_behind_the_failure_does_not_run_whatever_stream_it_is_in() {
    let context = context(12);
    static RUNS: AtomicU32 = AtomicU32::new(0);
    resident_stand_in::register("counted", &[], |_| {
        RUNS.fetch_add(1, Ordering::SeqCst);
        Ok(())
    });
    let ptx = SCALE.replace(
        ".visible .entry scale(\n.param .u64 scale_0,\n.param .f32 scale_1\n)",
        ".visible .entry counted()",
    );
    let counted = context
        .load_module(Ptx::from_src(ptx))
        .expect("a module")
        .load_function("counted")
        .expect("a function");
    let (stream, other) =
        (context.new_stream().expect("a stream"), context.new_stream().expect("a stream"));
    let launch = |stream| {
        // SAFETY: the host function accesses no memory.
        unsafe {
            CudaStream::launch_builder(stream, &counted).launch(LaunchConfig::for_num_elems(1))
        }
        .map(drop)
    };
    let gate = Gate::in_front_of(&stream);
    launch(&stream).expect("before the failure");
    // SAFETY: no memory is there, which the stand-in detects.
    unsafe { result::memset_d8_async(0x1000, 0, 1, stream.cu_stream()) }
        .expect("the error occurs when the work runs");
    launch(&stream).expect("behind the failure");
    let event = stream.record_event(None).expect("an event");
    other.wait(&event).expect("a wait");
    launch(&other).expect("behind it through the event");
    gate.open();
    assert_eq!(code(other.synchronize()), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_eq!(RUNS.load(Ordering::SeqCst), 1);
}
