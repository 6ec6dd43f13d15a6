//! Memory that the host and a device both access: managed arrays, coherent arrays in mapped and
//! managed memory, and arrays of the program that are mapped for a call.

use resident::{Advice, MemoryLocation};

use super::host_memory::ends_after_the_work_in_flight;
use super::prelude::*;
use super::uses::{Home, KINDS, Kind, reaches_host_memory, run_programs, used_once};

/// Coherent arrays in mapped and in managed memory, which the host and the current device access.
fn both_kinds(contents: &Array1<u32>) -> Result<[SmartArray<u32, Ix1>; 2]> {
    let mapped = MappedArray::from_array(contents.view())?;
    let managed = ManagedArray::from_array(contents.view())?;
    Ok([SmartArray::from(mapped), SmartArray::from(managed)])
}

/// Coherent arrays in each kind of memory that the host and the current device access.
fn all_kinds(contents: &Array1<u32>) -> Result<Vec<SmartArray<u32, Ix1>>> {
    let mut all = Vec::from(both_kinds(contents)?);
    if reaches_host_memory()? {
        all.push(used_once(contents.clone())?);
    }
    Ok(all)
}

pub(crate) fn managed_arrays_are_used_in_place(lab: &Lab) -> Result<()> {
    let (device, stream) = (lab.device(), lab.stream());
    let _here = device.enter();
    let (in_use, pinned) = (device.memory().in_use, device.memory().pinned);
    let contents = numbered::<u32, _>((30, 20).f(), 5);
    let mut array = ManagedArray::from_array(contents.view())?;
    assert_eq!((device.memory().in_use, device.memory().pinned), (in_use + 2400, pinned));
    assert_eq!((array.strides(), array.host()?.as_array()), (contents.strides(), None));
    let (outcome, report) = audit::capture(|| {
        array.prefetch(&stream)?;
        lab.add_sized(&stream, 7, &mut array)?;
        array.prefetch_host_on(&stream)?;
        assert_eq!(*array.host()?, contents.mapv(|value| value.wrapping_add(7)));
        array.host_mut().map(drop)
    });
    assert_eq!((outcome?, bytes(report.traffic())), ((), [0; 3]));
    array.host_overwrite()?.fill(3);
    array.set((0, 0), 9)?;
    assert_eq!((array.host()?[[0, 0]], array.get((2, 0))?), (9, 3));
    array.copy_from_device(&DeviceArray::from_host(&contents)?)?;
    assert_eq!(array.into_array()?, contents);
    device.synchronize()?;
    assert_eq!(device.memory().in_use, in_use);
    assert_eq!(ManagedArray::<u8, _>::zeros((0, 4))?.host()?.shape(), [0, 4]);
    ManagedArray::<u8, _>::zeros(0)?.prefetch(&stream)
}

/// Zeros are written by the first who needs them, on either side.
pub(crate) fn managed_zeros_are_zeros_on_either_side(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    let mut there = ManagedArray::<u32, _>::zeros(3000)?;
    lab.add(&lab.new_stream()?, 4, &mut there)?;
    assert!(there.host()?.iter().all(|value| *value == 4));
    let here = ManagedArray::<u32, _>::zeros(3000)?;
    assert_eq!(here.host()?.sum(), 0);
    here.prefetch(&lab.stream())?;
    assert_eq!(here.copy_to_host()?.sum(), 0);
    Ok(())
}

pub(crate) fn advice_on_managed_arrays_changes_no_contents(lab: &Lab) -> Result<()> {
    let device = lab.device();
    let _here = device.enter();
    let array = ManagedArray::from_array(counting(3000))?;
    for advice in [
        Advice::ReadMostly,
        Advice::PreferredLocation(MemoryLocation::Host),
        Advice::PreferredLocation(MemoryLocation::Device(device.clone())),
        Advice::AccessedBy(MemoryLocation::Device(device)),
        Advice::AccessedBy(MemoryLocation::Host),
    ] {
        array.advise(&advice)?;
        assert_eq!(*array.host()?, counting(3000));
        array.withdraw_advice(&advice)?;
    }
    Ok(())
}

