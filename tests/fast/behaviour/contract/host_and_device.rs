//! Host accesses, device accesses, and changes that other code makes through pointers.

use resident::{Device, Error, Result, SmartArray, Validity};

use support::lab::lab;
use support::moves::{NOTHING, moves};

#[test]
fn reading_brings_stale_parts_once_and_leaves_both_sides_valid() -> Result<()> {
    let device = lab();
    let _here = device.enter();
    let mut array = SmartArray::from(vec![1.0_f32; 100]);
    drop(array.gpu_mut()?);
    assert_eq!(
        (array.residency().host(), array.residency().on(&device)),
        (Validity::Stale, Validity::Valid)
    );
    assert_eq!(array.host()?.sum(), 100.0);
    assert_eq!(
        (array.residency().host(), array.residency().on(&device)),
        (Validity::Valid, Validity::Valid)
    );
    drop((array.host()?, array.gpu()?, array.host()?, array.gpu()?));
    assert_eq!(moves(array.traffic()), [(1, 400), (1, 400), (0, 0)]);
    Ok(())
}

#[test]
fn writing_on_the_host_makes_it_the_newest_side() -> Result<()> {
    let device = lab();
    let mut array = SmartArray::from(vec![1.0_f32; 100]);
    drop(array.gpu_mut_on(&device.stream())?);
    array.host_mut()?[3] = 5.0;
    assert_eq!(
        (array.residency().host(), array.residency().on(&device)),
        (Validity::Valid, Validity::Stale)
    );
    assert_eq!(
        moves(array.traffic()),
        [(1, 400), (1, 400), (0, 0)],
        "the other elements were downloaded first"
    );
    drop(array.gpu_on(&device.stream())?);
    assert_eq!(moves(array.traffic()), [(2, 800), (1, 400), (0, 0)]);
    assert_eq!(array.host()?.sum(), 104.0);
    Ok(())
}

#[test]
fn overwriting_moves_nothing_in_either_direction() -> Result<()> {
    let device = lab();
    let _here = device.enter();
    let mut array = SmartArray::from(vec![1.0_f32; 100]);
    drop(array.gpu_overwrite()?);
    assert_eq!(
        (array.residency().host(), array.residency().on(&device)),
        (Validity::Stale, Validity::Valid)
    );
    array.host_overwrite()?.fill(2.0);
    assert_eq!(
        (array.residency().host(), array.residency().on(&device)),
        (Validity::Valid, Validity::Stale)
    );
    drop(array.gpu_overwrite_on(&device.stream())?);
    assert_eq!(moves(array.traffic()), NOTHING);
    Ok(())
}

#[test]
fn an_overwritten_array_counts_as_written() -> Result<()> {
    let mut array = SmartArray::<f32, _>::uninit(3);
    assert!(matches!(array.host_mut().map(drop), Err(Error::Uninitialised { .. })));
    assert!(matches!(
        array.gpu_mut_on(&lab().stream()).map(drop),
        Err(Error::Uninitialised { .. })
    ));
    drop(array.host_overwrite()?);
    assert_eq!(
        array.host()?.len(),
        3,
        "unwritten elements have unspecified values, without an error"
    );
    let mut there = SmartArray::<f32, _>::uninit(3);
    drop(there.gpu_overwrite_on(&lab().stream())?);
    assert_eq!(there.host()?.len(), 3);
    Ok(())
}

#[test]
fn device_guards_say_what_where_and_on_which_stream() -> Result<()> {
    let device = lab();
    let stream = device.new_stream()?;
    let mut array = SmartArray::from(vec![1.0_f32; 12]);
    let first = {
        let guard = array.gpu_on(&stream)?;
        assert_eq!(
            (guard.len(), guard.shape(), guard.device(), guard.stream()),
            (12, &[12][..], device.clone(), stream.clone())
        );
        assert!(format!("{guard:?}").contains("DeviceRef"));
        guard.address()
    };
    let guard = array.gpu_mut_on(&stream)?;
    assert_eq!(
        (guard.len(), guard.shape(), guard.device(), guard.stream()),
        (12, &[12][..], device.clone(), stream.clone())
    );
    let address: u64 = guard.address();
    assert_eq!(address, first, "constant from first use until drop");
    assert!(!guard.is_empty() && format!("{guard:?}").contains("DeviceMut"));
    drop(guard);
    array.host_mut()?.fill(1.0);
    assert_eq!(array.gpu_on(&device.stream())?.address(), first);
    assert_eq!(array.slice(ndarray::s![3..]).gpu_on(&stream)?.address(), first + 12);
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
    assert_eq!(array.residency().on(&here), Validity::Absent);
    Ok(())
}

#[test]
fn what_happened_on_the_newest_side_is_taken_at_its_word() -> Result<()> {
    let device = lab();
    let _here = device.enter();
    let mut array = SmartArray::from(vec![1.0_f32; 10]);
    drop(array.gpu()?);
    array.host_changed()?;
    assert_eq!(
        (array.residency().host(), array.residency().on(&device)),
        (Validity::Valid, Validity::Stale)
    );
    drop(array.gpu()?);
    assert_eq!(moves(array.traffic()), [(2, 80), (0, 0), (0, 0)]);
    array.gpu_changed()?;
    assert_eq!(
        (array.residency().host(), array.residency().on(&device)),
        (Validity::Stale, Validity::Valid)
    );
    array.gpu_changed_on(&device.new_stream()?)?;
    assert_eq!(array.host()?.sum(), 10.0);
    Ok(())
}

#[test]
fn what_happened_on_an_older_side_is_a_lost_update() -> Result<()> {
    let device = lab();
    let _here = device.enter();
    let mut array = SmartArray::from(vec![1.0_f32; 10]);
    assert!(
        matches!(array.gpu_changed(), Err(Error::LostUpdate { .. })),
        "the device never had a copy"
    );
    drop(array.gpu_mut()?);
    assert!(matches!(array.host_changed(), Err(Error::LostUpdate { .. })));
    array.host_mut()?.fill(3.0);
    assert!(matches!(array.gpu_changed(), Err(Error::LostUpdate { .. })));
    assert!(matches!(array.gpu_changed_on(&lab().stream()), Err(Error::LostUpdate { .. })));
    assert_eq!(array.host()?.sum(), 30.0, "nothing was changed");
    Ok(())
}

#[test]
fn a_part_can_be_declared_changed_where_it_is_newest() -> Result<()> {
    let device = lab();
    let mut array = SmartArray::from(vec![1.0_f32; 10]);
    drop(array.slice_mut(ndarray::s![..4]).gpu_mut_on(&device.stream())?);
    assert!(
        matches!(array.host_changed(), Err(Error::LostUpdate { .. })),
        "4 elements are newer on the device"
    );
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
    assert!(devices.iter().all(|device| array.residency().on(device) == Validity::Valid));
    drop(array.gpu_mut_on(&devices[1].stream())?);
    let on = |index: usize| array.residency().on(&devices[index]);
    assert_eq!(
        (on(0), on(1), on(2), array.residency().host()),
        (Validity::Stale, Validity::Valid, Validity::Stale, Validity::Stale)
    );
    Ok(())
}
