//! Work that fails after it was queued: which contents are lost, which are not, and which call
//! reports the failure.

use resident::emulation::{CallKind, Outcome};
use resident::ndarray::{Array1, Axis, Ix1, s};
use resident::{
    Device, DeviceArray, Emulation, Error, Fault, Pending, PinnedArray, Result, SmartArray,
    Validity,
};
use support::block_on::block_on;
use support::bodies::{
    Gate, accumulate, add, assert_ordered, broken_output, broken_update, modes, one, plus,
};

fn numbers(len: u32) -> SmartArray<u32, Ix1> {
    SmartArray::from((0..len).collect::<Vec<u32>>())
}

/// A device on which the first work of `kind` in `scenario` fails when it runs. The scenario is
/// first run without a fault, to count the calls.
fn failing_first(
    kind: CallKind,
    emulation: fn() -> Emulation,
    scenario: impl Fn(&Device),
) -> Device {
    let counting = Device::emulated(emulation());
    scenario(&counting);
    let calls = counting.emulation().unwrap().calls();
    let call = calls
        .iter()
        .find(|call| call.kind == kind)
        .unwrap_or_else(|| panic!("no {kind} in {calls:?}"));
    Device::emulated(emulation().fail(Fault::nth(call.number).late()))
}

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

#[test]
fn a_launch_behind_a_body_that_panics_does_not_run_and_loses_its_output_to_the_same_root() {
    for emulation in modes() {
        let (device, gate) = (Device::emulated(emulation()), Gate::default());
        let (stream, other) = (device.stream(), device.new_stream().unwrap());
        let (source, mut middle, mut last) =
            (numbers(8), SmartArray::<u32, _>::uninit(8), SmartArray::<u32, _>::uninit(8));
        broken_output(&gate).launch_on(&stream, one(), (&source, &mut middle)).unwrap();
        plus().launch_on(&other, one(), (1, &middle, &mut last)).unwrap();
        gate.open();
        assert_lost(last.host(), "kernel \"broken\"");
        assert_lost(middle.host(), "kernel \"broken\"");
        assert_lost(middle.host(), "kernel \"broken\"");
        assert_lost(
            plus().launch_on(&other, one(), (1, &middle, &mut SmartArray::<u32, _>::uninit(8))),
            "kernel \"broken\"",
        );
        assert_lost(last.get(3), "kernel \"broken\"");
        assert_lost(last.try_clone(), "kernel \"broken\"");
        assert_eq!(source.host().unwrap().to_vec(), (0..8).collect::<Vec<_>>());
        assert_told(stream.synchronize(), "it is broken");
        assert_ordered(&device);
    }
}

#[test]
fn a_read_of_lost_contents_reports_the_panic_message() {
    let (device, gate) = (Device::emulated(modes()[0]()), Gate::default());
    let mut array = numbers(4);
    gate.open();
    broken_update(&gate).launch_on(&device.stream(), one(), (&mut array,)).unwrap();
    let Err(Error::Lost { cause, .. }) = array.host().map(|_| ()) else { panic!("it is lost") };
    assert!(cause.contains("it is broken"), "{cause}");
}

#[test]
fn a_host_function_runs_behind_work_that_failed_and_reports_nothing() {
    for emulation in modes() {
        let (device, gate) = (Device::emulated(emulation()), Gate::default());
        let (stream, mut array) = (device.stream(), numbers(4));
        gate.open();
        broken_update(&gate).launch_on(&stream, one(), (&mut array,)).unwrap();
        let function = stream.launch_host_function(move || array.host().map(drop)).unwrap();
        assert_lost(function.wait().unwrap(), "kernel");
        assert_told(stream.synchronize(), "it is broken");
    }
}

/// A way to overwrite an array.
type Heal<'a> = &'a dyn Fn(&mut SmartArray<u32, Ix1>) -> Result<()>;

