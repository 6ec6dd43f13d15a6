//! Memory of devices and of the host, pools, and what a pointer's attributes are.

use resident_stand_in_hip::{Settings, memory_in_use};
use support::in_own_process;

use super::api::{Hip, at, at_mut, get, load, ok, with_stream};

const INVALID_VALUE: u32 = 1;
const OUT_OF_MEMORY: u32 = 2;
const NOT_REGISTERED: u32 = 713;
const NOT_SUPPORTED: u32 = 801;

#[test]
fn memory_is_counted_and_limited() {
    let hip = in_own_process!(load(Settings::new().memory(1 << 20)));
    let memory = hip.memory(1000);
    assert_eq!(memory_in_use(0), 1000);
    let (mut free, mut total) = (0, 0);
    ok((hip.hipMemGetInfo)(&mut free, &mut total));
    assert_eq!((free, total), ((1 << 20) - 1000, 1 << 20));
    let mut none = 7;
    assert_eq!((hip.hipMalloc)(&mut none, 1 << 20), OUT_OF_MEMORY);
    ok((hip.hipMalloc)(&mut none, 0));
    assert_eq!(none, 0, "no bytes are no memory");
    ok((hip.hipFree)(0));
    assert_eq!((hip.hipFree)(memory + 8), INVALID_VALUE);
    ok((hip.hipFree)(memory));
    assert_eq!((hip.hipFree)(memory), INVALID_VALUE);
    assert_eq!(memory_in_use(0), 0);
}

/// `hipMemPoolProps` of a device.
fn properties(device: u32) -> [u32; 22] {
    let mut properties = [0; 22];
    properties[..4].copy_from_slice(&[1, 0, 1, device]);
    properties
}

#[test]
fn pools_keep_bytes_until_they_are_trimmed() {
    let (hip, stream) = in_own_process!(with_stream(Settings::new().devices(2)));
    let pool = get(|pool| (hip.hipMemPoolCreate)(pool, &properties(0)));
    ok((hip.hipMemPoolSetAttribute)(pool, 4, &mut { u64::MAX }));
    let memory = get(|address| (hip.hipMallocFromPoolAsync)(address, 4096, pool, stream));
    // SAFETY: there is one description.
    ok(unsafe { (hip.hipMemPoolSetAccess)(pool, &[1, 1, 3], 1) });
    ok((hip.hipFreeAsync)(memory, stream));
    ok((hip.hipStreamSynchronize)(stream));
    let kept = || get(|kept| (hip.hipMemPoolGetAttribute)(pool, 5, kept));
    assert_eq!(kept(), 4096);
    ok((hip.hipMemPoolTrimTo)(pool, 0));
    assert_eq!(kept(), 0);
    assert_eq!((hip.hipFreeAsync)(memory, stream), INVALID_VALUE, "it is freed");
    ok((hip.hipMemPoolDestroy)(pool));
    assert_eq!((hip.hipMemPoolTrimTo)(pool, 0), INVALID_VALUE);
}

/// `hipMemAllocationProp` of device 0.
const MEMORY: [u32; 8] = [1, 0, 1, 0, 0, 0, 0, 0];

#[test]
fn memory_is_mapped_to_reserved_addresses() {
    let (hip, stream) = in_own_process!(with_stream(Settings::new()));
    let page = get(|len_bytes| (hip.hipMemGetAllocationGranularity)(len_bytes, &MEMORY, 0));
    assert_eq!(page, 2 << 20);
    let address = get(|address| (hip.hipMemAddressReserve)(address, 2 * page, 0, 0, 0));
    let memory = get(|memory| (hip.hipMemCreate)(memory, page, &MEMORY, 0));
    ok((hip.hipMemMap)(address, page, 0, memory, 0));
    assert_eq!((hip.hipMemMap)(address, page, 0, memory, 0), INVALID_VALUE, "mapped already");
    assert_eq!(memory_in_use(0), 0, "no device has access");
    ok((hip.hipMemSetAccess)(address, page, &[1, 0, 3], 1));
    assert_eq!(memory_in_use(0), page as u64);
    ok((hip.hipMemsetD8Async)(address, 7, page, stream));
    ok((hip.hipStreamSynchronize)(stream));
    assert_eq!((hip.hipMemAddressFree)(address, 2 * page), INVALID_VALUE, "memory is mapped");
    ok((hip.hipMemUnmap)(address, page));
    ok((hip.hipMemAddressFree)(address, 2 * page));
    let (mut free, mut total) = (0, 0);
    ok((hip.hipMemGetInfo)(&mut free, &mut total));
    assert_eq!(total - free, page, "the memory is not released");
    ok((hip.hipMemRelease)(memory));
    assert_eq!((hip.hipMemRelease)(memory), INVALID_VALUE);
    ok((hip.hipMemGetInfo)(&mut free, &mut total));
    assert_eq!((total - free, memory_in_use(0)), (0, 0));
}

