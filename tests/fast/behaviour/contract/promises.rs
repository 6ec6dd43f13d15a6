//! Guarantees that hold for all methods of an array.

use support::prelude::*;

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
        (Valid, Valid, Valid)
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
    assert_eq!(validity(&array.residency(), &device), [Stale, Valid]);
    std::mem::forget(array.host_mut()?);
    assert_eq!(validity(&array.residency(), &device), [Valid, Stale]);
    std::mem::forget(array.gpu_on(&device.stream())?);
    std::mem::forget(array.slice_mut(s![..5]));
    std::mem::forget(array.slice(s![..5]).host()?);
    std::mem::forget(array.snapshot_on(&device.stream())?);
    assert_eq!(array.host()?.sum(), 10.0);
    drop(array);
    device.synchronize()?;
    assert_eq!(device.memory().in_use, 0);
    assert_ordered(&device);
    Ok(())
}