#[test]
fn overwriting_accesses_heal_what_was_lost() {
    for emulation in modes() {
        let (device, gate) = (Device::emulated(emulation()), Gate::default());
        gate.open();
        let (stream, other) = (device.stream(), device.new_stream().unwrap());
        let source = numbers(4);
        let heal: [Heal<'_>; 6] = [
            &|array| array.host_overwrite().map(|mut host| host.fill(5)),
            &|array| array.fill(5),
            &|array| array.fill_on(&other, 5),
            &|array| array.assign(&SmartArray::<u32, _>::full(4, 5)),
            &|array| plus().launch_on(&other, one(), (5, &SmartArray::<u32, _>::zeros(4), array)),
            &|array| {
                array.gpu_overwrite_on(&other).map(drop).and_then(|()| {
                    plus().launch_on(&stream, one(), (5, &SmartArray::<u32, _>::zeros(4), array))
                })
            },
        ];
        for (number, heal) in heal.iter().enumerate() {
            let mut array = numbers(4);
            broken_output(&gate).launch_on(&stream, one(), (&source, &mut array)).unwrap();
            assert_told(stream.synchronize(), "it is broken");
            assert_lost(array.host(), "kernel \"broken\"");
            heal(&mut array).unwrap();
            assert_eq!(array.host().unwrap().to_vec(), [5; 4], "way {number}");
            // When the array handles a new failure, the old failure has no effect again.
            broken_output(&gate)
                .launch_on(&other, one(), (&source, &mut SmartArray::<u32, _>::uninit(4)))
                .unwrap();
            assert_told(other.synchronize(), "it is broken");
            assert_eq!(array.host_mut().unwrap().to_vec(), [5; 4], "way {number}");
            assert_eq!(array.get(2).unwrap(), 5);
        }
        assert_ordered(&device);
    }
}

#[test]
fn healing_before_the_failure_is_known_heals_as_well() {
    for emulation in modes() {
        let (device, gate) = (Device::emulated(emulation()), Gate::default());
        let (stream, other) = (device.stream(), device.new_stream().unwrap());
        let (zeros, mut array) = (SmartArray::<u32, _>::zeros(4), numbers(4));
        broken_update(&gate).launch_on(&stream, one(), (&mut array,)).unwrap();
        plus().launch_on(&other, one(), (9, &zeros, &mut array)).unwrap();
        gate.open();
        assert_eq!(array.host().unwrap().to_vec(), [9; 4]);
        assert_told(stream.synchronize(), "it is broken");
        assert_ordered(&device);
    }
}

#[test]
fn only_the_part_that_a_body_was_to_write_is_lost() {
    for emulation in modes() {
        let (device, gate) = (Device::emulated(emulation()), Gate::default());
        let mut array = numbers(12);
        drop(array.gpu_mut_on(&device.stream()).unwrap());
        broken_update(&gate)
            .launch_on(&device.stream(), one(), (&mut array.slice_mut(s![4..8]),))
            .unwrap();
        gate.open();
        assert_eq!(array.slice(s![..4]).host().unwrap().to_vec(), [0, 1, 2, 3]);
        assert_eq!(array.slice(s![8..]).host().unwrap().to_vec(), [8, 9, 10, 11]);
        assert_lost(array.slice(s![4..8]).host(), "kernel \"broken\"");
        assert_lost(array.host(), "kernel \"broken\"");
        array.slice_mut(s![4..8]).fill(1).unwrap();
        assert_eq!(array.host().unwrap().to_vec(), [0, 1, 2, 3, 1, 1, 1, 1, 8, 9, 10, 11]);
        assert_ordered(&device);
    }
}

