//! The stand-in is stricter than a driver: it checks accesses to the byte, refuses handles that are
//! no more, and notes what it cannot do. Other suites find errors of the library by that.

use resident::cudarc::driver::sys::{self, CUresult};
use resident::cudarc::driver::{DevicePtr, PushKernelArg, result};
use resident::cudarc::nvrtc::{Ptx, compile_ptx};

use support::own_process;

use crate::kernels::{PTX, threads};
use crate::shared::{Gate, code, context};

#[test]
fn a_fill_that_leaves_its_memory_loses_the_context() {
    let context = context(13);
    let stream = context.new_stream().expect("a stream");
    let memory = stream.clone_htod(&[1_u8; 16]).expect("a copy");
    stream.synchronize().expect("no error");
    let address = { memory.device_ptr(&stream).0 };
    // SAFETY: the stand-in driver checks that the bytes lie within its memory, and refuses others.
    let queued = unsafe { result::memset_d8_async(address + 8, 0, 9, stream.cu_stream()) };
    assert_eq!(queued, Ok(()), "the error occurs when the work runs");
    assert_eq!(code(stream.synchronize()), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    std::mem::forget(memory);
}

#[test]
fn memory_that_was_freed_is_gone() {
    let context = context(2);
    let stream = context.new_stream().expect("a stream");
    context.bind_to_thread().expect("a context");
    // SAFETY: the stand-in driver checks that the bytes lie within its memory, and refuses others.
    unsafe {
        let address = result::malloc_async(stream.cu_stream(), 16).expect("memory");
        result::free_async(address, stream.cu_stream()).expect("it is there");
        result::memset_d8_async(address, 0, 1, stream.cu_stream())
            .expect("the error occurs when the work runs");
    }
    assert_eq!(code(stream.synchronize()), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
}

/// An error of cudarc: the last reader's event orders the free when the slice is dropped.
#[test]
fn a_drop_frees_under_all_readers_but_the_last() {
    let context = context(8);
    let [slow, fast, owner] = [(); 3].map(|()| context.new_stream().expect("a stream"));
    let source = owner.clone_htod(&[1_u8; 4]).expect("a copy");
    let mut first = slow.alloc_zeros::<u8>(4).expect("memory");
    let mut second = fast.alloc_zeros::<u8>(4).expect("memory");
    context.synchronize().expect("all uploads have completed");
    let gate = Gate::in_front_of(&slow);
    slow.memcpy_dtod(&source, &mut first).expect("a copy");
    fast.memcpy_dtod(&source, &mut second).expect("a copy");
    drop(source);
    owner.synchronize().expect("the drop has waited only for the last reader");
    gate.open();
    assert_eq!(code(slow.synchronize()), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    // Dropping them would make calls in a lost context.
    std::mem::forget((first, second));
}

#[test]
fn a_pool_that_was_destroyed_is_none() {
    let context = context(0);
    context.bind_to_thread().expect("a context");
    // SAFETY: all zeros are a valid value of each field, except the kinds, which are set.
    let mut properties: sys::CUmemPoolProps = unsafe { std::mem::zeroed() };
    properties.allocType = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    // SAFETY: the properties live for the call; the stand-in's handles are numbers.
    unsafe {
        let pool = result::mem_pool::create(&raw const properties).expect("a pool");
        result::mem_pool::destroy(pool).expect("it is there");
        assert_eq!(
            code(result::mem_pool::trim_to(pool, 0)),
            CUresult::CUDA_ERROR_INVALID_VALUE,
            "it was"
        );
    }
}

#[test]
fn an_unregistered_kernel_is_noted() {
    let context = context(0);
    let ptx = PTX.replace("scale", "unheard_of");
    let function = context
        .load_module(Ptx::from_src(ptx))
        .expect("a module")
        .load_function("unheard_of")
        .expect("a function");
    let stream = context.default_stream();
    let mut memory = stream.alloc_zeros::<f32>(1).expect("memory");
    let mut launch = stream.launch_builder(&function);
    launch.arg(&mut memory).arg(&1.0_f32);
    // SAFETY: the launch is refused, so nothing runs.
    let refused = unsafe { launch.launch(threads(1)) }.map(drop);
    assert_eq!(code(refused), CUresult::CUDA_ERROR_LAUNCH_FAILED);
    assert!(resident_stand_in::notes().iter().any(|note| note.contains("\"unheard_of\"")));
    stream.synchronize().expect("nothing was queued");
}

#[test]
fn unsupported_calls_say_so() {
    let context = context(0);
    context.bind_to_thread().expect("a context");
    let mut copy = std::ptr::null_mut();
    // SAFETY: the pointer's target lives during the call.
    let outcome = unsafe { sys::cuGraphClone(&raw mut copy, std::ptr::null_mut()) };
    assert_eq!(outcome, CUresult::CUDA_ERROR_NOT_SUPPORTED);
    assert!(resident_stand_in::notes().iter().any(|note| note.contains("cuGraphClone")));
}

#[test]
fn a_host_function_that_panics_fails_its_launch() {
    let context = context(14);
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
    unsafe { stream.launch_builder(&panics).launch(threads(1)) }.expect("it fails when it runs");
    assert_eq!(code(stream.synchronize()), CUresult::CUDA_ERROR_LAUNCH_FAILED);
}

#[test]
fn a_compiled_kernel_that_fails_loses_the_context_and_says_why() {
    own_process!();
    let context = context(15);
    resident_stand_in_nvrtc::load().expect("the stand-in for NVRTC loads");
    let source = "extern \"C\" __global__ void refuse(int x) { assert(x > 3 && \"too small\"); }";
    let module = context.load_module(compile_ptx(source).expect("it compiles")).expect("a module");
    let refuse = module.load_function("refuse").expect("a function");
    let stream = context.new_stream().expect("a stream");
    for (number, expected) in [(4, Ok(())), (3, Err(CUresult::CUDA_ERROR_ASSERT))] {
        let mut launch = stream.launch_builder(&refuse);
        launch.arg(&number);
        // SAFETY: the kernel accesses no memory.
        unsafe { launch.launch(threads(1)) }.expect("it fails when it runs");
        assert_eq!(stream.synchronize().map_err(|error| error.0), expected);
    }
    let notes = resident_stand_in::notes();
    assert!(notes.iter().any(|note| note.contains("\"refuse\" failed")), "{notes:?}");
}
