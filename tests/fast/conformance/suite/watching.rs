//! Watches: states of arrays that come down by themselves.

use super::prelude::*;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::thread;

const LEN: usize = 64;
const BYTES: u64 = 4 * LEN as u64;

pub(crate) fn each_change_that_is_waited_for_is_shown(lab: &Lab) -> Result<()> {
    let stream = lab.stream();
    let mut array = numbers(LEN);
    let live = array.watch()?;
    assert!(live.latest().is_none(), "not changed yet");
    for change in 1..=5 {
        lab.add(&stream, 1, &mut array)?;
        let state = live.changed()?.expect("the array lives");
        assert_eq!(state.change(), u64::from(change));
        assert_eq!(*state, counting(LEN) + change);
        assert_eq!(live.latest().map(|state| state[0]), Some(change));
    }
    assert_eq!(bytes(array.traffic()), [BYTES, 5 * BYTES, 0]);
    drop(live);
    lab.add(&stream, 1, &mut array)?;
    assert_eq!(*array.host()?, counting(LEN) + 6);
    assert_eq!(bytes(array.traffic()), [BYTES, 6 * BYTES, 0], "nobody watches any more");
    Ok(())
}

pub(crate) fn changes_while_a_state_is_on_its_way_are_skipped(lab: &Lab) -> Result<()> {
    let (gate, stream) = (Gate::new(), lab.stream());
    let mut array = numbers(LEN);
    let live = array.watch()?;
    lab.gated(&stream, &gate, &mut array)?;
    for _ in 0..9 {
        lab.add(&stream, 1, &mut array)?;
    }
    if lab.has_gates() {
        assert!(live.latest().is_none(), "the gate holds the first state");
        assert_eq!(array.traffic().to_host.count, 1, "one state is on its way");
    }
    gate.open();
    let mut changes = Vec::new();
    while changes.last() != Some(&10) {
        let state = live.changed()?.expect("the array lives");
        assert_eq!(*state, counting(LEN).mapv(|x| x + state.change() as u32));
        changes.push(state.change());
    }
    if lab.has_gates() {
        assert_eq!(changes, [1, 10]);
    }
    assert_eq!(array.traffic().to_host.count, changes.len() as u64);
    Ok(())
}

pub(crate) fn every_third_change_is_shown(lab: &Lab) -> Result<()> {
    let stream = lab.stream();
    let mut array = numbers(LEN);
    let live = array.watch_every(3)?;
    for change in 1..=10_u64 {
        lab.add(&stream, 1, &mut array)?;
        if change % 3 == 0 {
            assert_eq!(live.changed()?.map(|state| state.change()), Some(change));
        }
    }
    assert_eq!(array.traffic().to_host.count, 3);
    drop(array);
    let last = live.changed()?.expect("the last state");
    assert_eq!((last.change(), last[0]), (10, 10), "it is shown whatever its number");
    assert!(live.changed()?.is_none() && live.changed()?.is_none());
    Ok(())
}

pub(crate) fn a_watch_outlives_its_array(lab: &Lab) -> Result<()> {
    let (gate, stream) = (Gate::new(), lab.stream());
    let mut array = numbers(LEN);
    let live = array.watch()?;
    lab.gated(&stream, &gate, &mut array)?;
    lab.add(&stream, 1, &mut array)?;
    drop(array);
    gate.open();
    let mut last = 0;
    while let Some(state) = live.changed()? {
        last = state[0];
    }
    assert_eq!(last, 2);
    assert_eq!(live.latest().map(|state| state.change()), Some(2));
    assert!(block_on(live.when_changed())?.is_none());
    let taken_back = numbers(LEN);
    let live = taken_back.watch()?;
    assert_eq!(taken_back.into_array()?, counting(LEN));
    assert!(live.changed()?.is_none() && live.latest().is_none());
    Ok(())
}

pub(crate) fn states_that_are_kept_stay_as_they_are(lab: &Lab) -> Result<()> {
    let stream = lab.stream();
    let mut array = numbers(LEN);
    let live = array.watch()?;
    let mut kept = Vec::new();
    for _ in 0..6 {
        lab.add(&stream, 1, &mut array)?;
        kept.extend(live.changed()?);
    }
    drop((array, live));
    for (number, state) in kept.iter().enumerate() {
        assert_eq!(**state, counting(LEN).mapv(|x| x + number as u32 + 1));
    }
    let last = kept.pop().expect("six states");
    drop(kept);
    assert_eq!(last[1], 7);
    Ok(())
}