#[test]
fn loss_follows_an_assignment_within_a_device_and_between_devices() {
    for emulation in modes() {
        let (gate, one_device, two) =
            (Gate::default(), Device::emulated(emulation()), Device::emulated(emulation()));
        let (mut lost, mut near, mut far) = (numbers(6), numbers(6), numbers(6));
        broken_update(&gate)
            .launch_on(&one_device.stream(), one(), (&mut lost.slice_mut(s![..3]),))
            .unwrap();
        near.assign_on(&one_device.new_stream().unwrap(), &lost).unwrap();
        far.assign_on(&two.stream(), &near).unwrap();
        gate.open();
        assert_lost(far.host(), "kernel \"broken\"");
        assert_lost(near.slice(s![..3]).host(), "kernel \"broken\"");
        // An assignment is one operation, which runs completely or not at all, so the whole
        // destination is lost. In the source, elements that the broken kernel did not write are
        // unchanged.
        assert_lost(near.slice(s![3..]).host(), "kernel \"broken\"");
        assert_eq!(lost.slice(s![3..]).host().unwrap().to_vec(), [3, 4, 5]);
        assert_lost(near.assign(&lost), "kernel \"broken\"");
        assert_eq!(two.synchronize(), Ok(()), "inherited failures are not reported");
        assert_told(one_device.synchronize(), "it is broken");
        [&one_device, &two].into_iter().for_each(assert_ordered);
    }
}

#[test]
fn an_upload_that_fails_late_is_repeated_by_the_next_use() {
    let scenario = |device: &Device| {
        let (array, mut output) = (numbers(4), SmartArray::<u32, _>::uninit(4));
        array.prefetch(&device.stream()).unwrap();
        let told = device.stream().synchronize();
        assert_eq!(array.host().unwrap().to_vec(), [0, 1, 2, 3]);
        plus().launch_on(&device.stream(), one(), (1, &array, &mut output)).unwrap();
        assert_eq!(output.host().unwrap().to_vec(), [1, 2, 3, 4]);
        if told.is_err() {
            assert_told(told, "upload");
        }
        assert_eq!(device.synchronize(), Ok(()), "reported once");
        assert_ordered(device);
    };
    for emulation in modes() {
        let device = failing_first(CallKind::Upload, emulation, scenario);
        scenario(&device);
        let uploads = device
            .emulation()
            .unwrap()
            .calls()
            .into_iter()
            .filter(|call| call.kind == CallKind::Upload);
        assert_eq!(
            uploads.map(|call| call.outcome).collect::<Vec<_>>(),
            [Outcome::Failed, Outcome::Accepted]
        );
    }
}

#[test]
fn a_read_guard_taken_again_after_a_late_failure_finds_good_contents() {
    let scenario = |device: &Device| {
        let (array, elsewhere) = (numbers(4), Device::emulated(modes()[0]()));
        drop(array.gpu_on(&device.stream()).unwrap());
        let _told = device.synchronize();
        // An access on another device makes the array handle the failure.
        drop(array.gpu_on(&elsewhere.stream()).unwrap());
        drop(array.gpu_on(&device.stream()).unwrap());
        assert_eq!(array.residency().on(device), Validity::Valid);
    };
    for emulation in modes() {
        let device = failing_first(CallKind::Upload, emulation, scenario);
        scenario(&device);
    }
}

#[test]
fn a_launch_behind_an_upload_that_fails_loses_its_output_and_not_its_input() {
    let scenario = |device: &Device| {
        let (array, mut output) = (numbers(4), SmartArray::<u32, _>::uninit(4));
        plus().launch_on(&device.stream(), one(), (1, &array, &mut output)).unwrap();
        let read = output.host().map(|host| host.to_vec());
        if !matches!(read, Ok(ref values) if *values == [1, 2, 3, 4]) {
            assert_lost(read, "upload of");
        }
        assert_eq!(array.host().unwrap().to_vec(), [0, 1, 2, 3]);
        plus().launch_on(&device.stream(), one(), (1, &array, &mut output)).unwrap();
        assert_eq!(output.host().unwrap().to_vec(), [1, 2, 3, 4]);
    };
    let device = failing_first(CallKind::Upload, modes()[0], scenario);
    scenario(&device);
    assert_told(device.synchronize(), "upload");
}

