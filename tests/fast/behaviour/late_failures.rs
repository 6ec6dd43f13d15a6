//! Work that fails after it was queued: which contents are lost, which are not, and which call
//! reports the failure.

use resident::AnyViewMut;
use resident::emulation::Outcome;
use support::bodies::{
    Gate, accumulate, add, assert_ordered, broken_output, broken_update, modes, one, plus,
};
use support::prelude::*;

type Numbers = SmartArray<u32, Ix1>;

/// A case has a name.
type Case = (&'static str, fn(&Place));

fn numbers(len: u32) -> Numbers {
    SmartArray::from((0..len).collect::<Vec<u32>>())
}

fn unwritten(len: usize) -> Numbers {
    SmartArray::uninit(len)
}

fn seen(array: &Numbers) -> Vec<u32> {
    array.host().unwrap().to_vec()
}

const BROKEN: &str = "kernel \"broken\"";

#[track_caller]
fn assert_lost<T>(outcome: Result<T>, operation: &str) {
    match outcome.map(|_| ()) {
        Err(Error::Lost { operation: seen, site, cause, .. }) => {
            assert!(seen.contains(operation), "{seen} is not {operation}");
            assert!(site.contains("late_failures.rs"), "{site}");
            assert!(!cause.is_empty());
        }
        other => panic!("{other:?} is not Lost"),
    }
}

#[track_caller]
fn assert_told<T>(outcome: Result<T>, text: &str) {
    match outcome.map(|_| ()) {
        Err(error @ Error::Backend { .. }) => {
            assert!(error.to_string().contains(text), "{error} does not name {text}");
        }
        other => panic!("{other:?} reports no failure"),
    }
}

/// A device with two streams, and a gate at which kernels wait that then panic.
struct Place {
    emulation: fn() -> Emulation,
    device: Device,
    stream: Stream,
    other: Stream,
    gate: Gate,
}

impl Place {
    /// Queues a kernel that was to change the array.
    #[track_caller]
    fn break_on(&self, stream: &Stream, array: &mut impl AnyViewMut<u32>) {
        broken_update(&self.gate).launch_on(stream, one(), (array,)).unwrap();
    }

    /// Queues a kernel that was to overwrite the array from another.
    #[track_caller]
    fn break_copy(&self, stream: &Stream, source: &Numbers, array: &mut Numbers) {
        broken_output(&self.gate).launch_on(stream, one(), (source, array)).unwrap();
    }

    /// Asserts that a synchronisation reports the failure of a kernel, and the next one none.
    #[track_caller]
    fn assert_told_once(&self) {
        assert_told(self.device.synchronize(), "it is broken");
        assert_eq!(self.device.synchronize(), Ok(()), "inherited failures are not reported");
    }
}

#[track_caller]
fn add_one(stream: &Stream, array: &mut Numbers) {
    add().launch_on(stream, one(), (1, array)).unwrap();
}

/// `target = source + k`.
#[track_caller]
fn plus_on(stream: &Stream, k: u32, source: &Numbers, target: &mut impl AnyViewMut<u32>) {
    plus().launch_on(stream, one(), (k, source, target)).unwrap();
}

fn places() -> [Place; 2] {
    modes().map(|emulation| {
        let device = Device::emulated(emulation());
        let (stream, other) = (device.stream(), device.new_stream().unwrap());
        Place { emulation, device, stream, other, gate: Gate::default() }
    })
}

fn run(cases: &[Case]) {
    run_cases(cases, |case| {
        for place in places() {
            case(&place);
            assert_ordered(&place.device);
        }
    });
}

/// It reads memory that nothing has written, which devices report.
#[test]
fn memory_taken_behind_an_unrelated_body_that_panics_is_good() {
    for it in places() {
        let (mut doomed, mut array) = (numbers(4), unwritten(8));
        it.break_on(&it.stream, &mut doomed);
        plus_on(&it.stream, 1, &numbers(4), &mut array.slice_mut(s![..4]));
        drop(array.slice_mut(s![4..]).gpu_overwrite_on(&it.stream).unwrap());
        it.gate.open();
        assert_eq!(array.slice(s![..4]).host().unwrap().to_vec(), [1, 2, 3, 4]);
        assert!(array.host().is_ok());
    }
}

#[test]
fn what_a_body_that_panics_was_to_write_is_lost_and_nothing_else() {
    run(LOST);
    run(GUARDS);
}

#[test]
fn failures_are_told_once_and_contents_heal() {
    run(TOLD);
    run(HEALED);
    run(SNAPSHOTS);
}

const LOST: &[Case] = &[
    ("a launch behind one that failed does not run, and loses its output to the same root", |it| {
        let (source, mut middle, mut last) = (numbers(8), unwritten(8), unwritten(8));
        it.break_copy(&it.stream, &source, &mut middle);
        plus_on(&it.other, 1, &middle, &mut last);
        it.gate.open();
        assert_lost(last.host(), BROKEN);
        assert_lost(middle.host(), BROKEN);
        assert_lost(middle.host(), BROKEN);
        let again = plus().launch_on(&it.other, one(), (1, &middle, &mut unwritten(8)));
        assert_lost(again, BROKEN);
        assert_lost(last.get(3), BROKEN);
        assert_lost(last.try_clone(), BROKEN);
        assert_eq!(seen(&source), (0..8).collect::<Vec<_>>());
        assert_told(it.stream.synchronize(), "it is broken");
        assert_eq!((it.stream.synchronize(), it.device.synchronize()), (Ok(()), Ok(())));
    }),
    ("a read of lost contents has the message of the panic", |it| {
        let mut array = numbers(4);
        it.gate.open();
        it.break_on(&it.stream, &mut array);
        let Err(Error::Lost { cause, .. }) = array.host().map(|_| ()) else { panic!("it is lost") };
        assert!(cause.contains("it is broken"), "{cause}");
    }),
    ("only the part that a body was to write is lost", |it| {
        let mut array = numbers(12);
        drop(array.gpu_mut_on(&it.stream).unwrap());
        it.break_on(&it.stream, &mut array.slice_mut(s![4..8]));
        it.gate.open();
        assert_eq!(array.slice(s![..4]).host().unwrap().to_vec(), [0, 1, 2, 3]);
        assert_eq!(array.slice(s![8..]).host().unwrap().to_vec(), [8, 9, 10, 11]);
        assert_lost(array.slice(s![4..8]).host(), BROKEN);
        assert_lost(array.host(), BROKEN);
        array.slice_mut(s![4..8]).fill(1).unwrap();
        assert_eq!(seen(&array), [0, 1, 2, 3, 1, 1, 1, 1, 8, 9, 10, 11]);
    }),
    ("what is valid on the host too is not lost", |it| {
        let mut array = numbers(8);
        drop(array.gpu_on(&it.stream).unwrap());
        it.break_on(&it.stream, &mut array.slice_mut(s![4..]));
        it.gate.open();
        assert_lost(array.host(), BROKEN);
        assert_eq!(array.slice(s![..4]).residency().host(), Valid);
        assert_eq!(array.slice(s![..4]).host().unwrap().to_vec(), [0, 1, 2, 3]);
    }),
    ("loss follows an assignment within a device and between devices", |it| {
        let two = Device::emulated((it.emulation)());
        let (mut lost, mut near, mut far) = (numbers(6), numbers(6), numbers(6));
        it.break_on(&it.stream, &mut lost.slice_mut(s![..3]));
        near.assign_on(&it.other, &lost).unwrap();
        far.assign_on(&two.stream(), &near).unwrap();
        it.gate.open();
        assert_lost(far.host(), BROKEN);
        assert_lost(near.slice(s![..3]).host(), BROKEN);
        // An assignment is one operation, which runs completely or not at all, so the whole
        // destination is lost. In the source, elements that the broken kernel did not write are
        // unchanged.
        assert_lost(near.slice(s![3..]).host(), BROKEN);
        assert_eq!(lost.slice(s![3..]).host().unwrap().to_vec(), [3, 4, 5]);
        assert_lost(near.assign(&lost), BROKEN);
        assert_eq!(two.synchronize(), Ok(()), "inherited failures are not reported");
        assert_told(it.device.synchronize(), "it is broken");
        assert_ordered(&two);
    }),
    ("repeated elements are lost together", |it| {
        let (mut source, mut table) = (numbers(4), SmartArray::<u32, _>::uninit((5, 4)));
        it.break_on(&it.stream, &mut source);
        table.assign_on(&it.stream, &source.broadcast((5, 4)).unwrap()).unwrap();
        it.gate.open();
        for row in table.axis_iter(Axis(0)) {
            assert_lost(row.host(), BROKEN);
        }
        table.assign(&numbers(4).broadcast((5, 4)).unwrap()).unwrap();
        assert_eq!(table.host().unwrap().sum(), 30);
        it.assert_told_once();
    }),
    ("what is lost leaves no memory behind", |it| {
        let (source, mut array, mut next) = (numbers(4), numbers(4), numbers(4));
        it.break_copy(&it.stream, &source, &mut array);
        accumulate().launch_on(&it.other, one(), (&array, &mut next)).unwrap();
        drop((source, array, next));
        it.gate.open();
        assert_told(it.device.synchronize(), "it is broken");
        assert_eq!(it.device.memory().in_use, 0);
    }),
    ("a copy to a pinned array of lost contents loses them there too", |it| {
        let _here = it.device.enter();
        let mut there = DeviceArray::from_host(&Array1::from_iter(0..4_u32)).unwrap();
        let mut pinned = PinnedArray::from_array(Array1::from_elem(4, 9_u32)).unwrap();
        it.break_on(&it.stream, &mut there);
        there.copy_to_pinned(&mut pinned).unwrap();
        it.gate.open();
        assert_lost(pinned.host(), BROKEN);
        pinned.host_overwrite().unwrap().fill(1);
        assert_eq!(pinned.host().unwrap().to_vec(), [1; 4]);
        it.assert_told_once();
    }),
];

const GUARDS: &[Case] = &[
    ("a write guard behind a body that panics inherits the loss", |it| {
        for stream in [&it.stream, &it.other] {
            let (mut array, gate) = (numbers(4), Gate::default());
            broken_update(&gate).launch_on(&it.stream, one(), (&mut array,)).unwrap();
            drop(array.gpu_mut_on(stream).unwrap());
            gate.open();
            assert_lost(array.host(), BROKEN);
        }
    }),
    ("a guard dropped behind an unrelated body that panics loses nothing", |it| {
        let (mut doomed, mut array, mut changed) = (numbers(4), numbers(4), numbers(4));
        array.prefetch(&it.stream).unwrap();
        changed.prefetch(&it.stream).unwrap();
        it.break_on(&it.stream, &mut doomed);
        drop(array.gpu_mut_on(&it.stream).unwrap());
        changed.gpu_changed_on(&it.stream).unwrap();
        it.gate.open();
        assert_eq!((seen(&array), seen(&changed)), (vec![0, 1, 2, 3], vec![0, 1, 2, 3]));
        assert_lost(doomed.host(), BROKEN);
    }),
];

const TOLD: &[Case] = &[
    ("a host function runs behind work that failed, and reports nothing", |it| {
        let mut array = numbers(4);
        it.gate.open();
        it.break_on(&it.stream, &mut array);
        let function = it.stream.launch_host_function(move || array.host().map(drop)).unwrap();
        assert_lost(function.wait().unwrap(), "kernel");
        assert_told(it.stream.synchronize(), "it is broken");
    }),
    ("a synchronisation returns each failure once, and other calls never", |it| {
        it.gate.open();
        let (stream, other) = (it.device.new_stream().unwrap(), &it.other);
        let unrelated = numbers(4);
        for stream in [&stream, other] {
            it.break_on(stream, &mut numbers(4));
        }
        unrelated.prefetch(&stream).unwrap();
        assert_eq!(seen(&unrelated), [0, 1, 2, 3]);
        assert!(unrelated.snapshot_on(&stream).unwrap().wait().is_ok());
        assert_eq!(it.stream.synchronize(), Ok(()));
        assert_told(it.device.synchronize(), "it is broken");
        it.assert_told_once();
        assert_eq!((stream.synchronize(), other.synchronize()), (Ok(()), Ok(())));
    }),
    ("an event reports what failed before it, and not what failed after", |it| {
        it.gate.open();
        let before = it.stream.record().unwrap();
        it.break_on(&it.stream, &mut numbers(4));
        let after = it.stream.record().unwrap();
        assert_eq!(before.synchronize(), Ok(()));
        assert_told(after.synchronize(), "it is broken");
        assert_eq!((after.synchronize(), it.stream.synchronize()), (Ok(()), Ok(())));
    }),
    ("a panic in a call on the host goes through and leaves the arrays usable", |it| {
        let mut array = numbers(4);
        it.gate.open();
        add_one(&it.stream, &mut array);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            broken_update(&it.gate).call(one(), (&mut array,))
        }));
        assert_eq!(panicked.unwrap_err().downcast_ref::<&str>(), Some(&"it is broken"));
        assert_eq!(seen(&array), [1, 2, 3, 4], "the body had written nothing");
        add_one(&it.stream, &mut array);
        assert_eq!(seen(&array), [2, 3, 4, 5]);
        assert_eq!(it.device.synchronize(), Ok(()));
    }),
    ("parts of one array can be assigned to each other on a device", |it| {
        let mut array = numbers(8);
        add_one(&it.stream, &mut array);
        let (mut low, high) = array.split_at_mut(Axis(0), 4);
        low.assign(&high).unwrap();
        assert_eq!(seen(&array), [5, 6, 7, 8, 5, 6, 7, 8]);
    }),
];

