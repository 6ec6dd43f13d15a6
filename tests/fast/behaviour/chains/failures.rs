//! Steps that fail when they run, and replays that are refused.

use super::{Numbers, adds, assert_no_hazards, numbers, seen};
use resident::{Chain, Temp};
use support::bodies::{modes, one, plus};
use support::prelude::*;

/// Panics if it finds this number.
fn picky() -> Kernel<(u32, In<u32>, Out<u32>)> {
    Kernel::<(u32, In<u32>, Out<u32>)>::new("picky").host(|_, (bad, a, b)| {
        assert!(!a.contains(&bad), "it found {bad}");
        b.copy_from_slice(a);
    })
}

type Three =
    Chain<(u32, In<u32, Ix1>, Out<u32, Ix1>, Out<u32, Ix1>, Out<u32, Ix1>, Temp<u32, Ix1>)>;

/// Writes the first output, then the second by the picky kernel, then the third from a fill.
fn three() -> Three {
    let (plus, picky) = (plus(), picky());
    Three::record("three", |r, (bad, a, first, second, third, tmp)| {
        r.launch(&plus, one(), (1, a.read(), first.write()))?;
        r.launch(&picky, one(), (bad, first.read(), second.write()))?;
        r.fill(tmp.write(), 7)?;
        r.copy(tmp.read(), third.write())
    })
    .unwrap()
}

