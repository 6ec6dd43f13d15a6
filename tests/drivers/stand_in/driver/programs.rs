//! Contexts, streams, events, modules and launches.

use std::ffi::c_void;
use std::sync::Mutex;

use resident::cudarc::driver::sys::CUresult;
use resident::cudarc::driver::{
    CudaContext, CudaStream, DriverError, LaunchConfig, PushKernelArg, result, sys,
};
use resident::cudarc::nvrtc::Ptx;

use crate::driver::choice::{context, function, is_real, not_done, two_contexts, with_stream};
use crate::kernels::{PTX, threads};
use crate::shared::{Gate, code};

#[test]
fn a_kernel_of_a_ptx_text_runs() {
    let (context, stream) = on_either_driver!(Gpu; with_stream(0));
    let scale = function(&context, "scale");
    let mut memory = stream.clone_htod(&[1.0_f32, 2.0, 3.0]).expect("a copy");
    let mut launch = stream.launch_builder(&scale);
    launch.arg(&mut memory).arg(&2.0_f32);
    // SAFETY: the kernel accesses only the memory of its argument.
    unsafe { launch.launch(threads(3)) }.expect("a launch");
    assert_eq!(stream.clone_dtoh(&memory).expect("a copy"), [2.0, 4.0, 6.0]);
}

#[test]
fn a_kernel_gets_the_launch_as_it_was_asked_for() {
    let context = on_either_driver!(Gpu; context(0));
    let stream = context.default_stream();
    let shaped = function(&context, "shaped");
    let mut seen = stream.alloc_zeros::<u32>(7).expect("memory");
    let shape = LaunchConfig { grid_dim: (1, 2, 3), block_dim: (4, 5, 6), shared_mem_bytes: 8 };
    let mut launch = stream.launch_builder(&shaped);
    launch.arg(&mut seen);
    // SAFETY: the kernel accesses only the memory of its argument.
    unsafe { launch.launch(shape) }.expect("a launch");
    assert_eq!(stream.clone_dtoh(&seen).expect("a copy"), [1, 2, 3, 4, 5, 6, 8]);
}

#[test]
fn grids_blocks_and_shared_memory_have_limits() {
    let context = on_either_driver!(Gpu; context(0));
    let scale = function(&context, "scale");
    let stream = context.default_stream();
    let mut memory = stream.alloc_zeros::<f32>(1024).expect("memory");
    let mut attempt = |grid_dim, block_dim, shared_mem_bytes| {
        let mut launch = stream.launch_builder(&scale);
        launch.arg(&mut memory).arg(&1.0_f32);
        // SAFETY: the kernel accesses only the memory of its argument.
        unsafe { launch.launch(LaunchConfig { grid_dim, block_dim, shared_mem_bytes }) }.map(drop)
    };
    attempt((1, 1, 1), (1024, 1, 1), 48 << 10).expect("the largest allowed");
    for (grid, block, shared) in [
        ((0, 1, 1), (1, 1, 1), 0),
        ((1, 0x1_0000, 1), (1, 1, 1), 0),
        ((1, 1, 1), (1025, 1, 1), 0),
        ((1, 1, 1), (1, 1, 65), 0),
        ((1, 1, 1), (64, 32, 1), 0),
        ((1, 1, 1), (1, 1, 1), (48 << 10) + 1),
    ] {
        assert_eq!(
            code(attempt(grid, block, shared)),
            CUresult::CUDA_ERROR_INVALID_VALUE,
            "{grid:?} {block:?} {shared}"
        );
    }
    let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    scale.set_attribute(attribute, 64 << 10).expect("the device has as much");
    attempt((1, 1, 1), (1, 1, 1), 64 << 10).expect("it was asked for");
}