#[test]
fn a_device_may_map_no_memory() {
    let hip = in_own_process!(load(Settings::new().page_bytes(0)));
    let mut address = 0;
    assert_eq!((hip.hipMemAddressReserve)(&mut address, 2 << 20, 0, 0, 0), NOT_SUPPORTED);
    assert_eq!((hip.hipMemCreate)(&mut address, 2 << 20, &MEMORY, 0), NOT_SUPPORTED);
}

#[test]
fn a_device_may_have_no_pools() {
    let hip = in_own_process!(load(Settings::new().without_pools()));
    assert_eq!(get(|value| (hip.hipDeviceGetAttribute)(value, 88, 0)), 0);
    assert_eq!((hip.hipMemPoolCreate)(&mut 0, &properties(0)), NOT_SUPPORTED);
}

#[test]
fn host_memory_is_pinned_mapped_and_registered() {
    let (hip, stream) = in_own_process!(with_stream(Settings::new()));
    let pinned = get(|pointer| (hip.hipHostMalloc)(pointer, 64, 3));
    assert_eq!(get(|address| (hip.hipHostGetDevicePointer)(address, pinned, 0)), pinned);
    ok((hip.hipMemsetD32Async)(pinned, 7, 16, stream));
    ok((hip.hipStreamSynchronize)(stream));
    let values: *const i32 = std::ptr::with_exposed_provenance(pinned as usize);
    // SAFETY: the memory holds as many numbers, and no work uses it.
    assert_eq!(unsafe { std::slice::from_raw_parts(values, 16) }, [7; 16]);
    ok((hip.hipHostFree)(pinned));
    ok((hip.hipHostFree)(0));
    let mut memory = vec![0_u8; 4096];
    let own = at_mut(&mut memory);
    assert_eq!((hip.hipHostUnregister)(own), NOT_REGISTERED);
    // HIP takes a second registration, and forgets it: one call ends both.
    for _ in 0..2 {
        // SAFETY: the memory lives until the registration ends.
        ok(unsafe { (hip.hipHostRegister)(own, 4096, 0) });
    }
    ok((hip.hipHostUnregister)(own));
    assert_eq!((hip.hipHostUnregister)(own), NOT_REGISTERED);
}

#[test]
fn managed_memory_is_memory_of_all() {
    let (hip, stream) = in_own_process!(with_stream(Settings::new()));
    let managed = get(|address| (hip.hipMallocManaged)(address, 256, 1));
    ok((hip.hipMemAdvise)(managed, 256, 3, 0));
    ok((hip.hipMemAdvise)(managed, 256, 100, 0));
    assert_eq!((hip.hipMemAdvise)(managed, 256, 55, 0), INVALID_VALUE);
    ok((hip.hipMemPrefetchAsync)(managed, 256, -1, stream));
    ok((hip.hipMemsetD8Async)(managed, 3, 256, stream));
    assert_eq!(hip.download::<u8>(managed, 256, stream), [3; 256]);
    let mut is_managed = [0_u8, 0xAA];
    // SAFETY: there is room for the attribute.
    ok(unsafe { (hip.hipPointerGetAttribute)(is_managed.as_mut_ptr().cast(), 8, managed) });
    assert_eq!(is_managed, [1, 0xAA], "HIP writes one byte");
    ok((hip.hipFree)(managed));
    assert_eq!((hip.hipFree)(managed), INVALID_VALUE);
}

/// The memory type and the device of an address.
fn place(hip: &Hip, address: u64) -> Result<(u32, i32), u32> {
    let mut attributes = [0_u64; 4];
    match (hip.hipPointerGetAttributes)(&mut attributes, address) {
        0 => Ok((attributes[0] as u32, (attributes[0] >> 32) as i32)),
        code => Err(code),
    }
}

#[test]
fn memory_types_have_the_numbers_of_the_version() {
    let hip = in_own_process!(load(Settings::new().devices(2)));
    let own = [0_u8; 8];
    ok((hip.hipSetDevice)(1));
    let pinned = get(|pointer| (hip.hipHostMalloc)(pointer, 8, 0));
    let memory = hip.memory(8);
    assert_eq!(place(&hip, memory), Ok((2, 1)));
    assert_eq!(place(&hip, pinned), Ok((1, 1)));
    assert_eq!(place(&hip, at(&own)), Ok((0, -2)), "not registered");
    assert_eq!(place(&hip, 0), Err(INVALID_VALUE));
}

#[test]
fn memory_types_had_other_numbers_in_hip_5() {
    let hip = in_own_process!(load(Settings::new().version(50_221_153)));
    let own = [0_u8; 8];
    let memory = hip.memory(8);
    assert_eq!(place(&hip, memory), Ok((1, 0)));
    assert_eq!(place(&hip, at(&own)), Err(INVALID_VALUE), "not registered");
}
