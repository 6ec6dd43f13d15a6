//! Watches of arrays: failures, injected faults, seeds, kernel bodies, and what they cost.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use resident::audit::{self, Cause};
use resident::{Watch, WatchState};
use support::bodies::{Gate, add, assert_ordered, broken_update, modes, one};
use support::prelude::*;

type Numbers = SmartArray<u32, Ix1>;

fn numbers() -> Numbers {
    SmartArray::from((0..8).collect::<Vec<u32>>())
}

fn first(state: Option<WatchState<u32, Ix1>>) -> Option<u32> {
    state.map(|state| state[0])
}

#[test]
fn watches_and_streams_tell_of_failures_once_and_bodies_do_not_wait() {
    run_cases(FAILURES, |case| in_both_modes(*case));
}

#[test]
fn states_are_hidden_while_a_guard_may_write() {
    run_cases(HIDDEN, |case| in_both_modes(*case));
}

type Case = fn(&Device) -> Result<()>;

fn in_both_modes(case: Case) {
    for emulation in modes() {
        without_deadlock(move || {
            let device = Device::emulated(emulation());
            case(&device).unwrap_or_else(|error| panic!("{error}"));
            device.synchronize().unwrap();
            assert_ordered(&device);
        });
    }
}

const FAILURES: &[(&str, Case)] = &[
    ("a state that a panic spoilt is an error once and the watch goes on", |device| {
        let (gate, stream) = (Gate::default(), device.stream());
        gate.open();
        let mut array = numbers();
        let live = array.watch()?;
        add().launch_on(&stream, one(), (1, &mut array))?;
        assert_eq!(first(live.changed()?), Some(1));
        broken_update(&gate).launch_on(&stream, one(), (&mut array,))?;
        let lost = live.changed();
        assert!(matches!(lost, Err(Error::Lost { .. })), "{lost:?}");
        assert_eq!(first(live.latest()), Some(1), "the last complete state stays");
        assert!(stream.synchronize().is_err(), "the failure is reported as ever");
        array.fill(7)?;
        add().launch_on(&stream, one(), (1, &mut array))?;
        let mut last = None;
        while last != Some(8) {
            last = first(live.changed()?);
        }
        Ok(())
    }),
    ("a failure that is seen late is an error of the next state", |device| {
        let (gate, stream) = (Gate::default(), device.stream());
        gate.open();
        let mut array = numbers();
        broken_update(&gate).launch_on(&stream, one(), (&mut array,))?;
        let live = array.watch()?;
        add().launch_on(&stream, one(), (1, &mut array)).ok();
        drop(array);
        let ended = live.changed();
        assert!(matches!(ended, Err(Error::Lost { .. }) | Ok(None)), "{ended:?}");
        assert!(matches!(live.changed(), Ok(None)));
        stream.synchronize().ok();
        Ok(())
    }),
    ("bodies look and drop and forget and do not wait", |device| {
        let stream = device.stream();
        let mut watched = numbers();
        let [looked_at, dropped, forgotten] =
            [watched.watch()?, watched.watch()?, watched.watch()?];
        add().launch_on(&stream, one(), (1, &mut watched))?;
        assert_eq!(first(looked_at.changed()?), Some(1));
        let (looked_at, taken) = (Arc::new(looked_at), Mutex::new(Some((dropped, forgotten))));
        let (inner, outcome) = (Arc::clone(&looked_at), Arc::new(Mutex::new(None)));
        let told = Arc::clone(&outcome);
        let body = Kernel::<(InOut<u32>,)>::new("looks").host(move |_, (_,): (&mut [u32],)| {
            let seen = first(inner.latest());
            let refused = matches!(inner.changed(), Err(Error::InsideKernel { .. }));
            let (dropped, forgotten): (Watch<u32, Ix1>, _) =
                taken.lock().unwrap().take().expect("it runs once");
            drop(dropped);
            std::mem::forget(forgotten);
            *told.lock().unwrap() = Some((seen, refused));
        });
        body.launch_on(&device.new_stream()?, one(), (&mut numbers(),))?;
        device.synchronize()?;
        assert_eq!(*outcome.lock().unwrap(), Some((Some(1), true)));
        add().launch_on(&stream, one(), (1, &mut watched))?;
        assert_eq!(first(looked_at.changed()?), Some(2));
        Ok(())
    }),
    ("a stream that is awaited returns its failure once", |device| {
        let (gate, stream) = (Gate::default(), device.new_stream()?);
        gate.open();
        let mut array = numbers();
        broken_update(&gate).launch_on(&stream, one(), (&mut array,))?;
        let (first, second) = (stream.done(), stream.done());
        let failed = block_on(first);
        assert!(failed.is_err_and(|error| error.to_string().contains("it is broken")));
        block_on(second)?;
        stream.synchronize()
    }),
    // The guard synchronises at each way out of a scope, and leaves failures to the next call.
    ("a guard synchronises at every way out", |device| {
        fn leaves_early(stream: &Stream, array: &mut Numbers) -> Result<()> {
            let _guard = stream.auto_synchronize();
            add().launch_on(stream, one(), (1, array))?;
            Device::cuda(usize::MAX).map(drop)
        }
        let stream = device.new_stream()?;
        let mut array = numbers();
        assert!(leaves_early(&stream, &mut array).is_err() && stream.is_idle()?);
        for _ in 0..2 {
            let _guard = stream.auto_synchronize();
            add().launch_on(&stream, one(), (1, &mut array))?;
        }
        assert!(stream.is_idle()?);
        let gate = Gate::default();
        gate.open();
        let unwound = catch_unwind(AssertUnwindSafe(|| -> Result<()> {
            let _guard = stream.auto_synchronize();
            broken_update(&gate).launch_on(&stream, one(), (&mut array,))?;
            std::panic::resume_unwind(Box::new("leaves"))
        }));
        assert!(unwound.is_err() && stream.is_idle()?);
        assert!(stream.synchronize().is_err(), "the guard leaves the failure to this call");
        stream.synchronize()
    }),
];

