//! The defects of Numba's `SmartArray`, on which this library is modelled. Each test describes one
//! defect, and shows that this library does not have it.

// These tests forget every kind of guard, including guards that do nothing when they drop.
#![allow(clippy::forget_non_drop)]

use std::sync::mpsc;

use resident::ndarray::Array0;
use support::prelude::*;

fn sum_on(device: &Device, array: &SmartArray<i32, Ix1>) -> Result<i32> {
    let sum =
        Kernel::<(In<i32>, Out<i32>)>::new("sum").host(|_grid, (xs, out)| out[0] = xs.iter().sum());
    let mut total = SmartArray::<i32, _>::uninit(1);
    sum.launch_on(&device.stream(), Grid::cover(array.len()), (array, &mut total))?;
    total.get(0)
}

/// Numba created an array "on the GPU" by only allocating memory, so its contents were garbage.
#[test]
fn s1_an_array_made_from_an_object_has_the_objects_contents_on_the_device() -> Result<()> {
    assert_eq!(sum_on(&lab(), &SmartArray::from(vec![1, 2, 3, 4, 5]))?, 15);
    Ok(())
}

/// Numba's `__setitem__` wrote the host's copy, and the device's copy stayed marked as valid.
#[test]
fn s2_setting_an_item_is_seen_on_the_device() -> Result<()> {
    let device = lab();
    let mut array = SmartArray::from(vec![1, 2, 3, 4, 5]);
    assert_eq!(sum_on(&device, &array)?, 15);
    array.set(0, 11)?;
    array.host_mut()?[1] = 12;
    assert_eq!(sum_on(&device, &array)?, 11 + 12 + 12);
    Ok(())
}

/// Numba forwarded `sum`, `max` and `tolist` to a stale host copy, and returned 3 instead of 15.
#[test]
fn s3_methods_of_the_host_array_see_what_the_device_wrote() -> Result<()> {
    let number = Kernel::<(Out<i32>,)>::new("number")
        .host(|_grid, (xs,)| xs.iter_mut().zip(1..).for_each(|(x, number)| *x = number));
    let mut array = SmartArray::from(vec![1, 1, 1, 0, 0]);
    number.launch_on(&lab().stream(), Grid::cover(5), (&mut array,))?;
    assert_eq!(
        (array.host()?.sum(), array.host()?.iter().max(), array.host()?.to_vec()),
        (15, Some(&5), vec![1, 2, 3, 4, 5])
    );
    Ok(())
}

/// After `mark_changed` for a side without a copy, the array was valid nowhere, and Numba then
/// uploaded `None`.
#[test]
fn s4_declaring_a_side_changed_that_was_never_there_is_refused() -> Result<()> {
    let device = lab();
    let mut on_host = SmartArray::from(vec![1; 5]);
    assert!(matches!(on_host.gpu_changed_on(&device.stream()), Err(Error::LostUpdate { .. })));
    assert_eq!(on_host.host()?.sum(), 5);
    let mut on_device = SmartArray::<i32, _>::uninit(5);
    on_device.fill_on(&device.stream(), 2)?;
    assert!(matches!(on_device.host_changed(), Err(Error::LostUpdate { .. })));
    assert_eq!(sum_on(&device, &on_device)?, 10);
    Ok(())
}

/// If the host was marked as changed after a device had written, Numba silently discarded the
/// device's result.
#[test]
fn s5_a_devices_result_is_not_dropped_by_declaring_the_host_changed() -> Result<()> {
    let device = lab();
    let mut array = SmartArray::from(vec![1; 5]);
    array.fill_on(&device.stream(), 3)?;
    drop(array.gpu_mut_on(&device.stream())?);
    assert!(matches!(array.host_changed(), Err(Error::LostUpdate { .. })));
    assert_eq!((array.residency().on(&device), array.host()?.sum()), (Valid, 15));
    Ok(())
}

/// Numba's slices had their own state over shared memory, so a write through a slice on the device
/// never reached the parent.
#[test]
fn s6_a_slice_written_on_the_device_reaches_its_parent() -> Result<()> {
    let device = lab();
    let fill = Kernel::<(i32, Out<i32>)>::new("fill").host(|_grid, (value, xs)| xs.fill(value));
    let mut array = SmartArray::from(vec![1; 5]);
    assert_eq!(sum_on(&device, &array)?, 5);
    fill.launch_on(&device.stream(), Grid::cover(2), (10, &mut array.slice_mut(s![1..3])))?;
    assert_eq!((sum_on(&device, &array)?, array.host()?.to_vec()), (23, vec![1, 10, 10, 1, 1]));
    Ok(())
}

/// Numba guessed from Python's reference count whether the other side was in use, and copied if so.
#[test]
fn s7_whether_others_hold_the_array_changes_nothing_about_what_moves() -> Result<()> {
    let device = lab();
    let mut array = SmartArray::from(vec![1; 5]);
    std::mem::forget(array.gpu_on(&device.stream())?);
    std::mem::forget(array.host()?);
    array.host_changed()?;
    assert_eq!(moves(array.traffic()), [(1, 20), (0, 0), (0, 0)], "no upload yet");
    Ok(())
}

