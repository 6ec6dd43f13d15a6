//! Managed memory: who accesses it, and which ranges and places the driver refuses.

use resident::cudarc::driver::result::{free_sync, malloc_managed};
use resident::cudarc::driver::sys::{
    self, CUdevice_attribute, CUmem_advise, CUmem_range_attribute, CUmemAttach_flags, CUresult,
};
use resident::cudarc::driver::{CudaContext, DriverError};

use crate::driver::choice::{context, with_stream};
use crate::shared::{code, done, ok};

/// `CU_DEVICE_CPU`.
const HOST: i32 = -1;

/// Managed memory of this many bytes, unless the machine's device has none that the host can use
/// beside it.
fn managed(context: &CudaContext, len_bytes: usize) -> Option<u64> {
    let attribute = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS;
    if context.attribute(attribute).expect("a device") == 0 {
        println!("not done: this device has no concurrent access to managed memory");
        return None;
    }
    // SAFETY: the flags are valid.
    Some(unsafe { malloc_managed(len_bytes, CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL) }.expect("ok"))
}

fn prefetch(address: u64, len_bytes: usize, place: i32) -> Result<(), DriverError> {
    let location = location(place);
    // SAFETY: the driver checks the range.
    ok(unsafe { sys::cuMemPrefetchAsync_v2(address, len_bytes, location, 0, std::ptr::null_mut()) })
}

/// The names of the structure's fields depend on the version of the bindings.
fn location(place: i32) -> sys::CUmemLocation {
    const DEVICE: i32 = 1;
    const ON_HOST: i32 = 2;
    let kind_and_id = if place == HOST { [ON_HOST, 0] } else { [DEVICE, place] };
    // SAFETY: the structure is two numbers of four bytes, the first of them one of its kinds.
    unsafe { std::mem::transmute(kind_and_id) }
}

#[test]
fn host_and_device_access_managed_memory() {
    let (context, stream) = on_either_driver!(Gpu; with_stream(0));
    let Some(address) = managed(&context, 4096) else { return };
    // SAFETY: the memory is live and has this many bytes.
    done(unsafe { sys::cuMemsetD8Async(address, 7, 4096, stream.cu_stream()) });
    prefetch(address, 4096, HOST).expect("the whole range");
    stream.synchronize().expect("it is filled");
    let start = std::ptr::with_exposed_provenance_mut::<u8>(address as usize);
    // SAFETY: the memory is live, and no work uses it.
    unsafe { assert_eq!((start.read(), start.byte_add(4095).read()), (7, 7)) };
    // SAFETY: nothing uses the memory any more.
    unsafe { free_sync(address) }.expect("the driver allocated it");
}

#[test]
fn ranges_outside_managed_memory_are_refused() {
    let context = on_either_driver!(Gpu; context(0));
    let Some(address) = managed(&context, 4096) else { return };
    prefetch(address, 4096, 0).expect("the whole range");
    prefetch(address + 1000, 96, 0).expect("a part");
    assert_eq!(code(prefetch(address, 0, 0)), CUresult::CUDA_ERROR_INVALID_VALUE);
    assert_eq!(code(prefetch(address, 4096, 99)), CUresult::CUDA_ERROR_INVALID_DEVICE);
    // SAFETY: nothing uses the memory any more.
    unsafe { free_sync(address) }.expect("the driver allocated it");
    assert_eq!(code(prefetch(address, 4096, 0)), CUresult::CUDA_ERROR_INVALID_VALUE);
    let stream = context.new_stream().expect("a stream");
    let memory = stream.alloc_zeros::<u8>(4096).expect("memory");
    let (address, _guard) = resident::cudarc::driver::DevicePtr::device_ptr(&memory, &stream);
    assert_eq!(code(prefetch(address, 4096, 0)), CUresult::CUDA_ERROR_INVALID_VALUE);
}

#[test]
fn advice_is_kept_until_it_is_withdrawn() {
    let context = on_either_driver!(Gpu; context(0));
    let Some(address) = managed(&context, 4096) else { return };
    let advise = |advice| {
        // SAFETY: the driver checks the range.
        done(unsafe { sys::cuMemAdvise_v2(address, 4096, advice, location(0)) });
    };
    let preferred = || {
        let attribute = CUmem_range_attribute::CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION;
        let mut value = 0_i32;
        // SAFETY: the driver writes one number of four bytes.
        ok(unsafe {
            sys::cuMemRangeGetAttribute((&raw mut value).cast(), 4, attribute, address, 4096)
        })
        .expect("a range");
        value
    };
    advise(CUmem_advise::CU_MEM_ADVISE_SET_PREFERRED_LOCATION);
    assert_eq!(preferred(), 0);
    advise(CUmem_advise::CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION);
    assert_eq!(preferred(), -2, "nowhere");
    // SAFETY: nothing uses the memory any more.
    unsafe { free_sync(address) }.expect("the driver allocated it");
}