pub(crate) fn managed_memory_is_not_asked_for_beyond_what_is_free(lab: &Lab) -> Result<()> {
    let device = lab.device();
    let _here = device.enter();
    let keeps = ManagedArray::<u8, _>::zeros(3 << 20)?;
    device.set_memory_limit(Some(4 << 20))?;
    let refused = ManagedArray::<u8, _>::zeros(2 << 20);
    let Err(Error::OutOfMemory { shortage, .. }) = &refused else { panic!("{refused:?}") };
    assert_eq!(
        (shortage.requested, shortage.in_use, shortage.limit),
        (2 << 20, 3 << 20, Some(4 << 20))
    );
    drop(keeps);
    // What is freed, and copies that are valid elsewhere too, make room.
    let kept = SmartArray::<u8, _>::from(vec![1; 3 << 20]);
    kept.prefetch(&lab.stream())?;
    let array = ManagedArray::<u8, _>::zeros(2 << 20)?;
    assert_eq!(kept.residency().on(&device), Absent);
    drop(array);
    device.set_memory_limit(None)?;
    let beyond = ManagedArray::<u8, _>::zeros(isize::MAX as usize);
    assert!(matches!(beyond, Err(Error::OutOfMemory { .. })), "{beyond:?}");
    Ok(())
}

pub(crate) fn prefetches_are_refused_on_other_devices(lab: &Lab) -> Result<()> {
    let Some([one, other]) = lab.pair() else { return Ok(()) };
    let _here = one.enter();
    let array = ManagedArray::<u32, _>::zeros(10)?;
    let refused = array.prefetch(&other.stream());
    assert!(matches!(refused, Err(Error::WrongDevice { .. })), "{refused:?}");
    assert_eq!(array.host()?.sum(), 0);
    Ok(())
}

/// The memory is freed after the work in flight, and after a prefetch.
pub(crate) fn managed_arrays_are_dropped_in_flight(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    let (gate, mut other) = (Gate::new(), numbers(3000));
    let stream = lab.new_stream()?;
    lab.gated(&stream, &gate, &mut other)?;
    for _ in 0..5 {
        let mut array = ManagedArray::from_array(counting(3000))?;
        lab.add(&stream, 4, &mut array)?;
        lab.accumulate(&stream, &array, &mut other)?;
        array.prefetch_host_on(&lab.stream())?;
        drop(array);
    }
    gate.open();
    assert_eq!(*other.host()?, counting(3000) * 6 + 21);
    Ok(())
}

/// A coherent array in such memory is valid on both sides, and nothing moves between them.
pub(crate) fn host_and_device_are_one_location(lab: &Lab) -> Result<()> {
    let (device, stream) = (lab.device(), lab.stream());
    let _here = device.enter();
    for mut array in all_kinds(&counting(3000))? {
        let (start, address) = (array.host()?.as_ptr(), array.gpu_on(&stream)?.address());
        for _ in 0..3 {
            lab.add(&stream, 1, &mut array)?;
            let residency = array.residency();
            assert_eq!([residency.host(), residency.on(&device)], [Valid; 2]);
            array.slice_mut(s![..100]).host_mut()?.mapv_inplace(|value| value + 1);
            assert_eq!(array.residency().on(&device), Valid);
            array.page_lock()?;
            array.release_on(&device)?;
        }
        assert_eq!(array.get(5)?, 11);
        array.set(5, 0)?;
        array.fill(6)?;
        lab.add(&lab.new_stream()?, 1, &mut array)?;
        array.prefetch(&stream)?;
        array.prefetch_host()?;
        assert!(array.host()?.iter().all(|value| *value == 7));
        array.host_changed()?;
        array.gpu_changed_on(&stream)?;
        assert_eq!((array.host()?.as_ptr(), array.gpu_on(&stream)?.address()), (start, address));
        assert_eq!(bytes(array.traffic()), [0; 3]);
        let clone = array.try_clone()?;
        assert_eq!(*clone.host()?, *array.host()?);
        let there = array.into_device(&device)?;
        assert_eq!(there.copy_to_host()?.sum(), 21_000);
        assert_eq!(SmartArray::from_device(there).into_array()?.sum(), 21_000);
    }
    Ok(())
}

