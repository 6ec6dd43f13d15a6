//! Managed memory and arrays that are mapped for a call: the driver calls that they make, and what
//! is refused, on the stand-in driver.

use resident::cudarc::driver::sys::{self, CUmem_range_attribute, CUresult};
use resident::ndarray::{Array1, Axis, Ix1, s};
use resident::{
    Advice, Device, Error, ManagedArray, MappedArray, MemoryLocation, SmartArray, Validity,
    with_mapped, with_pinned,
};
use resident_stand_in::{self as driver, Settings};
use support::{in_own_process, own_process};

/// `CU_DEVICE_CPU`, and what the driver says where there is no location.
const HOST: i32 = -1;
const NOWHERE: i32 = -2;

fn devices(settings: Settings) -> Vec<Device> {
    let devices = support::driver::open(settings.devices(2), 2);
    driver::take_calls();
    devices
}

fn count(name: &str) -> usize {
    driver::calls().iter().filter(|call| call.name == name && call.code == 0).count()
}

/// What the driver knows of managed memory.
fn known(array: &ManagedArray<u32, Ix1>, attribute: u32) -> i32 {
    use CUmem_range_attribute::{
        CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION,
        CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
    };
    let attribute = match attribute {
        1 => CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY,
        2 => CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION,
        3 => CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY,
        _ => CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION,
    };
    let (mut value, start) = (0_i32, array.host().expect("valid").as_ptr());
    let (address, len_bytes) = (start.addr() as u64, array.len() * 4);
    // SAFETY: the driver writes one number of four bytes.
    let asked = unsafe {
        sys::cuMemRangeGetAttribute((&raw mut value).cast(), 4, attribute, address, len_bytes)
    };
    assert_eq!(asked, CUresult::CUDA_SUCCESS);
    value
}

#[test]
fn prefetches_and_advice_reach_the_driver() {
    own_process!();
    prefetch_and_advise(Settings::new(), ["cuMemPrefetchAsync_v2", "cuMemAdvise_v2"]);
}

/// Before CUDA 12.2 the host is a device with a number of its own.
#[test]
fn prefetches_and_advice_reach_older_drivers() {
    own_process!();
    let settings = Settings::new().driver_version(12_010);
    prefetch_and_advise(settings, ["cuMemPrefetchAsync", "cuMemAdvise"]);
}

fn prefetch_and_advise(settings: Settings, [prefetch, advise]: [&str; 2]) {
    let devices = devices(settings);
    let _here = devices[0].enter();
    let array = ManagedArray::<u32, _>::zeros(5000).expect("memory");
    assert_eq!(known(&array, 4), NOWHERE);
    array.prefetch(&devices[0].stream()).expect("queued");
    assert_eq!(known(&array, 4), 0);
    array.prefetch_host_on(&devices[0].new_stream().expect("a stream")).expect("queued");
    assert_eq!(known(&array, 4), HOST);
    let there = || MemoryLocation::Device(devices[1].clone());
    for (advice, attribute, set, unset) in [
        (Advice::ReadMostly, 1, 1, 0),
        (Advice::PreferredLocation(there()), 2, 1, NOWHERE),
        (Advice::PreferredLocation(MemoryLocation::Host), 2, HOST, NOWHERE),
        (Advice::AccessedBy(there()), 3, 1, NOWHERE),
        (Advice::AccessedBy(MemoryLocation::Host), 3, HOST, NOWHERE),
    ] {
        array.advise(&advice).expect("the driver takes it");
        assert_eq!(known(&array, attribute), set, "{advice:?}");
        array.withdraw_advice(&advice).expect("the driver takes it");
        assert_eq!(known(&array, attribute), unset, "{advice:?}");
    }
    let refused = array.advise(&Advice::AccessedBy(MemoryLocation::Device(Device::cpu())));
    assert!(matches!(refused, Err(Error::WrongDevice { .. })), "{refused:?}");
    drop(array);
    devices[0].synchronize().expect("alive");
    assert_eq!((count("cuMemAllocManaged"), count("cuMemFree_v2")), (1, 1));
    assert_eq!((count(prefetch), count(advise)), (2, 10));
    assert_eq!(driver::take_notes(), Vec::<String>::new());
}

/// The host could not access such memory while any kernel runs, and guards do not wait for all.
#[test]
fn managed_memory_needs_concurrent_access() {
    let devices = in_own_process!(devices(Settings::new().without_concurrent_managed_access()));
    let _here = devices[0].enter();
    let refused = ManagedArray::<u32, _>::zeros(5000);
    let Err(Error::Backend { cause, .. }) = &refused else { panic!("{refused:?}") };
    assert!(cause.contains("concurrent managed access is 0"), "{cause}");
    assert!(cause.contains("`MappedArray`"), "{cause}");
    assert_eq!((count("cuMemAllocManaged"), devices[0].memory().in_use), (0, 0));
    assert_eq!(MappedArray::<u32, _>::zeros(10).and_then(|array| array.get(3)).expect("mapped"), 0);
}

