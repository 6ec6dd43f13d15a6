//! Parts share the state of the whole array, and only the bytes of a part are copied.

use resident::{HostMut, HostRef};
use support::prelude::*;

fn numbers() -> Array2<i32> {
    Array2::from_shape_fn((4, 6), |(i, j)| (i * 6 + j) as i32)
}

#[test]
fn every_kind_of_slice_reads_what_ndarrays_does() -> Result<()> {
    let (array, plain) = (SmartArray::from(numbers()), numbers());
    drop(array.gpu_on(&lab().stream())?);
    macro_rules! same {
        ($($slice:expr),+) => {
            $(assert_eq!(*array.slice($slice).host()?, plain.slice($slice));)+
        };
    }
    same!(
        s![.., ..],
        s![1..3, 2..],
        s![.., ..;-1],
        s![..;2, 1..;3],
        s![-1, ..],
        s![2, 3],
        s![1..3;-1, ..],
        s![4.., ..]
    );
    same!(s![.., ndarray::NewAxis, 2..4], s![..;-2, ..;-3]);
    Ok(())
}

#[test]
fn every_method_works_on_parts() -> Result<()> {
    let device = lab();
    let _here = device.enter();
    let mut array = SmartArray::from(numbers()).named("grid");
    let view = array.slice(s![1..3, ..]);
    assert_eq!(
        (view.shape(), view.len(), view.raw_dim(), &*view.name()),
        (&[2, 6][..], 12, Ix2(2, 6), "grid")
    );
    assert!(view.is_c_contiguous() && !view.is_f_contiguous() && !view.is_empty());
    assert_eq!(view.get((0, 0))?, 6);
    assert_eq!(view.slice(s![1, ..]).host()?.to_vec(), [12, 13, 14, 15, 16, 17]);
    assert_eq!(view.snapshot_on(&device.stream())?.wait()?, numbers().slice(s![1..3, ..]));
    view.prefetch(&device.stream())?;
    view.prefetch_host()?;
    assert_eq!(view.gpu()?.len(), 12);
    assert_eq!(validity(&view.residency(), &device), [Valid, Valid]);
    assert_eq!(view.try_clone()?.into_array()?, numbers().slice(s![1..3, ..]));
    let mut part = array.slice_mut(s![1..3, ..]);
    part.set((0, 1), 100)?;
    assert_eq!((part.get((0, 1))?, part.host()?[[0, 0]]), (100, 6));
    drop(part.host_mut()?);
    assert_eq!(part.gpu()?.len(), 12);
    drop(part.gpu_mut()?);
    drop(part.gpu_overwrite_on(&device.stream())?);
    drop(part.host_overwrite()?);
    part.host_changed()?;
    part.fill(1)?;
    part.fill_on(&device.stream(), 2)?;
    part.assign(&SmartArray::<i32, _>::full((2, 6), 3))?;
    part.assign_on(&device.stream(), &SmartArray::<i32, _>::full((2, 6), 4))?;
    part.slice_mut(s![0, ..]).fill(5)?;
    let (mut left, _) = part.split_at_mut(Axis(1), 1);
    left.fill(6)?;
    assert_eq!(
        array.host()?.slice(s![1..3, ..2]).iter().copied().collect::<Vec<_>>(),
        [6, 5, 6, 4]
    );
    Ok(())
}

fn row<'a>(array: &'a SmartArray<i32, Ix2>, index: usize) -> Result<HostRef<'a, i32, Ix1>> {
    let view: SmartView<'a, i32, _> = array.slice(s![index, ..]);
    view.host()
}

#[test]
fn guards_of_a_view_outlive_the_view() -> Result<()> {
    let array = SmartArray::from(numbers());
    let (first, last) = (row(&array, 0)?, row(&array, 3)?);
    assert_eq!(first.sum() + last.sum(), 15 + 123);
    let device = lab();
    let guard = array.slice(s![1, ..]).gpu_on(&device.stream())?;
    assert_eq!(guard.len(), 6);
    Ok(())
}