/// Numba downloaded an array just to determine the type of a kernel's argument.
#[test]
fn s8_binding_an_argument_and_checking_it_brings_nothing_down() -> Result<()> {
    let device = lab();
    let touch = Kernel::<(InOut<i32>,)>::new("touch")
        .require("it has elements", |_, (xs,)| xs.len() == 5)
        .host(|_grid, (_,)| {});
    let mut array = SmartArray::from(vec![1; 5]);
    for _ in 0..3 {
        touch.launch_on(&device.stream(), Grid::cover(5), (&mut array,))?;
    }
    assert_eq!(moves(array.traffic()), [(1, 20), (0, 0), (0, 0)]);
    Ok(())
}

/// Numba had no access modes: an argument that a kernel only read was marked as changed.
#[test]
fn s9_an_argument_that_is_only_read_stays_valid_on_the_host() -> Result<()> {
    let array = SmartArray::from(vec![1; 5]);
    sum_on(&lab(), &array)?;
    assert_eq!(array.residency().host(), Valid);
    assert_eq!((array.host()?.sum(), moves(array.traffic())), (5, [(1, 20), (0, 0), (0, 0)]));
    Ok(())
}

/// Numba had no streams: everything blocked on stream 0.
#[test]
fn s10_launches_return_at_once_and_streams_do_not_block_each_other() -> Result<()> {
    let device = lab();
    let (permit, permits) = mpsc::channel::<()>();
    let permits = std::sync::Mutex::new(permits);
    let blocked = Kernel::<(InOut<i32>,)>::new("blocked").host(move |_grid, (_,)| {
        permits.lock().expect("one body").recv().expect("a permit");
    });
    let (stream, mut array) = (device.new_stream()?, SmartArray::from(vec![1; 5]));
    blocked.launch_on(&stream, Grid::cover(5), (&mut array,))?;
    assert_eq!(sum_on(&device, &SmartArray::from(vec![2; 5]))?, 10, "it returns meanwhile");
    assert!(!stream.is_idle()?);
    permit.send(()).expect("the body listens");
    stream.synchronize()
}

/// Numba returned a writable host array and relied on a later `mark_changed`.
#[test]
fn s11_writing_on_the_host_needs_no_word_from_the_user() -> Result<()> {
    let device = lab();
    let mut array = SmartArray::from(vec![1; 5]);
    assert_eq!(sum_on(&device, &array)?, 5);
    array.host_mut()?.fill(4);
    assert_eq!(sum_on(&device, &array)?, 20);
    Ok(())
}

/// Numba always copied the whole array.
#[test]
fn s12_only_what_is_stale_moves() -> Result<()> {
    let device = lab();
    let mut array = SmartArray::from(Array2::<u8>::ones((100, 100)));
    drop(array.gpu_on(&device.stream())?);
    array.slice_mut(s![10..20, 30..35]).host_mut()?.fill(2);
    drop(array.gpu_on(&device.stream())?);
    assert_eq!(moves(array.traffic()), [(2, 10_000 + 50), (0, 0), (0, 0)]);
    Ok(())
}

/// Numba supported neither several devices nor threads: an array had one copy, on the current
/// device.
#[test]
fn s13_each_device_has_a_copy_of_its_own_and_threads_choose_their_devices() -> Result<()> {
    let devices = [lab(), lab()];
    let mut array = SmartArray::from(vec![1; 5]);
    std::thread::scope(|scope| {
        for device in &devices {
            let array = &array;
            scope.spawn(move || {
                let _here = device.enter();
                assert_eq!(array.gpu().map(|guard| guard.device()).as_ref(), Ok(device));
            });
        }
    });
    drop(array.gpu_mut_on(&devices[0].stream())?);
    assert_eq!(
        (array.residency().on(&devices[0]), array.residency().on(&devices[1])),
        (Valid, Stale)
    );
    assert_eq!(sum_on(&devices[1], &array)?, 5);
    Ok(())
}

/// Numba printed a warning at each construction.
#[test]
fn s14_making_an_array_says_and_does_nothing() {
    let ((), report) = audit::capture(|| drop(SmartArray::<f32, _>::zeros((3, 4))));
    assert_eq!(moves(report.traffic()), NOTHING);
    assert!(report.sites().is_empty());
}

/// Numba could not make an array without dimensions, or an array from a shape.
#[test]
fn s15_arrays_without_dimensions_and_arrays_from_a_shape_can_be_made() -> Result<()> {
    let device = lab();
    for mut one in [SmartArray::<f32, _>::zeros(()), SmartArray::from(Array0::from_elem((), 0.0))] {
        drop(one.gpu_mut_on(&device.stream())?);
        assert_eq!(one.host()?[()], 0.0);
    }
    assert_eq!(SmartArray::<f32, _>::full((2, 3), 1.5).host()?.sum(), 9.0);
    let mut scratch = SmartArray::<f32, _>::uninit((2, 3));
    scratch.host_overwrite()?.fill(1.0);
    assert_eq!(scratch.host()?.sum(), 6.0);
    Ok(())
}