#[test]
fn what_is_no_module_is_refused_by_kind() {
    let context = on_either_driver!(Gpu; context(0));
    let load = |text: &str| code(context.load_module(Ptx::from_src(text)).map(drop));
    assert_eq!(load("this is text"), CUresult::CUDA_ERROR_INVALID_PTX);
    assert_eq!(load("\u{1}\u{2}"), CUresult::CUDA_ERROR_INVALID_IMAGE);
    let newest = PTX.replace(".version 7.0", ".version 99.0");
    assert_eq!(load(&newest), CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    if context.compute_capability().expect("it has one") < (12, 0) {
        let newer = PTX.replace(".version 7.0", ".version 8.7").replace("sm_70", "sm_120");
        assert_eq!(load(&newer), CUresult::CUDA_ERROR_INVALID_PTX);
    } else {
        not_done("PTX for a newer GPU than this one");
    }
    let module = context.load_module(Ptx::from_src(PTX)).expect("this one is");
    assert_eq!(code(module.load_function("other").map(drop)), CUresult::CUDA_ERROR_NOT_FOUND);
}

#[test]
fn parameters_have_sizes_and_places() {
    let context = on_either_driver!(Gpu; context(0));
    let text = ".version 7.0\n.target sm_70\n.address_size 64\n\
        .entry f(.param .u32 a, .param .u64 .ptr .global \
        .align 4 b, // c\n.param .align 8 .b8 c[40]) { ret; }";
    let _bound = context.bind_to_thread();
    let text = std::ffi::CString::new(text).expect("text");
    // SAFETY: the text lives during the call.
    let module = unsafe { result::module::load_data(text.as_ptr().cast()) }.expect("a module");
    // SAFETY: the module was loaded above.
    let function =
        unsafe { result::module::get_function(module, c"f".to_owned()) }.expect("a function");
    let info = |index| {
        let (mut offset, mut len) = (0, 0);
        // SAFETY: both pointers' targets live during the call.
        let outcome =
            unsafe { sys::cuFuncGetParamInfo(function, index, &raw mut offset, &raw mut len) };
        outcome.result().map(|()| (offset, len))
    };
    assert_eq!([info(0), info(1), info(2)], [Ok((0, 4)), Ok((8, 8)), Ok((16, 40))]);
    assert_eq!(info(3), Err(DriverError(CUresult::CUDA_ERROR_INVALID_VALUE)));
}

#[test]
fn a_thread_without_a_context_gets_an_error() {
    let context = on_either_driver!(Gpu; context(0));
    let outcome = std::thread::spawn(|| {
        // SAFETY: the call is refused before it allocates.
        unsafe { result::malloc_sync(16) }
    });
    assert_eq!(
        code(outcome.join().expect("no panic").map(drop)),
        CUresult::CUDA_ERROR_INVALID_CONTEXT
    );
    drop(context);
}

#[test]
fn a_stale_context_differs_from_none() {
    on_either_driver!(Gpu);
    let released = {
        let context = context(7);
        context.cu_ctx()
    };
    // SAFETY: the driver refuses a primary context that is not retained; on a real driver, the
    // device's object outlives it.
    let outcome = unsafe { result::ctx::set_current(released) };
    assert_eq!(code(outcome), CUresult::CUDA_ERROR_INVALID_CONTEXT);
    // The current context of this thread stays the same, and is destroyed.
    assert_eq!(code(result::ctx::synchronize()), CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

#[test]
fn handles_of_another_context_are_refused() {
    let Some([one, other]) = on_either_driver!(Gpu; two_contexts()) else { return };
    let (stream, event) =
        (one.new_stream().expect("a stream"), one.new_event(None).expect("an event"));
    other.bind_to_thread().expect("a context");
    // SAFETY: all handles are live.
    unsafe {
        assert_eq!(
            code(result::event::record(event.cu_event(), stream.cu_stream())),
            CUresult::CUDA_ERROR_INVALID_HANDLE
        );
        assert_eq!(
            code(result::malloc_async(stream.cu_stream(), 16).map(drop)),
            CUresult::CUDA_ERROR_INVALID_HANDLE
        );
    }
    let foreign = other.new_stream().expect("a stream");
    other.bind_to_thread().expect("a context");
    // SAFETY: all handles are live.
    let outcome = unsafe { result::event::record(event.cu_event(), foreign.cu_stream()) };
    assert_eq!(code(outcome), CUresult::CUDA_ERROR_INVALID_HANDLE);
    foreign.wait(&event).expect("an event of another context may be waited for");
}

#[test]
fn nothing_is_an_invalid_size_to_allocate_and_a_legal_one_to_copy() {
    let (_context, stream) = on_either_driver!(Gpu; with_stream(0));
    // SAFETY: nothing is allocated, and nothing is copied.
    unsafe {
        assert_eq!(code(result::malloc_sync(0).map(drop)), CUresult::CUDA_ERROR_INVALID_VALUE);
        assert_eq!(
            code(result::malloc_async(stream.cu_stream(), 0).map(drop)),
            CUresult::CUDA_ERROR_INVALID_VALUE
        );
        assert_eq!(result::memcpy_htod_async::<u8>(0x1234, &[], stream.cu_stream()), Ok(()));
    }
}

#[test]
fn out_of_memory_is_an_error_and_nothing_more() {
    let (_context, stream) = on_either_driver!(Gpu; with_stream(0));
    // SAFETY: the call is refused.
    let refused = unsafe { stream.alloc::<u8>(1 << 44) };
    assert_eq!(code(refused.map(drop)), CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    let memory = stream.alloc_zeros::<u8>(16).expect("there is some");
    assert_eq!(stream.clone_dtoh(&memory).expect("a copy"), [0; 16]);
}

#[test]
fn events_order_streams_and_carry_time() {
    let context = on_either_driver!(Gpu; context(0));
    let scale = function(&context, "scale");
    let (one, other) =
        (context.new_stream().expect("a stream"), context.new_stream().expect("a stream"));
    let timed = || context.new_event(Some(sys::CUevent_flags::CU_EVENT_DEFAULT)).expect("an event");
    let (start, end) = (timed(), timed());
    assert_eq!(code(start.elapsed_ms(&end)), CUresult::CUDA_ERROR_INVALID_HANDLE, "never recorded");
    start.record(&one).expect("a record");
    let mut memory = one.clone_htod(&[1.0_f32; 64]).expect("a copy");
    let mut launch = one.launch_builder(&scale);
    launch.arg(&mut memory).arg(&3.0_f32);
    // SAFETY: the kernel accesses only the memory of its argument.
    unsafe { launch.launch(threads(64)) }.expect("a launch");
    end.record(&one).expect("a record");
    other.wait(&end).expect("a wait");
    let mut seen = vec![0.0_f32; 64];
    other.memcpy_dtoh(&memory, &mut seen).expect("a copy");
    assert_eq!(seen, [3.0; 64]);
    assert!(start.elapsed_ms(&end).expect("both are complete") >= 0.0);
    assert!(context.new_event(None).expect("an event").is_complete(), "never recorded is complete");
}

#[test]
fn devices_have_numbers_and_codes_have_texts() {
    let _context = on_either_driver!(Gpu; context(0));
    assert_eq!(code(CudaContext::new(99).map(drop)), CUresult::CUDA_ERROR_INVALID_DEVICE);
    assert_eq!(
        DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY).error_string(),
        Ok(c"out of memory")
    );
}

/// The values that a test's host functions have seen.
static TOLD: Mutex<Vec<u32>> = Mutex::new(Vec::new());

unsafe extern "C" fn ask_the_driver(data: *mut c_void) {
    let mut current = std::ptr::null_mut();
    // SAFETY: the pointer's target lives during the call.
    let outcome = unsafe { sys::cuCtxSynchronize() };
    // SAFETY: as above.
    unsafe { sys::cuCtxGetCurrent(&raw mut current) };
    TOLD.lock().expect("no panic").extend([data.addr() as u32, outcome as u32]);
}

#[test]
fn a_host_function_runs_in_its_turn_and_may_not_call_the_driver() {
    let context = on_either_driver!(Gpu; context(0));
    let stream = context.per_thread_stream();
    let gate = Gate::in_front_of(&stream);
    // SAFETY: the function takes a number as data.
    unsafe {
        result::stream::launch_host_function(
            stream.cu_stream(),
            ask_the_driver,
            std::ptr::without_provenance_mut(5),
        )
    }
    .expect("a call");
    assert_eq!(code(result_of_query(&stream)), CUresult::CUDA_ERROR_NOT_READY);
    gate.open();
    stream.synchronize().expect("all is done");
    assert_eq!(*TOLD.lock().expect("no panic"), [5, CUresult::CUDA_ERROR_NOT_PERMITTED as u32]);
}

fn result_of_query(stream: &CudaStream) -> Result<(), DriverError> {
    // SAFETY: the stream is live.
    unsafe { sys::cuStreamQuery(stream.cu_stream()) }.result()
}

#[test]
fn a_text_that_does_not_load_has_a_log() {
    let context = on_either_driver!(Gpu; context(0));
    context.bind_to_thread().expect("a context");
    let mut module = std::ptr::null_mut();
    let mut log = [0xFF_u8; 20];
    let mut options = [
        sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
    ]
    .map(|option| option as u32);
    let mut values =
        [std::ptr::without_provenance_mut(log.len()), log.as_mut_ptr().cast::<c_void>()];
    // SAFETY: all pointers' targets live during the call.
    let outcome = unsafe {
        sys::cuModuleLoadDataEx(
            &raw mut module,
            c"no PTX".as_ptr().cast(),
            2,
            options.as_mut_ptr().cast(),
            values.as_mut_ptr(),
        )
    };
    assert_eq!(outcome, CUresult::CUDA_ERROR_INVALID_PTX);
    assert!(log.starts_with(b"ptxas ") && log[19] == 0, "{}", log.escape_ascii());
    assert_eq!(values[0].addr(), 19, "without the zero at its end");
}

#[test]
fn a_process_that_was_forked_cannot_use_its_parents_driver() {
    on_either_driver!(Gpu);
    if !is_real() {
        support::own_process!();
    }
    let context = context(0);
    unsafe extern "C" {
        fn fork() -> i32;
        fn _exit(status: i32) -> !;
        fn waitpid(child: i32, status: *mut i32, options: i32) -> i32;
    }
    // SAFETY: no other thread of this process makes a call now, so the child finds the driver's
    // locks free; it exits at once.
    let child = unsafe { fork() };
    if child == 0 {
        // SAFETY: as above.
        unsafe { _exit(sys::cuInit(0) as i32) };
    }
    let mut status = 0;
    // SAFETY: the pointer's target lives during the call.
    unsafe { waitpid(child, &raw mut status, 0) };
    assert_eq!(status >> 8, CUresult::CUDA_ERROR_NOT_INITIALIZED as i32);
    drop(context);
}
