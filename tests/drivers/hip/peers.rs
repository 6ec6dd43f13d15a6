//! GPUs that cannot access each other's memory: HIP's own copies between them are not used.

use resident::ndarray::{Array2, s};
use resident::{Device, SmartArray};
use resident_stand_in_hip::Settings;
use support::{in_own_process, own_process};

use super::open;

#[test]
fn without_peer_access_arrays_move_by_way_of_the_host() {
    let one = in_own_process!(open(Settings::new().devices(2).peers(false)));
    let other = Device::hip(1).expect("it opens");
    let plain = Array2::from_shape_fn((60, 40), |(row, column)| (row * 40 + column) as u32);
    let mut array = SmartArray::from(plain.clone());
    drop(array.gpu_mut_on(&one.stream()).expect("it uploads"));
    let inner = array.slice(s![10..20, 5..25]);
    drop(inner.gpu_on(&other.stream()).expect("a box moves"));
    let traffic = array.traffic();
    assert_eq!(traffic.between_devices.bytes, 0);
    assert_eq!((traffic.to_host.bytes, traffic.to_device.bytes), (800, 9600 + 800));
    drop(array.gpu_on(&other.stream()).expect("the rest moves"));
    assert_eq!(*array.host().expect("a download"), plain);
    let calls = resident_stand_in_hip::take_calls();
    assert!(!calls.iter().any(|call| call.name.contains("Peer") && call.name.contains("cpy")));
}

/// Where the runtime promises access and then refuses it, its own copies are not used either.
fn arrays_move_by_way_of_the_host_after_a_failure_of(call: &str) {
    let one = open(Settings::new().devices(2));
    let other = Device::hip(1).expect("it opens");
    resident_stand_in_hip::fail_nth(call, 1, 801);
    for _ in 0..2 {
        let mut array = SmartArray::<u32, _>::ones((60, 40));
        drop(array.gpu_mut_on(&one.stream()).expect("it uploads"));
        drop(array.gpu_on(&other.stream()).expect("it moves"));
        let traffic = array.traffic();
        assert_eq!((traffic.between_devices.bytes, traffic.to_host.bytes), (0, 9600));
        assert_eq!(array.host().expect("a download").sum(), 2400);
    }
    let calls = resident_stand_in_hip::take_calls();
    assert!(!calls.iter().any(|call| call.name.contains("Peer") && call.name.contains("cpy")));
    assert_eq!(calls.iter().filter(|known| known.name == call).count(), 1);
}

#[test]
fn access_that_is_refused() {
    own_process!();
    arrays_move_by_way_of_the_host_after_a_failure_of("hipDeviceEnablePeerAccess");
}

#[test]
fn access_to_the_pool_that_is_refused() {
    own_process!();
    arrays_move_by_way_of_the_host_after_a_failure_of("hipMemPoolSetAccess");
}

/// Access that another library enabled is access.
#[test]
fn access_that_is_there_already_is_used() {
    let one = in_own_process!(open(Settings::new().devices(2)));
    let other = Device::hip(1).expect("it opens");
    resident_stand_in_hip::fail_nth("hipDeviceEnablePeerAccess", 1, 704);
    let mut array = SmartArray::<u32, _>::ones((60, 40));
    drop(array.gpu_mut_on(&one.stream()).expect("it uploads"));
    drop(array.gpu_on(&other.stream()).expect("it moves"));
    assert_eq!(array.traffic().between_devices.bytes, 9600);
}

#[test]
fn with_peer_access_they_move_directly() {
    let one = in_own_process!(open(Settings::new().devices(2)));
    let other = Device::hip(1).expect("it opens");
    let mut array = SmartArray::<u32, _>::ones((60, 40));
    drop(array.gpu_mut_on(&one.stream()).expect("it uploads"));
    drop(array.gpu_on(&other.stream()).expect("it moves"));
    let traffic = array.traffic();
    assert_eq!((traffic.between_devices.bytes, traffic.to_host.bytes), (9600, 0));
}
