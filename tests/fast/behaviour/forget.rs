//! Forgotten guards: later accesses get the right values, in order, and no call waits forever.

#![allow(clippy::forget_non_drop, reason = "the tests forget guards with and without a destructor")]

use std::mem::forget;

use support::bodies::{accumulate, add, assert_ordered, one, plus};
use support::prelude::*;

fn numbers() -> SmartArray<u32, Ix1> {
    SmartArray::from((0..8).collect::<Vec<u32>>())
}

/// Two streams of one device and one of another.
struct Place {
    devices: [Device; 2],
    streams: [Stream; 3],
}

/// Forgets something, and returns what it has added to each element.
type Case = fn(&mut SmartArray<u32, Ix1>, &Place) -> u32;

/// Under several seeds: changes the array on a device, runs the case, and then uses the array on
/// all streams and on the host.
fn afterwards_all_is_well(act: &Case) {
    for seed in 0..24 {
        let devices = [seed, seed + 1000].map(|seed| Device::emulated(Emulation::new().seed(seed)));
        let stream = |device: usize| devices[device].new_stream().unwrap();
        let place = Place { streams: [stream(0), stream(0), stream(1)], devices };
        let mut array = numbers();
        add().launch_on(&place.streams[0], one(), (1, &mut array)).unwrap();
        let added = act(&mut array, &place);
        use_everywhere(&mut array, &place, 1 + added);
        drop(array);
        for device in &place.devices {
            device.synchronize().unwrap();
            assert_ordered(device);
        }
    }
}

fn use_everywhere(array: &mut SmartArray<u32, Ix1>, place: &Place, added: u32) {
    let mut sum = SmartArray::<u32, _>::zeros(8);
    for stream in &place.streams {
        accumulate().launch_on(stream, one(), (&*array, &mut sum)).unwrap();
        add().launch_on(stream, one(), (1, &mut *array)).unwrap();
    }
    array.slice_mut(s![2..4]).host_mut().unwrap().map_inplace(|value| *value += 10);
    add().launch_on(&place.streams[1], one(), (1, &mut *array)).unwrap();
    let expected = |index: u32| index + added + 4 + if (2..4).contains(&index) { 10 } else { 0 };
    assert_eq!(array.host().unwrap().to_vec(), (0..8).map(expected).collect::<Vec<_>>());
    assert_eq!(
        sum.host().unwrap().to_vec(),
        (0..8).map(|index| 3 * (index + added) + 3).collect::<Vec<_>>()
    );
}

#[test]
fn after_something_was_forgotten_all_is_well() {
    run_cases(GUARDS, afterwards_all_is_well);
    run_cases(OTHERS, afterwards_all_is_well);
}

const GUARDS: &[(&str, Case)] = &[
    ("a read guard of the host", |array, _| {
        forget(array.host().unwrap());
        0
    }),
    ("a write guard of the host", |array, _| {
        let mut guard = array.host_mut().unwrap();
        guard.map_inplace(|value| *value += 5);
        forget(guard);
        5
    }),
    ("an overwriting guard of the host", |array, _| {
        let mut guard = array.host_overwrite().unwrap();
        guard.iter_mut().zip(6..).for_each(|(value, new)| *value = new);
        forget(guard);
        5
    }),
    ("read guards of devices", |array, place| {
        for stream in place.streams.iter().chain(&place.streams) {
            forget(array.gpu_on(stream).unwrap());
            forget(array.slice(s![..;3]).gpu_on(stream).unwrap());
        }
        0
    }),
    ("write guards of devices", |array, place| {
        for stream in place.streams.iter().chain(&place.streams) {
            forget(array.gpu_mut_on(stream).unwrap());
            forget(array.slice_mut(s![1..;2]).gpu_mut_on(stream).unwrap());
        }
        0
    }),
    ("an overwriting guard of a device with a launch behind it", |array, place| {
        forget(array.gpu_overwrite_on(&place.streams[2]).unwrap());
        plus().launch_on(&place.streams[1], one(), (1, &numbers(), array)).unwrap();
        0
    }),
];

const OTHERS: &[(&str, Case)] = &[
    ("views", |array, place| {
        forget(array.slice_mut(s![1..3]));
        let mut part = array.view_mut();
        add().launch_on(&place.streams[2], one(), (1, &mut part)).unwrap();
        forget(part);
        let (mut low, mut high) = array.split_at_mut(Axis(0), 3);
        add().launch_on(&place.streams[1], one(), (1, &mut high)).unwrap();
        add().launch_on(&place.streams[0], one(), (1, &mut low)).unwrap();
        forget((low, high));
        2
    }),
    ("a snapshot, and one that is never waited for", |array, place| {
        forget(array.snapshot_on(&place.streams[1]).unwrap());
        drop(array.slice(s![2..6]).snapshot_on(&place.streams[0]).unwrap());
        0
    }),
    ("events and streams and their guards", |array, place| {
        let stream = place.devices[0].new_stream().unwrap();
        add().launch_on(&stream, one(), (1, &mut *array)).unwrap();
        forget(stream.record().unwrap());
        forget(stream.auto_synchronize());
        forget(stream);
        1
    }),
    ("a device, which goes on", |array, _| {
        let device = Device::emulated(Emulation::new().seed(9));
        add().launch_on(&device.stream(), one(), (1, &mut *array)).unwrap();
        forget(device);
        1
    }),
    ("an array, which keeps its memory", |array, place| {
        let mut other = numbers();
        accumulate().launch_on(&place.streams[2], one(), (&*array, &mut other)).unwrap();
        let address = other.gpu_on(&place.streams[2]).unwrap().address();
        forget(other);
        let fresh = numbers();
        assert_ne!(fresh.gpu_on(&place.streams[2]).unwrap().address(), address);
        0
    }),
];

#[test]
fn a_forgotten_scope_leaves_its_device_current_and_nothing_else() {
    let before = Device::current();
    std::thread::spawn(|| {
        let (outer, inner) =
            (Device::emulated(Emulation::new()), Device::emulated(Emulation::new()));
        forget(outer.enter());
        drop(inner.enter());
        assert_eq!(Device::current(), Ok(outer));
    })
    .join()
    .unwrap();
    assert_eq!(Device::current(), before, "other threads are not affected");
}
