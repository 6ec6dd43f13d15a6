//! Pinned arrays that are adjacent in memory, and memory that a driver refuses to register or to
//! unregister: on the stand-in driver.
//!
//! This program's allocator makes arrays adjacent if a test requests that, and records which of
//! them were freed.

use crate::side_by_side::{PAGE_BYTES, is_given_back, side_by_side};
use resident::audit::{self, DocumentRecord};
use resident::cudarc::driver::sys::{self, CUpointer_attribute, CUresult};
use resident::ndarray::{Array1, Ix1};
use resident::{
    Device, DeviceArray, Error, MappedArray, PinnedArray, PinnedOptions, SmartArray, with_pinned,
};
use resident_stand_in::{self as driver, Settings};
use support::{in_own_process, own_process};

const UNKNOWN: u32 = 999;
const ILLEGAL_ADDRESS: u32 = 700;
type Bytes = SmartArray<u8, Ix1>;

fn devices() -> Vec<Device> {
    let devices = support::driver::open(Settings::new().devices(2), 2);
    driver::take_calls();
    devices
}

fn contents(number: usize, len: usize) -> Array1<u8> {
    Array1::from_shape_fn(len, |index| (index * 7 + number * 31) as u8)
}

/// Arrays that are adjacent in memory, and their start addresses.
fn arrays<const N: usize>(lens: [usize; N]) -> ([Bytes; N], [usize; N]) {
    // The memory in which the library lists the arrays is allocated before.
    drop(Bytes::zeros(1));
    let mut number = 0;
    let arrays = side_by_side(|| {
        lens.map(|len| {
            number += 1;
            SmartArray::from(contents(number - 1, len))
        })
    });
    let starts = arrays.each_ref().map(|array| array.host().expect("it is there").as_ptr().addr());
    (arrays, starts)
}

/// Whether the driver considers this address pinned.
fn is_known(address: usize) -> bool {
    let mut kind = 0_u64;
    let attribute = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    // SAFETY: the driver writes 32 bits, and does not dereference the address.
    let asked =
        unsafe { sys::cuPointerGetAttribute((&raw mut kind).cast(), attribute, address as u64) };
    asked == CUresult::CUDA_SUCCESS && kind == 1
}

/// Asserts that the array can be uploaded, written on the device and downloaded without staging.
fn assert_round_trip(array: &mut Bytes, device: &Device) {
    let expected: Vec<u8> = array.host().expect("it is there").to_vec();
    driver::take_calls();
    drop(array.gpu_mut_on(&device.stream()).expect("queued"));
    array.prefetch_host().expect("queued");
    assert!(array.host().expect("the download succeeds").iter().eq(&expected));
    let calls = driver::take_calls();
    assert!(calls.iter().all(|call| call.code == 0 && call.name != "cuMemHostAlloc"), "{calls:?}");
}

fn count(name: &str) -> usize {
    driver::calls().iter().filter(|call| call.name == name).count()
}

#[test]
fn neighbours_are_locked_and_go_in_every_order() {
    let devices = in_own_process!(devices());
    let here = &devices[0];
    let _here = here.enter();
    let lens = [3 * PAGE_BYTES + 100, 2 * PAGE_BYTES, 5 * PAGE_BYTES - 7];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let (arrays, starts) = arrays(lens);
        let mut arrays = arrays.map(Some);
        for next in order {
            let array = arrays[next].as_mut().expect("not locked yet");
            array.page_lock().expect("adjacent registrations do not conflict");
            assert_round_trip(array, here);
        }
        for gone in order {
            arrays[gone] = None;
            for (left, start) in arrays
                .iter_mut()
                .zip(starts)
                .filter_map(|(array, start)| Some((array.as_mut()?, start)))
            {
                let end = start + left.len();
                assert!(
                    (start..end).step_by(PAGE_BYTES).chain([end - 1]).all(is_known),
                    "{order:?}, without {gone}"
                );
                assert_round_trip(left, here);
            }
        }
        assert!(
            !starts
                .iter()
                .zip(lens)
                .any(|(start, len)| is_known(*start) || is_known(start + len - 1)),
            "{order:?}"
        );
        assert!(starts.into_iter().all(is_given_back), "{order:?}");
    }
}