/// A way to overwrite an array with fives, on streams of a device.
type Heal = fn(&mut Numbers, &Place) -> Result<()>;

const WAYS_TO_HEAL: [Heal; 6] = [
    |array, _| array.host_overwrite().map(|mut host| host.fill(5)),
    |array, _| array.fill(5),
    |array, it| array.fill_on(&it.other, 5),
    |array, _| array.assign(&SmartArray::<u32, _>::full(4, 5)),
    |array, it| plus().launch_on(&it.other, one(), (5, &Numbers::zeros(4), array)),
    |array, it| {
        drop(array.gpu_overwrite_on(&it.other)?);
        plus().launch_on(&it.stream, one(), (5, &Numbers::zeros(4), array))
    },
];

const HEALED: &[Case] = &[
    ("overwriting accesses heal what was lost", |it| {
        it.gate.open();
        let source = numbers(4);
        for (number, heal) in WAYS_TO_HEAL.iter().enumerate() {
            let mut array = numbers(4);
            it.break_copy(&it.stream, &source, &mut array);
            assert_told(it.stream.synchronize(), "it is broken");
            assert_lost(array.host(), BROKEN);
            heal(&mut array, it).unwrap();
            assert_eq!(seen(&array), [5; 4], "way {number}");
            // When the array handles a new failure, the old failure has no effect again.
            it.break_copy(&it.other, &source, &mut unwritten(4));
            assert_told(it.other.synchronize(), "it is broken");
            assert_eq!(array.host_mut().unwrap().to_vec(), [5; 4], "way {number}");
            assert_eq!(array.get(2).unwrap(), 5);
        }
    }),
    ("healing before the failure is known heals as well", |it| {
        let mut array = numbers(4);
        it.break_on(&it.stream, &mut array);
        plus_on(&it.other, 9, &Numbers::zeros(4), &mut array);
        it.gate.open();
        assert_eq!(seen(&array), [9; 4]);
        assert_told(it.stream.synchronize(), "it is broken");
    }),
];

