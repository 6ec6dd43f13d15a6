//! What remains of many parts in an array's state.

use ndarray::Ix1;

use crate::{Device, Grid, In, InOut, Kernel, SmartArray};

const LEN: usize = 1 << 16;

type Numbers = SmartArray<u32, Ix1>;

fn boxes(array: &Numbers) -> usize {
    array.storage.lock().coherence.box_count()
}

/// Below, at and above the number of parts that are copied exactly, and of those that are planned.
const COUNTS: [usize; 5] = [100, 1_024, 1_025, 8_000, 20_000];

fn scattered(array: &mut Numbers, count: usize) {
    // At unequal distances: else they would be one box with a step.
    for index in 0..count {
        array.set(3 * index + index % 2, 1).expect("valid");
    }
    // From 16,384 boxes on a write joins some of them.
    assert!(boxes(array) > count.min(3_000), "{} boxes after {count} writes", boxes(array));
}

#[test]
fn a_launch_after_scattered_writes_leaves_one_box() {
    let stream = Device::cpu().new_stream().expect("a stream");
    let read = Kernel::<(In<u32, Ix1>,)>::new("read").host(|_, _| ());
    let update = Kernel::<(InOut<u32, Ix1>,)>::new("update").host(|_, _| ());
    for count in COUNTS {
        let mut array = Numbers::zeros(LEN);
        for _ in 0..2 {
            array.host_mut().expect("valid")[0] = 1;
            read.launch_on(&stream, Grid::cover(1), (&array,)).expect("queued");
        }
        scattered(&mut array, count);
        read.launch_on(&stream, Grid::cover(1), (&array,)).expect("queued");
        assert_eq!(boxes(&array), 1, "after a launch that reads, {count} writes");
        stream.synchronize().expect("nothing fails");
        scattered(&mut array, count);
        update.launch_on(&stream, Grid::cover(1), (&mut array,)).expect("queued");
        assert_eq!(boxes(&array), 1, "after a launch that updates, {count} writes");
    }
}