#[test]
fn a_neighbour_on_the_same_page_is_named_where_the_driver_locks_whole_pages() {
    own_process!();
    let device = support::driver::open(Settings::new().locks_whole_pages(), 1).remove(0);
    let _here = device.enter();
    let ([one, mut other, mut small], [first, second, _]) =
        arrays([2 * PAGE_BYTES + 50, 2 * PAGE_BYTES, 1024]);
    one.page_lock().expect("locked");
    let refused = other.page_lock().expect_err("they share a page").to_string();
    let neighbour = format!("{first:#x}..{:#x}", first + 2 * PAGE_BYTES + 50);
    assert!(refused.contains("ALREADY_REGISTERED"), "{refused}");
    assert!(refused.contains(&neighbour) && refused.contains("page-aligned"), "{refused}");
    assert!(!is_known(second + PAGE_BYTES), "it stays pageable");
    drop(other.gpu_mut_on(&device.stream()).expect("staged"));
    assert_eq!(*other.host().expect("staged"), contents(1, 2 * PAGE_BYTES));
    drop(one);
    other.page_lock().expect("the neighbour was dropped");
    assert_round_trip(&mut other, &device);
    // All bytes of the array lie on the last page of its neighbour.
    small.page_lock().expect_err("the neighbour unregisters them when it drops");
    drop(other);
    small.page_lock().expect("the neighbour was dropped");
    assert_round_trip(&mut small, &device);
}

#[test]
fn neighbours_are_locked_by_different_devices() {
    let devices = in_own_process!(devices());
    let ([one, mut other], [first, second]) = arrays([PAGE_BYTES + 10, PAGE_BYTES + 10]);
    for (array, device) in [(&one, &devices[0]), (&other, &devices[1])] {
        let _here = device.enter();
        array.page_lock().expect("locked");
    }
    drop(one);
    assert_round_trip(&mut other, &devices[1]);
    assert_round_trip(&mut other, &devices[0]);
    drop(other);
    assert!(!is_known(second) && is_given_back(first) && is_given_back(second));
}

#[test]
fn memory_that_the_driver_does_not_unlock_is_not_given_back() {
    let devices = in_own_process!(devices());
    let _here = devices[0].enter();
    let ([dropped, taken, next], [first, second, _]) = arrays([3 * PAGE_BYTES; 3]);
    dropped.page_lock().expect("locked");
    driver::fail_nth("cuMemHostUnregister", 1, UNKNOWN);
    drop(dropped);
    assert!(is_known(first) && !is_given_back(first));
    // The same with memory that the library would return to the caller.
    taken.page_lock().expect("locked");
    driver::fail_nth("cuMemHostUnregister", 2, UNKNOWN);
    driver::fail_nth("cuMemHostUnregister", 1, UNKNOWN);
    let array = taken.into_array().expect("the host has it");
    assert_eq!(array, contents(1, 3 * PAGE_BYTES));
    assert_ne!(array.as_ptr().addr(), second);
    driver::forget_faults();
    assert!(!is_given_back(second));
    // The library tries again at the next call that pins memory.
    next.page_lock().expect("locked");
    assert!(is_given_back(first) && is_given_back(second));
}

#[test]
fn a_dead_device_is_asked_to_unlock_and_keeps_what_it_does_not() {
    let devices = in_own_process!(devices());
    let [device, other] = [&devices[0], &devices[1]];
    let ([dropped, taken], [first, second]) = arrays([3 * PAGE_BYTES, 2 * PAGE_BYTES]);
    {
        let _here = device.enter();
        [&dropped, &taken].into_iter().for_each(|array| array.page_lock().expect("locked"));
    }
    driver::fail_late(1, ILLEGAL_ADDRESS);
    let outcome = SmartArray::<u8, _>::from(vec![1; 10])
        .prefetch(&device.stream())
        .and_then(|()| device.synchronize());
    assert!(matches!(outcome, Err(Error::DeviceLost { .. })));
    driver::take_calls();
    drop(dropped);
    let array = taken.into_array().expect("the host has it");
    assert_eq!(array, contents(1, 2 * PAGE_BYTES));
    assert_ne!(array.as_ptr().addr(), second);
    assert_eq!(
        count("cuMemHostUnregister"),
        2,
        "the context is dead, but its registrations remain"
    );
    other.cuda_context().expect("a GPU").bind_to_thread().expect("the context is alive");
    assert!(is_known(first) && is_known(second));
    assert!(!is_given_back(first) && !is_given_back(second));
}

