//! System threads on shared arrays. Some devices have worker threads; the work of others, which are
//! seeded, runs on the threads that wait.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier};
use std::thread;
use support::prelude::*;

/// The number of threads.
const THREADS: usize = 8;

/// The settings of a seeded device, and of one with worker threads.
const MODES: [Option<u64>; 2] = [None, Some(7)];

fn device(seed: Option<u64>) -> Device {
    let emulation = Emulation::new().poison(true);
    Device::emulated(seed.map_or(emulation.clone(), |seed| emulation.seed(seed)))
}

fn streams(device: &Device) -> [Stream; 2] {
    [device.stream(), device.new_stream().expect("a stream")]
}

fn numbers(first: u32) -> Array1<u32> {
    (first..first + 64).collect()
}

fn add() -> Kernel<(u32, InOut<u32, Ix1>)> {
    Kernel::<(u32, InOut<u32, Ix1>)>::new("add")
        .host(|_grid, (by, mut x)| x.mapv_inplace(|x| x + by))
}

/// An array whose contents are `numbers(1)`, valid only on that stream's device.
fn on_device(stream: &Stream) -> SmartArray<u32, Ix1> {
    let mut array = SmartArray::from(numbers(0));
    add().launch_on(stream, Grid::cover(1), (1, &mut array)).expect("it is written");
    array
}

/// Runs `work` on all threads concurrently, and passes to each its number.
fn at_once(work: impl Fn(usize) -> Result<()> + Sync) {
    let barrier = Barrier::new(THREADS);
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (barrier, work) = (&barrier, &work);
            scope.spawn(move || {
                barrier.wait();
                work(number).expect("nothing fails");
            });
        }
    });
}

#[test]
fn threads_that_need_one_array_on_the_host_bring_it_down_once() {
    for seed in MODES {
        let device = device(seed);
        let [stream, _] = streams(&device);
        for _ in 0..100 {
            let array = on_device(&stream);
            at_once(|number| {
                if number % 4 == 3 {
                    array.prefetch_host()?;
                }
                assert_eq!(*array.host()?, *numbers(1));
                Ok(())
            });
            let moved = array.traffic().to_host;
            assert_eq!((moved.count, moved.bytes), (1, 64 * 4));
        }
        support::watched::assert_nothing_left(&[device]);
    }
}

#[test]
fn threads_that_need_one_array_on_a_device_bring_it_up_once() {
    for seed in MODES {
        let device = device(seed);
        let streams = streams(&device);
        let look = Kernel::<(In<u32, Ix1>, Out<u32, Ix1>)>::new("look")
            .host(|_grid, (x, mut sum)| sum.fill(x.sum()));
        for _ in 0..100 {
            let array = SmartArray::from(numbers(5));
            at_once(|number| {
                let stream = &streams[number % 2];
                match number / 2 {
                    0 => array.prefetch(stream),
                    1 => array.gpu_on(stream).map(|guard| assert_eq!(guard.device(), device)),
                    2 => array.snapshot_on(stream)?.wait().map(|seen| assert_eq!(seen, numbers(5))),
                    _ => {
                        let mut sum = SmartArray::<u32, Ix1>::uninit(1);
                        look.launch_on(stream, Grid::cover(1), (&array, &mut sum))?;
                        assert_eq!(sum.get([0])?, numbers(5).sum());
                        Ok(())
                    }
                }
            });
            let traffic = array.traffic();
            assert_eq!((traffic.to_device.count, traffic.to_device.bytes), (1, 64 * 4));
            assert_eq!((traffic.to_host.count, traffic.between_devices.count), (0, 0));
        }
        support::watched::assert_nothing_left(&[device]);
    }
}

