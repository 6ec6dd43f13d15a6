//! A full GPU of which other code has a part, on the stand-in driver.

use resident::{Device, DeviceArray, Error, SmartArray, Validity};
use resident_stand_in::Settings;
use support::in_own_process;

const MIB: usize = 1 << 20;

/// The driver has 20 MiB, of which other code takes 6 and gives them back in turns. Four threads
/// have 2 MiB each in use, and 4 MiB are those of a device array.
#[test]
fn threads_find_room_beside_other_code() {
    let gpu = in_own_process!(support::driver::open(Settings::new().memory(20 << 20), 1).remove(0));
    let explicit = DeviceArray::<u8, _>::full_on(&gpu.stream(), 4 * MIB, 7).expect("memory");
    let address = || explicit.gpu_on(&gpu.stream()).expect("it stays").address();
    let before = address();
    let arrays: Vec<_> = (0..9_u8).map(|value| SmartArray::from(vec![value; 2 * MIB])).collect();
    let use_arrays = |device: &Device, thread: usize| {
        let stream = device.new_stream().expect("a stream");
        for round in 0..12 {
            let array = &arrays[(2 * thread + 5 * round) % 9];
            drop(array.gpu_on(&stream).unwrap_or_else(|error| panic!("round {round}: {error}")));
        }
        stream.synchronize().expect("nothing fails");
    };
    let theirs = gpu.cuda_context().expect("a GPU").new_stream().expect("a stream");
    for _ in 0..3 {
        // Their allocation finds no room that the library keeps for reuse or for copies.
        arrays.iter().take(4).for_each(|array| drop(array.gpu_on(&gpu.stream())));
        let taken = theirs.alloc_zeros::<u8>(6 * MIB).expect("20 - 4 - 4 * 2 MiB are free");
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (gpu, use_arrays) = (&gpu, &use_arrays);
                scope.spawn(move || use_arrays(gpu, thread));
            }
        });
        drop(taken);
        theirs.synchronize().expect("nothing fails");
        make_room_for_others(&gpu);
    }
    assert_eq!(address(), before);
    assert!(explicit.copy_to_host().expect("there").iter().all(|element| *element == 7));
    let here = arrays.iter().filter(|array| array.residency().on(&gpu) != Validity::Absent).count();
    gpu.synchronize().expect("nothing fails");
    assert_eq!(gpu.memory().in_use, ((4 + 2 * here) * MIB) as u64);
}

/// Evicts copies and returns their memory to the driver, so that other code finds it.
fn make_room_for_others(gpu: &Device) {
    let large = DeviceArray::<u8, _>::uninit_on(&gpu.stream(), 16 * MIB);
    drop(large.unwrap_or_else(|error| panic!("all but the device array gives way: {error}")));
    let refused = DeviceArray::<u8, _>::uninit_on(&gpu.stream(), 16 * MIB + 1);
    assert!(matches!(refused, Err(Error::OutOfMemory { .. })), "{refused:?}");
    gpu.trim().expect("nothing fails");
}