/// The driver's free bytes do not count pages that are on the host, so the library counts too.
#[test]
fn managed_memory_is_not_oversubscribed() {
    let devices = in_own_process!(devices(Settings::new().memory(8 << 20)));
    let _here = devices[0].enter();
    let refused = ManagedArray::<u8, _>::zeros(9 << 20);
    let Err(Error::OutOfMemory { shortage, .. }) = &refused else { panic!("{refused:?}") };
    assert_eq!((shortage.requested, shortage.free), (9 << 20, 8 << 20));
    let first = ManagedArray::<u8, _>::zeros(5 << 20).expect("it fits");
    let refused = ManagedArray::<u8, _>::zeros(4 << 20);
    let Err(Error::OutOfMemory { shortage, .. }) = &refused else { panic!("{refused:?}") };
    assert_eq!((shortage.requested, shortage.free, shortage.in_use), (4 << 20, 3 << 20, 5 << 20));
    assert_eq!(count("cuMemAllocManaged"), 1);
    drop(first);
    // A copy that is valid on the host too makes room.
    let kept = SmartArray::<u8, _>::from(vec![1; 5 << 20]);
    kept.prefetch(&devices[0].stream()).expect("it fits");
    let second = ManagedArray::<u8, _>::zeros(5 << 20).expect("the copy is evicted");
    assert_eq!(kept.residency().on(&devices[0]), Validity::Absent);
    assert_eq!(second.host().expect("valid").len(), 5 << 20);
}

#[test]
fn managed_memory_is_no_slice_of_cudarc() {
    let devices = in_own_process!(devices(Settings::new()));
    let _here = devices[0].enter();
    let smart = SmartArray::from(ManagedArray::<u8, _>::zeros(100).expect("memory"));
    let refused = smart.into_cuda_slice().map(drop);
    let Err(Error::Backend { cause, .. }) = &refused else { panic!("{refused:?}") };
    assert!(cause.contains("managed memory") && cause.contains("`try_clone`"), "{cause}");
}

#[test]
fn lent_arrays_are_registered_as_mapped() {
    let devices = in_own_process!(devices(Settings::new()));
    let _here = devices[0].enter();
    let mut array = Array1::<u32>::zeros(5000);
    let start = array.as_mut_ptr();
    let flags_of = || {
        let mut flags = 0;
        // SAFETY: the driver writes one number, and does not dereference the address.
        let asked = unsafe { sys::cuMemHostGetFlags(&raw mut flags, start.cast()) };
        (asked == CUresult::CUDA_SUCCESS).then_some(flags)
    };
    let address = with_mapped(&mut array, |mapped| {
        assert_eq!(flags_of(), Some(3), "portable and mapped");
        mapped.fill(7)?;
        mapped.gpu().map(|guard| guard.address())
    });
    assert_eq!(address.expect("mapped"), start.addr() as u64);
    assert_eq!((flags_of(), array.sum()), (None, 35_000));
    assert!(driver::calls().iter().all(|call| !call.name.starts_with("cuMemcpy")), "no copies");
    assert_eq!(count("cuMemHostRegister_v2"), count("cuMemHostUnregister"));
}

/// An overlapping registration is refused with its addresses, and one of the whole is used.
#[test]
fn overlapping_loans_are_refused_or_shared() {
    let devices = in_own_process!(devices(Settings::new().locks_whole_pages()));
    let _here = devices[0].enter();
    let mut array = Array1::<u32>::zeros(100);
    let (mut one, mut other) = array.view_mut().split_at(Axis(0), 40);
    let outcome = with_pinned(&mut one, |pinned| {
        let refused = with_mapped(&mut other, |mapped| mapped.fill(1));
        let Err(Error::Backend { cause, .. }) = &refused else { panic!("{refused:?}") };
        assert!(cause.contains("ALREADY_REGISTERED") && cause.contains("shares a page"), "{cause}");
        pinned.fill(2)
    });
    outcome.expect("only the inner loan is refused");
    with_mapped(&mut other, |mapped| mapped.fill(3)).expect("the outer loan is over");
    assert_eq!(array.sum(), 40 * 2 + 60 * 3);
    // Another library registered all of it.
    let start = array.as_mut_ptr();
    // SAFETY: the array lives until it is unregistered below.
    let registered = unsafe { sys::cuMemHostRegister_v2(start.cast(), 400, 3) };
    assert_eq!(registered, CUresult::CUDA_SUCCESS);
    with_mapped(&mut array, |mapped| mapped.fill(4)).expect("it is mapped already");
    assert_eq!(array.sum(), 400);
    // SAFETY: as above; no work uses the memory.
    let unregistered = unsafe { sys::cuMemHostUnregister(start.cast()) };
    assert_eq!(unregistered, CUresult::CUDA_SUCCESS, "only the other library unregisters it");
}

