//! Device arrays on embedded devices: refusals in the middle of a copy, parts, and long views.

use resident::emulation::Call;
use resident::ndarray::{Array3, ArrayRef};
use support::prelude::*;

/// Each call is refused once, also those that queue the later chunks of an upload.
#[test]
fn what_a_refused_upload_has_written_is_known_and_the_rest_is_unchanged() -> Result<()> {
    for nth in 1..12 {
        let device =
            Device::emulated(Emulation::new().poison(true).pieces(16).fail(Fault::nth(nth)));
        let made = DeviceArray::from_host_on(&device.stream(), &Array1::from_elem(12, 1_u32));
        let Ok(mut line) = made else { continue };
        let outcome = line.copy_from_host(&Array1::from_elem(12, 2));
        let seen = line.copy_to_host().or_else(|_the_fault| line.copy_to_host())?.to_vec();
        let written = seen.iter().take_while(|value| **value == 2).count();
        assert!(seen[written..].iter().all(|value| *value == 1), "call {nth}: {seen:?}");
        assert_eq!(outcome.is_ok(), written == 12, "call {nth}: {seen:?}, {outcome:?}");
    }
    Ok(())
}

#[test]
fn elements_that_a_refused_upload_left_out_were_never_written() -> Result<()> {
    let mut refused = 0;
    // The first call allocates the memory.
    for nth in 2..8 {
        let device =
            Device::emulated(Emulation::new().poison(true).pieces(16).fail(Fault::nth(nth)));
        let mut line = DeviceArray::<u32, _>::uninit_on(&device.stream(), 12)?;
        let outcome = line.copy_from_host(&Array1::from_elem(12, 2));
        if outcome.is_err() {
            refused += 1;
            let seen = line.copy_to_host();
            assert!(seen.is_err(), "call {nth}: {seen:?} although {outcome:?}");
        }
    }
    assert!(refused >= 3, "each of the three chunks is refused once");
    Ok(())
}

/// The rest of a long line is copied as a few boxes, not element by element.
#[test]
fn a_part_of_a_reshaped_table_is_copied_in_few_pieces() -> Result<()> {
    let device = Device::emulated(Emulation::new().poison(false));
    let stream = device.stream();
    let table = SmartArray::from(Array2::from_shape_fn((300, 200), |(row, column)| {
        (row * 200 + column) as u32
    }));
    table.prefetch(&stream)?;
    device.synchronize()?;
    let rest = table.reshape(60_000)?.slice(s![1..]);
    let copy = rest.try_clone()?;
    let snapshot = rest.snapshot_on(&stream)?.wait()?;
    assert_eq!(snapshot, Array1::from_iter(1..60_000));
    assert_eq!(copy.host()?.to_owned(), snapshot);
    let copies = count_of(&device, CallKind::CopyWithin) + count_of(&device, CallKind::Download);
    assert!(copies <= 8, "{copies}");
    Ok(())
}

/// `get` reads from a copy whose work fails late, although the element is valid elsewhere.
#[test]
fn an_element_is_read_again_if_its_copy_failed() -> Result<()> {
    let fault = Fault::nth(1).of(CallKind::CopyBetween).late();
    let there = Device::emulated(Emulation::new().seed(1).fail(fault));
    let here = Device::emulated(Emulation::new().seed(1));
    let add =
        Kernel::<(InOut<u32>,)>::new("add").host(|_, (xs,)| xs.iter_mut().for_each(|x| *x += 1));
    let mut array = SmartArray::from(vec![1_u32, 2]);
    array.prefetch(&there.stream())?;
    add.launch_on(&here.stream(), Grid::cover(2), (&mut array,))?;
    array.prefetch(&there.stream())?;
    assert_eq!(array.get(0)?, 2);
    Ok(())
}

