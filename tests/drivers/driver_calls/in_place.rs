//! Programs with memory that the host and a device access in place.

use std::mem::ManuallyDrop;
use std::sync::Arc;

use resident::cudarc::driver::{CudaSlice, CudaStream, DevicePtr, result, sys};
use resident::{ManagedArray, MappedArray};

use crate::programs::{LEN, gpu, grid};
use crate::{Pair, by_hand, touches};

/// Memory at an address as a slice of cudarc, which is never freed.
fn slice(stream: &Arc<CudaStream>, address: u64) -> ManuallyDrop<CudaSlice<f32>> {
    // SAFETY: the memory has this many zeroed floats, and the program keeps it.
    ManuallyDrop::new(unsafe { stream.upgrade_device_ptr(address, LEN) })
}

/// The first number of memory that the host accesses too, and that no work uses.
fn first(address: u64) -> f32 {
    let start = std::ptr::with_exposed_provenance::<f32>(address as usize);
    // SAFETY: the memory is live, and its work is complete.
    unsafe { start.read() }
}

fn prefetch(stream: &Arc<CudaStream>, memory: &CudaSlice<f32>, [kind, id]: [i32; 2]) {
    let (address, _order) = memory.device_ptr(stream);
    // SAFETY: the structure is two numbers of four bytes, the first of them one of its kinds.
    let location: sys::CUmemLocation = unsafe { std::mem::transmute([kind, id]) };
    stream.context().bind_to_thread().expect("a context");
    // SAFETY: the range is live managed memory.
    let queued =
        unsafe { sys::cuMemPrefetchAsync_v2(address, LEN * 4, location, 0, stream.cu_stream()) };
    queued.result().expect("a prefetch");
}

pub(crate) fn a_managed_array_there_and_back() -> Pair {
    const DEVICE: [i32; 2] = [1, 0];
    const HOST: [i32; 2] = [2, 0];
    let (device, kernel) = (gpu(), touches::touch1());
    let here = device.enter();
    let mut array = ManagedArray::<f32, _>::zeros(LEN).expect("memory");
    drop(here);
    let ours = move || {
        array.prefetch(&device.stream()).expect("queued");
        kernel.launch_on(&device.stream(), grid(), (&mut array,)).expect("a launch");
        array.prefetch_host_on(&device.stream()).expect("queued");
        assert!(array.host().expect("a wait")[0] > 0.0);
    };
    let (stream, function) = by_hand::stream_and_function(1);
    let global = sys::CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL;
    // SAFETY: the flags are valid.
    let address = unsafe { result::malloc_managed(LEN * 4, global) }.expect("memory");
    // SAFETY: the memory is live and has this many bytes.
    unsafe { result::memset_d8_sync(address, 0, LEN * 4) }.expect("zeros");
    let mut memory = slice(&stream, address);
    let by_hand = move || {
        prefetch(&stream, &memory, DEVICE);
        by_hand::launch(&stream, &function, &[], &mut memory);
        prefetch(&stream, &memory, HOST);
        stream.synchronize().expect("a wait");
        assert!(first(address) > 0.0);
    };
    Pair::new("a managed array prefetched, launched, prefetched back and read", ours, by_hand)
}

pub(crate) fn a_mapped_array_in_turns() -> Pair {
    let (device, kernel) = (gpu(), touches::touch1());
    let here = device.enter();
    let mut array = MappedArray::<f32, _>::zeros(LEN).expect("memory");
    drop(here);
    let ours = move || {
        for _ in 0..10 {
            array.host_mut().expect("a wait")[0] = 1.0;
            kernel.launch_on(&device.stream(), grid(), (&mut array,)).expect("a launch");
        }
        assert!(array.host().expect("a wait")[0] > 1.0);
    };
    let (stream, function) = by_hand::stream_and_function(1);
    // SAFETY: the flags are those of mapped memory.
    let start = unsafe { result::malloc_host(LEN * 4, 2) }.expect("memory").cast::<f32>();
    // SAFETY: the driver's memory, which only this program uses.
    unsafe { start.write_bytes(0, LEN) };
    let mut address = 0;
    // SAFETY: the driver writes one address.
    let mapped = unsafe { sys::cuMemHostGetDevicePointer_v2(&raw mut address, start.cast(), 0) };
    mapped.result().expect("mapped memory");
    let mut memory = slice(&stream, address);
    let by_hand = move || {
        for _ in 0..10 {
            // SAFETY: the memory is live, and its work is complete.
            unsafe { start.write(1.0) };
            by_hand::launch(&stream, &function, &[], &mut memory);
            stream.synchronize().expect("a wait");
        }
        assert!(first(address) > 1.0);
    };
    Pair::new("a mapped array changed by the host and a kernel in turns, 10 times", ours, by_hand)
}
