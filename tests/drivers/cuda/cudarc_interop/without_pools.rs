//! Arrays made from cudarc's slices on a GPU without memory pools, where each free waits for the
//! device.

use resident::{Device, SmartArray};
use resident_stand_in::{self as stand_in, Settings};
use support::own_process;

#[test]
fn a_slice_is_freed_once_the_arrays_uses_are_over_and_dropping_waits_for_nothing() {
    own_process!();
    stand_in::load(Settings::new().without_pools()).expect("the stand-in driver loads");
    let gpu = Device::cuda(0).unwrap();
    let theirs = gpu.cuda_context().unwrap().new_stream().unwrap();
    let before = stand_in::memory_in_use(0);
    let mut array = SmartArray::from_cuda_slice(theirs.clone_htod(&[1_u32; 100]).unwrap()).unwrap();
    let stream = gpu.new_stream().unwrap();
    stream.cudarc().memset_zeros(&mut array.gpu_mut_on(&stream).unwrap()).unwrap();
    stand_in::take_calls();
    drop(array);
    let calls: Vec<String> = stand_in::take_calls().into_iter().map(|call| call.name).collect();
    assert!(
        !calls.iter().any(|call| call.contains("Synchronize") || call.contains("Free")),
        "{calls:?}"
    );
    gpu.synchronize().unwrap();
    assert_eq!(stand_in::memory_in_use(0), before);

    let given = SmartArray::from(vec![4_u32; 100]).into_cuda_slice_on(&stream).unwrap();
    assert_eq!(theirs.clone_dtoh(&given).unwrap(), [4; 100]);
    drop(given);
    assert_eq!(stand_in::memory_in_use(0), before);
    gpu.cuda_context().unwrap().check_err().unwrap();
    assert_eq!(stand_in::take_hazards(), Vec::<String>::new());
}