#[test]
fn an_array_is_locked_once_for_each_kind_of_device() {
    let devices = in_own_process!(devices());
    let (mut array, here) = (SmartArray::from(contents(1, 3 * PAGE_BYTES)), &devices[0]);
    for device in [&Device::cpu(), here, &Device::cpu(), here, &devices[1]] {
        let _here = device.enter();
        array.page_lock().expect("locked");
    }
    assert_eq!(count("cuMemHostRegister_v2"), 1);
    assert_round_trip(&mut array, here);
    driver::take_calls();
    let start = array.host().expect("it is there").as_ptr();
    assert_eq!(array.into_array().expect("the host has it").as_ptr(), start);
    assert_eq!(count("cuMemHostUnregister"), 1);
}

#[test]
fn memory_that_another_library_registered_is_used_beside_a_pinned_neighbour() {
    let devices = in_own_process!(devices());
    let _here = devices[0].enter();
    devices[0].cuda_context().expect("a GPU").bind_to_thread().expect("its context");
    let ([one, mut other], [_, start]) = arrays([2 * PAGE_BYTES + 50, 2 * PAGE_BYTES]);
    let memory = std::ptr::with_exposed_provenance_mut(start);
    // SAFETY: the array owns these bytes and keeps them until they are unregistered below.
    let outcome = unsafe { sys::cuMemHostRegister_v2(memory, 2 * PAGE_BYTES, 1) };
    assert_eq!(outcome, CUresult::CUDA_SUCCESS);
    one.page_lock().expect("registered");
    other.page_lock().expect("another library registered it");
    assert_round_trip(&mut other, &devices[0]);
    drop((one, other));
    assert!(is_known(start), "only the other library unregisters it");
    // SAFETY: the memory was registered above, and nothing uses it.
    assert_eq!(unsafe { sys::cuMemHostUnregister(memory) }, CUresult::CUDA_SUCCESS);
}

#[test]
fn memory_that_others_registered_in_pieces_is_refused() {
    let devices = in_own_process!(devices());
    let _here = devices[0].enter();
    devices[0].cuda_context().expect("a GPU").bind_to_thread().expect("its context");
    let ([mut array], [start]) = arrays([4 * PAGE_BYTES]);
    let page = start.next_multiple_of(PAGE_BYTES);
    let pieces =
        [(start, page + PAGE_BYTES - start), (page + PAGE_BYTES, start + 3 * PAGE_BYTES - page)];
    for (piece, len_bytes) in pieces {
        // SAFETY: the array owns these bytes and keeps them until they are unregistered below.
        let outcome = unsafe {
            sys::cuMemHostRegister_v2(std::ptr::with_exposed_provenance_mut(piece), len_bytes, 1)
        };
        assert_eq!(outcome, CUresult::CUDA_SUCCESS);
    }
    let refused =
        array.page_lock().expect_err("a copy of it would span two registrations").to_string();
    assert!(refused.contains("ALREADY_REGISTERED") && refused.contains("unregister"), "{refused}");
    for (piece, _) in pieces {
        // SAFETY: the memory was registered above, and nothing uses it.
        let outcome =
            unsafe { sys::cuMemHostUnregister(std::ptr::with_exposed_provenance_mut(piece)) };
        assert_eq!(outcome, CUresult::CUDA_SUCCESS);
    }
    array.page_lock().expect("no library has it registered now");
    assert_round_trip(&mut array, &devices[0]);
}