/// A snapshot of 64 bytes in pieces of 16, of which the second and the third fail.
fn snapshot_in_pieces(it: &Place) -> (Device, Numbers, Pending<Array1<u32>>) {
    let fault = |nth| Fault::nth(nth).of(CallKind::Download).late();
    let device = Device::emulated((it.emulation)().pieces(16).fail(fault(2)).fail(fault(3)));
    let mut array = numbers(16);
    add_one(&device.stream(), &mut array);
    let pending = array.snapshot_on(&device.stream()).unwrap();
    (device, array, pending)
}

const SNAPSHOTS: &[Case] = &[
    ("a pending snapshot of lost contents says so", |it| {
        let mut array = numbers(4);
        it.break_on(&it.stream, &mut array);
        let pending = array.snapshot_on(&it.stream).unwrap();
        it.gate.open();
        assert_lost(pending.wait(), BROKEN);
        assert_lost(array.snapshot_on(&it.stream), BROKEN);
    }),
    ("a snapshot that fails is reported once, by the wait for it", |it| {
        for is_awaited in [false, true] {
            let (device, array, pending) = snapshot_in_pieces(it);
            let outcome = if is_awaited { block_on(pending) } else { pending.wait() };
            assert_told(outcome, "snapshot of");
            assert_eq!(device.stream().synchronize(), Ok(()), "the wait has told");
            assert_eq!(device.synchronize(), Ok(()), "the wait has told");
            assert_eq!(array.snapshot_on(&device.stream()).unwrap().wait().unwrap()[15], 16);
            assert_eq!(array.host().unwrap().sum(), 136);
        }
    }),
    ("a snapshot that fails is reported by `synchronize` if nothing waits for it", |it| {
        let (device, array, pending) = snapshot_in_pieces(it);
        drop(pending);
        assert_told(device.synchronize(), "snapshot of");
        assert_told(device.synchronize(), "snapshot of");
        assert_eq!(device.synchronize(), Ok(()), "both pieces were told of");
        assert_eq!(array.host().unwrap().sum(), 136);
    }),
    ("a snapshot has no array after its failure was reported", |it| {
        let (device, array, pending) = snapshot_in_pieces(it);
        assert_told(device.synchronize(), "snapshot of");
        assert_told(pending.wait(), "snapshot of");
        assert_eq!(device.synchronize(), Ok(()), "the wait has told");
        assert_eq!(array.host().unwrap().sum(), 136);
    }),
    ("a copy to a pinned array that fails late loses what it was to write", |it| {
        let fault = Fault::nth(1).of(CallKind::Download).late();
        let device = Device::emulated((it.emulation)().fail(fault));
        let _here = device.enter();
        let there = DeviceArray::from_host(&Array1::from_iter(0..4_u32)).unwrap();
        let mut pinned = PinnedArray::from_array(Array1::from_elem(8, 9_u32)).unwrap();
        there.copy_to_pinned(&mut pinned.slice_mut(s![2..6])).unwrap();
        assert_lost(pinned.host(), "copy to");
        assert_eq!(pinned.slice(s![..2]).host().unwrap().to_vec(), [9; 2]);
        assert_told(device.synchronize(), "copy to");
        there.copy_to_pinned(&mut pinned.slice_mut(s![2..6])).unwrap();
        assert_eq!(pinned.host().unwrap().to_vec(), [9, 9, 0, 1, 2, 3, 9, 9]);
        assert_eq!(device.synchronize(), Ok(()), "reported once");
        assert_ordered(&device);
    }),
];

