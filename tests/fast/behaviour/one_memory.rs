//! Devices that reach the host's ordinary memory (`RESIDENT_COHERENT=1`): arrays have one memory.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use support::bodies::{Gate, accumulate, add, broken_update, one, plus};
use support::flags::gated;
use support::prelude::*;

const COHERENT: [(&str, &str); 1] = [("RESIDENT_COHERENT", "1")];
const LEN: usize = 1000;

fn numbers() -> Array1<u32> {
    (0..LEN as u32).collect()
}

fn device() -> Device {
    Device::emulated(Emulation::new())
}

/// An array whose memory is the device's too.
fn shared(device: &Device) -> Result<SmartArray<u32, Ix1>> {
    let array = SmartArray::from(numbers());
    array.prefetch(&device.stream())?;
    assert_eq!(validity(&array.residency(), device), [Valid; 2]);
    assert_eq!(moves(array.traffic()), NOTHING);
    Ok(array)
}

#[test]
fn nothing_is_copied_and_the_audit_counts_what_was_avoided() -> Result<()> {
    own_process!(COHERENT);
    let (device, contents) = (Device::cpu(), numbers());
    let start = contents.as_ptr();
    let mut array = SmartArray::from(contents);
    let stream = device.stream();
    let (outcome, report) = audit::capture(|| {
        for _ in 0..3 {
            add().launch_on(&stream, one(), (5, &mut array))?;
            assert_eq!(array.gpu_on(&stream)?.address(), start.addr() as u64);
            array.host_mut()?[0] += 1;
        }
        Ok(())
    });
    outcome?;
    let traffic = report.traffic();
    assert_eq!(moves(traffic), NOTHING, "{report}");
    // A launcher copies the array in and out.
    assert_eq!((traffic.avoided.count, traffic.avoided.bytes), (6, 6 * 4 * LEN as u64), "{report}");
    assert_eq!((device.memory().in_use, device.memory().pinned), (0, 0));
    let array = array.into_array()?;
    assert_eq!(array.as_ptr(), start, "the same allocation");
    assert_eq!(array[0], 18);
    assert_eq!(array.slice(s![1..]), (numbers() + 15).slice(s![1..]));
    Ok(())
}

#[test]
fn embedded_devices_copy_unless_they_are_asked() -> Result<()> {
    own_process!([("RESIDENT_COHERENT", "0")]);
    let array = SmartArray::from(numbers());
    array.prefetch(&device().stream())?;
    assert_eq!(array.traffic().to_device.bytes, 4 * LEN as u64);
    Ok(())
}

#[test]
fn a_word_that_is_no_switch_is_refused() {
    own_process!([("RESIDENT_COHERENT", "often")]);
    let refused = SmartArray::from(numbers()).prefetch(&device().stream());
    let said = refused.expect_err("it is unknown").to_string();
    assert!(said.contains("RESIDENT_COHERENT=often: expected 1, true, yes or on"), "{said}");
}

#[test]
fn the_host_and_work_wait_for_each_other() -> Result<()> {
    own_process!(COHERENT);
    for seed in 0..20 {
        let device = Device::emulated(Emulation::new().seed(seed));
        let (stream, other) = (device.stream(), device.new_stream()?);
        let (mut array, mut sums) = (shared(&device)?, shared(&device)?);
        add().launch_on(&stream, one(), (1, &mut array))?;
        accumulate().launch_on(&other, one(), (&array, &mut sums))?;
        assert_eq!(*array.host()?, numbers() + 1);
        array.host_mut()?.fill(0);
        add().launch_on(&stream, one(), (2, &mut array))?;
        array.fill(7)?;
        accumulate().launch_on(&other, one(), (&array, &mut sums))?;
        assert_eq!(*sums.host()?, numbers() * 2 + 8);
        assert!(array.into_array()?.iter().all(|value| *value == 7));
        support::watched::assert_no_hazard(&[device]);
    }
    Ok(())
}

/// The memory that is allocated for a write of the device is not new any more.
#[test]
fn constants_are_written_over_what_a_device_wrote() -> Result<()> {
    own_process!(COHERENT);
    let (device, ones) = (device(), SmartArray::<u32, _>::full(LEN, 1));
    let mut array = SmartArray::<u32, Ix1>::uninit(LEN);
    plus().launch_on(&device.stream(), one(), (4, &ones, &mut array))?;
    assert_eq!(array.residency().host(), Valid);
    array.slice_mut(s![..500]).fill(0)?;
    assert_eq!(array.host()?.sum(), 500 * 5);
    array.fill(0)?;
    assert_eq!(array.host()?.sum(), 0);
    assert_eq!(array.gpu_on(&device.stream())?.shape(), [LEN]);
    assert_eq!(moves(array.traffic()), NOTHING);
    Ok(())
}