#[test]
fn a_child_of_a_fork_lets_locked_arrays_go() {
    use std::os::unix::process::CommandExt;

    let devices = in_own_process!(devices());
    let device = devices[0].clone();
    let _here = device.enter();
    let ([locked, ordinary], _) = arrays([PAGE_BYTES; 2]);
    locked.page_lock().expect("locked");
    let mut locked = Some(locked);
    let in_child = move || {
        drop(locked.take());
        let here = device.enter();
        let refused = ordinary.page_lock();
        drop(here);
        refused.map_or(Ok(()), |()| Err(std::io::Error::other("a child of a fork pinned memory")))
    };
    let mut command = std::process::Command::new("true");
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    // SAFETY: this does not follow the advice of `pre_exec`: the child allocates. No other
    // thread of this process holds the allocator's lock, since none is running.
    unsafe { command.pre_exec(in_child) };
    assert!(command.status().expect("the child was refused").success());
}

/// The flags with which the driver pinned this memory.
fn flags_of(address: *const u8) -> u32 {
    let mut flags = 0;
    // SAFETY: the driver writes one number, and does not dereference the address.
    let asked = unsafe { sys::cuMemHostGetFlags(&raw mut flags, address.cast_mut().cast()) };
    assert_eq!(asked, CUresult::CUDA_SUCCESS);
    flags
}

#[test]
fn options_of_pinned_arrays_reach_the_driver() {
    let devices = in_own_process!(devices());
    let _here = devices[0].enter();
    let options = PinnedOptions::new();
    for (options, flags) in [
        (options, 1),
        (options.portable(false), 0),
        (options.write_combined(true), 5),
        (options.portable(false).write_combined(true), 4),
    ] {
        let array = PinnedArray::<u8, _>::zeros_with(100, options).expect("memory");
        assert_eq!(flags_of(array.host().expect("valid").as_ptr()), flags);
    }
    assert_eq!((count("cuMemHostAlloc"), count("cuMemFreeHost")), (4, 4));
    driver::take_calls();
    let mut array = PinnedArray::<u8, _>::zeros(5000).expect("memory");
    drop(array.gpu_mut_on(&devices[0].stream()).expect("queued"));
    assert_eq!(array.host().expect("downloaded").len(), 5000);
    assert_eq!(count("cuMemHostAlloc"), 1, "no staging");
    assert_eq!(devices[0].memory().pinned, 5000);
    drop(array);
    assert_eq!(devices[0].memory().pinned, 0);
}

/// The library knows what it pinned, also behind the borrow of a guard.
#[test]
fn device_arrays_and_pinned_memory_need_no_staging() {
    let devices = in_own_process!(devices());
    let _here = devices[0].enter();
    let mut pinned = PinnedArray::<u8, _>::zeros(9 << 20).expect("memory");
    let mut there = DeviceArray::<u8, _>::zeros(9 << 20).expect("memory");
    pinned.host_mut().expect("valid").fill(7);
    driver::take_calls();
    there.copy_from_host(&pinned.host().expect("valid")).expect("an upload");
    there.copy_to_host_into(&mut pinned.host_mut().expect("valid")).expect("a download");
    there.copy_from_pinned(&pinned).expect("an upload");
    pinned.host_mut().expect("valid").fill(8);
    there.copy_to_pinned(&mut pinned).expect("a download");
    assert_eq!(pinned.host().expect("valid")[5], 7);
    assert_eq!(count("cuMemHostAlloc"), 0, "no staging");
    let downloads = driver::calls();
    let downloads = downloads.iter().filter(|call| call.name == "cuMemcpyDtoHAsync_v2");
    assert_eq!(downloads.map(|call| call.len_bytes).collect::<Vec<_>>(), [9 << 20; 2]);
    assert_eq!(there.get(5).expect("valid"), 7);
    let uploads = driver::calls();
    let mut uploads = uploads.iter().filter(|call| call.name == "cuMemcpyHtoDAsync_v2");
    assert!(uploads.by_ref().take(2).all(|call| call.len_bytes == 9 << 20), "in one piece");
    assert!(uploads.next().is_none());
    let ordinary = Array1::<u8>::zeros(9 << 20);
    there.copy_from_host(&ordinary).expect("an upload");
    assert!(count("cuMemHostAlloc") > 0, "staged");
}