/// A program, and the kind of its calls of which the first fails when it runs.
struct Scenario {
    kind: CallKind,
    run: fn(&Device),
    /// How often a call of the kind is made when the first has failed.
    calls: Option<usize>,
}

impl Scenario {
    const fn of(kind: CallKind, run: fn(&Device)) -> Self {
        Self { kind, run, calls: None }
    }

    /// A device on which that call fails. The program is first run without a fault, to count the
    /// calls.
    fn failing(&self, emulation: fn() -> Emulation) -> Device {
        let counting = Device::emulated(emulation());
        (self.run)(&counting);
        let calls = counting.emulation().unwrap().calls();
        let call = calls.iter().find(|call| call.kind == self.kind);
        let number = call.unwrap_or_else(|| panic!("no {} in {calls:?}", self.kind)).number;
        Device::emulated(emulation().fail(Fault::nth(number).late()))
    }
}

#[test]
fn copies_and_fills_that_fail_late_are_made_again() {
    run_cases(SCENARIOS, |scenario| {
        for emulation in modes() {
            let device = scenario.failing(emulation);
            (scenario.run)(&device);
            assert_ordered(&device);
            let Some(count) = scenario.calls else { continue };
            let mut calls = device.emulation().unwrap().calls();
            calls.retain(|call| call.kind == scenario.kind);
            let outcomes: Vec<_> = calls.iter().map(|call| call.outcome).collect();
            assert_eq!((outcomes[0], outcomes[1]), (Outcome::Failed, Outcome::Accepted));
            assert_eq!(outcomes.len(), count);
        }
    });
}