#[test]
fn a_download_that_fails_late_is_reported_by_the_read_and_repeated_by_the_next() {
    let scenario = |device: &Device| {
        let mut array = numbers(4);
        add().launch_on(&device.stream(), one(), (1, &mut array)).unwrap();
        let first = array.host().map(|host| host.to_vec());
        if first.is_err() {
            assert_told(first, "download");
        }
        assert_eq!(array.host().unwrap().to_vec(), [1, 2, 3, 4]);
        assert_eq!(device.synchronize(), Ok(()), "reported once, by the read");
    };
    for emulation in modes() {
        scenario(&failing_first(CallKind::Download, emulation, scenario));
    }
}

#[test]
fn a_prefetch_to_the_host_that_fails_late_is_repeated_by_host() {
    let scenario = |device: &Device| {
        let mut array = numbers(4);
        add().launch_on(&device.stream(), one(), (1, &mut array)).unwrap();
        array.prefetch_host().unwrap();
        assert_eq!(array.host().unwrap().to_vec(), [1, 2, 3, 4]);
        array.host_overwrite().unwrap().fill(7);
        assert_eq!(array.host().unwrap().to_vec(), [7; 4]);
        let _told = device.synchronize();
        assert_eq!(device.synchronize(), Ok(()), "reported once");
        assert_eq!(array.host_mut().unwrap().to_vec(), [7; 4]);
        assert_ordered(device);
    };
    for emulation in modes() {
        scenario(&failing_first(CallKind::Download, emulation, scenario));
    }
}

#[test]
fn overwriting_the_host_behind_a_prefetch_that_fails_keeps_what_was_written() {
    let scenario = |device: &Device| {
        let mut array = numbers(4);
        add().launch_on(&device.stream(), one(), (1, &mut array)).unwrap();
        array.prefetch_host().unwrap();
        array.host_overwrite().unwrap().fill(7);
        let _told = device.synchronize();
        assert_eq!(array.host().unwrap().to_vec(), [7; 4]);
        assert_eq!(array.get(1).unwrap(), 7);
    };
    for emulation in modes() {
        scenario(&failing_first(CallKind::Download, emulation, scenario));
    }
}

#[test]
fn a_fill_of_a_constant_that_fails_late_loses_nothing() {
    let scenario = |device: &Device| {
        let (array, mut output) =
            (SmartArray::<u32, _>::full(4, 3), SmartArray::<u32, _>::uninit(4));
        array.prefetch(&device.stream()).unwrap();
        let _told = device.synchronize();
        plus().launch_on(&device.stream(), one(), (1, &array, &mut output)).unwrap();
        assert_eq!(output.host().unwrap().to_vec(), [4; 4]);
        assert_eq!(array.host().unwrap().to_vec(), [3; 4]);
    };
    for emulation in modes() {
        scenario(&failing_first(CallKind::Fill, emulation, scenario));
    }
}

#[test]
fn a_copy_between_devices_that_fails_late_is_repeated_from_its_source() {
    for emulation in modes() {
        let source = Device::emulated(emulation());
        let scenario = |device: &Device| {
            let mut array = numbers(4);
            add().launch_on(&source.stream(), one(), (1, &mut array)).unwrap();
            array.prefetch(&device.stream()).unwrap();
            let _told = device.synchronize();
            add().launch_on(&device.stream(), one(), (1, &mut array)).unwrap();
            assert_eq!(array.host().unwrap().to_vec(), [2, 3, 4, 5]);
        };
        scenario(&failing_first(CallKind::CopyBetween, emulation, scenario));
        assert_ordered(&source);
    }
}

#[test]
fn only_an_element_whose_write_fails_late_is_lost() {
    let scenario = |device: &Device| {
        let mut array = numbers(4);
        add().launch_on(&device.stream(), one(), (1, &mut array)).unwrap();
        array.set(2, 40).unwrap();
        let _told = device.synchronize();
        assert_eq!(array.slice(s![..2]).host().unwrap().to_vec(), [1, 2]);
        assert_eq!(array.get(3).unwrap(), 4);
        let element = array.get(2);
        if element != Ok(40) {
            assert_lost(element, "set of");
        }
        array.set(2, 41).unwrap();
        assert_eq!(array.host().unwrap().to_vec(), [1, 2, 41, 4]);
    };
    for emulation in modes() {
        scenario(&failing_first(CallKind::Fill, emulation, scenario));
    }
}