/// Each backend call fails once, when it is submitted or when it runs. No failure panics, hangs or
/// shows a wrong state, and the array keeps its contents.
#[test]
fn every_call_may_fail_under_a_watch() {
    without_deadlock(|| {
        for is_late in [false, true] {
            for call in 1..40 {
                let fault = if is_late { Fault::nth(call).late() } else { Fault::nth(call) };
                let device = Device::emulated(Emulation::new().seed(3).fail(fault));
                watched_program(&device, is_late);
                device.synchronize().ok();
                assert_ordered(&device);
            }
        }
    });
}

fn watched_program(device: &Device, is_late: bool) {
    let stream = device.stream();
    let mut array = numbers();
    let live = array.watch().expect("it copies nothing");
    let mut added = 0;
    let is_right = |state: &WatchState<u32, Ix1>| {
        let changed = state[0];
        state.iter().enumerate().all(|(index, x)| *x == index as u32 + changed)
    };
    for _ in 0..6 {
        // A call that was refused has changed nothing, and may be repeated.
        let launched = (0..3).any(|_| add().launch_on(&stream, one(), (1, &mut array)).is_ok());
        if !launched {
            return;
        }
        added += 1;
        match live.changed() {
            Ok(state) => assert!(is_right(&state.expect("the array lives"))),
            Err(Error::Backend { .. } | Error::Lost { .. }) => {
                assert!(live.latest().is_none_or(|state| is_right(&state)));
                if is_late {
                    return;
                }
            }
            Err(other) => panic!("{other}"),
        }
    }
    let contents = (0..3).find_map(|_| array.host().ok().map(|host| host[0]));
    if let Some(contents) = contents {
        assert_eq!(contents, added);
    }
}

#[test]
fn seeds_show_states_in_their_order() {
    for seed in 0..30 {
        let device = Device::emulated(Emulation::new().seed(seed));
        let (one_stream, other) = (device.stream(), device.new_stream().unwrap());
        let (mut a, mut b) = (numbers(), numbers());
        let watches = [a.watch().unwrap(), b.watch_every(2).unwrap(), a.watch().unwrap()];
        let mut seen = [0; 3];
        for round in 0..12 {
            let stream = if (seed + round) % 3 == 0 { &other } else { &one_stream };
            add().launch_on(stream, one(), (1, &mut a)).unwrap();
            add().launch_on(&one_stream, one(), (1, &mut b)).unwrap();
            for (live, seen) in watches.iter().zip(&mut seen) {
                let Some(state) = live.latest() else { continue };
                assert_eq!(u64::from(state[0]), state.change(), "seed {seed}");
                assert!(state.change() >= *seen, "seed {seed}: states come in order");
                *seen = state.change();
            }
        }
        drop((a, b));
        for live in &watches {
            let mut last = None;
            while let Some(state) = live.changed().unwrap() {
                last = Some(state[0]);
            }
            assert_eq!(last, Some(12), "seed {seed}");
        }
        device.synchronize().unwrap();
        assert_ordered(&device);
        assert_eq!(device.memory().in_use, 0, "seed {seed}");
    }
}