#[test]
fn device_arrays_are_divided_as_ndarrays_are() -> Result<()> {
    let stream = Device::cpu().stream();
    let numbers = Array3::from_shape_fn((3, 4, 5), |(i, j, k)| (100 * i + 10 * j + k) as i32);
    let array = DeviceArray::from_host_on(&stream, &numbers)?;
    for axis in (0..3).map(Axis) {
        assert_eq!(array.axis_iter(axis).len(), numbers.axis_iter(axis).len());
        for (part, expected) in array.axis_iter(axis).zip(numbers.axis_iter(axis)) {
            assert_eq!(part.copy_to_host()?, expected);
            assert_eq!(part.into_dyn().copy_to_host()?, expected.into_dyn());
        }
        let parts = array.view().axis_chunks_iter(axis, 2).rev();
        for (part, expected) in parts.zip(numbers.axis_chunks_iter(axis, 2).rev()) {
            assert_eq!(part.copy_to_host()?, expected);
            let (first, second) = part.split_at(axis, 1);
            let (left, right) = expected.split_at(axis, 1);
            assert_eq!(first.copy_to_host()?, left);
            assert_eq!(second.copy_to_host()?, right);
        }
    }
    let plane = array.insert_axis(Axis(0)).remove_axis(Axis(0)).index_axis(Axis(0), 1);
    assert_eq!(plane.row(2).copy_to_host()?, numbers.slice(s![1, 2, ..]));
    assert_eq!(plane.column(3).copy_to_host()?, numbers.slice(s![1, .., 3]));
    assert_eq!((plane.dim(), plane.len_bytes()), ((4, 5), 80));
    Ok(())
}

#[test]
fn mutable_parts_of_device_arrays_are_those_of_ndarrays() -> Result<()> {
    let mut array = DeviceArray::<i32, _>::full_on(&Device::cpu().stream(), (4, 6), 1)?;
    let mut expected = Array2::<i32>::ones((4, 6));
    for (number, mut row) in (2..).zip(array.axis_iter_mut(Axis(0)).rev()) {
        row.slice_mut(s![..;2]).fill(number)?;
    }
    for (number, mut row) in (2..).zip(expected.axis_iter_mut(Axis(0)).rev()) {
        row.slice_mut(s![..;2]).fill(number);
    }
    for (number, mut part) in (10..).zip(array.axis_chunks_iter_mut(Axis(1), 4)) {
        part.row_mut(1).fill(number)?;
    }
    for (number, mut part) in (10..).zip(expected.axis_chunks_iter_mut(Axis(1), 4)) {
        part.row_mut(1).fill(number);
    }
    let (mut left, right) = array.view_mut().reversed_axes().split_at(Axis(0), 3);
    left.column_mut(3).fill(20)?;
    right.insert_axis(Axis(0)).remove_axis(Axis(0)).into_dyn().fill(30)?;
    let (mut left, mut right) = expected.view_mut().reversed_axes().split_at(Axis(0), 3);
    left.column_mut(3).fill(20);
    right.fill(30);
    assert_eq!(array.copy_to_host()?, expected);
    Ok(())
}

#[test]
fn a_broadcast_view_that_does_not_fit_in_memory_is_an_error() -> Result<()> {
    let one = DeviceArray::full_on(&Device::cpu().stream(), 1, 1.0_f32)?;
    let repeated = one.broadcast(1_usize << 60)?;
    let refused = repeated.copy_to_host().map(drop);
    assert!(matches!(refused, Err(Error::OutOfMemory { .. })), "{refused:?}");
    assert_eq!(repeated.nbytes(), 1 << 62);
    let one = SmartArray::<f32, _>::ones(1);
    let refused = one.broadcast(1_usize << 60)?.to_vec().unwrap_err();
    assert!(matches!(refused, Error::OutOfMemory { .. }), "{refused:?}");
    let message = refused.to_string();
    assert!(message.contains("needs 4611686018427387904 bytes on the host; drop"), "{message}");
    let refused = one.broadcast((usize::MAX, 4)).map(drop).unwrap_err().to_string();
    assert!(refused.contains("a shape of at most 9223372036854775807 elements"), "{refused}");
    Ok(())
}