#[test]
fn threads_that_need_different_parts_on_different_devices_move_each_byte_once() {
    for seed in MODES {
        let devices = [device(seed), device(seed)];
        let [one, other] = [devices[0].stream(), devices[1].stream()];
        for _ in 0..50 {
            let array = on_device(&one);
            at_once(|number| {
                let part = array.slice(s![8 * number..8 * number + 8]);
                let expected = numbers(1).slice(s![8 * number..8 * number + 8]).to_owned();
                drop(part.gpu_on(&other)?);
                assert_eq!(*part.host()?, *expected);
                assert_eq!(part.snapshot_on(&other)?.wait()?, expected);
                assert_eq!(*array.host()?, *numbers(1));
                array.prefetch(&other)
            });
            // A part may be downloaded by its own thread, or by any thread that downloads the whole
            // array. So the number of copies varies, but the number of bytes does not.
            let traffic = array.traffic();
            assert_eq!((traffic.to_host.bytes, traffic.between_devices.bytes), (64 * 4, 64 * 4));
        }
        support::watched::assert_nothing_left(&devices);
    }
}

/// Adds to a part `rounds` times, on a stream or on the host.
fn add_often(
    mut part: SmartViewMut<'_, u32, Ix1>,
    stream: Option<&Stream>,
    rounds: u32,
) -> Result<()> {
    let add = add();
    for _ in 0..rounds {
        match stream {
            Some(stream) => add.launch_on(stream, Grid::cover(1), (1, &mut part))?,
            None => part.host_mut()?.mapv_inplace(|x| x + 1),
        }
    }
    Ok(())
}

#[test]
fn threads_that_write_disjoint_parts_on_streams_and_on_the_host_do_not_disturb_each_other() {
    const ROUNDS: u32 = 20;
    for seed in MODES {
        let devices = [device(seed), device(seed)];
        let [one, two] = streams(&devices[0]);
        let three = devices[1].stream();
        for round in 0..20 {
            let mut array = SmartArray::from(numbers(0));
            let (even, odd, backwards, rest) =
                array.multi_slice_mut((s![..32;2], s![1..32;2], s![32..48;-1], s![48..]));
            thread::scope(|scope| {
                let parts = [
                    (even, Some(&one)),
                    (odd, Some(&two)),
                    (backwards, Some(&three)),
                    (rest, None),
                ];
                let threads = parts
                    .map(|(part, stream)| scope.spawn(move || add_often(part, stream, ROUNDS)));
                threads
                    .into_iter()
                    .for_each(|thread| thread.join().expect("no panic").expect("nothing fails"));
            });
            assert_eq!(*array.host().expect("written"), *numbers(ROUNDS), "round {round}");
        }
        support::watched::assert_nothing_left(&devices);
    }
}

/// Halves a part until it has eight elements, then changes each of these parts on its own thread.
fn divide(mut part: SmartViewMut<'_, u32, Ix1>, number: usize, streams: &[Stream]) {
    if part.len() <= 8 {
        return add_often(part, streams.get(number % (streams.len() + 1)), 5)
            .expect("nothing fails");
    }
    let middle = part.len() / 2;
    let (left, right) = part.split_at_mut(Axis(0), middle);
    thread::scope(|scope| {
        scope.spawn(|| divide(left, 2 * number, streams));
        divide(right, 2 * number + 1, streams);
    });
}

#[test]
fn parts_of_parts_may_be_written_by_threads_of_their_own() {
    for seed in MODES {
        let devices = [device(seed), device(seed)];
        let streams = devices.each_ref().map(streams).concat();
        for round in 0..20 {
            let mut array =
                if round % 2 == 0 { SmartArray::from(numbers(1)) } else { on_device(&streams[0]) };
            divide(array.view_mut(), 1, &streams);
            assert_eq!(*array.host().expect("written"), *numbers(6), "round {round}");
        }
        support::watched::assert_nothing_left(&devices);
    }
}

type Sum = Kernel<(In<u32, Ix1>, In<u32, Ix1>, InOut<u32, Ix1>)>;

/// One thread's work in the test below: launches on its own stream and calls on the host, with its
/// own order of arguments.
fn sum_often(
    sum: &Sum,
    [x, y]: [&SmartArray<u32, Ix1>; 2],
    stream: &Stream,
    barrier: &Barrier,
) -> Result<Array1<u32>> {
    let mut total = SmartArray::<u32, Ix1>::zeros(64);
    barrier.wait();
    for turn in 0..8 {
        if turn % 4 == 3 {
            sum.call(Grid::cover(1), (x, y, &mut total))?;
        } else {
            sum.launch_on(stream, Grid::cover(1), (x, y, &mut total))?;
        }
    }
    total.into_array()
}