/// The calls that allocate or pin memory, or copy.
fn memory_calls() -> Vec<String> {
    let calls = driver::take_calls().into_iter().map(|call| call.name);
    let kinds = ["cuMemAlloc", "cuMemHost", "cuMemcpy"];
    calls.filter(|name| kinds.iter().any(|kind| name.starts_with(kind))).collect()
}

/// A device that reaches the host's memory uses that of ordinary arrays, at its address.
#[test]
fn ordinary_memory_is_the_devices_where_the_driver_says_so() {
    own_process!();
    let devices = devices(Settings::new().reaches_pageable());
    let stream = devices[0].stream();
    let contents: Array1<u32> = (0..3000).collect();
    let start = contents.as_ptr();
    let mut array = SmartArray::from(contents);
    assert_eq!(array.gpu_mut_on(&stream).expect("a guard").address(), start.addr() as u64);
    array.fill_on(&stream, 5).expect("it is queued");
    assert_eq!(array.host().expect("it is here").sum(), 15_000);
    array.host_mut().expect("it is here")[0] = 6;
    assert_eq!(memory_calls(), Vec::<String>::new());
    drop(array.gpu_on(&devices[1].stream()).expect("a copy"));
    assert_eq!((array.traffic().to_device.bytes, devices[0].memory().in_use), (12_000, 0));
    assert_eq!(array.into_array().expect("it is here").as_ptr(), start);
    // What becomes cudarc's is memory of the device.
    let mut array = SmartArray::from(vec![2_u32; 3000]);
    array.prefetch(&stream).expect("it is there");
    array.host_mut().expect("it is here")[0] = 3;
    let slice = array.into_cuda_slice_on(&stream).expect("a slice");
    memory_calls();
    let array = SmartArray::from_cuda_slice(slice).expect("an array");
    assert_eq!(array.residency().host(), Validity::Absent);
    assert_eq!(array.host().expect("it is copied").sum(), 6001);
}

/// Lines that one call copies are read in the order of the stream, not when they are queued.
#[test]
fn lines_of_ordinary_memory_are_copied_behind_the_work_that_writes_them() {
    own_process!();
    let devices = devices(Settings::new().reaches_pageable().seed(1));
    let stream = devices[0].stream();
    let mut array = SmartArray::<u32, Ix1>::full(40, 7);
    drop(array.gpu_mut_on(&stream).expect("a fill is queued"));
    let clone = array.slice(s![..;-2]).try_clone().expect("a copy is queued");
    assert_eq!(count("cuMemcpyBatchAsync_v2") + count("cuMemcpyBatchAsync"), 1);
    assert_eq!(clone.host().expect("it is here").to_vec(), [7; 20]);
}

#[test]
fn arrays_have_copies_if_the_environment_says_so() {
    own_process!([("RESIDENT_COHERENT", "0")]);
    let devices = devices(Settings::new().reaches_pageable());
    let array = SmartArray::from(vec![1_u8; 3000]);
    array.prefetch(&devices[0].stream()).expect("it is queued");
    assert_eq!(array.traffic().to_device.bytes, 3000);
}

#[test]
fn what_a_device_cannot_reach_is_copied_whatever_is_asked() {
    own_process!([("RESIDENT_COHERENT", "1")]);
    let devices = devices(Settings::new());
    let array = SmartArray::from(vec![1_u8; 3000]);
    array.prefetch(&devices[0].stream()).expect("it is queued");
    assert_eq!(array.traffic().to_device.bytes, 3000);
}

/// A device that died may still use the memory, so the contents leave it as a copy.
#[test]
fn memory_of_a_device_that_died_leaves_as_a_copy() {
    own_process!();
    let devices = devices(Settings::new().reaches_pageable());
    let contents: Array1<u32> = (0..3000).collect();
    let start = contents.as_ptr();
    let array = SmartArray::from(contents);
    array.prefetch(&devices[0].stream()).expect("it is there");
    const ILLEGAL_ADDRESS: u32 = 700;
    driver::fail_nth("cuEventRecord", 1, ILLEGAL_ADDRESS);
    assert!(devices[0].stream().record().is_err(), "the device died");
    let taken = array.into_array().expect("no work used it");
    assert!(taken.as_ptr() != start && taken[7] == 7);
}
