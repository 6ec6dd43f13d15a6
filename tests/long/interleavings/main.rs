//! Threads that use one array, interleaved at random by shuttle, over seeded devices: each run may
//! also order the queued work differently.

#![cfg(debug_assertions)]

use std::sync::Arc;

use resident::ndarray::{Ix1, s};
use resident::{Device, Emulation, Error, Fault, Grid, In, InOut, Kernel, Out, SmartArray, Stream};
use resident_backend::sync::explore;
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

const LEN: usize = 8;
const INTERLEAVINGS: usize = 200;

type Numbers = SmartArray<u32, Ix1>;

fn add() -> Kernel<(InOut<u32>,)> {
    Kernel::new("add").host(|_, (x,): (&mut [u32],)| x.iter_mut().for_each(|x| *x += 100))
}

fn copy() -> Kernel<(In<u32>, Out<u32>)> {
    Kernel::new("copy").host(|_, (x, y): (&[u32], &mut [u32])| y.copy_from_slice(x))
}

/// Two devices whose work runs in one random order; the first has faults.
fn devices(faults: &[Fault]) -> [Device; 2] {
    let seeded = || Emulation::new().seed(thread_rng().r#gen());
    [
        Device::emulated(faults.iter().fold(seeded(), |emulation, fault| emulation.fail(*fault))),
        Device::emulated(seeded()),
    ]
}

/// The upper half is newest on the first device, the rest on the host.
fn half_and_half(stream: &Stream) -> Numbers {
    let mut array = SmartArray::from((0..LEN as u32).collect::<Vec<_>>());
    add().launch_on(stream, Grid::cover(1), (&mut array.slice_mut(s![LEN / 2..]),)).unwrap();
    array
}

fn expected() -> Vec<u32> {
    (0..LEN as u32).map(|index| index + if index < LEN as u32 / 2 { 0 } else { 100 }).collect()
}

fn in_order(devices: &[Device]) {
    for device in devices {
        while device.synchronize().is_err() {}
        let hazards = device.emulation().unwrap().hazards();
        assert!(hazards.is_empty(), "{}", hazards[0]);
        assert_eq!(device.memory().in_use, 0);
    }
}

/// Runs `program` under `count` random interleavings. A deadlock exceeds shuttle's limit of steps,
/// so that the test fails.
fn interleavings(count: usize, program: impl Fn() + Send + Sync + 'static) {
    // Without optimisation, a copy needs more than shuttle's 32 KiB of stack.
    let mut config = shuttle::Config::new();
    config.stack_size = 256 << 10;
    let scheduler = shuttle::scheduler::RandomScheduler::new(count);
    shuttle::Runner::new(scheduler, config)
        .run(move || explore::with_switch(thread::yield_now, &program));
}

/// Runs the readers, each on its own thread, on one array.
fn readers(faults: &'static [Fault], readers: &'static [fn(&Numbers, &[Device; 2])]) {
    interleavings(INTERLEAVINGS, move || {
        let devices = devices(faults);
        let array = Arc::new(half_and_half(&devices[0].stream()));
        let threads = readers.iter().map(|read| {
            let (array, devices) = (Arc::clone(&array), devices.clone());
            thread::spawn(move || read(&array, &devices))
        });
        threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
        drop(array);
        in_order(&devices);
    });
}

fn look(array: &Numbers, _: &[Device; 2]) {
    assert_eq!(array.host().unwrap().to_vec(), expected());
}

fn look_at_part(array: &Numbers, _: &[Device; 2]) {
    assert_eq!(array.slice(s![2..6]).host().unwrap().to_vec(), expected()[2..6]);
}

fn guard(array: &Numbers, devices: &[Device; 2]) {
    let address = array.gpu_on(&devices[1].stream()).unwrap().address();
    assert_eq!(array.gpu_on(&devices[1].stream()).unwrap().address(), address);
}

fn prefetch(array: &Numbers, devices: &[Device; 2]) {
    array.prefetch(&devices[0].stream()).unwrap();
    array.prefetch_host().unwrap();
}

fn launch(array: &Numbers, devices: &[Device; 2]) {
    let mut output = SmartArray::uninit(LEN);
    copy().launch_on(&devices[1].stream(), Grid::cover(1), (array, &mut output)).unwrap();
    assert_eq!(output.host().unwrap().to_vec(), expected());
}

fn snapshot(array: &Numbers, devices: &[Device; 2]) {
    assert_eq!(
        array.snapshot_on(&devices[0].stream()).unwrap().wait().unwrap().to_vec(),
        expected()
    );
}

#[test]
fn threads_that_look_at_one_array_move_its_bytes_once() {
    interleavings(INTERLEAVINGS, || {
        let devices = devices(&[]);
        let array = Arc::new(half_and_half(&devices[0].stream()));
        let threads = (0..3).map(|_| {
            let (array, devices) = (Arc::clone(&array), devices.clone());
            thread::spawn(move || {
                look(&array, &devices);
                guard(&array, &devices);
            })
        });
        threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
        let traffic = array.traffic();
        assert_eq!(traffic.to_host.bytes, LEN as u64 / 2 * 4);
        assert!(
            traffic.to_device.bytes + traffic.between_devices.bytes <= (LEN + LEN / 2) as u64 * 4,
            "{traffic:?}"
        );
        drop(array);
        in_order(&devices);
    });
}

#[test]
fn reads_of_every_kind_from_many_threads_are_right_and_ordered() {
    readers(&[], &[look, guard, prefetch]);
    readers(&[], &[look_at_part, launch, snapshot]);
    readers(&[], &[look, launch, look_at_part, guard]);
}

/// Reads until no fault occurs. The array must not be lost.
fn look_until_right(array: &Numbers, _: &[Device; 2]) {
    for _ in 0..4 {
        match array.host() {
            Ok(host) => return assert_eq!(host.to_vec(), expected()),
            Err(Error::Backend { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    panic!("it fails for ever");
}

fn prefetch_somehow(array: &Numbers, devices: &[Device; 2]) {
    let _refused = array.prefetch(&devices[0].stream());
    let _refused = devices[0].new_stream().and_then(|stream| array.gpu_on(&stream).map(drop));
    let _refused = array.prefetch(&devices[1].stream());
}

fn copy_until_right(array: &Numbers, devices: &[Device; 2]) {
    for _ in 0..6 {
        let mut output = SmartArray::uninit(LEN);
        let launched = copy().launch_on(&devices[0].stream(), Grid::cover(1), (array, &mut output));
        match launched.and_then(|()| output.host().map(|host| host.to_vec())) {
            Ok(values) => return assert_eq!(values, expected()),
            Err(Error::Backend { .. } | Error::Lost { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    panic!("it fails for ever");
}

#[test]
fn a_call_that_fails_at_once_or_late_is_made_good_in_every_interleaving() {
    // Calls 1 to 3 create the array: the allocation, the upload, the launch.
    for call in 4..10_u64 {
        for fault in [Fault::nth(call), Fault::nth(call).late()] {
            readers(
                Box::leak(Box::new([fault])),
                &[look_until_right, prefetch_somehow, copy_until_right],
            );
        }
    }
}

#[test]
fn arguments_in_opposite_orders_on_two_threads_do_not_wait_for_each_other() {
    interleavings(INTERLEAVINGS, || {
        let devices = devices(&[]);
        let arrays =
            Arc::new([half_and_half(&devices[0].stream()), half_and_half(&devices[1].stream())]);
        let both = Kernel::<(In<u32>, In<u32>, Out<u32>)>::new("both").host(
            |_, (x, y, z): (&[u32], &[u32], &mut [u32])| {
                z.iter_mut().zip(x).zip(y).for_each(|((z, x), y)| *z = x + y);
            },
        );
        let threads = [(0, 1), (1, 0)].map(|(first, second)| {
            let (arrays, stream, both) =
                (Arc::clone(&arrays), devices[first].stream(), both.clone());
            thread::spawn(move || {
                let mut sum = SmartArray::uninit(LEN);
                both.launch_on(
                    &stream,
                    Grid::cover(1),
                    (&arrays[first], &arrays[second], &mut sum),
                )
                .unwrap();
                sum.assign(&arrays[second]).unwrap();
                assert_eq!(sum.host().unwrap().to_vec(), expected());
            })
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        drop(arrays);
        in_order(&devices);
    });
}

/// Two devices; the first has memory for one and a half arrays.
fn devices_with_little_room() -> [Device; 2] {
    let seeded = || Emulation::new().seed(thread_rng().r#gen());
    [Device::emulated(seeded().memory(LEN as u64 * 6)), Device::emulated(seeded())]
}

/// Allocates an array on the first device, which may evict others. The allocation may fail.
fn crowd(devices: &[Device; 2]) {
    let more = SmartArray::from(vec![1_u32; LEN]);
    let refused = more.prefetch(&devices[0].stream()).err();
    assert!(matches!(refused, None | Some(Error::OutOfMemory { .. })), "{refused:?}");
}

#[test]
fn a_copy_that_is_about_to_be_read_on_another_device_does_not_give_way() {
    interleavings(INTERLEAVINGS, || {
        let devices = devices_with_little_room();
        let source = Arc::new(SmartArray::from((0..LEN as u32).collect::<Vec<_>>()));
        source.prefetch(&devices[0].stream()).unwrap();
        let crowding = devices.clone();
        let threads = [thread::spawn(move || crowd(&crowding)), {
            let (source, devices) = (Arc::clone(&source), devices.clone());
            thread::spawn(move || {
                let mut copy = SmartArray::uninit(LEN);
                copy.assign_on(&devices[1].stream(), &*source).unwrap();
                assert_eq!(copy.host().unwrap().to_vec(), (0..LEN as u32).collect::<Vec<_>>());
            })
        }];
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        drop(source);
        in_order(&devices);
    });
}

#[test]
fn a_snapshot_of_a_copy_that_gives_way_meanwhile_is_taken_from_another() {
    interleavings(INTERLEAVINGS, || {
        let devices = devices_with_little_room();
        let array = Arc::new(half_and_half(&devices[0].stream()));
        array.prefetch_host().unwrap();
        let threads = [
            {
                let (array, devices) = (Arc::clone(&array), devices.clone());
                thread::spawn(move || {
                    look(&array, &devices);
                    crowd(&devices);
                })
            },
            {
                let (array, devices) = (Arc::clone(&array), devices.clone());
                thread::spawn(move || snapshot(&array, &devices))
            },
        ];
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        drop(array);
        in_order(&devices);
    });
}