#[test]
fn a_write_guard_behind_an_upload_that_fails_never_passes_off_rubbish_as_contents() {
    for forget in [false, true] {
        let scenario = |device: &Device| {
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
        };
        for emulation in modes() {
            scenario(&failing_first(CallKind::Upload, emulation, scenario));
        }
    }
}

#[test]
fn a_write_guard_behind_a_body_that_panics_inherits_the_loss() {
    for emulation in modes() {
        for elsewhere in [false, true] {
            let (device, gate) = (Device::emulated(emulation()), Gate::default());
            let (stream, other) = (device.stream(), device.new_stream().unwrap());
            let mut array = numbers(4);
            broken_update(&gate).launch_on(&stream, one(), (&mut array,)).unwrap();
            drop(array.gpu_mut_on(if elsewhere { &other } else { &stream }).unwrap());
            gate.open();
            assert_lost(array.host(), "kernel \"broken\"");
        }
    }
}

#[test]
fn a_guard_dropped_behind_an_unrelated_body_that_panics_loses_nothing() {
    for emulation in modes() {
        let (device, gate) = (Device::emulated(emulation()), Gate::default());
        let (mut doomed, mut array, mut changed) = (numbers(4), numbers(4), numbers(4));
        array.prefetch(&device.stream()).unwrap();
        changed.prefetch(&device.stream()).unwrap();
        broken_update(&gate).launch_on(&device.stream(), one(), (&mut doomed,)).unwrap();
        drop(array.gpu_mut_on(&device.stream()).unwrap());
        changed.gpu_changed_on(&device.stream()).unwrap();
        gate.open();
        assert_eq!(array.host().unwrap().to_vec(), [0, 1, 2, 3]);
        assert_eq!(changed.host().unwrap().to_vec(), [0, 1, 2, 3]);
        assert_lost(doomed.host(), "kernel \"broken\"");
        assert_ordered(&device);
    }
}

#[test]
fn memory_taken_behind_an_unrelated_body_that_panics_is_good() {
    for emulation in modes() {
        let (device, gate) = (Device::emulated(emulation()), Gate::default());
        let (mut doomed, mut array) = (numbers(4), SmartArray::<u32, _>::uninit(8));
        broken_update(&gate).launch_on(&device.stream(), one(), (&mut doomed,)).unwrap();
        plus()
            .launch_on(&device.stream(), one(), (1, &numbers(4), &mut array.slice_mut(s![..4])))
            .unwrap();
        drop(array.slice_mut(s![4..]).gpu_overwrite_on(&device.stream()).unwrap());
        gate.open();
        assert_eq!(array.slice(s![..4]).host().unwrap().to_vec(), [1, 2, 3, 4]);
        assert!(array.host().is_ok());
    }
}

#[test]
fn a_synchronize_returns_each_failure_once_and_other_calls_never() {
    for emulation in modes() {
        let (device, gate) = (Device::emulated(emulation()), Gate::default());
        gate.open();
        let (stream, other) = (device.new_stream().unwrap(), device.new_stream().unwrap());
        let unrelated = numbers(4);
        for stream in [&stream, &other] {
            broken_update(&gate).launch_on(stream, one(), (&mut numbers(4),)).unwrap();
        }
        unrelated.prefetch(&stream).unwrap();
        assert_eq!(unrelated.host().unwrap().to_vec(), [0, 1, 2, 3]);
        assert!(unrelated.snapshot_on(&stream).unwrap().wait().is_ok());
        assert_eq!(device.stream().synchronize(), Ok(()));
        assert_told(device.synchronize(), "it is broken");
        assert_told(device.synchronize(), "it is broken");
        assert_eq!(device.synchronize(), Ok(()));
        assert_eq!((stream.synchronize(), other.synchronize()), (Ok(()), Ok(())));
    }
}

