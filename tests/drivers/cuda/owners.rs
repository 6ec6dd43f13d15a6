//! Memory of owners, pinned where the driver can: a file that is mapped for reading only, and
//! memory that the process may write.

use std::fs::File;
use std::sync::Arc;

use memmap2::Mmap;
use resident::cudarc::driver::sys::{self, CUresult};
use resident::ndarray::Ix1;
use resident::{Device, Error, SmartArray};
use resident_stand_in::{self as driver, Settings};
use support::in_own_process;

type Bytes = SmartArray<u8, Ix1>;

const LEN: usize = 100_000;

fn contents() -> Vec<u8> {
    (0..LEN).map(|index| (index * 7) as u8).collect()
}

/// An array over a file that is mapped for reading only, and the map's address.
fn mapped() -> (Bytes, usize) {
    let path = std::env::temp_dir().join(format!("resident-owners-{}", std::process::id()));
    std::fs::write(&path, contents()).expect("a file");
    let file = File::open(&path).expect("it is there");
    // SAFETY: nothing else writes the file.
    let map = unsafe { Mmap::map(&file) }.expect("mapped");
    std::fs::remove_file(&path).expect("it is there");
    let start = map.as_ptr().addr();
    (SmartArray::from_owner(map), start)
}

/// An array over shared memory that the process may write, and its address.
fn shared() -> (Bytes, usize) {
    let owner: Arc<[u8]> = contents().into();
    let start = owner.as_ptr().addr();
    (SmartArray::from_owner(owner), start)
}

/// The flags with which the memory is registered.
fn flags_at(start: usize) -> Option<u32> {
    let mut flags = 0;
    let memory = std::ptr::without_provenance_mut(start);
    // SAFETY: the driver writes one number, and does not dereference the address.
    let asked = unsafe { sys::cuMemHostGetFlags(&raw mut flags, memory) };
    (asked == CUresult::CUDA_SUCCESS).then_some(flags)
}

/// Uploads the array, writes it on the device and reads it back, which copies the owner's memory
/// first: a write to the mapped file would end the process.
fn round_trip(array: &mut Bytes, device: &Device) {
    array.prefetch(&device.stream()).expect("queued");
    array.slice_mut(resident::ndarray::s![10..20]).fill(1).expect("a constant");
    drop(array.gpu_mut_on(&device.stream()).expect("queued"));
    let mut expected = contents();
    expected[10..20].fill(1);
    assert_eq!(array.to_vec().expect("downloaded"), expected);
}

#[test]
fn owners_are_pinned_for_reading_and_stay_as_they_are() {
    let device = in_own_process!(support::driver::open(Settings::new(), 1).remove(0));
    let _here = device.enter();
    for (mut array, start) in [mapped(), shared()] {
        array.page_lock().expect("registered");
        assert_eq!(flags_at(start), Some(1 | 8), "portable, and only read");
        driver::take_calls();
        round_trip(&mut array, &device);
        let calls = driver::take_calls();
        let upload = calls.iter().find(|call| call.name == "cuMemcpyHtoDAsync_v2");
        assert_eq!(upload.expect("one copy").len_bytes, LEN as u64, "without staging");
        drop(array);
        assert_eq!(flags_at(start), None, "it is registered no more");
    }
}

#[test]
fn a_device_that_does_not_pin_for_reading_pins_what_may_be_written() {
    let settings = Settings::new().without_read_only_registration();
    let device = in_own_process!(support::driver::open(settings, 1).remove(0));
    let _here = device.enter();
    let (mut array, start) = shared();
    array.page_lock().expect("registered");
    assert_eq!(flags_at(start), Some(1), "portable");
    round_trip(&mut array, &device);
    let (mut array, start) = mapped();
    let refused = array.page_lock().expect_err("the process may not write it");
    assert!(matches!(refused, Error::Backend { .. }));
    let text = refused.to_string();
    assert!(text.contains("for reading only") && text.contains("copy-on-write"), "{text}");
    assert_eq!(flags_at(start), None);
    round_trip(&mut array, &device);
}
