//! Guarantees that hold for all methods of an array.

use std::sync::Barrier;
use std::thread;

use resident::ndarray::s;
use resident::{Device, Emulation, Error, Grid, InOut, Kernel, Result, SmartArray, Validity};

use support::lab::lab;
use support::moves::moves;

#[test]
fn a_transfer_that_many_threads_need_happens_once() -> Result<()> {
    let device = lab();
    let mut array = SmartArray::from(vec![1.0_f32; 10_000]);
    drop(array.gpu_mut_on(&device.stream())?);
    let (barrier, shared) = (Barrier::new(8), &array);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                barrier.wait();
                assert_eq!(shared.host().expect("the download succeeds").sum(), 10_000.0);
            });
        }
    });
    assert_eq!(moves(array.traffic()), [(1, 40_000), (1, 40_000), (0, 0)]);
    array.host_mut()?.fill(2.0);
    let (shared, device) = (&array, &device);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| drop(shared.gpu_on(&device.stream()).expect("the upload succeeds")));
        }
    });
    assert_eq!(moves(array.traffic()), [(2, 80_000), (1, 40_000), (0, 0)]);
    Ok(())
}

#[test]
fn nothing_reachable_by_shared_reference_makes_a_side_stale() -> Result<()> {
    let (device, other) = (lab(), lab());
    let array = SmartArray::from(vec![1.0_f32; 10]);
    drop(array.gpu_on(&device.stream())?);
    array.prefetch(&other.stream())?;
    array.prefetch_host()?;
    drop((
        array.host()?,
        array.snapshot_on(&device.stream())?.wait()?,
        array.get(3)?,
        array.try_clone()?,
    ));
    drop(array.slice(s![2..4]).gpu_on(&other.stream())?);
    let residency = array.residency();
    assert_eq!(
        (residency.host(), residency.on(&device), residency.on(&other)),
        (Validity::Valid, Validity::Valid, Validity::Valid)
    );
    Ok(())
}

#[test]
fn elements_never_written_are_tracked_one_by_one() -> Result<()> {
    let device = lab();
    let mut array = SmartArray::<f32, _>::uninit((4, 4));
    array.slice_mut(s![1..3, 1..3]).host_overwrite()?.fill(1.0);
    assert_eq!(array.slice(s![1..3, 1..3]).gpu_on(&device.stream())?.len(), 4);
    assert!(matches!(
        array.slice(s![1..3, 1..]).gpu_on(&device.stream()).map(drop),
        Err(Error::Uninitialised { .. })
    ));
    assert!(matches!(array.host().map(drop), Err(Error::Uninitialised { .. })));
    assert!(matches!(array.get((0, 0)), Err(Error::Uninitialised { .. })));
    assert_eq!(array.get((2, 2))?, 1.0);
    assert!(matches!(array.into_array().map(drop), Err(Error::Uninitialised { .. })));
    Ok(())
}

#[test]
fn an_access_changes_the_state_when_it_is_handed_out_and_never_when_it_is_dropped() -> Result<()> {
    let device = lab();
    let mut array = SmartArray::from(vec![1.0_f32; 10]);
    std::mem::forget(array.gpu_mut_on(&device.stream())?);
    assert_eq!(
        (array.residency().host(), array.residency().on(&device)),
        (Validity::Stale, Validity::Valid)
    );
    std::mem::forget(array.host_mut()?);
    assert_eq!(
        (array.residency().host(), array.residency().on(&device)),
        (Validity::Valid, Validity::Stale)
    );
    std::mem::forget(array.gpu_on(&device.stream())?);
    std::mem::forget(array.slice_mut(s![..5]));
    std::mem::forget(array.slice(s![..5]).host()?);
    std::mem::forget(array.snapshot_on(&device.stream())?);
    assert_eq!(array.host()?.sum(), 10.0);
    drop(array);
    device.synchronize()?;
    assert_eq!(device.memory().in_use, 0);
    assert!(device.emulation().is_some_and(|log| log.hazards().is_empty()));
    Ok(())
}

#[test]
fn a_device_address_is_constant_until_drop() -> Result<()> {
    let (device, other) = (lab(), lab());
    let mut array = SmartArray::from(vec![1.0_f32; 64]);
    let address = array.gpu_on(&device.stream())?.address();
    let seen = |array: &SmartArray<f32, _>| {
        array.gpu_on(&device.new_stream()?).map(|guard| guard.address())
    };
    array.host_mut()?.fill(2.0);
    assert_eq!(seen(&array)?, address);
    array.fill(3.0)?;
    assert_eq!(seen(&array)?, address);
    drop(array.gpu_mut_on(&other.stream())?);
    assert_eq!(seen(&array)?, address);
    assert_eq!(array.gpu_overwrite_on(&device.stream())?.address(), address);
    Ok(())
}

#[test]
fn an_upload_returns_when_its_bytes_are_safe_from_later_writes() -> Result<()> {
    let device = Device::emulated(Emulation::new().seed(11));
    let mut array = SmartArray::from(vec![1_u32; 100]);
    let mut sum = SmartArray::<u32, _>::uninit(1);
    let total = Kernel::<(resident::In<u32>, resident::Out<u32>)>::new("total")
        .host(|_grid, (xs, sum)| sum[0] = xs.iter().sum());
    total.launch_on(&device.stream(), Grid::cover(1), (&array, &mut sum))?;
    array.host_mut()?.fill(9);
    assert_eq!(sum.host()?[0], 100, "nothing had run when the host wrote");
    Ok(())
}

#[test]
fn dropping_an_array_in_flight_neither_blocks_nor_frees_too_early() -> Result<()> {
    let device = Device::emulated(Emulation::new().seed(4));
    let add = Kernel::<(InOut<u32>,)>::new("add")
        .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x += 1));
    for _ in 0..20 {
        let mut array = SmartArray::from(vec![1_u32; 100]);
        for _ in 0..3 {
            add.launch_on(&device.new_stream()?, Grid::cover(100), (&mut array,))?;
        }
    }
    device.synchronize()?;
    assert_eq!(device.memory().in_use, 0);
    assert!(device.emulation().is_some_and(|log| log.hazards().is_empty()));
    Ok(())
}