#[test]
fn lent_arrays_that_overlap_a_registration_are_refused_with_its_addresses() {
    let devices = in_own_process!(devices());
    let _here = devices[0].enter();
    let mut array = contents(1, 3 * PAGE_BYTES);
    let start = array.as_mut_ptr();
    // SAFETY: the array lives until it is unregistered below.
    let registered = unsafe { sys::cuMemHostRegister_v2(start.cast(), 100, 1) };
    assert_eq!(registered, CUresult::CUDA_SUCCESS);
    let refused = with_pinned(&mut array, |pinned| pinned.fill(0));
    let Err(Error::Backend { cause, .. }) = &refused else { panic!("{refused:?}") };
    assert!(cause.contains("another library registered a part"), "{cause}");
    assert_eq!(array, contents(1, 3 * PAGE_BYTES), "nothing was done");
    // SAFETY: as above; no work uses the memory.
    let unregistered = unsafe { sys::cuMemHostUnregister(start.cast()) };
    assert_eq!(unregistered, CUresult::CUDA_SUCCESS);
    with_pinned(&mut array, |pinned| pinned.fill(0)).expect("it is free now");
    assert!(array.iter().all(|byte| *byte == 0));
    assert!(!is_known(start.addr()) && devices[0].memory().pinned == 0);
}

/// Numba's `mapped_array` takes `portable` and `wc`, and passes neither to the driver.
#[test]
fn d13_options_of_mapped_arrays_reach_the_driver() {
    let devices = in_own_process!(devices());
    let _here = devices[0].enter();
    for (is_portable, is_write_combined, flags) in
        [(false, false, 2), (true, false, 3), (false, true, 6), (true, true, 7)]
    {
        let options = PinnedOptions::new().portable(is_portable).write_combined(is_write_combined);
        let made = [
            MappedArray::<u8, _>::zeros_with(100, options),
            MappedArray::from_array_with(contents(1, 100), options),
        ];
        for array in made.map(|made| made.expect("memory")) {
            assert_eq!(flags_of(array.host().expect("valid").as_ptr()), flags, "{options:?}");
        }
    }
}

#[test]
fn mapped_arrays_are_allocated_for_the_device_and_freed_after_their_uses() {
    let devices = in_own_process!(devices());
    let _here = devices[0].enter();
    driver::take_calls();
    let mut array = MappedArray::<u8, _>::zeros(5000).expect("memory");
    assert_eq!(count("cuMemHostGetDevicePointer_v2"), 1);
    driver::take_calls();
    array.fill(7).expect("queued");
    assert!(array.host().expect("valid").iter().all(|byte| *byte == 7));
    assert_eq!(devices[0].memory().pinned, 5000);
    drop(array);
    devices[0].synchronize().expect("alive");
    assert_eq!((devices[0].memory().pinned, count("cuMemFreeHost")), (0, 1));
    let smart = SmartArray::from(MappedArray::<u8, _>::zeros(100).expect("memory"));
    let refused = smart.into_cuda_slice().map(drop);
    let Err(Error::Backend { cause, .. }) = &refused else { panic!("{refused:?}") };
    assert!(cause.contains("mapped host memory"), "{cause}");
    devices[0].synchronize().expect("alive");
    assert_eq!(devices[0].memory().pinned, 0);
}

/// To a GPU, mapped and pinned memory of the embedded device is ordinary memory.
#[test]
fn memory_that_is_pinned_for_another_kind_of_device_is_staged_until_it_is_registered() {
    let devices = in_own_process!(devices());
    let mapped = {
        let _here = Device::cpu().enter();
        SmartArray::from(MappedArray::from_array(contents(1, 5000).view()).expect("memory"))
    };
    let stream = devices[0].stream();
    let pageable = || {
        let (outcome, report) = audit::capture(|| mapped.prefetch(&stream));
        outcome.expect("queued");
        let records = report.to_document().records;
        records.into_iter().find_map(|record| match record {
            DocumentRecord::Copy { is_pageable, .. } => Some(is_pageable),
            _ => None,
        })
    };
    assert_eq!(pageable(), Some(true));
    stream.synchronize().expect("alive");
    assert_eq!(count("cuMemHostRegister_v2"), 0);
    assert_eq!(*mapped.host().expect("valid"), contents(1, 5000));
    drop(mapped);
    devices[0].synchronize().expect("alive");
    assert_eq!(devices[0].memory().pinned, 0);
}