#[test]
fn opposite_orders_of_arguments_on_two_threads_do_not_lock_each_other_out() {
    for seed in MODES {
        without_deadlock(move || {
            let devices = [device(seed), device(seed)];
            let [[one, two], [three, _]] = [streams(&devices[0]), streams(&devices[1])];
            let sum: Sum = Kernel::<(In<u32, Ix1>, In<u32, Ix1>, InOut<u32, Ix1>)>::new("sum")
                .host(|_grid, (x, y, mut z)| z += &(&x + &y));
            for round in 0..sampled(60, 250) {
                // In some rounds an array is newest on a device, in others on the host, so that the
                // two threads need transfers of both arrays.
                let x =
                    if round % 2 == 0 { on_device(&three) } else { SmartArray::from(numbers(1)) };
                let y = if round % 3 == 0 { on_device(&one) } else { SmartArray::from(numbers(1)) };
                let (barrier, other) =
                    (Barrier::new(2), if round % 5 == 0 { &two } else { &three });
                let expected = numbers(1) * 2 * 8;
                thread::scope(|scope| {
                    let opposite = scope.spawn(|| sum_often(&sum, [&y, &x], other, &barrier));
                    assert_eq!(
                        sum_often(&sum, [&x, &y], &one, &barrier).expect("nothing fails"),
                        expected
                    );
                    assert_eq!(
                        opposite.join().expect("no panic").expect("nothing fails"),
                        expected
                    );
                });
            }
            support::watched::assert_nothing_left(&devices);
        });
    }
}

#[test]
fn opposite_assignments_and_clones_on_two_threads_do_not_lock_each_other_out() {
    for seed in MODES {
        without_deadlock(move || {
            let devices = [device(seed), device(seed)];
            let [one, other] = [devices[0].stream(), devices[1].stream()];
            let (mut x, mut y) = (on_device(&one), on_device(&other));
            for _ in 0..sampled(120, 500) {
                let ((mut x_left, x_right), (mut y_left, y_right)) =
                    (x.split_at_mut(Axis(0), 32), y.split_at_mut(Axis(0), 32));
                thread::scope(|scope| {
                    scope.spawn(|| {
                        x_left.assign(&y_right).expect("nothing fails");
                        assert_eq!(
                            y_right.try_clone().expect("enough memory").get([0]).expect("written"),
                            33
                        );
                    });
                    y_left.assign(&x_right).expect("nothing fails");
                    assert_eq!(
                        x_right.try_clone().expect("enough memory").get([31]).expect("written"),
                        64
                    );
                });
            }
            let halves: Array1<u32> = (33..65).chain(33..65).collect();
            assert_eq!(
                (&*x.host().expect("written"), &*y.host().expect("written")),
                (&*halves, &*halves)
            );
            drop((x, y));
            support::watched::assert_nothing_left(&devices);
        });
    }
}

/// A thread that drops the values that it receives.
fn dropper<T: Send + 'static>() -> (Sender<T>, thread::JoinHandle<usize>) {
    let (sender, receiver) = channel::<T>();
    (sender, thread::spawn(move || receiver.into_iter().map(drop).count()))
}

