//! Memory: pageable and pinned host memory, pools, pointers.

use std::ffi::c_void;
use std::sync::mpsc;

use resident::cudarc::driver::sys::{self, CUmemPool_attribute, CUresult};
use resident::cudarc::driver::{CudaContext, PushKernelArg, result};

use crate::driver::choice::{context, function, is_real, with_stream};
use crate::kernels::threads;
use crate::shared::{Gate, code, done, ok};

/// Pinned memory from the driver.
fn locked(len_bytes: usize) -> *mut u8 {
    // SAFETY: the driver returns memory of this many bytes.
    unsafe { result::malloc_host(len_bytes, 0) }.expect("memory").cast()
}

#[test]
fn ordinary_memory_may_be_written_again_at_once() {
    let (_context, stream) = on_either_driver!(Gpu; with_stream(0));
    let memory = stream.alloc_zeros::<u32>(4).expect("memory");
    let gate = Gate::in_front_of(&stream);
    let mut source = vec![1_u32, 2, 3, 4];
    let address = { resident::cudarc::driver::DevicePtr::device_ptr(&memory, &stream).0 };
    // SAFETY: the memory is live and large enough.
    unsafe { result::memcpy_htod_async(address, &source, stream.cu_stream()) }.expect("a copy");
    source.fill(9);
    gate.open();
    assert_eq!(stream.clone_dtoh(&memory).expect("a copy"), [1, 2, 3, 4]);
}

#[test]
fn pinned_memory_is_read_when_the_copy_runs() {
    let (_context, stream) = on_either_driver!(Gpu; with_stream(0));
    let memory = stream.alloc_zeros::<u8>(1).expect("memory");
    let address = { resident::cudarc::driver::DevicePtr::device_ptr(&memory, &stream).0 };
    let source = locked(1);
    // SAFETY: the driver's memory, which only this test uses.
    unsafe { source.write(5) };
    let gate = Gate::in_front_of(&stream);
    // SAFETY: as above; the copy is asynchronous, so the reference ends before it runs.
    unsafe {
        result::memcpy_htod_async(
            address,
            std::slice::from_raw_parts(source, 1),
            stream.cu_stream(),
        )
    }
    .expect("a copy");
    // SAFETY: nothing accesses the memory before the gate opens.
    unsafe { source.write(9) };
    gate.open();
    assert_eq!(stream.clone_dtoh(&memory).expect("a copy"), [9]);
    // SAFETY: the memory came from the driver, and nothing uses it any more.
    unsafe { result::free_host(source.cast()) }.expect("the driver allocated it");
}

#[test]
fn a_copy_to_pinned_memory_returns_before_it_runs_and_one_to_pageable_memory_does_not() {
    let (context, stream) = on_either_driver!(Gpu; with_stream(0));
    let memory = stream.clone_htod(&[7_u8]).expect("a copy");
    stream.synchronize().expect("it is there");
    let address = { resident::cudarc::driver::DevicePtr::device_ptr(&memory, &stream).0 };
    let destination = locked(1);
    // SAFETY: the driver's memory, which only this test uses.
    unsafe { destination.write(0) };
    let gate = Gate::in_front_of(&stream);
    // SAFETY: each address is that of live memory of one byte.
    done(unsafe { sys::cuMemcpyDtoHAsync_v2(destination.cast(), address, 1, stream.cu_stream()) });
    // SAFETY: the gate delays the copy.
    assert_eq!(unsafe { destination.read() }, 0, "the call returned before the copy");
    let (sender, arrived) = mpsc::channel();
    let waiting = std::thread::spawn({
        let (stream, context) = (stream.clone(), context.clone());
        move || {
            context.bind_to_thread().expect("a context");
            let mut byte = [0_u8];
            sender.send(()).expect("the receiver is alive");
            // SAFETY: each address is that of live memory of one byte.
            ok(unsafe {
                sys::cuMemcpyDtoHAsync_v2(byte.as_mut_ptr().cast(), address, 1, stream.cu_stream())
            })
            .expect("a copy");
            byte[0]
        }
    });
    arrived.recv().expect("it starts");
    gate.open();
    assert_eq!(waiting.join().expect("no panic"), 7, "the call waited for the copy");
    // SAFETY: the other copy precedes this one in the stream, and is complete.
    assert_eq!(unsafe { destination.read() }, 7);
}

