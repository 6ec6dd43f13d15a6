//! The defects of Numba's `DeviceNDArray`, on which device arrays are modelled, and what it refused
//! without need. Each test describes one, and shows that this library does not have it. `d13` is in
//! `cuda/pinned_arrays.rs`, `d14` in `cuda/dlpack.rs`, and `d15`, of `numba.roc`, in
//! `hip/host_memory.rs`. There is no negative axis, and no shape of another type, to be ignored.

use support::prelude::*;

fn on_device<D: Dimension>(device: &Device, array: &Array<i32, D>) -> Result<DeviceArray<i32, D>> {
    DeviceArray::from_host_on(&device.stream(), array)
}

/// `copy_to_device` of an empty array did nothing, before it compared the shapes.
#[test]
fn d1_an_empty_source_of_another_shape_is_refused() -> Result<()> {
    let mut line = on_device(&lab(), &array![1, 2, 3])?;
    let refused = line.copy_from_host(&Array1::zeros(0));
    assert!(matches!(refused, Err(Error::Shape { .. })), "{refused:?}");
    assert_eq!(line.copy_to_host()?, array![1, 2, 3]);
    Ok(())
}

/// A column-major source was refused as "incompatible strides".
#[test]
fn d2_another_axis_order_is_converted() -> Result<()> {
    let device = lab();
    let rows = array![[1, 2, 3], [4, 5, 6]];
    let mut columns = DeviceArray::<i32, _>::uninit_on(&device.stream(), (2, 3).f())?;
    columns.copy_from_device(&on_device(&device, &rows)?)?;
    assert!(columns.is_f_contiguous() && !columns.is_c_contiguous());
    assert_eq!(columns.copy_to_host()?, rows);
    Ok(())
}

/// "D->H copy not implemented for negative strides". Slices that ran backwards lost their extent,
/// and reversing twice gave an empty array.
#[test]
fn d3_views_that_run_backwards_are_copied() -> Result<()> {
    let line = on_device(&lab(), &array![1, 2, 3, 4, 5])?;
    let backwards = line.slice(s![..;-1]);
    assert_eq!(backwards.copy_to_host()?, array![5, 4, 3, 2, 1]);
    assert_eq!(backwards.slice(s![..;-2]).copy_to_host()?, array![1, 3, 5]);
    assert_eq!((backwards.get(0)?, backwards.get(4)?), (5, 1));
    Ok(())
}

/// A copy into a destination with gaps overwrote the gaps (open since 2018).
#[test]
fn d4_gaps_of_the_destination_are_left_alone() -> Result<()> {
    let column = on_device(&lab(), &array![1, 2])?;
    let mut table = Array2::from_elem((2, 3), 7);
    column.copy_to_host_into(&mut table.column_mut(1))?;
    assert_eq!(table, array![[7, 1, 7], [7, 2, 7]]);
    Ok(())
}

/// A copy of a slice with gaps took the gaps with it, and kept memory for them.
#[test]
fn d5_a_copy_of_a_part_has_the_parts_size() -> Result<()> {
    let table = on_device(&lab(), &Array2::from_shape_fn((4, 6), |(i, j)| (6 * i + j) as i32))?;
    let part = table.slice(s![..;2, 1..3]);
    let copy = part.copy_to_host()?;
    assert_eq!((copy.len(), copy.is_standard_layout()), (4, true));
    assert_eq!(copy, array![[1, 2], [13, 14]]);
    let like = DeviceArray::<i32, _>::like(&part)?;
    assert_eq!((like.nbytes(), like.is_c_contiguous()), (16, true));
    Ok(())
}

/// `reshape` in the other order returned a view whose elements were in the wrong order.
#[test]
fn d6_a_reshape_in_the_other_order_is_exact_or_refused() -> Result<()> {
    let device = lab();
    let rows = on_device(&device, &array![[1, 2, 3], [4, 5, 6]])?;
    let Err(refused) = rows.reshape((3, 2), Order::F) else { panic!("no view has these elements") };
    assert!(matches!(refused, Error::Shape { .. }), "{refused:?}");
    assert!(refused.to_string().contains("to_contiguous"), "{refused}");
    let columns = rows.t();
    let seen = columns.reshape((2, 3), Order::F)?.copy_to_host()?;
    let wanted = array![[1, 2, 3], [4, 5, 6]].reversed_axes();
    assert_eq!(seen, wanted.to_shape(((2, 3), Order::F)).expect("six elements"));
    Ok(())
}

