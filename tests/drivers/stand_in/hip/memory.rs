//! Memory of devices and of the host, pools, and what a pointer's attributes are.

use std::ffi::c_void;

use resident_stand_in_hip::{Settings, memory_in_use};

use super::api::{Hip, at, at_mut, get, load, ok};

const INVALID_VALUE: u32 = 1;
const OUT_OF_MEMORY: u32 = 2;
const NOT_REGISTERED: u32 = 713;
const NOT_SUPPORTED: u32 = 801;

#[test]
fn memory_is_counted_and_limited() {
    support::own_process!();
    let hip = load(Settings::new().memory(1 << 20));
    // SAFETY: the functions write what the pointers have room for.
    unsafe {
        let memory = hip.memory(1000);
        assert_eq!(memory_in_use(0), 1000);
        let (mut free, mut total) = (0, 0);
        ok((hip.hipMemGetInfo)(&raw mut free, &raw mut total));
        assert_eq!((free, total), ((1 << 20) - 1000, 1 << 20));
        let mut none = 7;
        assert_eq!((hip.hipMalloc)(&raw mut none, 1 << 20), OUT_OF_MEMORY);
        ok((hip.hipMalloc)(&raw mut none, 0));
        assert_eq!(none, 0, "no bytes are no memory");
        ok((hip.hipFree)(0));
        assert_eq!((hip.hipFree)(memory + 8), INVALID_VALUE);
        ok((hip.hipFree)(memory));
        assert_eq!((hip.hipFree)(memory), INVALID_VALUE);
    }
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
    support::own_process!();
    let hip = load(Settings::new().devices(2));
    let stream = hip.stream();
    // SAFETY: the functions read and write what the pointers have room for.
    unsafe {
        let pool = get(|pool| (hip.hipMemPoolCreate)(pool, &properties(0)));
        let mut threshold = u64::MAX;
        let place: *mut c_void = (&raw mut threshold).cast();
        ok((hip.hipMemPoolSetAttribute)(pool, 4, place));
        let memory = get(|address| (hip.hipMallocFromPoolAsync)(address, 4096, pool, stream));
        ok((hip.hipMemPoolSetAccess)(pool, &[1, 1, 3], 1));
        ok((hip.hipFreeAsync)(memory, stream));
        ok((hip.hipStreamSynchronize)(stream));
        let kept = |hip: &Hip| {
            let mut kept = 0_u64;
            ok((hip.hipMemPoolGetAttribute)(pool, 5, (&raw mut kept).cast()));
            kept
        };
        assert_eq!(kept(&hip), 4096);
        ok((hip.hipMemPoolTrimTo)(pool, 0));
        assert_eq!(kept(&hip), 0);
        assert_eq!((hip.hipFreeAsync)(memory, stream), INVALID_VALUE, "it is freed");
        ok((hip.hipMemPoolDestroy)(pool));
        assert_eq!((hip.hipMemPoolTrimTo)(pool, 0), INVALID_VALUE);
    }
}

#[test]
fn a_device_may_have_no_pools() {
    support::own_process!();
    let hip = load(Settings::new().without_pools());
    let mut pool = 0;
    // SAFETY: the functions read and write what the pointers have room for.
    unsafe {
        assert_eq!(get(|value| (hip.hipDeviceGetAttribute)(value, 88, 0)), 0);
        let code = (hip.hipMemPoolCreate)(&raw mut pool, &properties(0));
        assert_eq!(code, NOT_SUPPORTED);
    }
}

#[test]
fn host_memory_is_pinned_mapped_and_registered() {
    support::own_process!();
    let hip = load(Settings::new());
    let stream = hip.stream();
    // SAFETY: the functions read and write what the pointers have room for.
    unsafe {
        let pinned = get(|pointer| (hip.hipHostMalloc)(pointer, 64, 3));
        assert_eq!(get(|address| (hip.hipHostGetDevicePointer)(address, pinned, 0)), pinned);
        ok((hip.hipMemsetD32Async)(pinned, 7, 16, stream));
        ok((hip.hipStreamSynchronize)(stream));
        let values: *const i32 = std::ptr::with_exposed_provenance(pinned as usize);
        assert_eq!(std::slice::from_raw_parts(values, 16), [7; 16]);
        ok((hip.hipHostFree)(pinned));
        ok((hip.hipHostFree)(0));
        let mut own = vec![0_u8; 4096];
        assert_eq!((hip.hipHostUnregister)(at_mut(&mut own)), NOT_REGISTERED);
        ok((hip.hipHostRegister)(at_mut(&mut own), 4096, 0));
        // HIP takes a second registration, and forgets it: one call ends both.
        ok((hip.hipHostRegister)(at_mut(&mut own), 4096, 0));
        ok((hip.hipHostUnregister)(at_mut(&mut own)));
        assert_eq!((hip.hipHostUnregister)(at_mut(&mut own)), NOT_REGISTERED);
    }
}

#[test]
fn managed_memory_is_memory_of_all() {
    support::own_process!();
    let hip = load(Settings::new());
    let stream = hip.stream();
    // SAFETY: the functions write what the pointers have room for.
    unsafe {
        let managed = get(|address| (hip.hipMallocManaged)(address, 256, 1));
        ok((hip.hipMemAdvise)(managed, 256, 3, 0));
        ok((hip.hipMemAdvise)(managed, 256, 100, 0));
        assert_eq!((hip.hipMemAdvise)(managed, 256, 55, 0), INVALID_VALUE);
        ok((hip.hipMemPrefetchAsync)(managed, 256, -1, stream));
        ok((hip.hipMemsetD8Async)(managed, 3, 256, stream));
        assert_eq!(hip.download::<u8>(managed, 256, stream), [3; 256]);
        let mut is_managed = [0_u8, 0xAA];
        ok((hip.hipPointerGetAttribute)(is_managed.as_mut_ptr().cast(), 8, managed));
        assert_eq!(is_managed, [1, 0xAA], "HIP writes one byte");
        ok((hip.hipFree)(managed));
        assert_eq!((hip.hipFree)(managed), INVALID_VALUE);
    }
}

/// The memory type and the device of an address.
fn place(hip: &Hip, address: u64) -> Result<(u32, i32), u32> {
    let mut attributes = [0_u64; 4];
    // SAFETY: the structure has 32 bytes.
    match unsafe { (hip.hipPointerGetAttributes)(&raw mut attributes, address) } {
        0 => Ok((attributes[0] as u32, (attributes[0] >> 32) as i32)),
        code => Err(code),
    }
}

#[test]
fn memory_types_have_the_numbers_of_the_version() {
    support::own_process!();
    let hip = load(Settings::new().devices(2));
    let own = [0_u8; 8];
    // SAFETY: the functions write what the pointers have room for.
    let pinned = unsafe {
        ok((hip.hipSetDevice)(1));
        get(|pointer| (hip.hipHostMalloc)(pointer, 8, 0))
    };
    let memory = hip.memory(8);
    assert_eq!(place(&hip, memory), Ok((2, 1)));
    assert_eq!(place(&hip, pinned), Ok((1, 1)));
    assert_eq!(place(&hip, at(&own)), Ok((0, -2)), "not registered");
    assert_eq!(place(&hip, 0), Err(INVALID_VALUE));
}

#[test]
fn memory_types_had_other_numbers_in_hip_5() {
    support::own_process!();
    let hip = load(Settings::new().version(50_221_153));
    let own = [0_u8; 8];
    let memory = hip.memory(8);
    assert_eq!(place(&hip, memory), Ok((1, 0)));
    assert_eq!(place(&hip, at(&own)), Err(INVALID_VALUE), "not registered");
}