fn write_row(array: &mut SmartArray<i32, Ix2>) -> Result<HostMut<'_, i32, Ix1>> {
    array.slice_mut(s![0, ..]).into_host_mut()
}

#[test]
fn an_exclusive_view_can_be_used_up_reborrowed_and_looked_at() -> Result<()> {
    let device = lab();
    let mut array = SmartArray::from(numbers());
    write_row(&mut array)?.fill(1);
    let guard = array.slice_mut(s![1, ..]).into_gpu_mut_on(&device.stream())?;
    assert_eq!(guard.len(), 6);
    drop(guard);
    let mut part = array.slice_mut(s![.., ..2]);
    part.reborrow().fill(9)?;
    assert_eq!(part.view().host()?.sum(), 72);
    part.fill(8)?;
    let copied: SmartView<'_, i32, _> = part.view();
    let twice = copied;
    assert_eq!(copied.host()?.sum() + twice.host()?.sum(), 128);
    Ok(())
}

#[test]
#[should_panic(
    expected = "slices [..2, ..] and [1.., ..] of multi_slice_mut share elements of \"table\""
)]
fn overlapping_parts_cannot_be_held_at_once() {
    let mut array = SmartArray::from(numbers()).named("table");
    let _ = array.multi_slice_mut((s![..2, ..], s![1.., ..]));
}

#[test]
#[should_panic]
fn a_slice_beyond_the_end_panics_as_ndarrays_does() {
    let array = SmartArray::from(numbers());
    let _ = array.slice(s![..5, ..]);
}

#[test]
fn views_are_copied_shared_and_sent() -> Result<()> {
    fn shared<T: Copy + Send + Sync + std::fmt::Debug>(_: T) {}
    let mut array = SmartArray::from(numbers());
    shared(array.view());
    let (mut top, mut bottom) = array.split_at_mut(Axis(0), 2);
    std::thread::scope(|scope| {
        let one = scope.spawn(move || top.host_mut().map(|mut rows| rows.fill(1)));
        let other = scope.spawn(move || bottom.host_mut().map(|mut rows| rows.fill(2)));
        one.join().expect("no panic").and(other.join().expect("no panic"))
    })?;
    assert_eq!(array.host()?.sum(), 12 + 24);
    Ok(())
}

#[test]
fn parts_of_an_array_without_elements_share_none() -> Result<()> {
    let mut array = SmartArray::<u32, _>::zeros((3, 0));
    let (mut even, odd) = array.multi_slice_mut((s![..;2, ..], s![1..;2, ..]));
    even.fill(1)?;
    assert_eq!((even.shape(), odd.shape()), (&[2, 0][..], &[1, 0][..]));
    let (first, second) = array.multi_slice_mut((s![.., ..], s![.., ..]));
    assert!(first.is_empty() && second.is_empty());
    Ok(())
}

#[test]
fn arrays_and_parts_without_elements_can_be_written() -> Result<()> {
    let device = lab();
    let fill =
        Kernel::<(u32, InOut<u32, Ix2>)>::new("fill").host(|_grid, (value, mut x)| x.fill(value));
    for shape in [(3, 0), (0, 3), (0, 0), (1, 0)] {
        let mut array = SmartArray::<u32, _>::zeros(shape);
        array.host_mut()?.fill(1);
        array.host_overwrite()?.fill(1);
        fill.launch_on(&device.stream(), Grid::cover(1), (1, &mut array))?;
        fill.call(Grid::cover(1), (1, &mut array))?;
    }
    let mut array = SmartArray::<u32, _>::zeros((4, 5));
    for (rows, columns) in [(0..4, 2..2), (1..3, 2..2), (3..3, 0..5), (4..4, 5..5)] {
        let mut part = array.slice_mut(s![rows;-1, columns;2]);
        part.host_mut()?.fill(1);
        fill.launch_on(&device.stream(), Grid::cover(1), (1, &mut part))?;
    }
    assert_eq!(array.host()?.sum(), 0);
    device.synchronize()
}