const SCENARIOS: &[(&str, Scenario)] = &[
    (
        "an upload is repeated by the next use",
        Scenario { kind: CallKind::Upload, run: use_again_after_an_upload, calls: Some(2) },
    ),
    (
        "a read guard taken again finds good contents",
        Scenario::of(CallKind::Upload, |device| {
            let (array, elsewhere) = (numbers(4), Device::emulated(modes()[0]()));
            drop(array.gpu_on(&device.stream()).unwrap());
            let _told = device.synchronize();
            // An access on another device makes the array handle the failure.
            drop(array.gpu_on(&elsewhere.stream()).unwrap());
            drop(array.gpu_on(&device.stream()).unwrap());
            assert_eq!(array.residency().on(device), Valid);
        }),
    ),
    (
        "a download is reported by the read, and repeated by the next",
        Scenario::of(CallKind::Download, |device| {
            let mut array = numbers(4);
            add_one(&device.stream(), &mut array);
            let first = array.host().map(|host| host.to_vec());
            if first.is_err() {
                assert_told(first, "download");
                assert_eq!(array.residency().host(), Stale);
            }
            assert_eq!(seen(&array), [1, 2, 3, 4]);
            assert_eq!(device.synchronize(), Ok(()), "reported once, by the read");
        }),
    ),
    (
        "a prefetch to the host is repeated by `host`",
        Scenario::of(CallKind::Download, |device| {
            let mut array = numbers(4);
            add_one(&device.stream(), &mut array);
            array.prefetch_host().unwrap();
            assert_eq!(seen(&array), [1, 2, 3, 4]);
            array.host_overwrite().unwrap().fill(7);
            assert_eq!(seen(&array), [7; 4]);
            let _told = device.synchronize();
            assert_eq!(device.synchronize(), Ok(()), "reported once");
            assert_eq!(array.host_mut().unwrap().to_vec(), [7; 4]);
        }),
    ),
    (
        "overwriting the host behind a prefetch keeps what was written",
        Scenario::of(CallKind::Download, |device| {
            let mut array = numbers(4);
            add_one(&device.stream(), &mut array);
            array.prefetch_host().unwrap();
            array.host_overwrite().unwrap().fill(7);
            let _told = device.synchronize();
            assert_eq!((seen(&array), array.get(1)), (vec![7; 4], Ok(7)));
        }),
    ),
    (
        "a fill of a constant loses nothing",
        Scenario::of(CallKind::Fill, |device| {
            let (array, mut output) = (Numbers::full(4, 3), unwritten(4));
            array.prefetch(&device.stream()).unwrap();
            let _told = device.synchronize();
            plus_on(&device.stream(), 1, &array, &mut output);
            assert_eq!((seen(&output), seen(&array)), (vec![4; 4], vec![3; 4]));
        }),
    ),
    (
        "a copy between devices is repeated from its source",
        Scenario::of(CallKind::CopyBetween, |device| {
            for emulation in modes() {
                let (source, mut array) = (Device::emulated(emulation()), numbers(4));
                add_one(&source.stream(), &mut array);
                array.prefetch(&device.stream()).unwrap();
                let _told = device.synchronize();
                add_one(&device.stream(), &mut array);
                assert_eq!(seen(&array), [2, 3, 4, 5]);
                assert_ordered(&source);
            }
        }),
    ),
    (
        "only an element whose write fails is lost",
        Scenario::of(CallKind::Fill, |device| {
            let mut array = numbers(4);
            add_one(&device.stream(), &mut array);
            array.set(2, 40).unwrap();
            let _told = device.synchronize();
            assert_eq!(array.slice(s![..2]).host().unwrap().to_vec(), [1, 2]);
            assert_eq!(array.get(3).unwrap(), 4);
            let element = array.get(2);
            if element != Ok(40) {
                assert_lost(element, "set of");
            }
            array.set(2, 41).unwrap();
            assert_eq!(seen(&array), [1, 2, 41, 4]);
        }),
    ),
    (
        "a dropped write guard behind an upload never passes off rubbish as contents",
        Scenario::of(CallKind::Upload, |device| read_after_a_guard(device, false)),
    ),
    (
        "a forgotten write guard behind an upload never passes off rubbish as contents",
        Scenario::of(CallKind::Upload, |device| read_after_a_guard(device, true)),
    ),
];