#[test]
fn what_leaves_and_pins_memory_does_nothing_or_comes_before() -> Result<()> {
    own_process!(COHERENT);
    let device = device();
    let _here = device.enter();
    let mut array = shared(&device)?;
    let address = array.gpu()?.address();
    array.page_lock()?;
    array.release_on(&device)?;
    array.release_host()?;
    array.prefetch_host()?;
    assert_eq!(validity(&array.residency(), &device), [Valid; 2]);
    assert_eq!((array.gpu()?.address(), device.memory().pinned), (address, 0));
    assert_eq!(array.snapshot_on(&device.stream())?.wait()?, numbers());
    assert_eq!(moves(array.traffic()), NOTHING);
    // Memory that is pinned, or that an owner has, is uploaded.
    let mut pinned = SmartArray::from(numbers());
    pinned.page_lock()?;
    add().launch(one(), (1, &mut pinned))?;
    assert_eq!(validity(&pinned.residency(), &device), [Stale, Valid]);
    let table: Arc<[u32]> = numbers().iter().copied().collect();
    let mut owned = SmartArray::from_owner(Arc::clone(&table));
    add().launch(one(), (1, &mut owned))?;
    assert_eq!(*owned.host()?, numbers() + 1);
    assert_eq!(table[5], 5, "an owner's memory is never written");
    Ok(())
}

/// Explicit arrays stay in the device's memory.
#[test]
fn device_arrays_have_memory_of_the_device() -> Result<()> {
    own_process!(COHERENT);
    let device = device();
    let bytes = 4 * LEN as u64;
    let there = DeviceArray::from_host_on(&device.stream(), &numbers())?;
    assert_eq!(device.memory().in_use, bytes);
    let mut moved = shared(&device)?;
    add().launch_on(&device.stream(), one(), (1, &mut moved))?;
    let moved = moved.into_device(&device)?;
    assert_eq!(device.memory().in_use, 2 * bytes);
    assert_eq!(moved.copy_to_host()?, there.copy_to_host()? + 1);
    let back = SmartArray::from_device(moved);
    assert_eq!(*back.host()?, numbers() + 1);
    assert_eq!(back.residency().on(&device), Valid);
    Ok(())
}

/// One device has the host's memory, others have copies.
#[test]
fn other_devices_have_copies() -> Result<()> {
    own_process!(COHERENT);
    let (first, second) = (device(), device());
    let mut array = shared(&first)?;
    add().launch_on(&second.stream(), one(), (1, &mut array))?;
    let bytes = 4 * LEN as u64;
    assert_eq!(moves(array.traffic()), [(1, bytes), (0, 0), (0, 0)]);
    assert_eq!(validity(&array.residency(), &first), [Stale; 2]);
    add().launch_on(&first.stream(), one(), (1, &mut array.slice_mut(s![..10])))?;
    assert_eq!(moves(array.traffic()), [(1, bytes), (1, 40), (0, 0)]);
    let mut expected = numbers() + 1;
    expected.slice_mut(s![..10]).mapv_inplace(|value| value + 1);
    assert_eq!(*array.host()?, expected);
    second.set_memory_limit(Some(0))?;
    array.release_on(&second)?;
    assert_eq!(second.memory().in_use, 0);
    first.set_memory_limit(Some(0))?;
    let large = SmartArray::<u8, _>::zeros(1 << 20);
    large.prefetch(&first.stream())?;
    assert_eq!(large.residency().on(&first), Valid, "it takes no memory of the device");
    support::watched::assert_no_hazard(&[first, second]);
    Ok(())
}

/// An array whose first use is of a part, while the host has another part.
#[test]
fn guards_of_other_parts_stay_what_they_are() -> Result<()> {
    own_process!(COHERENT);
    let (device, mut array) = (device(), SmartArray::from(numbers()));
    let (mut left, right) = array.view_mut().split_at(Axis(0), 500);
    let seen = right.host()?;
    add().launch_on(&device.stream(), one(), (1, &mut left))?;
    assert_eq!(*seen, numbers().slice(s![500..]));
    assert_eq!(*left.host()?, numbers().slice(s![..500]).mapv(|value| value + 1));
    drop(seen);
    assert_eq!(moves(array.traffic()), NOTHING);
    Ok(())
}

