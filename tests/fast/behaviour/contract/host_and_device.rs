//! Host accesses, device accesses, and changes that other code makes through pointers.

use support::prelude::*;

#[test]
fn an_overwritten_array_counts_as_written() -> Result<()> {
    let mut array = SmartArray::<f32, _>::uninit(3);
    assert!(matches!(array.host_mut().map(drop), Err(Error::Uninitialised { .. })));
    assert!(matches!(
        array.gpu_mut_on(&lab().stream()).map(drop),
        Err(Error::Uninitialised { .. })
    ));
    drop(array.host_overwrite()?);
    assert_eq!(array.host()?.len(), 3, "unspecified values, no error");
    let mut there = SmartArray::<f32, _>::uninit(3);
    drop(there.gpu_overwrite_on(&lab().stream())?);
    assert_eq!(there.host()?.len(), 3);
    Ok(())
}

#[test]
fn gpu_is_the_current_devices_default_stream() -> Result<()> {
    let device = lab();
    let _here = device.enter();
    let mut array = SmartArray::from(vec![1_u8; 4]);
    assert_eq!(array.gpu()?.stream(), device.stream());
    assert_eq!(array.gpu_mut()?.stream(), Device::current()?.stream());
    assert_eq!(array.gpu_overwrite()?.device(), device);
    Ok(())
}

#[test]
fn a_device_guard_is_about_the_device_of_its_stream_wherever_the_thread_is() -> Result<()> {
    let (here, there) = (lab(), lab());
    let _here = here.enter();
    let array = SmartArray::from(vec![1_u8; 4]);
    assert_eq!(array.gpu_on(&there.stream())?.device(), there);
    assert_eq!(array.residency().on(&here), Absent);
    Ok(())
}

#[test]
fn a_part_can_be_declared_changed_where_it_is_newest() -> Result<()> {
    let device = lab();
    let mut array = SmartArray::from(vec![1.0_f32; 10]);
    drop(array.slice_mut(ndarray::s![..4]).gpu_mut_on(&device.stream())?);
    assert!(matches!(array.host_changed(), Err(Error::LostUpdate { .. })), "4 are newer there");
    array.slice_mut(ndarray::s![4..]).host_changed()?;
    array.slice_mut(ndarray::s![..4]).gpu_changed_on(&device.stream())?;
    assert_eq!(array.host()?.sum(), 10.0);
    assert_eq!(moves(array.traffic()), [(1, 16), (1, 16), (0, 0)]);
    Ok(())
}

#[test]
fn several_devices_may_hold_one_array() -> Result<()> {
    let devices = [lab(), lab(), lab()];
    let mut array = SmartArray::from(vec![1.0_f32; 10]);
    for device in &devices {
        drop(array.gpu_on(&device.stream())?);
    }
    assert!(devices.iter().all(|device| array.residency().on(device) == Valid));
    drop(array.gpu_mut_on(&devices[1].stream())?);
    let on = |index: usize| array.residency().on(&devices[index]);
    assert_eq!((on(0), on(1), on(2), array.residency().host()), (Stale, Valid, Stale, Stale));
    Ok(())
}