/// A shape that strides can reach was refused if the array was not contiguous.
#[test]
fn d7_a_reshape_that_needs_no_copy_is_a_view() -> Result<()> {
    let table = on_device(&lab(), &Array2::from_shape_fn((4, 6), |(i, j)| (6 * i + j) as i32))?;
    let every_other = table.slice(s![..;2, ..]);
    let seen = every_other.reshape((2, 2, 3), Order::C)?.copy_to_host()?;
    assert_eq!(seen, array![[[0, 1, 2], [3, 4, 5]], [[12, 13, 14], [15, 16, 17]]]);
    Ok(())
}

/// `split(0)` was a division by zero, and only contiguous arrays of one axis were split.
#[test]
fn d8_sections_of_no_index_are_refused_and_strided_arrays_are_split() -> Result<()> {
    let table = on_device(&lab(), &Array2::from_shape_fn((5, 2), |(i, j)| (2 * i + j) as i32))?;
    let Err(refused) = table.split(0) else { panic!("no sections") };
    assert!(matches!(refused, Error::Shape { .. }), "{refused:?}");
    let lengths = |parts: Vec<DeviceView<'_, i32, _>>| -> Vec<usize> {
        parts.iter().map(DeviceView::len).collect()
    };
    assert_eq!(lengths(table.column(1).split(2)?), [2, 2, 1]);
    assert_eq!(table.column(1).split(2)?[2].copy_to_host()?, array![9]);
    Ok(())
}

/// `transpose` launched a kernel that wrote a new array.
#[test]
fn d9_a_transposed_array_is_a_view() -> Result<()> {
    let table = on_device(&lab(), &array![[1, 2, 3], [4, 5, 6]])?;
    assert_eq!(table.t().strides(), [1, 3]);
    assert_eq!(table.t().copy_to_host()?, array![[1, 4], [2, 5], [3, 6]]);
    Ok(())
}

/// Any slice of a broadcast axis had one index. Contiguity of a broadcast array was exported as
/// true, so that consumers read past its end.
#[test]
fn d10_parts_of_broadcast_views_keep_their_shape() -> Result<()> {
    let line = on_device(&lab(), &array![1, 2, 3, 4])?;
    let repeated = line.broadcast((2, 4)).expect("a shape that ends in 4");
    let part = repeated.slice(s![.., 1..3]);
    assert_eq!(part.shape(), [2, 2]);
    assert_eq!(part.copy_to_host()?, array![[2, 3], [2, 3]]);
    assert!(!repeated.is_c_contiguous() && !repeated.is_f_contiguous());
    Ok(())
}

/// A read of one element on a stream did not wait for the stream.
#[test]
fn d11_an_element_is_read_after_the_work_before_it() -> Result<()> {
    let device = lab();
    let double = Kernel::<(InOut<i32>,)>::new("double")
        .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2));
    let mut line = on_device(&device, &array![1, 2, 3])?;
    for stream in [device.stream(), device.new_stream()?] {
        double.launch_on(&stream, Grid::cover(3), (&mut line,))?;
        line.set(0, 10)?;
    }
    assert_eq!((line.get(0)?, line.get(2)?), (10, 12));
    Ok(())
}

/// There was no `fill`, and no copy between strided device arrays.
#[test]
fn d12_parts_are_filled_and_copied_on_the_device() -> Result<()> {
    let device = lab();
    let mut table = on_device(&device, &Array2::zeros((3, 4)))?;
    table.slice_mut(s![1, ..]).fill(7)?;
    let (mut above, below) = table.split_at_mut(Axis(0), 1);
    above.slice_mut(s![0, ..;2]).copy_from_device(&below.slice(s![0, 2..]))?;
    assert_eq!(table.copy_to_host()?, array![[7, 0, 7, 0], [7, 7, 7, 7], [0, 0, 0, 0]]);
    Ok(())
}