#[test]
fn an_event_reports_what_failed_before_it_and_not_what_failed_after() {
    for emulation in modes() {
        let (device, gate) = (Device::emulated(emulation()), Gate::default());
        gate.open();
        let stream = device.stream();
        let before = stream.record().unwrap();
        broken_update(&gate).launch_on(&stream, one(), (&mut numbers(4),)).unwrap();
        let after = stream.record().unwrap();
        assert_eq!(before.synchronize(), Ok(()));
        assert_told(after.synchronize(), "it is broken");
        assert_eq!((after.synchronize(), stream.synchronize()), (Ok(()), Ok(())));
    }
}

#[test]
fn a_pending_snapshot_of_lost_contents_says_so() {
    for emulation in modes() {
        let (device, gate) = (Device::emulated(emulation()), Gate::default());
        let mut array = numbers(4);
        broken_update(&gate).launch_on(&device.stream(), one(), (&mut array,)).unwrap();
        let pending = array.snapshot_on(&device.stream()).unwrap();
        gate.open();
        assert_lost(pending.wait(), "kernel \"broken\"");
        assert_lost(array.snapshot_on(&device.stream()), "kernel \"broken\"");
    }
}

/// A snapshot of 64 bytes in pieces of 16, of which the second and the third fail.
fn snapshot_in_pieces(
    emulation: fn() -> Emulation,
) -> (Device, SmartArray<u32, Ix1>, Pending<Array1<u32>>) {
    let fault = |nth| Fault::nth(nth).of(CallKind::Download).late();
    let device = Device::emulated(emulation().pieces(16).fail(fault(2)).fail(fault(3)));
    let mut array = numbers(16);
    add().launch_on(&device.stream(), one(), (1, &mut array)).unwrap();
    let pending = array.snapshot_on(&device.stream()).unwrap();
    (device, array, pending)
}

#[test]
fn a_snapshot_that_fails_is_reported_once_by_the_wait_for_it() {
    for emulation in modes() {
        for is_awaited in [false, true] {
            let (device, array, pending) = snapshot_in_pieces(emulation);
            let outcome = if is_awaited { block_on(pending) } else { pending.wait() };
            assert_told(outcome, "snapshot of");
            assert_eq!(device.stream().synchronize(), Ok(()), "the wait has told");
            assert_eq!(device.synchronize(), Ok(()), "the wait has told");
            assert_eq!(array.snapshot_on(&device.stream()).unwrap().wait().unwrap()[15], 16);
            assert_eq!(array.host().unwrap().sum(), 136);
        }
    }
}

#[test]
fn a_snapshot_that_fails_is_reported_by_synchronize_if_nothing_waits_for_it() {
    for emulation in modes() {
        let (device, array, pending) = snapshot_in_pieces(emulation);
        drop(pending);
        assert_told(device.synchronize(), "snapshot of");
        assert_told(device.synchronize(), "snapshot of");
        assert_eq!(device.synchronize(), Ok(()), "both pieces were told of");
        assert_eq!(array.host().unwrap().sum(), 136);
    }
}

#[test]
fn a_snapshot_has_no_array_after_its_failure_was_reported() {
    for emulation in modes() {
        let (device, array, pending) = snapshot_in_pieces(emulation);
        assert_told(device.synchronize(), "snapshot of");
        assert_told(pending.wait(), "snapshot of");
        assert_eq!(device.synchronize(), Ok(()), "the wait has told");
        assert_eq!(array.host().unwrap().sum(), 136);
    }
}

#[test]
fn a_copy_to_a_pinned_array_that_fails_late_loses_what_it_was_to_write() {
    for emulation in modes() {
        let fault = Fault::nth(1).of(CallKind::Download).late();
        let device = Device::emulated(emulation().fail(fault));
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
    }
}