pub(crate) fn two_arrays_have_many_watches(lab: &Lab) -> Result<()> {
    let stream = lab.new_stream()?;
    let mut one = numbers(LEN);
    let mut other = SmartArray::<u32, _>::uninit(LEN);
    let of_one = (0..3).map(|_| one.watch()).collect::<Result<Vec<_>>>()?;
    let of_other = (0..2).map(|_| other.watch()).collect::<Result<Vec<_>>>()?;
    for round in 1..=4 {
        lab.add(&stream, 1, &mut one)?;
        lab.plus(&lab.stream(), 100, &one, &mut other)?;
        for live in &of_one {
            assert_eq!(live.changed()?.map(|state| state[0]), Some(round));
        }
        for live in &of_other {
            assert_eq!(live.changed()?.map(|state| state[0]), Some(round + 100));
        }
    }
    assert_eq!((copies(one.traffic())[1], copies(other.traffic())[1]), (12, 8));
    Ok(())
}

pub(crate) fn all_writes_on_a_device_are_changes(lab: &Lab) -> Result<()> {
    let stream = lab.stream();
    let _here = lab.device().enter();
    let mut array = SmartArray::from(Array2::<u32>::zeros((8, 10)));
    let source = SmartArray::from(Array2::<u32>::from_elem((8, 10), 3));
    source.prefetch(&stream)?;
    let live = array.watch()?;
    let next = || live.changed().map(|state| state.map(|state| (state.change(), state.sum())));
    let part = &mut array.slice_mut(s![..4, ..;2]);
    lab.add_sized(&stream, 1, part)?;
    assert_eq!(next()?, Some((1, 20)), "the rest is newest on the host");
    array.prefetch(&stream)?;
    lab.add_sized(&stream, 1, &mut array)?;
    assert_eq!(next()?, Some((2, 100)));
    array.assign_on(&stream, &source)?;
    assert_eq!(next()?, Some((3, 240)));
    array.slice_mut(s![0, ..]).fill(5)?;
    assert_eq!(next()?, Some((4, 260)));
    array.slice_mut(s![1, ..]).fill_on(&stream, 4)?;
    assert_eq!(next()?, Some((5, 270)));
    array.set((7, 9), 13)?;
    assert_eq!(next()?, Some((6, 280)));
    let guard = array.gpu_mut_on(&stream)?;
    assert_eq!(live.latest().map(|state| state.change()), Some(6), "the guard may still write");
    drop(guard);
    assert_eq!(next()?, Some((7, 280)));
    array.fill(1)?;
    assert_eq!(next()?, Some((8, 80)));
    let mut host = array.host_mut()?;
    host[[0, 0]] = 2;
    assert_eq!(live.latest().map(|state| state.change()), Some(8), "the guard may still write");
    drop(host);
    assert_eq!(next()?, Some((9, 81)));
    lab.add_sized(&stream, 1, &mut array)?;
    assert_eq!(next()?, Some((10, 161)));
    Ok(())
}

pub(crate) fn a_watched_array_in_column_order(lab: &Lab) -> Result<()> {
    let value = |(row, column)| (10 * row + column) as u32;
    let expected = Array2::from_shape_fn((6, 4).f(), value);
    let mut array = SmartArray::from(expected.clone());
    assert!(array.is_f_contiguous());
    let live = array.watch()?;
    make_newest(&mut array, &lab.stream())?;
    let state = live.changed()?.expect("the array lives");
    assert_eq!((*state).to_owned(), expected);
    Ok(())
}

pub(crate) fn a_change_is_awaited(lab: &Lab) -> Result<()> {
    let (gate, stream) = (Gate::new(), lab.stream());
    let mut array = numbers(LEN);
    let live = array.watch()?;
    let mut before = live.when_changed();
    let context = &mut Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut before).poll(context).is_pending(), "nothing has changed");
    lab.gated(&stream, &gate, &mut array)?;
    let polled = Pin::new(&mut before).poll(context);
    if lab.has_gates() {
        assert!(polled.is_pending());
    }
    drop(before);
    std::mem::forget(live.when_changed());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| block_on(live.when_changed()));
        gate.open();
        if polled.is_pending() {
            let state = waiting.join().expect("no panic")?.expect("the array lives");
            assert_eq!(*state, counting(LEN) + 1);
        } else {
            drop(array);
        }
        Ok(())
    })
}

