//! Devices.

use std::collections::HashSet;
use std::hash::Hash;
use support::prelude::*;

fn is_a_handle<
    T: Clone + Send + Sync + Eq + Hash + std::fmt::Debug + std::fmt::Display + 'static,
>() {
}

#[test]
fn devices_streams_and_events_are_handles() {
    is_a_handle::<Device>();
    is_a_handle::<Stream>();
    fn compared<
        T: Clone + Send + Sync + PartialEq + std::fmt::Debug + std::fmt::Display + 'static,
    >() {
    }
    compared::<resident::Event>();
}

#[test]
fn the_embedded_device_is_always_there_and_always_the_same() {
    assert_eq!(Device::cpu(), Device::cpu());
    assert_eq!(Device::cpu().ordinal(), 0);
    assert_eq!(format!("{}", Device::cpu()), Device::cpu().name());
    assert_eq!(Device::all().last(), Some(&Device::cpu()));
    assert!(format!("{:?}", Device::cpu()).contains("cpu"));
    assert_eq!(Device::cpu().kind(), lab().kind());
}

#[test]
fn an_emulated_device_is_a_fresh_one() {
    let (one, other) = (lab(), lab());
    assert_ne!(one, other);
    assert_ne!(one.name(), other.name(), "messages tell them apart");
    assert_eq!(one, one.clone());
    assert_eq!(HashSet::from([one.clone(), one.clone(), other]).len(), 2);
}

#[test]
fn entered_devices_nest_and_end_with_their_guards() -> Result<()> {
    let (outer, inner) = (lab(), lab());
    let outside = outer.enter();
    assert_eq!(Device::current()?, outer);
    {
        let _inside = inner.enter();
        assert_eq!(Device::current()?, inner);
    }
    assert_eq!(Device::current()?, outer);
    let inside = inner.enter();
    drop(outside);
    assert_eq!(Device::current()?, inner, "the outer dropped first");
    drop(inside);
    assert_ne!(Device::current()?, outer);
    Ok(())
}

#[test]
fn a_thread_does_not_inherit_the_entered_device() -> Result<()> {
    let device = lab();
    let _here = device.enter();
    let theirs = std::thread::spawn(|| Device::current().map(|device| device.name()))
        .join()
        .expect("no panic")?;
    assert_ne!(theirs, device.name());
    Ok(())
}

#[test]
fn capacity_counts_what_is_taken() -> Result<()> {
    let device = Device::emulated(Emulation::new().memory(1 << 20));
    assert_eq!(device.capacity()?.total, 1 << 20);
    let array = SmartArray::from(vec![1_u8; 1 << 16]);
    let before = device.capacity()?.free;
    array.prefetch(&device.stream())?;
    device.synchronize()?;
    assert_eq!(before - device.capacity()?.free, 1 << 16);
    Ok(())
}

#[test]
fn traffic_of_a_device_is_that_of_its_arrays() -> Result<()> {
    let device = lab();
    let _here = device.enter();
    assert_eq!(device.traffic(), Traffic::default());
    let mut first = SmartArray::from(vec![1.0_f32; 10]);
    let second = SmartArray::from(vec![1.0_f64; 10]);
    drop(first.gpu_mut()?);
    drop(second.gpu()?);
    drop(first.host()?);
    assert_eq!(moves(device.traffic()), [(2, 120), (1, 40), (0, 0)]);
    assert_eq!(device.traffic(), first.traffic() + second.traffic());
    Ok(())
}

#[test]
fn a_copy_between_devices_counts_for_both() -> Result<()> {
    let (one, other) = (lab(), lab());
    let mut array = SmartArray::from(vec![1.0_f32; 10]);
    drop(array.gpu_mut_on(&one.stream())?);
    drop(array.gpu_on(&other.stream())?);
    assert_eq!(moves(array.traffic()), [(1, 40), (0, 0), (1, 40)]);
    assert_eq!(moves(one.traffic()), [(1, 40), (0, 0), (1, 40)]);
    assert_eq!(moves(other.traffic()), [(0, 0), (0, 0), (1, 40)]);
    Ok(())
}