#[test]
fn memory_of_the_caller_can_be_pinned_once() {
    let context = on_either_driver!(Gpu; context(0));
    context.bind_to_thread().expect("a context");
    let mut memory = vec![0_u64; 1024];
    let start: *mut c_void = memory.as_mut_ptr().cast();
    // SAFETY: this is memory of the test, which is live until it is unregistered.
    unsafe {
        done(sys::cuMemHostRegister_v2(start, 4096, 0));
        assert_eq!(
            code(ok(sys::cuMemHostRegister_v2(start.byte_add(4000), 200, 0))),
            CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
        );
        let mut address = 0;
        done(sys::cuMemHostGetDevicePointer_v2(&raw mut address, start.byte_add(8), 0));
        assert_eq!(address, start.addr() as u64 + 8);
        assert_eq!(
            code(ok(sys::cuMemFreeHost(start))),
            CUresult::CUDA_ERROR_INVALID_VALUE,
            "the driver did not allocate it"
        );
        done(sys::cuMemHostUnregister(start));
        assert_eq!(
            code(ok(sys::cuMemHostUnregister(start))),
            CUresult::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
        );
    }
}

/// The first page-aligned memory in a vector of the test.
fn pages(memory: &mut Vec<u8>, count: usize) -> *mut u8 {
    memory.resize((count + 1) * 4096, 0);
    let start = memory.as_mut_ptr();
    start.wrapping_add(start.align_offset(4096))
}

#[test]
fn two_registrations_share_a_page_and_no_copy_spans_them() {
    let (_context, stream) = on_either_driver!(Gpu; with_stream(0));
    let device = stream.alloc_zeros::<u8>(8192).expect("memory");
    let address = { resident::cudarc::driver::DevicePtr::device_ptr(&device, &stream).0 };
    let mut memory = Vec::new();
    let start = pages(&mut memory, 2);
    let register = |offset: usize, len_bytes: usize| {
        // SAFETY: memory of the test, live until it is unregistered below.
        ok(unsafe { sys::cuMemHostRegister_v2(start.wrapping_add(offset).cast(), len_bytes, 0) })
    };
    let copy = |offset: usize, len_bytes: usize| {
        let source = start.wrapping_add(offset).cast();
        // SAFETY: both memories are live, and at least this long; the test waits for the copy.
        let outcome = ok(unsafe {
            sys::cuMemcpyHtoDAsync_v2(address, source, len_bytes, stream.cu_stream())
        });
        stream.synchronize().expect("it is done");
        outcome
    };
    register(100, 1900).expect("pageable memory");
    register(2000, 1000).expect("other bytes of the same page");
    assert_eq!(
        code(register(1999, 1)),
        CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
        "the last byte of the first"
    );
    copy(100, 1900).expect("in one");
    assert_eq!(code(copy(1000, 1500)), CUresult::CUDA_ERROR_INVALID_VALUE, "over both");
    assert_eq!(code(copy(2500, 1000)), CUresult::CUDA_ERROR_INVALID_VALUE, "half of it pageable");
    for offset in [100, 2000] {
        // SAFETY: registered above, and nothing uses it any more.
        done(unsafe { sys::cuMemHostUnregister(start.wrapping_add(offset).cast()) });
    }
    copy(1000, 1500).expect("pageable memory");
}

#[test]
fn pointers_tell_what_they_are() {
    let (context, stream) = on_either_driver!(Gpu; with_stream(0));
    let memory = stream.alloc_zeros::<u8>(100).expect("memory");
    let address = { resident::cudarc::driver::DevicePtr::device_ptr(&memory, &stream).0 };
    let attribute = |attribute, address| {
        let mut value = 0_u64;
        // SAFETY: no attribute is larger than the value.
        ok(unsafe { sys::cuPointerGetAttribute((&raw mut value).cast(), attribute, address) })
            .map(|()| value)
    };
    use sys::CUpointer_attribute as Attribute;
    assert_eq!(attribute(Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address + 99), Ok(2));
    assert_eq!(
        attribute(Attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address + 99),
        Ok(address)
    );
    assert_eq!(
        attribute(Attribute::CU_POINTER_ATTRIBUTE_CONTEXT, address),
        Ok(context.cu_ctx().addr() as u64)
    );
    let host = locked(8);
    assert_eq!(attribute(Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, host.addr() as u64), Ok(1));
    let ordinary = 0_u8;
    let refused =
        attribute(Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (&raw const ordinary).addr() as u64);
    assert_eq!(code(refused), CUresult::CUDA_ERROR_INVALID_VALUE);
}