#[test]
fn arrays_are_dropped_and_taken_back_in_flight() -> Result<()> {
    own_process!(COHERENT);
    let (device, gate) = (device(), Gate::default());
    let stream = device.new_stream()?;
    let (mut sums, mut kept) = (shared(&device)?, shared(&device)?);
    gated(&gate).launch_on(&stream, one(), (&mut sums,))?;
    for _ in 0..5 {
        let mut array = SmartArray::from(numbers());
        add().launch_on(&stream, one(), (1, &mut array))?;
        accumulate().launch_on(&stream, one(), (&array, &mut sums))?;
        accumulate().launch_on(&stream, one(), (&array, &mut kept))?;
    }
    let opens = thread::spawn(move || gate.open());
    let kept = kept.into_array()?;
    opens.join().expect("no panic");
    assert_eq!(kept, numbers() * 6 + 5);
    assert_eq!(*sums.host()?, sums_of(&numbers()));
    support::watched::assert_no_hazard(&[device]);
    Ok(())
}

/// What the gated kernel and five others leave in `sums`.
fn sums_of(start: &Array1<u32>) -> Array1<u32> {
    let first = start.mapv(|value| value + 1);
    first + (start + 1) * 5
}

#[test]
fn a_failed_kernel_loses_what_it_should_have_written() -> Result<()> {
    own_process!(COHERENT);
    let (device, gate) = (device(), Gate::default());
    let mut array = shared(&device)?;
    gate.open();
    let mut half = array.slice_mut(s![..500]);
    broken_update(&gate).launch_on(&device.stream(), one(), (&mut half,))?;
    assert!(device.synchronize().is_err());
    assert!(matches!(array.host(), Err(Error::Lost { .. })));
    assert_eq!(*array.slice(s![500..]).host()?, numbers().slice(s![500..]));
    array.fill(3)?;
    assert!(array.into_array()?.iter().all(|value| *value == 3));
    Ok(())
}

/// A watch shows no state that a guard of the host is about to change.
#[test]
fn watches_show_whole_states() -> Result<()> {
    own_process!(COHERENT);
    let device = device();
    let mut array = SmartArray::from(numbers());
    let live = array.watch()?;
    let is_whole = |state: &[u32]| state.iter().zip(state[0]..).all(|(one, other)| *one == other);
    for _ in 0..5 {
        add().launch_on(&device.stream(), one(), (1, &mut array))?;
        assert!(is_whole(&live.changed()?.expect("it lives").to_vec()));
        let mut guard = array.host_mut()?;
        guard.slice_mut(s![..500]).mapv_inplace(|value| value + 1);
        thread::sleep(Duration::from_millis(2));
        assert!(live.latest().is_none_or(|state| is_whole(&state.to_vec())));
        guard.slice_mut(s![500..]).mapv_inplace(|value| value + 1);
    }
    assert_eq!(moves(array.traffic())[0], (0, 0));
    drop(array);
    Ok(())
}

/// Threads that first use parts on several devices at once.
#[test]
fn threads_use_parts_on_several_devices() -> Result<()> {
    own_process!(COHERENT);
    for _ in 0..30 {
        let devices = [(); 3].map(|()| device());
        let mut array = SmartArray::from(numbers());
        let mut parts = Vec::new();
        let mut rest = array.view_mut();
        for _ in 0..6 {
            let (part, others) = rest.split_at(Axis(0), 100);
            parts.push(part);
            rest = others;
        }
        thread::scope(|scope| {
            for (index, mut part) in parts.into_iter().enumerate() {
                let device = &devices[index % 3];
                scope.spawn(move || -> Result<()> {
                    for _ in 0..4 {
                        add().launch_on(&device.new_stream()?, one(), (1, &mut part))?;
                        part.host_mut()?.mapv_inplace(|value| value + 1);
                        part.prefetch(&device.stream())?;
                    }
                    Ok(())
                });
            }
            assert_eq!(*rest.host().expect("it is here"), numbers().slice(s![600..]));
        });
        let mut expected = numbers();
        expected.slice_mut(s![..600]).mapv_inplace(|value| value + 8);
        assert_eq!(*array.host()?, expected);
        support::watched::assert_no_hazard(&devices);
        assert_eq!(array.into_array()?, expected);
    }
    Ok(())
}