/// The device copy is the host's, so a full device does not evict it.
pub(crate) fn what_is_in_place_is_never_evicted(lab: &Lab) -> Result<()> {
    let device = lab.device();
    let _here = device.enter();
    let len = 1 << 20;
    let [mapped, managed] = both_kinds(&counting(len))?;
    device.set_memory_limit(Some(6 << 20))?;
    let large = SmartArray::<u8, _>::zeros(4 << 20);
    let refused = large.prefetch(&lab.stream());
    assert!(matches!(refused, Err(Error::OutOfMemory { .. })), "{refused:?}");
    for array in [&mapped, &managed] {
        assert_eq!(array.residency().on(&device), Valid);
        assert_eq!(*array.host()?, counting(len));
    }
    drop(managed);
    device.synchronize()?;
    large.prefetch(&lab.stream())?;
    device.set_memory_limit(None)?;
    Ok(())
}

/// The host waits for kernels, also for those that other code queued for a guard.
pub(crate) fn the_host_waits_for_all_uses_in_place(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    let stream = lab.new_stream()?;
    for mut array in all_kinds(&counting(3000))? {
        let gate = Gate::new();
        lab.gated(&stream, &gate, &mut array)?;
        lab.add(&lab.stream(), 4, &mut array)?;
        gate.open();
        let snapshot = array.snapshot_on(&lab.stream())?;
        assert_eq!(array.host()?[7], 12);
        array.host_mut()?[0] = 5;
        assert_eq!(snapshot.wait()?, counting(3000) + 5);
        // A kernel that reads is waited for before the host writes.
        let (mut copy, gate) = (SmartArray::<u32, Ix1>::zeros(3000), Gate::new());
        lab.gated_copy(&stream, &gate, &array, &mut copy)?;
        gate.open();
        array.host_overwrite()?.fill(0);
        assert_eq!(*copy.host()?, counting(3000) + 5);
        // Guards of the device that are forgotten stay open for ever.
        std::mem::forget(array.gpu_mut_on(&stream)?);
        std::mem::forget(array.slice(s![..10]).gpu_on(&lab.stream())?);
        assert_eq!(array.host_mut()?.sum(), 0);
        lab.add(&stream, 4, &mut array)?;
        assert_eq!(array.into_array()?.sum(), 12_000);
    }
    Ok(())
}

pub(crate) fn lent_arrays_are_mapped_for_the_call(lab: &Lab) -> Result<()> {
    let (device, stream) = (lab.device(), lab.stream());
    let _here = device.enter();
    let (before, in_use) = (device.memory().pinned, device.memory().in_use);
    let mut array = counting(100_000);
    let start = array.as_ptr();
    let sum = with_mapped(&mut array, |mapped| {
        assert_eq!(mapped.host()?.as_ptr(), start, "the memory of the array itself");
        assert_eq!(device.memory().pinned, before + 400_000);
        assert_eq!(device.memory().in_use, in_use);
        lab.add(&stream, 5, &mut *mapped)?;
        let sum = mapped.slice(s![..10]).host()?.sum();
        lab.add(&lab.new_stream()?, 5, &mut *mapped)?;
        assert_eq!(bytes(mapped.traffic()), [0; 3]);
        Ok(sum)
    })?;
    assert_eq!((sum, array.as_ptr()), (95, start));
    assert_eq!(array, counting(100_000) + 10, "kernels wrote it in place");
    assert_eq!(device.memory().pinned, before);
    // Repeated, as a constant, in column order and reversed, and nested with other kinds of loan.
    with_mapped(&mut array, |mapped| mapped.fill(8))?;
    assert!(array.iter().all(|value| *value == 8));
    let mut table =
        Array2::from_shape_fn((300, 40).f(), |(row, column)| (row * 40 + column) as u32);
    let expected = table.mapv(|value| value + 8);
    let (mut reversed, mut third) = (table.slice_mut(s![..;-1, ..]), counting(100_000));
    with_mapped(&mut reversed, |table| {
        with_pinned(&mut array.slice_mut(s![..10]), |_part| {
            with_mapped(&mut third, |third| {
                lab.add(&stream, 1, &mut *third)?;
                lab.add_sized(&stream, 8, &mut *table)
            })
        })
    })?;
    assert_eq!((table, third[3]), (expected, 4));
    with_mapped(&mut Array1::<u32>::zeros(0), |mapped| mapped.fill(8))?;
    let outcome = with_mapped(&mut Array2::<u32>::zeros((4, 4)).slice_mut(s![.., 1..]), |_| Ok(()));
    assert!(matches!(outcome, Err(Error::NotContiguous { .. })), "{outcome:?}");
    Ok(())
}