/// Elements that are written one by one do not become constants of their own.
#[test]
fn elements_of_a_device_array_are_written_on_the_device() -> Result<()> {
    let mut line = DeviceArray::<u32, _>::uninit_on(&Device::cpu().stream(), 5_000)?;
    for index in 0..5_000 {
        line.set(index, index as u32)?;
    }
    let (copy, report) = audit::capture(|| line.copy_to_host());
    assert_eq!(copy?, Array1::from_iter(0..5_000));
    assert_eq!(report.traffic().to_host.bytes, 20_000, "constants would not be copied");
    Ok(())
}

/// The upload of `into_device` fails late, and is made again.
#[test]
fn contents_survive_a_failed_copy_to_the_device() -> Result<()> {
    for kind in [CallKind::Upload, CallKind::CopyBetween] {
        let device = Device::emulated(Emulation::new().fail(Fault::nth(1).of(kind).late()));
        let mut array = SmartArray::from(vec![1_u32, 2, 3]);
        if kind == CallKind::CopyBetween {
            let other = Device::emulated(Emulation::new());
            drop(array.gpu_mut_on(&other.stream())?);
        }
        assert_eq!(array.into_device(&device)?.copy_to_host()?.to_vec(), [1, 2, 3], "{kind:?}");
    }
    Ok(())
}

/// Repeated elements are copied once from their array, and then from each other.
#[test]
fn a_broadcast_view_is_assigned_in_few_copies() -> Result<()> {
    let device = Device::emulated(Emulation::new());
    let (stream, line) = (device.stream(), Array1::from_iter(0..50_u32));
    let source = DeviceArray::from_host_on(&stream, &line)?;
    let mut table = DeviceArray::<u32, _>::uninit_on(&stream, (1_000, 50))?;
    table.copy_from_device(&source.broadcast((1_000, 50))?)?;
    assert_eq!(count_of(&device, CallKind::CopyWithin), 11);
    assert!(table.copy_to_host()?.rows().into_iter().all(|row| row == line));
    let mut cube = DeviceArray::<u32, _>::uninit_on(&stream, (100, 70, 50))?;
    cube.copy_from_device(&source.broadcast((100, 70, 50))?)?;
    assert_eq!(count_of(&device, CallKind::CopyWithin), 11 + 1 + 7 + 7);
    assert!(cube.copy_to_host()?.lanes(Axis(2)).into_iter().all(|row| row == line));
    // From another device the elements come once.
    let other = Device::emulated(Emulation::new());
    let mut far = DeviceArray::<u32, _>::uninit_on(&other.stream(), (9, 50))?;
    far.copy_from_device(&source.broadcast((9, 50))?)?;
    assert_eq!(
        (count_of(&other, CallKind::CopyBetween), count_of(&other, CallKind::CopyWithin)),
        (1, 4)
    );
    assert_eq!(other.traffic().between_devices.bytes, 200);
    assert!(far.copy_to_host()?.rows().into_iter().all(|row| row == line));
    assert_ordered(&device);
    Ok(())
}

/// As ndarray's `assign`, wherever the contents are.
#[test]
fn assign_repeats_a_source_of_another_shape() -> Result<()> {
    let device = Device::emulated(Emulation::new());
    let _here = device.enter();
    let row = Array1::from_iter(0..6_u32);
    let column = row.clone().insert_axis(Axis(1));
    for is_on_device in [false, true] {
        let (mut from_row, mut from_column) =
            (SmartArray::from(row.clone()), SmartArray::from(column.clone()));
        if is_on_device {
            drop((from_row.gpu_mut()?, from_column.gpu_mut()?));
        }
        let mut expected = Array2::zeros((5, 12));
        let mut table = SmartArray::from(expected.clone());
        table.slice_mut(s![.., ..;2]).assign(&from_row)?;
        expected.slice_mut(s![.., ..;2]).assign(&row);
        table
            .slice_mut(s![1..4, 7])
            .assign_on(&device.stream(), &from_column.slice(s![2..3, 0]))?;
        expected.slice_mut(s![1..4, 7]).assign(&column.slice(s![2..3, 0]));
        assert_eq!(table.host()?.view(), expected);
        let mut cube = SmartArray::<u32, _>::uninit((2, 6, 3));
        cube.assign(&from_column)?;
        assert!(cube.host()?.lanes(Axis(1)).into_iter().all(|lane| lane == row));
        let refused = cube.assign(&from_row).expect_err("six are not three").to_string();
        assert!(refused.contains("[2, 6, 3]") && refused.contains("[6]"), "{refused}");
    }
    Ok(())
}