pub(crate) fn watches_are_dropped_in_flight(lab: &Lab) -> Result<()> {
    let (gate, stream) = (Gate::new(), lab.stream());
    let mut array = numbers(LEN);
    let dropped = array.watch()?;
    lab.gated(&stream, &gate, &mut array)?;
    drop(dropped);
    lab.add(&stream, 1, &mut array)?;
    gate.open();
    assert_eq!(*array.host()?, counting(LEN) + 2);
    Ok(())
}

/// One thread computes, others look: each state is one that the array had.
pub(crate) fn threads_look_while_another_computes(lab: &Lab) -> Result<()> {
    const ROUNDS: u32 = 200;
    let streams = [lab.stream(), lab.new_stream()?];
    let mut array = numbers(LEN);
    let watches = (0..3).map(|_| array.watch()).collect::<Result<Vec<_>>>()?;
    thread::scope(|scope| -> Result<()> {
        let looking: Vec<_> = watches
            .into_iter()
            .map(|live| {
                scope.spawn(move || -> Result<u32> {
                    let mut last = 0;
                    while let Some(state) = live.changed()? {
                        assert_eq!(*state, counting(LEN).mapv(|x| x + state.change() as u32));
                        assert!(state[0] > last, "states come in order");
                        last = state[0];
                    }
                    Ok(last)
                })
            })
            .collect();
        for round in 0..ROUNDS as usize {
            let stream = &streams[round / 7 % 2];
            lab.add(stream, 1, &mut array)?;
        }
        drop(array);
        for thread in looking {
            assert_eq!(thread.join().expect("no panic")?, ROUNDS);
        }
        Ok(())
    })
}

pub(crate) fn a_watched_array_moves_between_devices(lab: &Lab) -> Result<()> {
    let Some([first, second]) = lab.pair() else { return Ok(()) };
    let mut array = numbers(LEN);
    let live = array.watch()?;
    for round in 1..=6 {
        let device = [&first, &second][round as usize % 2];
        lab.add(&device.stream(), 1, &mut array)?;
        assert_eq!(live.changed()?.map(|state| state[0]), Some(round));
    }
    array.release_on(&first)?;
    array.release_on(&second)?;
    lab.add(&second.stream(), 1, &mut array)?;
    assert_eq!(live.changed()?.map(|state| state[0]), Some(7));
    Ok(())
}

pub(crate) fn a_large_array_is_watched(lab: &Lab) -> Result<()> {
    let len = LARGE;
    let mut array = numbers(len);
    let live = array.watch()?;
    for round in 1..=3 {
        lab.add(&lab.stream(), 1, &mut array)?;
        let state = live.changed()?.expect("the array lives");
        assert!(*state == counting(len) + round);
    }
    Ok(())
}

pub(crate) fn arrays_without_elements_have_no_states(lab: &Lab) -> Result<()> {
    let mut array = SmartArray::<u32, _>::zeros((0, 5));
    let live = array.watch()?;
    array.fill(1)?;
    make_newest(&mut array, &lab.stream())?;
    assert!(live.latest().is_none());
    drop(array);
    assert!(live.changed()?.is_none());
    Ok(())
}

/// Parts on the host, on the device, and on an embedded device, which is one of another kind unless
/// the suite runs on embedded devices.
pub(crate) fn parts_in_several_places_are_shown(lab: &Lab) -> Result<()> {
    let stream = lab.stream();
    let elsewhere = Device::emulated(Emulation::new()).stream();
    let mut array = numbers(LEN);
    let live = array.watch()?;
    let mut expected = counting(LEN);
    for round in 0..4 {
        let middle = s![16 + round..32];
        array.slice_mut(s![..16]).host_mut()?.fill(100 + round as u32);
        expected.slice_mut(s![..16]).fill(100 + round as u32);
        lab.add(&stream, 1, &mut array.slice_mut(s![32..]))?;
        expected.slice_mut(s![32..]).mapv_inplace(|x| x + 1);
        array.slice_mut(middle).fill_on(&elsewhere, 7)?;
        expected.slice_mut(middle).fill(7);
        loop {
            let state = live.changed()?.expect("the array lives");
            if *state == expected {
                break;
            }
        }
        drop(array.slice_mut(middle).gpu_mut_on(&elsewhere)?);
        let state = live.changed()?.expect("the array lives");
        assert_eq!(*state, expected);
    }
    assert_eq!(*array.host()?, expected);
    Ok(())
}
