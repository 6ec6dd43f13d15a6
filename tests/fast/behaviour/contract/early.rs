//! Prefetches, asynchronous copies, and clones.

use support::prelude::*;

#[test]
fn a_prefetch_to_the_host_takes_a_stream_of_any_device() -> Result<()> {
    let (device, other) = (lab(), lab());
    for stream in [device.stream(), device.new_stream()?, other.stream()] {
        let mut array = SmartArray::from(Array2::<i32>::ones((3, 4)));
        drop(array.gpu_mut_on(&device.stream())?);
        array.slice(s![1.., ..]).prefetch_host_on(&stream)?;
        array.view().prefetch_host_on(&stream)?;
        array.slice_mut(s![.., 1]).prefetch_host_on(&stream)?;
        assert_eq!(array.residency().host(), Valid);
        assert_eq!(array.host()?, Array2::<i32>::ones((3, 4)));
        assert_eq!(moves(array.traffic()), [(1, 48), (2, 48), (0, 0)]);
    }
    assert_eq!(moves(other.traffic()), [(0, 0); 3], "a stream of another device runs no copy");
    let never = SmartArray::<u8, _>::uninit(10);
    assert!(matches!(never.prefetch_host_on(&device.stream()), Err(Error::Uninitialised { .. })));
    Ok(())
}

#[test]
fn under_any_order_a_prefetch_to_the_host_is_of_its_moment() -> Result<()> {
    let add = Kernel::<(i32, InOut<i32>)>::new("add")
        .host(|_grid, (k, xs)| xs.iter_mut().for_each(|x| *x += k));
    for seed in 0..60 {
        let device = Device::emulated(Emulation::new().seed(seed));
        let (work, copies) = (device.stream(), device.new_stream()?);
        let mut array = SmartArray::from(vec![1; 100]);
        for turn in 0..4 {
            add.launch_on(&work, Grid::cover(100), (1, &mut array))?;
            array.slice(s![turn..]).prefetch_host_on(&copies)?;
        }
        assert_eq!(array.slice(s![3..]).host()?.to_vec(), [5; 97], "seed {seed}");
        assert_eq!(array.host()?.to_vec(), [5; 100], "seed {seed}");
        device.synchronize()?;
        assert_ordered_under(seed, &device);
    }
    Ok(())
}

#[test]
fn a_pending_snapshot_prints_what_it_is_of() -> Result<()> {
    let array = SmartArray::from(Array2::<i32>::ones((3, 4))).named("field");
    let pending = array.slice(s![1.., ..]).snapshot_on(&lab().stream())?;
    assert_eq!(format!("{pending:?}"), "Pending(of \"field\", [2, 4])");
    Ok(())
}

#[test]
fn a_snapshot_of_host_contents_moves_nothing() -> Result<()> {
    let array = SmartArray::from(vec![1_u8; 10]);
    assert_eq!(array.snapshot_on(&lab().stream())?.wait()?.to_vec(), [1; 10]);
    assert_eq!(
        SmartArray::<u8, _>::full(10, 3).snapshot_on(&lab().stream())?.wait()?.to_vec(),
        [3; 10]
    );
    assert_eq!(moves(array.traffic()), NOTHING);
    let never = SmartArray::<u8, _>::uninit(10);
    assert!(matches!(
        never.snapshot_on(&lab().stream()).map(drop),
        Err(Error::Uninitialised { .. })
    ));
    Ok(())
}

#[test]
fn a_clone_lives_where_its_original_is_newest() -> Result<()> {
    let device = lab();
    let mut array = SmartArray::from(vec![1.0_f32; 10]);
    drop(array.slice_mut(s![..4]).gpu_mut_on(&device.stream())?);
    let before = array.traffic();
    let clone = array.try_clone()?;
    assert_eq!((moves(clone.traffic()), array.traffic()), (NOTHING, before), "no transfer");
    assert_eq!(clone.residency().on(&device), Partial { valid_bytes: 16 });
    assert_eq!(clone.residency().host(), Partial { valid_bytes: 24 });
    array.fill(0.0)?;
    assert_eq!((clone.host()?.sum(), array.host()?.sum()), (10.0, 0.0), "separate contents");
    Ok(())
}

#[test]
fn a_clone_of_a_constant_is_a_constant_and_of_nothing_is_nothing() -> Result<()> {
    let ones = SmartArray::<f32, _>::ones((2, 2)).try_clone()?;
    assert_eq!((ones.residency().host(), ones.host()?.sum()), (Absent, 4.0));
    let never = SmartArray::<f32, _>::uninit(3).try_clone()?;
    assert!(matches!(never.host().map(drop), Err(Error::Uninitialised { .. })));
    Ok(())
}

#[test]
fn clones_keep_shape_and_axis_order() -> Result<()> {
    let columns =
        SmartArray::from(Array2::from_shape_fn((3, 4), |(i, j)| i * 4 + j).reversed_axes());
    let clone = columns.try_clone()?;
    assert_eq!((clone.shape(), clone.strides()), (columns.shape(), columns.strides()));
    assert_eq!(*clone.host()?, *columns.host()?);
    let gaps = columns.slice(s![..;2, ..]);
    assert_eq!(*gaps.try_clone()?.host()?, *gaps.host()?);
    Ok(())
}