/// A call that is refused leaves both arrays as they are.
#[test]
fn a_refused_copy_to_a_pinned_array_changes_nothing() -> Result<()> {
    let mut refused = 0;
    for nth in 1..20 {
        let device = Device::emulated(Emulation::new().fail(Fault::nth(nth)));
        let _here = device.enter();
        let made = DeviceArray::from_host(&Array1::from_elem(12, 1_u32))
            .and_then(|line| Ok((line, PinnedArray::from_array(Array1::from_elem(12, 2))?)));
        let Ok((line, mut pinned)) = made else { continue };
        let outcome = line.copy_to_pinned(&mut pinned);
        refused += usize::from(outcome.is_err());
        let expected = if outcome.is_ok() { 1 } else { 2 };
        let seen = pinned.host().or_else(|_the_fault| pinned.host())?.to_vec();
        assert_eq!(seen, [expected; 12], "call {nth}: {outcome:?}");
        let back = line.copy_to_host().or_else(|_the_fault| line.copy_to_host())?;
        assert_eq!(back.to_vec(), [1; 12]);
    }
    assert!(refused > 0);
    Ok(())
}

/// ndarray's own broadcast views, whose strides are 0, are copied as any other.
#[test]
fn repeated_elements_of_the_host_are_copied() -> Result<()> {
    let device = Device::emulated(Emulation::new().pieces(64));
    let _here = device.enter();
    let line = Array1::from_iter(0..5_u32);
    let column = line.view().insert_axis(Axis(1));
    let rows = line.broadcast((40, 5)).expect("it fits");
    let columns = column.broadcast((5, 30)).expect("it fits");
    let mut there = DeviceArray::from_host(&rows)?;
    assert_eq!(there.copy_to_host()?, rows);
    assert_eq!(DeviceArray::from_host(&columns)?.copy_to_host()?, columns);
    assert_eq!(DeviceArray::from_host(&columns.t())?.copy_to_host()?, columns.t());
    there.slice_mut(s![..5, ..]).copy_from_host(&columns.slice(s![.., ..5]))?;
    there.slice_mut(s![5..;2, ..;-1]).copy_from_host(&rows.slice(s![..18, ..]))?;
    let mut expected = rows.to_owned();
    expected.slice_mut(s![..5, ..]).assign(&columns.slice(s![.., ..5]));
    expected.slice_mut(s![5..;2, ..;-1]).assign(&rows.slice(s![..18, ..]));
    assert_eq!(there.copy_to_host()?, expected);
    assert_eq!(PinnedArray::from_array(rows)?.host()?, rows);
    assert_eq!(SmartArray::from(rows.to_owned()).host()?, rows);
    let one = Array1::from_elem(1, 7_u32);
    let repeated = one.broadcast((3, 4)).expect("it fits");
    assert_eq!(DeviceArray::from_host(&repeated)?.copy_to_host()?, repeated);
    Ok(())
}