/// A body may launch on a watched array: the state is queued behind the launch, as everywhere.
#[test]
fn a_body_changes_a_watched_array() {
    without_deadlock(|| {
        let device = Device::emulated(Emulation::new());
        let mut inside = numbers();
        drop(inside.gpu_mut_on(&device.stream()).unwrap());
        let live = inside.watch().unwrap();
        let (inside, on) = (Mutex::new(inside), device.new_stream().unwrap());
        let body = Kernel::<(InOut<u32>,)>::new("launches").host(move |_, (_,): (&mut [u32],)| {
            add().launch_on(&on, one(), (5, &mut *inside.lock().unwrap())).unwrap();
        });
        body.launch_on(&device.stream(), one(), (&mut numbers(),)).unwrap();
        assert_eq!(first(live.changed().unwrap()), Some(5));
        device.synchronize().unwrap();
        assert_ordered(&device);
    });
}

#[test]
fn states_are_counted_with_their_cause_and_nothing_else_is_copied() -> Result<()> {
    let device = Device::emulated(Emulation::new());
    let stream = device.stream();
    let mut array = numbers().named("field");
    drop(array.gpu_mut_on(&stream)?);
    let live = array.watch()?;
    let (outcome, report) = audit::capture(|| -> Result<()> {
        for _ in 0..3 {
            add().launch_on(&stream, one(), (1, &mut array))?;
            live.changed()?;
        }
        Ok(())
    });
    outcome?;
    let sites: Vec<_> =
        report.sites().iter().map(|site| (site.cause, site.flow.count, site.flow.bytes)).collect();
    assert_eq!(sites, [(Cause::Watch, 3, 96)]);
    assert_eq!(Cause::Watch.to_string(), "watch");
    drop(live);
    let (outcome, report) = audit::capture(|| add().launch_on(&stream, one(), (1, &mut array)));
    outcome?;
    assert!(report.sites().is_empty(), "nobody watches any more");
    Ok(())
}

/// The memory of states is used again: pinning some is rare.
#[test]
fn memory_of_states_is_used_again() -> Result<()> {
    let device = Device::emulated(Emulation::new());
    let mut array = numbers();
    let live = array.watch()?;
    let mut state = None;
    for _ in 0..50 {
        add().launch_on(&device.stream(), one(), (1, &mut array))?;
        state = live.changed()?;
    }
    assert_eq!(first(state), Some(50));
    let pinned = count_of(&device, CallKind::PageLock);
    assert!(pinned <= 3, "{pinned} buffers for 50 states");
    Ok(())
}

#[test]
fn a_watch_that_unwinds_is_dropped() -> Result<()> {
    let device = Device::emulated(Emulation::new());
    let mut array = numbers();
    let unwound = catch_unwind(AssertUnwindSafe(|| -> Result<()> {
        let _live = array.watch()?;
        add().launch_on(&device.stream(), one(), (1, &mut array))?;
        std::panic::resume_unwind(Box::new("leaves"))
    }));
    assert!(unwound.is_err());
    add().launch_on(&device.stream(), one(), (1, &mut array))?;
    assert_eq!(array.host()?[0], 2);
    Ok(())
}

#[test]
fn a_task_is_woken_by_changes_and_by_the_end() {
    without_deadlock(|| {
        let device = Device::emulated(Emulation::new());
        let mut array = numbers();
        let live = array.watch().unwrap();
        let looking = std::thread::spawn(move || {
            block_on(async {
                let mut last = 0;
                while let Some(state) = live.when_changed().await.unwrap() {
                    last = state[0];
                }
                last
            })
        });
        for _ in 0..100 {
            add().launch_on(&device.stream(), one(), (1, &mut array)).unwrap();
        }
        drop(array);
        assert_eq!(looking.join().unwrap(), 100);
    });
}

const LIMIT: Duration = Duration::from_secs(20);

/// Looks at the watch until it shows these contents.
fn assert_shows(live: &Watch<u32, Ix1>, expected: &[u32], what: &str) {
    let begun = Instant::now();
    loop {
        let seen = live.latest();
        if seen.as_ref().is_some_and(|state| state.as_slice() == Some(expected)) {
            return;
        }
        assert!(begun.elapsed() < LIMIT, "{what}: {seen:?} instead of {expected:?}");
        std::thread::yield_now();
    }
}

/// Asserts that a guard hides the state, also once the copies that a query has queued are over.
#[track_caller]
fn assert_hidden(live: &Watch<u32, Ix1>, device: &Device) {
    for _ in 0..3 {
        assert!(live.latest().is_none(), "a guard may still write");
        device.synchronize().expect("nothing fails");
    }
}

