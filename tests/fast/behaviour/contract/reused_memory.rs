//! Snapshots into memory that is used again.

use support::prelude::*;

fn add() -> Kernel<(u32, InOut<u32>)> {
    Kernel::<(u32, InOut<u32>)>::new("add")
        .host(|_grid, (k, xs)| xs.iter_mut().for_each(|x| *x += k))
}

/// The numbers from 0 on, in three rows of four.
fn table() -> Array2<u32> {
    Array2::from_shape_fn((3, 4), |(row, column)| 4 * row as u32 + column as u32)
}

/// They are newest on the device.
fn table_on(device: &Device) -> Result<SmartArray<u32, Ix2>> {
    let mut array = SmartArray::from(table());
    drop(array.gpu_mut_on(&device.stream())?);
    Ok(array)
}

#[test]
fn each_snapshot_into_the_same_memory_is_of_its_moment() -> Result<()> {
    for seed in 0..60 {
        let device = Device::emulated(Emulation::new().seed(seed));
        let (work, copies) = (device.stream(), device.new_stream()?);
        let mut array = table_on(&device)?;
        let mut messages = [PinnedArray::<u32, _>::uninit(4)?, PinnedArray::<u32, _>::uninit(4)?];
        let residency = array.residency();
        for turn in 0..6 {
            let message = &mut messages[turn % 2];
            array.slice(s![turn % 3, ..]).snapshot_into(&copies, message)?;
            assert_eq!(array.residency(), residency, "the source is where it was");
            assert_eq!(message.residency().host(), Valid);
            add().launch_on(&work, Grid::cover(12), (100, &mut array))?;
            let expected = &table().row(turn % 3) + 100 * turn as u32;
            assert_eq!(message.host()?, expected, "seed {seed}, turn {turn}");
        }
        assert_eq!(moves(array.traffic()), [(1, 48), (6, 96), (0, 0)]);
        assert_ordered_under(seed, &device);
    }
    Ok(())
}

/// On a seeded device nothing runs before somebody waits.
#[test]
fn a_snapshot_into_pinned_memory_returns_before_it_is_copied() -> Result<()> {
    let device = Device::emulated(Emulation::new().seed(3));
    let mut array = table_on(&device)?;
    let mut message = PinnedArray::<u32, _>::uninit((3, 4))?;
    device.synchronize()?;
    array.snapshot_into(&device.stream(), &mut message)?;
    assert!(!device.stream().is_idle()?, "the copy is queued");
    array.fill(7)?;
    drop(array);
    assert_eq!(message.host()?, table());
    Ok(())
}

#[test]
fn memory_of_any_kind_and_layout_gets_parts_of_any_layout() -> Result<()> {
    let device = lab();
    let stream = device.stream();
    let array = table_on(&device)?;
    let part = array.slice(s![..;-1, 1..;2]);
    let expected = table().slice(s![..;-1, 1..;2]).to_owned();
    let mut pinned = PinnedArray::<u32, _>::uninit((3, 2))?;
    part.snapshot_into(&stream, &mut pinned)?;
    assert_eq!(pinned.host()?, expected);
    // In another order of axes.
    let mut turned = PinnedArray::<u32, _>::uninit((2, 3))?;
    part.snapshot_into(&stream, &mut turned.view_mut().reversed_axes())?;
    assert_eq!(turned.host()?, expected.t());
    // A part of a larger one.
    let mut large = PinnedArray::from_array(Array2::from_elem((5, 5), 9))?;
    part.snapshot_into(&stream, &mut large.slice_mut(s![1..4, 2..4]))?;
    assert_eq!(large.slice(s![1..4, 2..4]).host()?, expected);
    assert_eq!(large.host()?.sum(), 9 * 19 + expected.sum());
    // Ordinary memory, before the call returns, and memory that is page-locked.
    let mut ordinary = SmartArray::<u32, _>::zeros((3, 2));
    part.snapshot_into(&stream, &mut ordinary)?;
    assert_eq!(ordinary.host()?, expected);
    let mut locked = SmartArray::from(Array2::<u32>::zeros((3, 2)));
    locked.page_lock()?;
    part.snapshot_into(&stream, &mut locked)?;
    assert_eq!(locked.host()?, expected);
    // Repeated elements.
    let mut rows = PinnedArray::<u32, _>::uninit((3, 4))?;
    array.slice(s![1, ..]).broadcast((3, 4))?.snapshot_into(&stream, &mut rows)?;
    assert_eq!(rows.host()?, table().row(1).broadcast((3, 4)).expect("it fits"));
    assert_eq!(array.residency().host(), Stale);
    Ok(())
}