/// A download that kept the axis order `strides`, as one plain copy if the source has no gaps.
fn assert_download<D: Dimension>(
    device: &Device,
    source: &impl Fn() -> Result<Array<i32, D>>,
    expected: &ArrayRef<i32, D>,
    strides: &[isize],
) -> Result<()> {
    let log = device.emulation().expect("an emulated device");
    let (before, memory) = (log.calls().len(), device.memory().in_use);
    let downloaded = source()?;
    assert_eq!((downloaded.view(), downloaded.strides()), (expected.view(), strides));
    let kinds: Vec<_> = log.calls().into_iter().skip(before).collect();
    let is_copy = |call: &&Call| {
        assert!(
            !matches!(call.kind, CallKind::CopyWithin | CallKind::Launch | CallKind::Allocate),
            "{call:?}"
        );
        call.kind == CallKind::Download
    };
    let copied: Vec<u64> = kinds.iter().filter(is_copy).map(|call| call.len_bytes).collect();
    assert_eq!(copied, [4 * expected.len() as u64]);
    assert_eq!(device.memory().in_use, memory, "no scratch memory");
    Ok(())
}

#[test]
fn downloads_into_new_arrays_keep_the_axis_order_of_their_source() -> Result<()> {
    let device = Device::emulated(Emulation::new());
    let (_here, stream) = (device.enter(), device.stream());
    let rows = Array3::from_shape_fn((2, 3, 4), |(i, j, k)| (100 * i + 10 * j + k) as i32);
    let columns = Array3::from_shape_fn((2, 3, 4).f(), |(i, j, k)| rows[[i, j, k]]);
    let permuted = rows.clone().permuted_axes([1, 2, 0]);
    let mut reversed = columns.clone();
    reversed.invert_axis(Axis(1));
    let single = Array3::from_shape_vec((3, 1, 4).f(), (0..12).collect()).expect("12 elements");
    for source in [rows, columns, permuted, reversed, single] {
        let there = DeviceArray::from_host(&source)?;
        let mut smart = SmartArray::from(source.clone());
        drop(smart.gpu_mut()?);
        let (strides, all) = (source.strides(), &source);
        assert_download(&device, &|| there.copy_to_host(), all, strides)?;
        assert_download(&device, &|| there.copy_to_host_on(&stream)?.wait(), all, strides)?;
        assert_download(&device, &|| block_on(there.copy_to_host_on(&stream)?), all, strides)?;
        assert_download(&device, &|| there.view().copy_to_host(), all, strides)?;
        assert_download(&device, &|| smart.snapshot_on(&stream)?.wait(), all, strides)?;
        assert_eq!(smart.try_clone()?.host()?.strides(), strides);
        let across = source.t();
        assert_download(&device, &|| there.t().copy_to_host(), &across, across.strides())?;
        assert_eq!(smart.into_array()?.strides(), strides);
    }
    Ok(())
}

#[test]
fn downloads_of_parts_keep_the_axis_order_without_gaps() -> Result<()> {
    let device = Device::emulated(Emulation::new());
    let (_here, stream) = (device.enter(), device.stream());
    let columns = Array2::from_shape_fn((6, 5).f(), |(i, j)| (10 * i + j) as i32);
    let there = DeviceArray::from_host(&columns)?;
    let mut smart = SmartArray::from(columns.clone());
    drop(smart.gpu_mut()?);
    for (slice, strides) in [
        (s![.., 1..3], [1, 6]),
        (s![1..4, ..], [1, 3]),
        (s![..;2, ..;-1], [1, -3]),
        (s![..;-1, 2..3], [-1, 6]),
    ] {
        let expected = columns.slice(slice);
        let part = there.slice(slice);
        assert_eq!(part.copy_to_host()?, expected);
        assert_eq!(smart.slice(slice).snapshot_on(&stream)?.wait()?, expected);
        for copy in [part.copy_to_host()?, part.copy_to_host_on(&stream)?.wait()?] {
            let is_long = |axis: &usize| copy.shape()[*axis] > 1;
            let long =
                |strides: &[isize]| (0..2).filter(is_long).map(|axis| strides[axis]).collect();
            let (seen, expected): (Vec<_>, Vec<_>) = (long(copy.strides()), long(&strides));
            assert_eq!(seen, expected);
        }
    }
    assert_download(
        &device,
        &|| there.slice(s![.., 1..3]).copy_to_host(),
        &columns.slice(s![.., 1..3]),
        &[1, 6],
    )
}