/// Waits with `changed` until the watch shows these contents.
fn assert_comes(live: &Watch<u32, Ix1>, expected: &[u32]) {
    while live.changed().unwrap().expect("the array lives").as_slice() != Some(expected) {}
}

#[test]
fn writes_on_the_host_are_changes() -> Result<()> {
    let mut array = numbers();
    let (live, other) = (array.watch()?, array.watch()?);
    let mut expected: Vec<u32> = (0..8).collect();
    let step = |live: &Watch<u32, Ix1>, changes: u64, expected: &[u32]| {
        let state = live.changed().unwrap().expect("the array lives");
        assert_eq!((state.change(), state.as_slice()), (changes, Some(expected)));
    };
    array.host_mut()?[0] = 9;
    expected[0] = 9;
    step(&live, 1, &expected);
    array.set(1, 8)?;
    expected[1] = 8;
    step(&live, 2, &expected);
    array.copy_from_slice(&[7; 8])?;
    expected.fill(7);
    step(&live, 3, &expected);
    array.slice_mut(s![..2]).assign(&SmartArray::from(vec![1_u32, 2]))?;
    expected[..2].copy_from_slice(&[1, 2]);
    step(&live, 4, &expected);
    add().call(one(), (1, &mut array))?;
    expected.iter_mut().for_each(|x| *x += 1);
    step(&live, 5, &expected);
    array.host_changed()?;
    step(&live, 6, &expected);
    assert_eq!(other.changed()?.map(|state| state.change()), Some(6), "it skips what was between");
    array.host_mut()?[7] = 100;
    expected[7] = 100;
    drop(array);
    step(&live, 7, &expected);
    assert!(live.changed()?.is_none());
    assert_eq!(first(other.changed()?), Some(2));
    Ok(())
}

const HIDDEN: &[(&str, Case)] = &[
    ("nothing is shown while a guard may write and the drop shows it", |device| {
        let mut array = numbers();
        let live = array.watch()?;
        {
            let (mut left, mut right) = array.multi_slice_mut((s![..4], s![4..]));
            let mut host = left.host_mut()?;
            host[0] = 50;
            add().launch_on(&device.stream(), one(), (1, &mut right))?;
            assert_hidden(&live, device);
            host[1] = 60;
        }
        assert_comes(&live, &[50, 60, 2, 3, 5, 6, 7, 8]);
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::scope(|threads| {
            let mut host = array.host_mut()?;
            let looking = threads.spawn(|| {
                sender.send(()).unwrap();
                assert_comes(&live, &[1; 8]);
            });
            receiver.recv().unwrap();
            host.fill(1);
            drop(host);
            looking.join().expect("the drop of the guard wakes it");
            Ok(())
        })
    }),
    ("nothing is shown while a guard on a device may write", |device| {
        let mut array = numbers();
        let live = array.watch()?;
        let (mut left, mut right) = array.multi_slice_mut((s![..2], s![2..]));
        let guard = left.gpu_mut_on(&device.stream())?;
        right.host_mut()?.fill(9);
        assert_hidden(&live, device);
        drop(guard);
        assert_comes(&live, &[0, 1, 9, 9, 9, 9, 9, 9]);
        Ok(())
    }),
    ("forgotten guards hide a part until its next use", |device| {
        let stream = device.stream();
        let mut array = numbers();
        let live = array.watch()?;
        let mut host = array.host_mut()?;
        host[0] = 30;
        std::mem::forget(host);
        assert!(live.latest().is_none());
        add().launch_on(&stream, one(), (1, &mut array))?;
        assert_comes(&live, &[31, 2, 3, 4, 5, 6, 7, 8]);
        array.host_mut()?.into_view_mut()[0] = 40;
        array.host_mut()?[1] = 0;
        assert_comes(&live, &[40, 0, 3, 4, 5, 6, 7, 8]);
        std::mem::forget(array.gpu_mut_on(&stream)?);
        drop(array.host()?);
        array.slice_mut(s![7..]).fill(9)?;
        assert_comes(&live, &[40, 0, 3, 4, 5, 6, 7, 9]);
        std::mem::forget(array.host_mut()?);
        drop(array);
        assert_eq!(first(live.changed()?), Some(40), "no guard outlives the array");
        Ok(())
    }),
    ("a download into pinned memory is a change", |device| {
        let _here = device.enter();
        let from = DeviceArray::from_host(&Array1::from_elem(8, 6_u32))?;
        let mut to = PinnedArray::<u32, _>::zeros(8)?;
        let live = to.watch()?;
        from.copy_to_pinned(&mut to)?;
        assert_comes(&live, &[6; 8]);
        Ok(())
    }),
];

