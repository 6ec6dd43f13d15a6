//! The order of work: which work waits, for which other work, and with how many events.

#![allow(clippy::forget_non_drop, reason = "the tests drop guards with and without a destructor")]

use std::mem::forget;
use std::time::Duration;

use resident::Link;
use support::bodies::{Gate, accumulate, add, assert_ordered, one, plus};
use support::flags::{Flag, expecting, expecting_reader, gated, raising};
use support::prelude::*;

fn numbers(len: u32) -> SmartArray<u32, Ix1> {
    SmartArray::from((0..len).collect::<Vec<u32>>())
}

fn seeded(seed: u64) -> Device {
    Device::emulated(Emulation::new().seed(seed).poison(false))
}

fn workers() -> Device {
    Device::emulated(Emulation::new().poison(false))
}

fn events_and_waits(device: &Device) -> (usize, usize) {
    (count_of(device, CallKind::RecordEvent), count_of(device, CallKind::WaitEvent))
}

#[test]
fn a_chain_of_launches_on_one_stream_costs_no_event_and_no_wait() {
    let device = seeded(1);
    let (source, mut middle, mut last) = (numbers(8), SmartArray::<u32, _>::uninit(8), numbers(8));
    for _ in 0..10 {
        plus().launch_on(&device.stream(), one(), (1, &source, &mut middle)).unwrap();
        add().launch_on(&device.stream(), one(), (1, &mut middle)).unwrap();
        accumulate().launch_on(&device.stream(), one(), (&middle, &mut last)).unwrap();
    }
    assert_eq!(events_and_waits(&device), (0, 0));
    assert_eq!(last.host().unwrap()[7], 7 + 10 * 9);
    assert_ordered(&device);
}

#[test]
fn a_launch_with_shared_arrays_takes_one_event_and_not_one_per_argument() {
    let device = seeded(1);
    let (stream, other) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let (first, mut second) = (numbers(8), numbers(8));
    for stream in [&stream, &other] {
        first.prefetch(stream).unwrap();
        add().launch_on(stream, one(), (1, &mut second)).unwrap();
    }
    device.synchronize().unwrap();
    let before = count_of(&device, CallKind::RecordEvent);
    accumulate().launch_on(&stream, one(), (&first, &mut second)).unwrap();
    assert_eq!(count_of(&device, CallKind::RecordEvent) - before, 1);
}

#[test]
fn a_transfer_takes_one_event_at_most() {
    let (device, peer) = (seeded(1), seeded(2));
    let array = numbers(64);
    array.prefetch(&device.stream()).unwrap();
    assert!(events_and_waits(&device).0 <= 1);
    array.prefetch(&peer.stream()).unwrap();
    assert!(count_of(&peer, CallKind::RecordEvent) <= 1);
    let mut changed = SmartArray::<u32, _>::ones(64);
    add().launch_on(&device.stream(), one(), (1, &mut changed)).unwrap();
    let before = count_of(&device, CallKind::RecordEvent);
    changed.prefetch_host().unwrap();
    assert!(count_of(&device, CallKind::RecordEvent) <= before + 1);
}

/// A kernel that copies its input to its output once the gate is open.
fn blur(gate: &Gate) -> Kernel<(In<u32>, Out<u32>)> {
    let gate = gate.clone();
    Kernel::new("blur").host(move |_, (x, y): (&[u32], &mut [u32])| {
        gate.pass();
        y.copy_from_slice(x);
    })
}

#[test]
fn disjoint_parts_on_two_streams_never_wait_for_each_other() {
    without_deadlock(|| {
        let (device, gate) = (workers(), Gate::default());
        let (stream, other) = (device.new_stream().unwrap(), device.new_stream().unwrap());
        let mut array = numbers(8);
        let (mut low, mut high) = array.split_at_mut(Axis(0), 4);
        gated(&gate).launch_on(&stream, one(), (&mut low,)).unwrap();
        add().launch_on(&other, one(), (1, &mut high)).unwrap();
        other.synchronize().unwrap();
        assert_eq!(high.host().unwrap().to_vec(), [5, 6, 7, 8]);
        gate.open();
        assert_eq!(array.host().unwrap().to_vec(), (1..9).collect::<Vec<_>>());
        assert_ordered(&device);
    });
}

#[test]
fn uses_of_the_same_bytes_are_ordered_whatever_their_streams() {
    for seed in 0..64 {
        let (device, peer) = (seeded(seed), seeded(seed));
        let streams = [
            device.new_stream().unwrap(),
            device.new_stream().unwrap(),
            peer.new_stream().unwrap(),
        ];
        let (mut array, mut sum) = (numbers(8), SmartArray::<u32, _>::zeros(8));
        for turn in 0..12 {
            add().launch_on(&streams[turn % 3], one(), (1, &mut array.slice_mut(s![..4]))).unwrap();
            accumulate()
                .launch_on(&streams[(turn * 2 + 1) % 3], one(), (&array, &mut sum))
                .unwrap();
        }
        let expected = (0..8).map(|index| if index < 4 { 12 * index + 78 } else { 12 * index });
        assert_eq!(sum.host().unwrap().to_vec(), expected.collect::<Vec<u32>>(), "seed {seed}");
        [&device, &peer].into_iter().for_each(assert_ordered);
    }
}