#[test]
fn what_is_freed_twice_or_in_the_middle_is_no_memory() {
    let context = on_either_driver!(Gpu; context(0));
    context.bind_to_thread().expect("a context");
    // SAFETY: freed memory is not used; invalid frees are refused.
    unsafe {
        let address = result::malloc_sync(64).expect("memory");
        assert_eq!(code(result::free_sync(address + 1)), CUresult::CUDA_ERROR_INVALID_VALUE);
        assert_eq!(
            code(result::free_async(address, std::ptr::null_mut())),
            CUresult::CUDA_ERROR_INVALID_VALUE,
            "it is of no pool"
        );
        result::free_sync(address).expect("it is there");
        assert_eq!(code(result::free_sync(address)), CUresult::CUDA_ERROR_INVALID_VALUE);
    }
}

#[test]
fn a_pool_keeps_what_its_threshold_allows() {
    let (context, stream) = on_either_driver!(Gpu; with_stream(6));
    let pool = new_pool(context.cu_device());
    let reserved = || {
        let mut value = 0_u64;
        let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
        // SAFETY: the attribute is of 8 bytes.
        unsafe { result::mem_pool::get_attribute(pool, attribute, (&raw mut value).cast()) }
            .map(|()| value)
            .expect("it has one")
    };
    let allocate_and_free = || {
        // SAFETY: freed memory is not used again.
        unsafe {
            let address =
                result::mem_pool::alloc_async(pool, 1 << 20, stream.cu_stream()).expect("memory");
            result::free_async(address, stream.cu_stream()).expect("it is there");
        }
    };
    allocate_and_free();
    assert!(reserved() >= 1 << 20, "no call has waited yet");
    stream.synchronize().expect("it is done");
    assert_eq!(reserved(), 0, "the threshold is 0");
    let mut threshold = u64::MAX;
    let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // SAFETY: the attribute is of 8 bytes.
    unsafe { result::mem_pool::set_attribute(pool, attribute, (&raw mut threshold).cast()) }
        .expect("it may be set");
    allocate_and_free();
    stream.synchronize().expect("it is done");
    assert!(reserved() >= 1 << 20, "below the threshold");
    // SAFETY: the pool is live, and nothing of it is used.
    unsafe {
        result::mem_pool::trim_to(pool, 0).expect("nothing is used");
        assert_eq!(reserved(), 0);
        result::mem_pool::destroy(pool).expect("it is there");
    }
}

fn new_pool(device: i32) -> sys::CUmemoryPool {
    // SAFETY: all zeros are a valid value of each field.
    let mut properties: sys::CUmemPoolProps = unsafe { std::mem::zeroed() };
    properties.allocType = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    // In later versions the number's field is in a union, at the same offset.
    let location: *mut i32 = (&raw mut properties.location).cast();
    // SAFETY: a `CUmemLocation` consists of a kind and a number, each of four bytes.
    unsafe { location.add(1).write(device) };
    // SAFETY: the properties live for the call.
    unsafe { result::mem_pool::create(&raw const properties) }.expect("a pool")
}

#[test]
fn a_context_that_is_released_gives_everything_back() {
    on_either_driver!(Gpu, FreeMemory);
    const LEN: usize = 256 << 20;
    let free = |context: &CudaContext| context.mem_get_info().expect("the device reports it").0;
    let before = {
        let context = context(4);
        let stream = context.new_stream().expect("a stream");
        let before = free(&context);
        let memory = stream.alloc_zeros::<u8>(LEN).expect("memory");
        stream.synchronize().expect("it is there");
        assert!(free(&context) <= before - LEN);
        assert_ne!(memory.leak(), 0);
        before
    };
    let context = context(4);
    assert!(free(&context) > before - LEN / 2, "the context that leaked it is gone");
    assert!(is_real() || resident_stand_in::memory_in_use(4) == 0);
    context.synchronize().expect("no error");
}

#[test]
fn a_kernel_may_access_pinned_memory() {
    let context = on_either_driver!(Gpu; context(0));
    let scale = function(&context, "scale");
    let stream = context.new_stream().expect("a stream");
    let memory = locked(8).cast::<f32>();
    // SAFETY: the driver's memory of two floats, which only this test uses.
    unsafe { std::ptr::copy_nonoverlapping([1.5_f32, 2.5].as_ptr(), memory, 2) };
    let mut address = 0;
    // SAFETY: the pointer's target lives during the call.
    done(unsafe { sys::cuMemHostGetDevicePointer_v2(&raw mut address, memory.cast(), 0) });
    let mut launch = stream.launch_builder(&scale);
    launch.arg(&address).arg(&2.0_f32);
    // SAFETY: the kernel accesses only the memory of its argument.
    unsafe { launch.launch(threads(2)) }.expect("a launch");
    stream.synchronize().expect("it is done");
    // SAFETY: as above.
    assert_eq!(unsafe { std::slice::from_raw_parts(memory, 2) }, [3.0, 5.0]);
}
