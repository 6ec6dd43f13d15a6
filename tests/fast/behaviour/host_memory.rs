//! Pinned arrays and lent arrays while calls of the device are refused or fail late, and inside
//! kernel bodies.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use support::bodies::{Gate, add, one};
use support::flags::gated;
use support::prelude::*;
use support::watched::assert_no_hazard;

fn numbers() -> Array1<u32> {
    Array1::from_iter(0..1000)
}

/// Adds 1 to a lent array on a device, and changes a part on the host.
fn add_to_lent(device: &Device, array: &mut Array1<u32>) -> Result<()> {
    let _here = device.enter();
    with_pinned(array, |pinned| {
        add().launch_on(&device.stream(), one(), (1, &mut *pinned))?;
        pinned.slice_mut(s![..10]).host_mut()?.fill(7);
        add().launch_on(&device.new_stream()?, one(), (1, &mut *pinned))
    })
}

/// The array after none, one, two or all three of the changes.
fn after(changes: usize) -> Array1<u32> {
    let mut array = numbers();
    if changes > 0 {
        array += 1;
    }
    if changes > 1 {
        array.slice_mut(s![..10]).fill(7);
    }
    if changes > 2 {
        array += 1;
    }
    array
}

/// Runs a program without a fault, and once for each of its calls, which is refused or fails late.
fn under_each_fault(program: impl Fn(&Device, Option<Fault>)) {
    for seed in [None, Some(1), Some(2)] {
        let emulation =
            || seed.map_or(Emulation::new(), |seed| Emulation::new().seed(seed)).poison(true);
        let counting = Device::emulated(emulation());
        program(&counting, None);
        let calls = counting.emulation().expect("emulated").calls().len() as u64;
        for fault in (1..=calls).flat_map(|call| [Fault::nth(call), Fault::nth(call).late()]) {
            let device = Device::emulated(emulation().fail(fault));
            program(&device, Some(fault));
            let _reported = device.synchronize();
            assert_eq!((device.memory().pinned, device.memory().in_use), (0, 0), "{fault:?}");
        }
    }
}

#[test]
fn a_loan_ends_whatever_call_is_refused_or_fails() {
    under_each_fault(|device, fault| {
        let mut array = numbers();
        let outcome = add_to_lent(device, &mut array);
        assert!(outcome.is_ok() || fault.is_some(), "{outcome:?}");
        if outcome.is_ok() {
            assert_eq!(array, after(3), "{fault:?}");
        }
    });
}

#[test]
fn lost_elements_of_a_lent_array_are_reported_and_the_others_come_back() {
    let device = Device::emulated(Emulation::new());
    let _here = device.enter();
    let broken = Kernel::<(InOut<u32>,)>::new("broken").host(|_grid, _| panic!("on purpose"));
    let mut array = numbers();
    let outcome = with_pinned(&mut array, |pinned| {
        add().launch(one(), (1, &mut *pinned))?;
        broken.launch(one(), (&mut pinned.slice_mut(s![..10]),))
    });
    let Err(Error::Lost { operation, .. }) = &outcome else { panic!("{outcome:?}") };
    assert!(operation.contains("broken"), "{operation}");
    assert_eq!(array.slice(s![10..]), after(1).slice(s![10..]), "what is not lost came back");
}

#[test]
fn a_refused_allocation_leaves_nothing_behind() {
    let device = Device::emulated(Emulation::new().fail(Fault::nth(1)));
    let _here = device.enter();
    let refused = PinnedArray::<u32, _>::zeros(10).map(drop);
    let Err(Error::Backend { cause, .. }) = &refused else { panic!("{refused:?}") };
    assert!(cause.contains("injected"), "{cause}");
    assert_eq!(device.memory().pinned, 0);
    let again = PinnedArray::<u32, _>::zeros(10).expect("the fault is over");
    let calls = device.emulation().expect("emulated").calls();
    assert!(calls.iter().all(|call| call.kind == CallKind::AllocatePinned), "{calls:?}");
    assert_eq!(device.memory().pinned, 40);
    drop(again);
    assert_eq!(device.memory().pinned, 0);
}

#[test]
fn page_locked_arrays_count_as_pinned() -> Result<()> {
    let device = Device::emulated(Emulation::new());
    let _here = device.enter();
    let array = SmartArray::from(vec![1_u8; 5000]);
    array.page_lock()?;
    array.page_lock()?;
    assert_eq!(device.memory().pinned, 5000);
    drop(array.into_array()?);
    assert_eq!(device.memory().pinned, 0);
    Ok(())
}