/// A thread that writes again and again on the host is not kept waiting, and does not keep the
/// watch from showing states.
#[test]
fn a_busy_host_is_watched() {
    without_deadlock(|| {
        const LEN: usize = 1 << 20;
        let mut array = SmartArray::from(vec![0_u32; LEN]);
        let live = array.watch().unwrap();
        let looking = std::thread::spawn(move || {
            let (mut states, mut last) = (0, 0);
            while let Some(state) = live.changed().unwrap() {
                let value = state[0];
                assert!(state.iter().all(|x| *x == value), "a state is torn");
                assert!(value > last, "states come in order");
                (states, last) = (states + 1, value);
            }
            (states, last)
        });
        for round in 1..=60 {
            array.host_overwrite().unwrap().fill(round);
        }
        drop(array);
        let (states, last) = looking.join().expect("no state is torn");
        assert!(states > 1 && last == 60, "{states} states, the last {last}");
    });
}

/// The borrow of a host guard ends with its last use, also of a watched array.
#[test]
fn a_guard_that_drops_late_borrows_no_longer_than_it_is_used() -> Result<()> {
    let mut array = numbers();
    let live = array.watch()?;
    let mut host = array.host_mut()?;
    host[0] = 3;
    array.host_mut()?[1] = 4;
    assert_shows(&live, &[3, 4, 2, 3, 4, 5, 6, 7], "the later write");
    Ok(())
}

#[test]
fn the_last_state_of_an_array_that_is_given_back_is_shown() -> Result<()> {
    let mut array = numbers();
    let live = array.watch()?;
    array.host_mut()?.fill(5);
    assert_eq!(array.into_array()?.to_vec(), [5; 8]);
    assert_shows(&live, &[5; 8], "an array that is given back");
    Ok(())
}

/// One random write of a random part, on the array and on the reference.
fn random_write(
    random: &mut Random,
    devices: &[Device],
    array: &mut Numbers,
    expected: &mut [u32],
) -> Result<String> {
    let start = random.below(8);
    let end = start + 1 + random.below(8 - start);
    let (step, value) = (random.below(9), random.below(1000) as u32);
    let device = &devices[random.below(devices.len())];
    let (mut part, reference) = (array.slice_mut(s![start..end]), &mut expected[start..end]);
    let mut add_to_reference = || reference.iter_mut().for_each(|x| *x = x.wrapping_add(value));
    match step {
        0 | 1 => {
            part.host_mut()?.iter_mut().for_each(|x| *x = x.wrapping_add(value));
            add_to_reference();
        }
        2 | 3 => {
            let stream = device.new_stream()?;
            add().launch_on(&stream, one(), (value, &mut part))?;
            add_to_reference();
        }
        4 => {
            part.host_overwrite()?.fill(value);
            reference.fill(value);
        }
        5 => {
            part.fill(value)?;
            reference.fill(value);
        }
        6 => {
            let source = SmartArray::from(vec![value; end - start]);
            source.prefetch(&device.stream())?;
            part.assign(&source)?;
            reference.fill(value);
        }
        7 => {
            part.set(0, value)?;
            reference[0] = value;
        }
        _ => {
            std::mem::forget(part.host()?);
            part.prefetch(&device.stream())?;
        }
    }
    Ok(format!("step {step} on {start}..{end} with {value} ({device})"))
}

#[test]
fn random_programs_show_what_is_newest_after_each_step() {
    for seed in 1..60_u64 {
        without_deadlock(move || {
            let mut random = Random::new(seed);
            let devices = [(); 2].map(|()| Device::emulated(Emulation::new()));
            let mut expected: Vec<u32> = (0..8).collect();
            let mut array = numbers();
            array.fill(0).unwrap();
            expected.fill(0);
            let watches = [array.watch().unwrap(), array.watch().unwrap()];
            let mut is_changed = false;
            for _ in 0..25 {
                let before = expected.clone();
                let step = random_write(&mut random, &devices, &mut array, &mut expected);
                let step = step.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
                is_changed |= before != expected;
                if is_changed {
                    let live = &watches[random.below(2)];
                    assert_shows(live, &expected, &format!("seed {seed}, {step}"));
                }
            }
            let end = array.host().unwrap().to_vec();
            assert_eq!(end, expected);
            drop(array);
            for live in &watches {
                let mut last = live.latest().map(|state| state.to_vec());
                while let Some(state) = live.changed().unwrap() {
                    last = Some(state.to_vec());
                }
                assert_eq!(last.as_ref(), Some(&expected), "seed {seed}: the last state");
            }
            devices.iter().for_each(assert_ordered);
        });
    }
}