#[test]
fn contents_come_from_where_they_are() -> Result<()> {
    let device = lab();
    let stream = device.stream();
    let mut message = PinnedArray::<u32, _>::uninit((3, 4))?;
    // The host has them: nothing is transferred.
    let array = SmartArray::from(table());
    array.snapshot_into(&stream, &mut message)?;
    assert_eq!((message.host()?.to_owned(), moves(array.traffic())), (table(), NOTHING));
    array.prefetch(&stream)?;
    array.snapshot_into(&stream, &mut message)?;
    assert_eq!(moves(array.traffic()), [(1, 48), (0, 0), (0, 0)]);
    // A constant is in no memory.
    SmartArray::full((3, 4), 5).snapshot_into(&stream, &mut message)?;
    assert_eq!(message.host()?.sum(), 60);
    // Some on the host, some on each of two devices.
    let other = lab();
    let mut array = SmartArray::from(table());
    drop(array.slice_mut(s![0, ..]).gpu_mut_on(&stream)?);
    drop(array.slice_mut(s![1, ..]).gpu_mut_on(&other.stream())?);
    let residency = array.residency();
    array.snapshot_into(&stream, &mut message)?;
    assert_eq!((message.host()?.to_owned(), array.residency()), (table(), residency.clone()));
    // A stream of another device than the one that has them.
    array.slice(s![1, ..]).snapshot_into(&stream, &mut message.slice_mut(s![2, ..]))?;
    assert_eq!(message.slice(s![2, ..]).host()?.to_vec(), [4, 5, 6, 7]);
    assert_eq!(array.residency(), residency);
    // Nothing is as good as any.
    let mut nothing = PinnedArray::<u32, _>::uninit((0, 4))?;
    array.slice(s![3.., ..]).snapshot_into(&stream, &mut nothing)
}

/// Both are parts of one page-locked array, whose rows the device has.
#[test]
fn a_part_is_copied_into_another_part_of_its_array() -> Result<()> {
    for seed in 0..20 {
        let device = Device::emulated(Emulation::new().seed(seed));
        let mut array = SmartArray::from(table());
        array.page_lock()?;
        add().launch_on(&device.stream(), Grid::cover(12), (10, &mut array))?;
        let (from, mut to) = array.multi_slice_mut((s![0, ..], s![2, ..]));
        from.snapshot_into(&device.new_stream()?, &mut to)?;
        assert_eq!(to.residency().host(), Valid);
        assert_eq!(from.residency().host(), Stale);
        add().launch_on(&device.stream(), Grid::cover(12), (1, &mut array))?;
        let expected = [11, 12, 13, 14, 15, 16, 17, 18, 11, 12, 13, 14];
        assert_eq!(array.host()?.iter().copied().collect::<Vec<_>>(), expected, "seed {seed}");
        assert_ordered_under(seed, &device);
    }
    Ok(())
}

#[test]
fn what_cannot_be_copied_is_refused_and_the_memory_stays_as_it_is() -> Result<()> {
    let device = lab();
    let stream = device.stream();
    let mut message = PinnedArray::from_array(Array1::from_elem(4, 9_u32))?;
    let array = table_on(&device)?;
    let Err(Error::Shape { call, operation, .. }) =
        array.slice(s![0, 1..]).snapshot_into(&stream, &mut message)
    else {
        panic!("three elements for four");
    };
    assert!(operation.contains("snapshot_into") && call.to_string().contains(file!()));
    let never = SmartArray::<u32, _>::uninit(4);
    let outcome = never.snapshot_into(&stream, &mut message);
    assert!(matches!(outcome, Err(Error::Uninitialised { .. })), "{outcome:?}");
    assert_eq!(message.host()?.to_vec(), [9; 4]);
    Ok(())
}

#[test]
fn a_refused_call_of_the_driver_changes_neither_array() -> Result<()> {
    let mut refused = 0;
    for nth in 1..20 {
        let device = Device::emulated(Emulation::new().fail(Fault::nth(nth)));
        let Ok(array) = table_on(&device) else { continue };
        let mut message = PinnedArray::from_array(Array2::from_elem((3, 4), 9))?;
        let outcome = array.snapshot_into(&device.stream(), &mut message);
        refused += usize::from(outcome.is_err());
        let expected = if outcome.is_ok() { table() } else { Array2::from_elem((3, 4), 9) };
        let seen = message.host().or_else(|_the_fault| message.host())?.to_owned();
        assert_eq!(seen, expected, "call {nth}: {outcome:?}");
        assert_eq!(array.host().or_else(|_the_fault| array.host())?, table());
    }
    assert!(refused > 0);
    Ok(())
}

/// The source still has what did not arrive.
#[test]
fn a_copy_that_fails_late_loses_the_memory_and_can_be_repeated() -> Result<()> {
    let fault = Fault::nth(1).of(CallKind::Download).late();
    let device = Device::emulated(Emulation::new().fail(fault));
    let array = table_on(&device)?;
    let mut message = PinnedArray::from_array(Array2::from_elem((3, 4), 9))?;
    array.snapshot_into(&device.stream(), &mut message)?;
    assert!(matches!(message.host(), Err(Error::Lost { .. })));
    array.snapshot_into(&device.stream(), &mut message)?;
    assert_eq!((message.host()?.to_owned(), array.host()?.to_owned()), (table(), table()));
    Ok(())
}