#[test]
fn arrays_and_snapshots_dropped_by_other_threads_in_flight_leave_nothing_behind() {
    for seed in MODES {
        let devices = [device(seed), device(seed)];
        let (streams, add) = (devices.each_ref().map(streams).concat(), add());
        let (drop_array, arrays) = dropper::<SmartArray<u32, Ix1>>();
        let (drop_snapshot, snapshots) = dropper();
        for round in 0..400_usize {
            let mut array = SmartArray::from(numbers(0));
            let (stream, other) = (&streams[round % 4], &streams[(round / 4) % 4]);
            add.launch_on(stream, Grid::cover(1), (1, &mut array)).expect("it is written");
            if round % 3 == 0 {
                add.launch_on(other, Grid::cover(1), (1, &mut array.slice_mut(s![..;2])))
                    .expect("it is written");
            }
            if round % 5 == 0 {
                std::mem::forget(array.gpu_mut_on(other).expect("it is written"));
            }
            drop_snapshot
                .send(array.snapshot_on(stream).expect("it is written"))
                .expect("the thread listens");
            array.prefetch_host().expect("it is written");
            drop_array.send(array).expect("the thread listens");
        }
        drop((drop_array, drop_snapshot));
        assert_eq!(
            (arrays.join().expect("no panic"), snapshots.join().expect("no panic")),
            (400, 400)
        );
        support::watched::assert_nothing_left(&devices);
    }
}

#[test]
fn threads_that_wait_for_seeded_work_of_one_array_all_see_it_done() {
    let device = device(Some(3));
    let stream = device.stream();
    let double = Kernel::<(InOut<u32, Ix2>,)>::new("double").host(|_grid, (mut x,)| x *= 2);
    let array = Arc::new({
        let mut array = SmartArray::from(Array2::from_elem((8, 8), 1_u32));
        (0..10).for_each(|_| {
            double.launch_on(&stream, Grid::cover(1), (&mut array,)).expect("it is written");
        });
        array
    });
    at_once(|number| {
        let row = array.slice(s![number, ..]).host()?.sum();
        assert_eq!(row, 8 * 1024);
        array.snapshot_on(&stream)?.wait().map(|seen| assert_eq!(seen.sum(), 64 * 1024))
    });
    assert!(stream.is_idle().expect("the array can be queried"));
    drop(array);
    support::watched::assert_nothing_left(&[device]);
}

/// What threads do with arrays of every kind, again and again.
const COME_AND_GO: [fn(&Device) -> Result<()>; 6] = [
    |_| MappedArray::<u8, _>::zeros(10).map(drop),
    |_| ManagedArray::<u8, _>::zeros(10).map(drop),
    |_| MappedArray::<u8, _>::zeros(10)?.into_array().map(drop),
    |device| {
        let mut array = SmartArray::from(numbers(0));
        drop(array.gpu_mut_on(&device.stream())?);
        array.release_on(device)?;
        array.into_device(device).map(drop)
    },
    |_| with_mapped(&mut numbers(0), |lent| lent.fill(3)),
    |_| with_pinned(&mut numbers(0), |lent| lent.fill(3)),
];

/// Looks at all live arrays: those that others drop are listed whole or not at all.
fn list_all(kept: &SmartArray<u32, Ix1>) {
    let full = Device::emulated(Emulation::new().memory(1 << 10));
    for round in 0..sampled(400, 2_000) {
        let entries = audit::inventory();
        assert!(entries.iter().any(|entry| entry.name() == &*kept.name()), "round {round}");
        let is_right = |places: Vec<_>| places.first().is_some_and(|(place, _)| *place == "host");
        assert!(entries.iter().all(|entry| is_right(entry.places().collect())), "round {round}");
        if round % 50 == 0 {
            // Evicts the one before, and looks at all others for that.
            let arrays = [1, 2].map(|value| SmartArray::<u8, _>::full(700, value));
            arrays.iter().for_each(|array| array.prefetch(&full.stream()).expect("room"));
        }
    }
}

/// Ends the loops of other threads when it drops.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn all_arrays_are_listed_while_others_come_and_go() {
    let (device, is_over) = (Device::cpu(), AtomicBool::new(false));
    let kept = SmartArray::from(numbers(0)).named("kept");
    thread::scope(|threads| {
        for act in COME_AND_GO {
            let (device, is_over) = (&device, &is_over);
            threads.spawn(move || {
                let _here = device.enter();
                while !is_over.load(Ordering::Relaxed) {
                    act(device).expect("nothing fails");
                }
            });
        }
        let _over = Over(&is_over);
        list_all(&kept);
    });
}