/// The end of a loan would have to wait inside the body.
#[test]
fn nothing_is_lent_inside_a_kernel_body() -> Result<()> {
    let device = Device::emulated(Emulation::new());
    let seen = Arc::new(Mutex::new(None));
    let (slot, inner) = (Arc::clone(&seen), device.clone());
    let kernel = Kernel::<(InOut<u32>,)>::new("lends").host(move |_grid, _| {
        let _here = inner.enter();
        let outcome = with_pinned(&mut Array1::<u32>::zeros(5), |pinned| pinned.fill(1));
        *slot.lock().expect("not poisoned") = Some(outcome);
    });
    let mut array = SmartArray::<u32, _>::zeros(1);
    kernel.launch_on(&device.stream(), Grid::cover(1), (&mut array,))?;
    device.synchronize()?;
    let outcome = seen.lock().expect("not poisoned").take();
    assert!(matches!(outcome, Some(Err(Error::InsideKernel { .. }))), "{outcome:?}");
    Ok(())
}

/// A pinned array is dropped while its upload is in flight: the work keeps the memory.
#[test]
fn a_pinned_array_is_dropped_in_flight() -> Result<()> {
    for seed in 0..10 {
        let device = Device::emulated(Emulation::new().seed(seed));
        let _here = device.enter();
        let array = PinnedArray::from_array(numbers())?;
        array.prefetch(&device.new_stream()?)?;
        let mut copy = SmartArray::<u32, _>::uninit(1000);
        copy.assign_on(&device.stream(), &array)?;
        drop(array);
        assert_eq!(*copy.host()?, numbers());
        device.synchronize()?;
        assert_eq!(device.memory().pinned, 0);
    }
    Ok(())
}

/// What a failed kernel should have written is lost until the host overwrites it. The memory is not
/// evicted meanwhile.
#[test]
fn a_failed_kernel_loses_mapped_elements_until_they_are_overwritten() -> Result<()> {
    let device = Device::emulated(Emulation::new().memory(10_000));
    let _here = device.enter();
    let broken = Kernel::<(InOut<u32>,)>::new("broken").host(|_grid, _| panic!("on purpose"));
    let mut array = MappedArray::from_array(numbers())?;
    broken.launch(one(), (&mut array,))?;
    let lost = array.host().map(drop);
    let Err(Error::Lost { operation, .. }) = &lost else { panic!("{lost:?}") };
    assert!(operation.contains("broken"), "{operation}");
    let full = SmartArray::<u8, _>::zeros(20_000);
    assert!(full.gpu().is_err(), "there is nothing to evict");
    array.host_overwrite()?.assign(&numbers());
    add().launch(one(), (1, &mut array))?;
    assert_eq!(*array.host()?, after(1));
    Ok(())
}

/// The host waits for the calls of mapped arrays under every fault, and no value is wrong.
#[test]
fn mapped_arrays_stay_right_whatever_call_is_refused_or_fails() {
    let uses = |device: &Device| -> Result<Array1<u32>> {
        let _here = device.enter();
        let mut array = MappedArray::from_array(numbers())?;
        add().launch_on(&device.new_stream()?, one(), (1, &mut array))?;
        array.host_mut()?.slice_mut(s![..10]).fill(7);
        add().launch_on(&device.stream(), one(), (1, &mut array))?;
        let seen = array.host()?.to_owned();
        assert_eq!(array.copy_to_host()?, seen);
        Ok(seen)
    };
    under_each_fault(|device, fault| match uses(device) {
        Ok(seen) => assert_eq!(seen, after(3), "{fault:?}"),
        Err(error) => assert!(fault.is_some(), "{error}"),
    });
}

/// One device reads lent memory late, `Device::cpu()` then writes it, and another device when the
/// loan ends: after the first, since it waits for `Device::cpu()`, which has no race check.
#[test]
fn a_loan_that_three_devices_use_one_after_the_other_has_no_hazard() -> Result<()> {
    let (reader, writer, gate) = (lab(), lab(), Gate::default());
    let between = Device::cpu().stream();
    let overwrite = Kernel::<(Out<u32>,)>::new("overwrite").host(|_, (x,)| x.fill(7));
    let mut busy = SmartArray::<u32, _>::zeros(8);
    gated(&gate).launch_on(&reader.stream(), one(), (&mut busy,))?;
    let mut read = DeviceArray::<u32, _>::zeros_on(&reader.stream(), 1000)?;
    let mut lent = numbers();
    let _here = Device::cpu().enter();
    let opening = with_pinned(&mut lent, |pinned| {
        read.copy_from_pinned(&pinned.view())?;
        add().launch_on(&between, one(), (1, &mut *pinned))?;
        pinned.prefetch_host_on(&between)?;
        overwrite.launch_on(&writer.stream(), one(), (&mut *pinned,))?;
        // The end of the loan queues the last copy, and waits for all of this.
        Ok(thread::spawn(move || {
            thread::sleep(Duration::from_millis(50));
            gate.open();
        }))
    })?;
    opening.join().expect("it opens the gate");
    assert_eq!((lent, read.copy_to_host()?), (Array1::from_elem(1000, 7), numbers()));
    assert_no_hazard(&[reader, writer]);
    Ok(())
}
