//! The memory of temporaries, and arrays of running chains on a full device.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Numbers, assert_no_hazards, numbers, seen, twice};
use resident::{Chain, Temp};
use support::bodies::{Gate, modes, one, plus};
use support::prelude::*;

const LEN: usize = 1000;
const BYTES: u64 = 4 * LEN as u64;

/// Replays with arguments of the same shapes share the memory of temporaries; it ends with the
/// chain.
#[test]
fn temporaries_are_kept_for_later_replays() {
    let device = Device::emulated(Emulation::new());
    let (stream, twice) = (device.stream(), twice());
    let mut array = numbers(LEN as u32);
    for _ in 0..5 {
        let scratch = Temp::like(&array);
        twice.launch_on(&stream, (1, &mut array, scratch)).unwrap();
    }
    assert_eq!(device.memory().in_use, 2 * BYTES);
    let allocations = device.emulation().unwrap().calls();
    let allocations = allocations.iter().filter(|call| call.kind == CallKind::Allocate);
    assert_eq!(allocations.count(), 2);
    drop(twice);
    assert_eq!(device.memory().in_use, BYTES);
    assert_eq!(array.get(0), Ok(10));
}

#[test]
fn what_is_kept_is_bounded() {
    let device = Device::emulated(Emulation::new());
    let (stream, twice) = (device.stream(), twice());
    for len in 1..=100 {
        let mut array = numbers(100 * len);
        let scratch = Temp::like(&array);
        twice.launch_on(&stream, (1, &mut array, scratch)).unwrap();
        assert_eq!(array.get(0), Ok(2));
    }
    let kept: u64 = (93..=100).map(|len| 400 * len).sum();
    assert_eq!(device.memory().in_use, kept, "of the last eight shapes");
}

/// What a chain uses that has not run yet stays, and gives way afterwards, temporaries too.
#[test]
fn a_full_device_waits_for_running_chains() {
    let device = Device::emulated(Emulation::new().memory(4 * BYTES));
    let (stream, other) = (device.new_stream().unwrap(), device.new_stream().unwrap());
    let gate = Gate::default();
    let waiting = {
        let gate = gate.clone();
        Kernel::<(In<u32>, Out<u32>)>::new("waiting").host(move |_, (a, b)| {
            gate.pass();
            b.copy_from_slice(a);
        })
    };
    let chain = Chain::<(InOut<u32, Ix1>, Temp<u32, Ix1>)>::record("waiting", |r, (a, tmp)| {
        r.launch(&waiting, one(), (a.read(), tmp.write()))?;
        r.copy(tmp.read(), a.write())
    })
    .unwrap();
    let mut array = numbers(LEN as u32);
    let scratch = Temp::like(&array);
    chain.launch_on(&stream, (&mut array, scratch)).unwrap();
    let plus = plus();
    let (from, mut to) = (numbers(LEN as u32), Numbers::uninit(LEN));
    plus.launch_on(&other, one(), (1, &from, &mut to)).unwrap();
    gate.open();
    // Four arrays are there. Others evict them, and the chain comes back.
    for round in 0..6 {
        let mut more = Numbers::uninit(LEN);
        plus.launch_on(&other, one(), (round, &from, &mut more)).unwrap();
        let mut and_more = Numbers::uninit(LEN);
        plus.launch_on(&other, one(), (round, &more, &mut and_more)).unwrap();
        assert_eq!(and_more.get(1), Ok(1 + 2 * round));
        chain.launch_on(&stream, (&mut array, scratch)).unwrap();
    }
    assert_eq!((seen(&array), seen(&to)), (seen(&from), (1..=LEN as u32).collect()));
    assert_no_hazards(&device);
}

/// Nothing of a temporary is written back: its contents end with the replay.
#[test]
fn temporaries_are_not_written_back() {
    let device = Device::emulated(Emulation::new().memory(2 * BYTES));
    let (stream, twice) = (device.stream(), twice());
    let mut array = numbers(LEN as u32);
    let scratch = Temp::like(&array);
    twice.launch_on(&stream, (1, &mut array, scratch)).unwrap();
    let other = numbers(LEN as u32);
    let (_, report) = audit::capture(|| {
        drop(array.gpu_on(&stream).unwrap());
        drop(other.gpu_on(&stream).unwrap());
    });
    assert_eq!(report.traffic().to_host.bytes, 0, "{report}");
    assert_eq!(array.get(0), Ok(2));
}

/// A temporary that says whether to go on gives way like any array: what the host is to read stays.
#[test]
fn a_temporary_that_is_looked_at_may_be_evicted() {
    let count = Kernel::<(InOut<u32>, Out<u32>)>::new("count").host(|_, (n, go_on)| {
        n[0] += 1;
        go_on.fill(u32::from(!n[0].is_multiple_of(5)));
    });
    let chain = Chain::<(InOut<u32, Ix1>, Temp<u32, Ix1>)>::record("count", |r, (n, go_on)| {
        r.launch(&count, one(), (n.read_write(), go_on.write()))?;
        r.repeat_while(go_on.slice(s![7..8]).read())
    })
    .unwrap();
    for emulation in modes().map(|emulation| emulation()) {
        let device = Device::emulated(emulation.memory(4 * BYTES));
        let (stream, is_over) = (device.new_stream().unwrap(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let others = [(); 6].map(|()| numbers(LEN as u32));
                while !is_over.load(Ordering::Relaxed) {
                    others.iter().for_each(|other| drop(other.gpu_on(&device.stream()).unwrap()));
                }
            });
            let mut n = numbers(LEN as u32);
            let ran: Vec<Result<u64>> = (0..sampled(50, 2000))
                .map(|_| chain.repeat_while_on(&stream, 10, 1, (&mut n, Temp::shape(LEN))))
                .collect();
            is_over.store(true, Ordering::Relaxed);
            assert!(ran.iter().all(|ran| *ran == Ok(5)), "{device}: {ran:?}");
        });
        assert_no_hazards(&device);
    }
}

/// A chain that is dropped, and instances that made room for others, end when their work has run.
#[test]
fn a_chain_is_dropped_while_its_replays_are_queued() {
    for emulation in modes().map(|emulation| emulation()) {
        let device = Device::emulated(emulation);
        let (stream, gate) = (device.new_stream().unwrap(), Gate::default());
        let wait = Kernel::<(InOut<u32>,)>::new("wait").host({
            let gate = gate.clone();
            move |_, (_,)| gate.pass()
        });
        let (mut first, mut last) = (numbers(5), numbers(LEN as u32));
        wait.launch_on(&stream, one(), (&mut first,)).unwrap();
        let twice = twice();
        for len in 1..=20 {
            let mut array = numbers(len);
            let scratch = Temp::like(&array);
            twice.repeat_on(&stream, 2, (1, &mut array, scratch)).unwrap();
        }
        let scratch = Temp::like(&last);
        twice.repeat_on(&stream, 3, (1, &mut last, scratch)).unwrap();
        drop(twice);
        gate.open();
        stream.synchronize().unwrap();
        assert_eq!(seen(&last), (6..6 + LEN as u32).collect::<Vec<_>>());
        assert_eq!(device.memory().in_use, 20 + BYTES);
        assert_no_hazards(&device);
    }
}