fn use_again_after_an_upload(device: &Device) {
    let (array, mut output) = (numbers(4), unwritten(4));
    array.prefetch(&device.stream()).unwrap();
    let told = device.stream().synchronize();
    assert_eq!(seen(&array), [0, 1, 2, 3]);
    plus_on(&device.stream(), 1, &array, &mut output);
    assert_eq!(seen(&output), [1, 2, 3, 4]);
    if told.is_err() {
        assert_told(told, "upload");
    }
    assert_eq!(device.synchronize(), Ok(()), "reported once");
}

fn read_after_a_guard(device: &Device, forget: bool) {
    let mut array = numbers(4);
    let guard = array.gpu_mut_on(&device.stream()).unwrap();
    if forget {
        std::mem::forget(guard);
    } else {
        drop(guard);
    }
    let read = array.host().map(|host| host.to_vec());
    if read != Ok(vec![0, 1, 2, 3]) {
        assert_lost(read, "upload of");
    }
}

#[test]
fn a_launch_behind_an_upload_that_fails_loses_its_output_and_not_its_input() {
    let scenario = Scenario::of(CallKind::Upload, |device| {
        let (array, mut output) = (numbers(4), unwritten(4));
        plus_on(&device.stream(), 1, &array, &mut output);
        let read = output.host().map(|host| host.to_vec());
        if !matches!(read, Ok(ref values) if *values == [1, 2, 3, 4]) {
            assert_lost(read, "upload of");
        }
        assert_eq!(seen(&array), [0, 1, 2, 3]);
        plus_on(&device.stream(), 1, &array, &mut output);
        assert_eq!(seen(&output), [1, 2, 3, 4]);
    });
    let device = scenario.failing(modes()[0]);
    (scenario.run)(&device);
    assert_told(device.synchronize(), "upload");
}