#[test]
fn a_writer_waits_for_all_readers_on_all_streams() {
    without_deadlock(|| {
        let (device, gate) = (workers(), Gate::default());
        let [slow, fast, writer] = [(); 3].map(|()| device.new_stream().unwrap());
        let mut array = numbers(8);
        let (mut seen_slowly, mut seen_fast) =
            (SmartArray::<u32, _>::uninit(8), SmartArray::<u32, _>::uninit(8));
        array.prefetch(&slow).unwrap();
        blur(&gate).launch_on(&slow, one(), (&array, &mut seen_slowly)).unwrap();
        plus().launch_on(&fast, one(), (0, &array, &mut seen_fast)).unwrap();
        fast.synchronize().unwrap();
        add().launch_on(&writer, one(), (100, &mut array)).unwrap();
        assert!(!writer.is_idle().unwrap(), "the slow reader has not read");
        gate.open();
        assert_eq!(seen_slowly.host().unwrap().to_vec(), (0..8).collect::<Vec<_>>());
        assert_eq!(array.host().unwrap()[0], 100);
        assert_ordered(&device);
    });
}

#[test]
fn an_array_dropped_under_a_slow_reader_is_freed_behind_it_without_a_wait() {
    without_deadlock(|| {
        let (device, gate) = (workers(), Gate::default());
        let (slow, fast) = (device.new_stream().unwrap(), device.new_stream().unwrap());
        let array = numbers(1024);
        let (mut seen_slowly, mut seen_fast) =
            (SmartArray::<u32, _>::uninit(1024), SmartArray::<u32, _>::uninit(1024));
        array.prefetch(&slow).unwrap();
        blur(&gate).launch_on(&slow, one(), (&array, &mut seen_slowly)).unwrap();
        plus().launch_on(&fast, one(), (0, &array, &mut seen_fast)).unwrap();
        fast.synchronize().unwrap();
        drop(array);
        assert_eq!(device.memory().in_use, 2 * 4096, "its memory is freed");
        assert!(device.memory().pooled >= 4096, "and stays in the pool for the reader");
        gate.open();
        assert_eq!(seen_slowly.host().unwrap()[1000], 1000);
        assert_ordered(&device);
    });
}

/// Opens an access (a guard), and returns what closes it.
type Access = for<'a> fn(&'a mut SmartArray<u32, Ix1>, &Stream) -> Box<dyn FnOnce() + 'a>;

/// Accesses, and whether what comes later only reads.
const ACCESSES: &[(&str, (bool, Access))] = &[
    (
        "a forgotten write guard",
        (true, |array, stream| {
            let guard = array.gpu_mut_on(stream).unwrap();
            Box::new(|| forget(guard))
        }),
    ),
    (
        "a dropped write guard",
        (false, |array, stream| {
            let guard = array.gpu_mut_on(stream).unwrap();
            Box::new(|| drop(guard))
        }),
    ),
    (
        "a forgotten read guard",
        (false, |array, stream| {
            let guard = array.gpu_on(stream).unwrap();
            Box::new(|| forget(guard))
        }),
    ),
    (
        "a dropped read guard",
        (false, |array, stream| {
            let guard = array.gpu_on(stream).unwrap();
            Box::new(|| drop(guard))
        }),
    ),
    (
        "a forgotten guard of a part",
        (false, |array, stream| {
            forget(array.slice_mut(s![2..5]).gpu_mut_on(stream).unwrap());
            Box::new(|| ())
        }),
    ),
];

/// Opens an access. Then queues a launch of the library that records an event, and after it foreign
/// work, here a launch that represents work queued by other code. Then closes the access. A later
/// use on another stream must wait for the foreign work, too.
#[test]
fn foreign_work_comes_before_later_uses() {
    run_cases(ACCESSES, |(reads_later, access)| {
        for seed in 0..64 {
            let device = seeded(seed);
            let (stream, elsewhere) = (device.new_stream().unwrap(), device.new_stream().unwrap());
            let (mut array, mut shared, mut foreign) = (numbers(8), numbers(8), numbers(8));
            let (flag, late) = (Flag::default(), Flag::default());
            add().launch_on(&elsewhere, one(), (1, &mut shared)).unwrap();
            let let_go = access(&mut array, &stream);
            let events = count_of(&device, CallKind::RecordEvent);
            add().launch_on(&stream, one(), (1, &mut shared)).unwrap();
            assert!(count_of(&device, CallKind::RecordEvent) > events, "it comes before");
            raising(&flag).launch_on(&stream, one(), (&mut foreign,)).unwrap();
            let_go();
            if *reads_later {
                expecting_reader(&flag, &late).launch_on(&elsewhere, one(), (&array,)).unwrap();
            } else {
                expecting(&flag, &late).launch_on(&elsewhere, one(), (&mut array,)).unwrap();
            }
            elsewhere.synchronize().unwrap();
            assert!(flag.is_up() && !late.is_up(), "seed {seed}: the foreign work came too late");
            assert_ordered(&device);
        }
    });
}

