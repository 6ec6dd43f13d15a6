//! Reproduced defects of other libraries; here the results are right, with exact traffic.

use support::prelude::*;

/// Kokkos `DualView`: synchronising a subview clears the parent's flag, so the rest of the parent
/// stays stale unnoticed.
#[test]
fn h1_bringing_up_a_part_leaves_the_rest_of_the_parent_stale_and_known_to_be() -> Result<()> {
    let device = lab();
    let copy = Kernel::<(In<i32>, Out<i32>)>::new("copy")
        .host(|_grid, (from, to)| to.copy_from_slice(from));
    let (mut parent, mut seen) =
        (SmartArray::<i32, _>::zeros(10), SmartArray::<i32, _>::uninit(10));
    drop(parent.gpu_mut_on(&device.stream())?);
    parent.host_mut()?.fill(1);
    drop(parent.slice(s![5..]).gpu_on(&device.stream())?);
    assert_eq!(parent.residency().on(&device), Partial { valid_bytes: 20 });
    copy.launch_on(&device.stream(), Grid::cover(10), (&parent, &mut seen))?;
    assert_eq!(seen.host()?.to_vec(), [1; 10], "device[0] is 1, not 0");
    assert_eq!(moves(parent.traffic()), [(2, 40), (1, 40), (0, 0)], "each half was uploaded once");
    Ok(())
}

/// MFEM: if a device writes through an alias, the base array does not notice, and reports that both
/// sides are valid.
#[test]
fn h2_a_device_write_through_a_view_makes_the_base_stale_on_the_host() -> Result<()> {
    let device = lab();
    let fill = Kernel::<(i32, Out<i32>)>::new("fill").host(|_grid, (value, xs)| xs.fill(value));
    let mut base = SmartArray::from(vec![1_i32; 10]);
    drop(base.gpu_on(&device.stream())?);
    fill.launch_on(&device.stream(), Grid::cover(4), (7, &mut base.slice_mut(s![2..6])))?;
    assert_eq!(base.residency().host(), Partial { valid_bytes: 24 });
    assert_eq!(base.host()?.to_vec(), [1, 1, 7, 7, 7, 7, 1, 1, 1, 1]);
    assert_eq!(moves(base.traffic()), [(1, 40), (1, 16), (0, 0)]);
    Ok(())
}

/// Halide: a host write through a crop does not mark the parent dirty, so copying the parent to the
/// device copies nothing.
#[test]
fn h3_a_host_write_through_a_part_is_uploaded_with_the_parent() -> Result<()> {
    let device = lab();
    let copy = Kernel::<(In<i32>, Out<i32>)>::new("copy")
        .host(|_grid, (from, to)| to.copy_from_slice(from));
    let (mut parent, mut seen) =
        (SmartArray::from(vec![1_i32; 10]), SmartArray::<i32, _>::uninit(10));
    drop(parent.gpu_on(&device.stream())?);
    parent.slice_mut(s![3..5]).host_mut()?.fill(9);
    copy.launch_on(&device.stream(), Grid::cover(10), (&parent, &mut seen))?;
    assert_eq!(seen.host()?.to_vec(), [1, 1, 1, 9, 9, 1, 1, 1, 1, 1]);
    assert_eq!(moves(parent.traffic()), [(2, 48), (0, 0), (0, 0)], "only the crop's 8 bytes");
    Ok(())
}

/// CHAI: after a device write, host reads through `operator[]` or an older pointer return stale
/// values; and a device read of a non-const array takes two copies.
#[test]
fn h4_a_host_read_after_a_device_write_is_fresh_and_a_device_read_costs_one_move() -> Result<()> {
    let device = lab();
    let add = Kernel::<(InOut<i32>,)>::new("add")
        .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x += 1));
    let sum =
        Kernel::<(In<i32>, Out<i32>)>::new("sum").host(|_grid, (xs, out)| out[0] = xs.iter().sum());
    let mut array = SmartArray::from(vec![1_i32; 10]);
    assert_eq!(array.host()?[3], 1);
    add.launch_on(&device.stream(), Grid::cover(10), (&mut array,))?;
    assert_eq!((array.get(3)?, array.host()?[3]), (2, 2), "read after the launch");
    let (mut read, mut total) =
        (SmartArray::from(vec![1_i32; 10]), SmartArray::<i32, _>::uninit(1));
    sum.launch_on(&device.stream(), Grid::cover(10), (&read, &mut total))?;
    read.host_mut()?[0] = 5;
    assert_eq!(moves(read.traffic()), [(1, 40), (0, 0), (0, 0)], "only read on the device");
    assert_eq!(moves(total.traffic()), NOTHING);
    Ok(())
}

/// AdaptiveCpp: it tracks whole pages, and so copies 1,024 times the bytes that sparse writes made
/// stale. It does not support a region that must be copied from two sources.
#[test]
fn h5_sparse_writes_move_their_own_bytes_and_a_read_takes_from_two_sources() -> Result<()> {
    let (one, other) = (lab(), lab());
    let mut array = SmartArray::from(Array1::<f32>::zeros(64 * 1024));
    drop(array.gpu_on(&one.stream())?);
    for index in 0..64 {
        array.slice_mut(s![index * 1024..index * 1024 + 1]).host_mut()?.fill(1.0);
    }
    let before = array.traffic().to_device.bytes;
    drop(array.gpu_on(&one.stream())?);
    assert_eq!(array.traffic().to_device.bytes - before, 64 * 4, "64 elements, not 64 pages");
    let (mut left, mut right) = array.split_at_mut(Axis(0), 32 * 1024);
    drop(left.gpu_mut_on(&one.stream())?);
    drop(right.gpu_mut_on(&other.stream())?);
    assert_eq!(array.residency().host(), Stale);
    assert_eq!(array.host()?.sum(), 64.0, "half from each device");
    Ok(())
}