pub(crate) fn a_mapping_ends_after_the_work_in_flight(lab: &Lab) -> Result<()> {
    ends_after_the_work_in_flight(lab, |array, run| with_mapped(array, |lent| run(lent)))
}

/// The kinds of memory that the host and the current device access.
fn in_place() -> Result<&'static [Home]> {
    const ALL: &[Home] = &[Home::Mapped, Home::Managed, Home::LentMapped, Home::Ordinary];
    Ok(&ALL[..if reaches_host_memory()? { 4 } else { 3 }])
}

/// Without the two that copy between the array and a device array.
fn kinds() -> &'static [Kind] {
    &KINDS[..KINDS.len() - 2]
}

pub(crate) fn any_uses_in_place_move_nothing(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    let streams = [lab.stream(), lab.new_stream()?];
    run_programs(lab, 13, in_place()?, kinds(), &streams, |array| {
        assert_eq!(bytes(array.traffic()), [0; 3]);
    })
}

/// Other devices, of the same kind and of another, have copies of their own.
pub(crate) fn any_uses_on_several_devices_are_those_of_ndarray(lab: &Lab) -> Result<()> {
    let _here = lab.device().enter();
    let embedded = Device::emulated(Emulation::new());
    let mut streams = vec![lab.stream(), lab.new_stream()?, embedded.stream()];
    streams.extend(lab.pair().map(|[_, other]| other.stream()));
    run_programs(lab, 14, in_place()?, kinds(), &streams, |_| ())
}

/// A download to ordinary memory is not over when the other device's part of it is: the host
/// unpacks it later.
pub(crate) fn work_in_place_follows_downloads_of_other_devices(lab: &Lab) -> Result<()> {
    let Some([one, other]) = lab.pair() else { return Ok(()) };
    let _here = one.enter();
    for mut array in all_kinds(&counting(3000))? {
        lab.add(&other.stream(), 1, &mut array)?;
        array.prefetch_host()?;
        lab.add(&one.stream(), 2, &mut array.slice_mut(s![..1000]))?;
        array.slice_mut(s![1000..2000]).fill_on(&one.stream(), 7)?;
        one.synchronize()?;
        let mut expected = counting(3000) + 1;
        expected.slice_mut(s![..1000]).mapv_inplace(|value| value + 2);
        expected.slice_mut(s![1000..2000]).fill(7);
        assert_eq!(*array.host()?, expected);
        assert_eq!(array.into_array()?, expected);
    }
    Ok(())
}

pub(crate) fn what_another_device_has_is_assigned_in_place(lab: &Lab) -> Result<()> {
    let Some([one, other]) = lab.pair() else { return Ok(()) };
    let _here = one.enter();
    for mut array in all_kinds(&counting(3000))? {
        // The first device that uses it may have its host memory: the other has its own.
        let mut there = used_once(counting(3000))?;
        lab.add(&other.stream(), 1, &mut there)?;
        array.assign_on(&one.stream(), &there)?;
        array.slice_mut(s![..;-3]).assign_on(&one.stream(), &there.slice(s![..1000]))?;
        lab.add(&one.stream(), 2, &mut array)?;
        let mut expected = counting(3000) + 1;
        expected.slice_mut(s![..;-3]).assign(&(counting(1000) + 1));
        assert_eq!(*array.host()?, expected + 2);
    }
    Ok(())
}