#[test]
fn foreign_work_comes_before_the_host_looks() {
    for seed in 0..32 {
        let device = seeded(seed);
        let (flag, mut array, mut foreign) = (Flag::default(), numbers(8), numbers(8));
        let guard = array.gpu_mut_on(&device.stream()).unwrap();
        raising(&flag).launch_on(&device.stream(), one(), (&mut foreign,)).unwrap();
        if seed % 2 == 0 {
            forget(guard);
        } else {
            drop(guard);
        }
        assert_eq!(array.host().unwrap()[7], 7);
        assert!(flag.is_up(), "seed {seed}");
    }
}

#[test]
fn a_stream_that_waits_for_an_event_comes_after_it_and_only_then() {
    for seed in 0..32 {
        let device = seeded(seed);
        let (stream, waiting, free) = (
            device.new_stream().unwrap(),
            device.new_stream().unwrap(),
            device.new_stream().unwrap(),
        );
        let (flag, late, never) = (Flag::default(), Flag::default(), Flag::default());
        let arrays = &mut [numbers(4), numbers(4), numbers(4)];
        raising(&flag).launch_on(&stream, one(), (&mut arrays[0],)).unwrap();
        waiting.wait(&stream.record().unwrap()).unwrap();
        expecting(&flag, &late).launch_on(&waiting, one(), (&mut arrays[1],)).unwrap();
        expecting(&never, &Flag::default()).launch_on(&free, one(), (&mut arrays[2],)).unwrap();
        assert_eq!(count_of(&device, CallKind::WaitEvent), 1, "only the program's own");
        waiting.synchronize().unwrap();
        assert!(flag.is_up() && !late.is_up(), "seed {seed}");
    }
}

#[test]
fn events_measure_modelled_time_over_a_link() {
    let link = Link { bytes_per_second: 1e9, latency: Duration::from_micros(5) };
    let device = Device::emulated(Emulation::new().seed(3).poison(false).link(link));
    let (stream, array) = (device.stream(), SmartArray::from(vec![1_u32; 25_000]));
    let start = stream.record().unwrap();
    array.prefetch(&stream).unwrap();
    let end = stream.record().unwrap();
    let neither = end.elapsed_since(&start).expect_err("neither is complete").to_string();
    let between = format!("timing from {start} to {end}");
    let words = "the earlier event is not complete and the later event is not complete";
    assert!(neither.contains(&between) && neither.contains(words), "{neither}");
    start.synchronize().unwrap();
    let later = end.elapsed_since(&start).expect_err("one is not complete").to_string();
    assert!(later.contains("(the later event is not complete; wait for it"), "{later}");
    let earlier = start.elapsed_since(&end).expect_err("one is not complete").to_string();
    assert!(earlier.contains("(the earlier event is not complete; wait for it"), "{earlier}");
    end.synchronize().unwrap();
    assert_eq!(end.elapsed_since(&start).unwrap(), Duration::from_micros(105));
    assert_eq!(start.elapsed_since(&end).unwrap(), Duration::ZERO);
}

#[test]
fn a_device_is_synchronised_with_copies_of_its_memory_on_other_devices_streams() {
    for seed in 0..16 {
        let (device, peer) = (seeded(seed), seeded(seed + 100));
        let (flag, stream, mut array, mut other) =
            (Flag::default(), peer.new_stream().unwrap(), numbers(8), numbers(8));
        add().launch_on(&device.stream(), one(), (1, &mut array)).unwrap();
        device.synchronize().unwrap();
        // The copy between the devices runs after this launch on the peer's stream.
        raising(&flag).launch_on(&stream, one(), (&mut other,)).unwrap();
        if seed % 2 == 0 {
            array.prefetch(&stream).unwrap();
        } else {
            other.assign_on(&stream, &array).unwrap();
        }
        assert!(!flag.is_up());
        device.synchronize().unwrap();
        assert!(flag.is_up(), "seed {seed}");
    }
}

#[test]
fn a_device_is_synchronised_with_its_dropped_streams() {
    let (device, flag) = (seeded(1), Flag::default());
    raising(&flag).launch_on(&device.new_stream().unwrap(), one(), (&mut numbers(8),)).unwrap();
    device.synchronize().unwrap();
    assert!(flag.is_up());
    assert_eq!(device.memory().in_use, 0);
}