fn assert_lost(array: &Numbers) {
    match array.to_vec() {
        Err(Error::Lost { operation, site, cause, .. }) => {
            assert_eq!(operation, "kernel \"picky\" of chain \"three\"");
            assert!(site.contains("failures.rs:"), "{site}");
            assert!(cause.contains("it found 3"), "{cause}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_was_written_before_a_failure_stays() {
    for emulation in modes() {
        let device = Device::emulated(emulation());
        let (stream, three) = (device.new_stream().unwrap(), three());
        let a = numbers(3);
        let [mut first, mut second, mut third] = [(); 3].map(|()| numbers(3));
        let scratch = Temp::like(&a);
        let mut replay = |bad, count| {
            let arguments = (bad, &a, &mut first, &mut second, &mut third, scratch);
            three.repeat_on(&stream, count, arguments).unwrap();
            (stream.synchronize(), seen_or_lost(&first), second.to_vec(), third.to_vec())
        };
        let (told, first_seen, _, _) = replay(3, 1);
        let told = told.unwrap_err().to_string();
        assert!(told.contains("kernel \"picky\" of chain \"three\""), "{told}");
        assert_eq!(first_seen, Some(vec![1, 2, 3]), "written before the failure");
        let (told, first_seen, second_seen, third_seen) = replay(99, 5);
        assert_eq!((told, first_seen), (Ok(()), Some(vec![1, 2, 3])), "all are overwritten");
        assert_eq!((second_seen, third_seen), (Ok(vec![1, 2, 3]), Ok(vec![7; 3])));
        let (told, first_seen, ..) = replay(3, 2);
        assert!(told.is_err());
        assert_eq!(first_seen, None, "an earlier replay failed");
        for lost in [&second, &third] {
            assert_lost(lost);
        }
        assert_no_hazards(&device);
    }
}

fn seen_or_lost(array: &Numbers) -> Option<Vec<u32>> {
    match array.to_vec() {
        Ok(seen) => Some(seen),
        Err(Error::Lost { .. }) => None,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_chain_that_reads_lost_contents_does_not_run() {
    for emulation in modes() {
        let device = Device::emulated(emulation());
        let (stream, other) = (device.new_stream().unwrap(), device.new_stream().unwrap());
        let broken = Kernel::<(InOut<u32>,)>::new("broken").host(|_, _| panic!("it is broken"));
        let (mut array, mut beside) = (numbers(4), Numbers::uninit(4));
        broken.launch_on(&stream, one(), (&mut array,)).unwrap();
        let plus = plus();
        let chain = Chain::<(In<u32, Ix1>, Out<u32, Ix1>)>::record("after", |r, (a, b)| {
            r.fill(b.write(), 1)?;
            r.launch(&plus, one(), (1, a.read(), b.write()))
        })
        .unwrap();
        let queued = chain.launch_on(&other, (&array, &mut beside));
        let outcome = queued.and_then(|()| beside.to_vec().map(drop));
        match outcome {
            Err(Error::Lost { operation, .. }) => assert_eq!(operation, "kernel \"broken\""),
            other => panic!("{other:?}"),
        }
        assert!(device.synchronize().is_err());
        let arguments = (&numbers(4), &mut beside);
        chain.launch_on(&other, arguments).unwrap();
        assert_eq!(seen(&beside), [1, 2, 3, 4]);
    }
}

/// What a run with a fault saw.
struct Seen {
    outcome: Result<()>,
    /// Of the three outputs; `None` if it is lost.
    outputs: [Option<Vec<u32>>; 3],
    calls: Vec<CallKind>,
}

/// Two replays, and reads of what they write, each of which is repeated once.
fn replay_twice(emulation: Emulation) -> Seen {
    let device = Device::emulated(emulation);
    let (stream, three, a) = (device.stream(), three(), numbers(3));
    let [mut first, mut second, mut third] = [(); 3].map(|()| numbers(3));
    let mut outcome = Ok(());
    for _ in 0..2 {
        let scratch = Temp::like(&a);
        let arguments = (99, &a, &mut first, &mut second, &mut third, scratch);
        outcome = outcome.and(three.launch_on(&stream, arguments));
    }
    let read = |array: &Numbers| match array.to_vec() {
        Err(Error::Lost { .. }) | Ok(_) => seen_or_lost(array),
        Err(_refused_once) => seen_or_lost(array),
    };
    let outputs = [read(&first), read(&second), read(&third)];
    let log = device.emulation().unwrap();
    assert_eq!(log.hazards(), []);
    Seen { outcome, outputs, calls: log.calls().iter().map(|call| call.kind).collect() }
}

/// With a fault in any backend call, a replay is refused and changes nothing, or fails and loses
/// what it was to write from a step on.
#[test]
fn any_call_of_a_replay_may_fail() {
    let written = [vec![1, 2, 3], vec![1, 2, 3], vec![7; 3]].map(Some);
    let unchanged = [(); 3].map(|()| Some(vec![0, 1, 2]));
    for emulation in modes() {
        let calls = replay_twice(emulation()).calls;
        assert_eq!(calls.iter().filter(|kind| **kind == CallKind::Chain).count(), 2);
        let mut lost = 0;
        for call in 1..=calls.len() as u64 {
            let refused = replay_twice(emulation().fail(Fault::nth(call)));
            assert!(refused.outputs == written || refused.outputs == unchanged);
            let late = replay_twice(emulation().fail(Fault::nth(call).late()));
            assert_eq!(late.outcome, Ok(()));
            let first_lost = late.outputs.iter().position(Option::is_none).unwrap_or(3);
            assert_eq!(late.outputs[..first_lost], written[..first_lost]);
            assert!(late.outputs[first_lost..].iter().all(Option::is_none));
            lost += u32::from(first_lost < 3);
        }
        assert!(lost > 0, "a late fault fails a chain");
    }
}

/// A chain that the device refuses leaves the arrays as they were.
#[test]
fn a_refused_replay_changes_nothing() {
    let fault = Fault::nth(1).of(CallKind::Chain);
    let device = Device::emulated(Emulation::new().fail(fault));
    let (chain, mut array) = (adds(3), numbers(3));
    let refused = chain.launch_on(&device.stream(), (1, &mut array)).unwrap_err();
    let text = refused.to_string();
    assert!(text.contains("queueing chain \"adds\" at") && text.contains("failures.rs"), "{text}");
    assert_eq!(seen(&array), [0, 1, 2]);
    chain.launch_on(&device.stream(), (1, &mut array)).unwrap();
    assert_eq!(seen(&array), [3, 4, 5]);
}