#[test]
fn a_copy_to_a_pinned_array_of_lost_contents_loses_them_there_too() {
    for emulation in modes() {
        let (device, gate) = (Device::emulated(emulation()), Gate::default());
        let _here = device.enter();
        let mut there = DeviceArray::from_host(&Array1::from_iter(0..4_u32)).unwrap();
        let mut pinned = PinnedArray::from_array(Array1::from_elem(4, 9_u32)).unwrap();
        broken_update(&gate).launch(one(), (&mut there,)).unwrap();
        there.copy_to_pinned(&mut pinned).unwrap();
        gate.open();
        assert_lost(pinned.host(), "kernel \"broken\"");
        pinned.host_overwrite().unwrap().fill(1);
        assert_eq!(pinned.host().unwrap().to_vec(), [1; 4]);
        assert_told(device.synchronize(), "it is broken");
        assert_eq!(device.synchronize(), Ok(()), "inherited failures are not reported");
        assert_ordered(&device);
    }
}

#[test]
fn repeated_elements_are_lost_together() {
    for emulation in modes() {
        let (device, gate) = (Device::emulated(emulation()), Gate::default());
        let (mut source, mut table) = (numbers(4), SmartArray::<u32, _>::uninit((5, 4)));
        broken_update(&gate).launch_on(&device.stream(), one(), (&mut source,)).unwrap();
        table.assign_on(&device.stream(), &source.broadcast((5, 4)).unwrap()).unwrap();
        gate.open();
        for row in table.axis_iter(Axis(0)) {
            assert_lost(row.host(), "kernel \"broken\"");
        }
        table.assign(&numbers(4).broadcast((5, 4)).unwrap()).unwrap();
        assert_eq!(table.host().unwrap().sum(), 30);
        assert_told(device.synchronize(), "it is broken");
        assert_eq!(device.synchronize(), Ok(()), "inherited failures are not reported");
        assert_ordered(&device);
    }
}

#[test]
fn what_is_lost_leaves_no_memory_behind() {
    for emulation in modes() {
        let (device, gate) = (Device::emulated(emulation()), Gate::default());
        let (source, mut array, mut next) = (numbers(4), numbers(4), numbers(4));
        broken_output(&gate).launch_on(&device.stream(), one(), (&source, &mut array)).unwrap();
        accumulate().launch_on(&device.new_stream().unwrap(), one(), (&array, &mut next)).unwrap();
        drop((source, array, next));
        gate.open();
        assert_told(device.synchronize(), "it is broken");
        assert_eq!(device.memory().in_use, 0);
        assert_ordered(&device);
    }
}

#[test]
fn parts_of_one_array_can_be_assigned_to_each_other_on_a_device() {
    for emulation in modes() {
        let device = Device::emulated(emulation());
        let mut array = numbers(8);
        add().launch_on(&device.stream(), one(), (1, &mut array)).unwrap();
        let (mut low, high) = array.split_at_mut(Axis(0), 4);
        low.assign(&high).unwrap();
        assert_eq!(array.host().unwrap().to_vec(), [5, 6, 7, 8, 5, 6, 7, 8]);
        assert_ordered(&device);
    }
}

#[test]
fn a_panic_in_a_call_on_the_host_goes_through_and_leaves_the_arrays_usable() {
    let (mut array, device, gate) = (numbers(4), Device::emulated(modes()[0]()), Gate::default());
    gate.open();
    add().launch_on(&device.stream(), one(), (1, &mut array)).unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        broken_update(&gate).call(one(), (&mut array,))
    }));
    assert_eq!(panicked.unwrap_err().downcast_ref::<&str>(), Some(&"it is broken"));
    assert_eq!(array.host().unwrap().to_vec(), [1, 2, 3, 4], "the body had written nothing");
    add().launch_on(&device.stream(), one(), (1, &mut array)).unwrap();
    assert_eq!(array.host().unwrap().to_vec(), [2, 3, 4, 5]);
    assert_eq!(device.synchronize(), Ok(()));
}
