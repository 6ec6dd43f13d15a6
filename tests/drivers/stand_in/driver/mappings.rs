//! Reserved addresses, and memory that is mapped to them.

use resident::cudarc::driver::sys::{self, CUmemAllocationGranularity_flags, CUresult};
use resident::cudarc::driver::{CudaStream, DriverError, result};

use crate::driver::choice::{context, is_real, with_stream};
use crate::shared::{code, done, ok};

/// `CUmemAllocationProp` of device 0. The names of its fields depend on the bindings' version.
static PROPERTIES: [i32; 8] = [1, 0, 1, 0, 0, 0, 0, 0];
/// `CUmemAccessDesc`: device 0 reads and writes.
static ACCESS: [i32; 3] = [1, 0, 3];

/// The length of a page, unless the machine's device maps no memory.
fn page_bytes() -> Option<usize> {
    let (mut len_bytes, properties) = (0, (&raw const PROPERTIES).cast());
    let minimum = CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
    // SAFETY: the driver reads one struct, which has this layout, and writes one number.
    let asked =
        ok(unsafe { sys::cuMemGetAllocationGranularity(&raw mut len_bytes, properties, minimum) });
    if asked.is_err() && is_real() {
        println!("not done: this device maps no memory to reserved addresses");
        return None;
    }
    asked.expect("the stand-in has pages");
    Some(len_bytes)
}

fn reserve(len_bytes: usize) -> Result<u64, DriverError> {
    let mut address = 0;
    // SAFETY: the driver writes one address.
    ok(unsafe { sys::cuMemAddressReserve(&raw mut address, len_bytes, 0, 0, 0) }).map(|()| address)
}

fn create(len_bytes: usize) -> Result<u64, DriverError> {
    let (mut memory, properties) = (0, (&raw const PROPERTIES).cast());
    // SAFETY: the driver reads one struct, which has this layout, and writes one handle.
    ok(unsafe { sys::cuMemCreate(&raw mut memory, len_bytes, properties, 0) }).map(|()| memory)
}

fn map(address: u64, len_bytes: usize, memory: u64) -> Result<(), DriverError> {
    // SAFETY: the driver checks addresses and handles.
    ok(unsafe { sys::cuMemMap(address, len_bytes, 0, memory, 0) })
}

fn unmap(address: u64, len_bytes: usize) -> Result<(), DriverError> {
    // SAFETY: the driver checks the addresses; no work uses them.
    ok(unsafe { sys::cuMemUnmap(address, len_bytes) })
}

fn allow(address: u64, len_bytes: usize) -> Result<(), DriverError> {
    // SAFETY: the driver reads one struct, which has this layout.
    ok(unsafe { sys::cuMemSetAccess(address, len_bytes, (&raw const ACCESS).cast(), 1) })
}

fn release(memory: u64) {
    // SAFETY: the handle is released once.
    done(unsafe { sys::cuMemRelease(memory) });
}

fn free(address: u64, len_bytes: usize) -> Result<(), DriverError> {
    // SAFETY: the driver checks the addresses; no work uses them.
    ok(unsafe { sys::cuMemAddressFree(address, len_bytes) })
}

fn fill(stream: &CudaStream, address: u64, len_bytes: usize, byte: u8) {
    // SAFETY: memory of this length is mapped there.
    done(unsafe { sys::cuMemsetD8Async(address, byte, len_bytes, stream.cu_stream()) });
}

#[test]
fn mapped_memory_is_used_at_reserved_addresses() {
    let (context, stream) = on_either_driver!(Gpu; with_stream(0));
    context.bind_to_thread().expect("a context");
    let Some(page) = page_bytes() else { return };
    let address = reserve(4 * page).expect("addresses");
    let memory = [(); 2].map(|()| create(page).expect("memory"));
    for (index, memory) in memory.into_iter().enumerate() {
        map(address + ((1 + index) * page) as u64, page, memory).expect("nothing is there");
    }
    let first = address + page as u64;
    allow(first, 2 * page).expect("two mappings side by side");
    fill(&stream, first, 2 * page, 7);
    let mut read = vec![0_u8; 2 * page];
    // SAFETY: memory of this length is mapped there.
    unsafe { result::memcpy_dtoh_async(&mut read, first, stream.cu_stream()) }.expect("a copy");
    stream.synchronize().expect("nothing fails");
    assert!(read.iter().all(|byte| *byte == 7));
    // The handles may go before the mappings.
    memory.into_iter().for_each(release);
    unmap(first, page).expect("one mapping");
    unmap(first + page as u64, page).expect("the other");
    free(address, 4 * page).expect("nothing is mapped there");
}

#[test]
fn what_does_not_fit_is_refused() {
    let context = on_either_driver!(Gpu; context(0));
    context.bind_to_thread().expect("a context");
    let Some(page) = page_bytes() else { return };
    const INVALID: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
    assert_eq!(code(reserve(page + 1)), INVALID);
    assert_eq!(code(reserve(0)), INVALID);
    assert_eq!(code(create(page / 2)), INVALID);
    let address = reserve(3 * page).expect("addresses");
    let [memory, other] = [(); 2].map(|()| create(page).expect("memory"));
    assert_eq!(code(map(address + 1, page, memory)), INVALID);
    assert_eq!(code(map(address, page / 2, memory)), INVALID);
    assert_eq!(code(unmap(address, page)), INVALID, "nothing is there");
    assert_eq!(code(allow(address, page)), INVALID, "nothing is there");
    map(address, page, memory).expect("nothing is there");
    code(map(address, page, other));
    assert_eq!(code(unmap(address, page / 2)), INVALID, "a part of a mapping");
    code(free(address, 3 * page));
    unmap(address, page).expect("a mapping");
    code(free(address, page));
    free(address, 3 * page).expect("nothing is mapped there");
    [memory, other].into_iter().for_each(release);
}
