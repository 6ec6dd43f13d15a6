//! Contents that are given up, host memory that is freed while a device has the contents, and reads
//! that take only what is there.

use support::bodies::{Gate, add, assert_ordered, one};
use support::flags::gated;
use support::prelude::*;

fn numbers() -> SmartArray<u32, Ix1> {
    SmartArray::from_iter(0..1000)
}

/// An array whose first ten elements are newest on the device, which has the others too.
fn written_on(device: &Device) -> Result<SmartArray<u32, Ix1>> {
    let mut array = numbers();
    add().launch_on(&device.stream(), one(), (1, &mut array))?;
    drop(array.host()?);
    add().launch_on(&device.stream(), one(), (1, &mut array.slice_mut(s![..10])))?;
    Ok(array)
}

#[test]
fn discarded_elements_are_uninitialised_wherever_they_were() -> Result<()> {
    let device = Device::emulated(Emulation::new().poison(true));
    for is_on_device in [false, true] {
        let mut array = if is_on_device { written_on(&device)? } else { numbers() };
        array.slice_mut(s![5..20]).discard();
        let host = if is_on_device { 500 } else { 495 };
        assert!(matches!(array.host(), Err(Error::Uninitialised { .. })));
        assert!(matches!(array.gpu_on(&device.stream()), Err(Error::Uninitialised { .. })));
        assert!(matches!(array.get(5), Err(Error::Uninitialised { .. })));
        assert_eq!(array.slice(s![20..500]).host()?.len(), 480);
        array.slice_mut(s![5..20]).host_overwrite()?.fill(0);
        let sum = array.slice(s![..500]).host()?.sum();
        let expected: u32 = (0..500).sum::<u32>() - (5..20).sum::<u32>();
        let added = if is_on_device { 2 * 5 + host - 20 } else { 0 };
        assert_eq!(sum, expected + added);
    }
    let mut constant = SmartArray::<u32, _>::ones(100);
    constant.discard();
    assert!(matches!(constant.sum(), Err(Error::Uninitialised { .. })));
    SmartArray::<u32, _>::ones(0).discard();
    Ok(())
}

#[test]
fn discarded_contents_are_not_copied_back() -> Result<()> {
    let device = Device::emulated(Emulation::new());
    let mut array = written_on(&device)?;
    let before = array.traffic().to_host.bytes;
    array.slice_mut(s![..10]).discard();
    array.release_on(&device)?;
    assert_eq!(array.traffic().to_host.bytes, before);
    assert_eq!(array.slice(s![10..]).host()?[0], 11);
    Ok(())
}

#[test]
fn a_discard_does_not_wait_and_does_not_disturb_queued_work() -> Result<()> {
    let device = Device::emulated(Emulation::new());
    let mut array = numbers();
    let gate = Gate::default();
    let kernel = gated(&gate);
    kernel.launch_on(&device.stream(), one(), (&mut array,))?;
    array.discard();
    gate.open();
    array.slice_mut(s![..]).host_overwrite()?.fill(3);
    assert_eq!(array.sum()?, 3000);
    assert_ordered(&device);
    Ok(())
}

#[test]
fn host_memory_goes_and_comes_back_with_all_contents() -> Result<()> {
    for seed in [None, Some(1), Some(2), Some(3)] {
        let emulation = seed.map_or(Emulation::new(), |seed| Emulation::new().seed(seed));
        let device = Device::emulated(emulation.poison(true));
        let _here = device.enter();
        for is_on_device in [false, true] {
            let mut array = if is_on_device { written_on(&device)? } else { numbers() };
            array.slice_mut(s![500..]).fill(7)?;
            array.slice_mut(s![900..]).host_mut()?.fill(8);
            array.slice_mut(s![950..]).discard();
            array.release_host()?;
            assert_eq!(array.residency().host(), Absent);
            array.release_host()?;
            let start = if is_on_device { [2, 3] } else { [0, 1] };
            assert_eq!(array.slice(s![..2]).to_vec()?, start);
            assert_eq!(array.slice(s![500..950]).host()?.sum(), 400 * 7 + 50 * 8);
            assert!(matches!(array.host(), Err(Error::Uninitialised { .. })));
            array.slice_mut(s![950..]).fill(0)?;
            assert_eq!(array.into_array()?[499], if is_on_device { 500 } else { 499 });
        }
        assert_ordered(&device);
    }
    Ok(())
}

#[test]
fn nothing_is_lost_whatever_call_of_a_release_fails() -> Result<()> {
    let emulation = || Emulation::new().seed(3).poison(true);
    let program = |device: &Device| -> (SmartArray<u32, Ix1>, Result<()>) {
        let _here = device.enter();
        let mut array = numbers();
        let released = array.prefetch(&device.stream()).and_then(|()| {
            array.slice_mut(s![..10]).host_mut()?.fill(9);
            array.release_host()
        });
        (array, released)
    };
    let counting = Device::emulated(emulation());
    program(&counting).1?;
    let calls = counting.emulation().expect("emulated").calls().len() as u64;
    assert!(calls >= 3, "{calls}");
    for fault in (1..=calls).flat_map(|call| [Fault::nth(call), Fault::nth(call).late()]) {
        let device = Device::emulated(emulation().fail(fault));
        let (array, released) = program(&device);
        let written = released.is_ok() || array.get(0)? == 9;
        let ten = if written { 90 } else { 45 };
        assert_eq!(array.sum()?, ten + (10..1000).sum::<u32>(), "{fault:?}: {released:?}");
    }
    Ok(())
}

#[test]
fn an_owner_goes_with_the_host_memory() -> Result<()> {
    let _here = Device::cpu().enter();
    let table: std::sync::Arc<[u32]> = (0..1000).collect();
    for writes in [false, true] {
        let mut array = SmartArray::from_owner(std::sync::Arc::clone(&table));
        if writes {
            array.set(0, 0)?;
        }
        array.release_host()?;
        assert_eq!(std::sync::Arc::strong_count(&table), 1);
        array.host_mut()?[0] = 1;
        assert_eq!(array.sum()?, 499_501);
    }
    Ok(())
}

#[test]
fn try_host_neither_copies_nor_waits() -> Result<()> {
    let device = Device::emulated(Emulation::new());
    let mut array = numbers();
    assert_eq!(array.try_host()?.map(|host| host.sum()), Some(499_500));
    let gate = Gate::default();
    let kernel = gated(&gate);
    kernel.launch_on(&device.stream(), one(), (&mut array.slice_mut(s![..10]),))?;
    assert!(array.try_host()?.is_none());
    assert!(array.slice(s![5..12]).try_host()?.is_none());
    assert_eq!(array.slice(s![10..]).try_host()?.map(|host| host.len()), Some(990));
    array.prefetch_host()?;
    assert!(array.try_host()?.is_none(), "the download waits for the gate");
    gate.open();
    drop(array.host()?);
    assert!(array.try_host()?.is_some());
    assert_eq!(array.traffic().to_host.bytes, 40);
    let constant = SmartArray::<f32, _>::ones(7);
    assert_eq!(constant.try_host()?.map(|host| host.sum()), Some(7.0));
    let never = SmartArray::<f32, _>::uninit(7);
    assert!(matches!(never.try_host(), Err(Error::Uninitialised { .. })));
    assert_eq!(SmartArray::<f32, _>::uninit(0).try_host()?.map(|host| host.len()), Some(0));
    Ok(())
}
