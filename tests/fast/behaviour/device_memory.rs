//! Device memory of any owner as arrays, and arrays as device memory, on embedded devices.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use support::prelude::*;

/// Elements, and a count of the owners that were dropped.
struct Owner {
    elements: Vec<f32>,
    dropped: Arc<AtomicU32>,
}

impl Owner {
    /// The elements 0, 1, ... 5, and the address of the first.
    fn new(dropped: &Arc<AtomicU32>) -> (u64, Self) {
        let elements = vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
        let mut owner = Self { elements, dropped: Arc::clone(dropped) };
        (owner.elements.as_mut_ptr().expose_provenance() as u64, owner)
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // Code of the program, which may call the library.
        assert!(SmartArray::from(vec![1]).host().is_ok());
        self.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

fn dropped() -> (Arc<AtomicU32>, impl Fn() -> u32) {
    let count = Arc::new(AtomicU32::new(0));
    let dropped = Arc::clone(&count);
    (count, move || dropped.load(Ordering::SeqCst))
}

#[test]
fn an_array_uses_the_memory_in_place_and_drops_its_owner_after_queued_work() -> Result<()> {
    let device = lab();
    let (count, dropped) = dropped();
    let (address, owner) = Owner::new(&count);
    let double = Kernel::<(InOut<f32, Ix2>,)>::new("double").host(|_grid, (mut xs,)| xs *= 2.0);
    // SAFETY: the owner keeps the six elements, which nothing else uses.
    let array = unsafe { DeviceArray::from_device_memory(&device, address, (2, 3).f(), owner) };
    let mut table = array?;
    double.launch_on(&device.stream(), Grid::cover(6), (&mut table,))?;
    assert_eq!(table.copy_to_host()?, array![[0.0, 4.0, 8.0], [2.0, 6.0, 10.0]]);
    double.launch_on(&device.stream(), Grid::cover(6), (&mut table,))?;
    assert_eq!(dropped(), 0);
    drop(table);
    eventually((1, 0), "the owner's drop", || (dropped(), device.memory().in_use));
    assert_ordered(&device);
    Ok(())
}

#[test]
fn a_coherent_array_has_its_newest_contents_there() -> Result<()> {
    let device = lab();
    let (count, dropped) = dropped();
    let (address, owner) = Owner::new(&count);
    // SAFETY: the owner keeps the six elements, which nothing else uses.
    let mut line = unsafe { SmartArray::<f32, _>::from_device_memory(&device, address, 6, owner) }?;
    assert_eq!((line.residency().on(&device), line.residency().host()), (Valid, Absent));
    line.slice_mut(s![..2]).host_mut()?.fill(7.0);
    drop(line.gpu_on(&device.stream())?);
    assert_eq!(line.traffic().to_device.bytes, 8);
    line.release_on(&device)?;
    eventually(1, "owners dropped", &dropped);
    assert_eq!(line.to_vec()?, [7.0, 7.0, 2.0, 3.0, 4.0, 5.0]);
    Ok(())
}

#[test]
fn a_full_device_moves_a_coherent_array_out_of_its_owners_memory_and_no_other() -> Result<()> {
    let device = lab();
    device.set_memory_limit(Some(1000))?;
    let (count, dropped) = dropped();
    let owners = [Owner::new(&count), Owner::new(&count)];
    let [(first, one), (second, other)] = owners;
    // SAFETY: the owner keeps the six elements, which nothing else uses.
    let mut line = unsafe { SmartArray::<f32, _>::from_device_memory(&device, first, 6, one) }?;
    // SAFETY: as above.
    let kept = unsafe { DeviceArray::<f32, _>::from_device_memory(&device, second, 6, other) }?;
    let double = Kernel::<(InOut<f32>,)>::new("double")
        .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0));
    double.launch_on(&device.stream(), Grid::cover(6), (&mut line,))?;
    let large = DeviceArray::<u8, _>::zeros_on(&device.stream(), 970)?;
    eventually(1, "owners dropped", &dropped);
    assert_eq!(line.to_vec()?, [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
    assert_eq!((line.traffic().to_host.bytes, kept.copy_to_host()?.sum()), (24, 15.0));
    drop(large);
    Ok(())
}

#[test]
fn memory_that_does_not_fit_is_refused_and_its_owner_dropped() -> Result<()> {
    let device = lab();
    let (count, dropped) = dropped();
    let take = |change: fn(u64) -> u64| {
        let (address, owner) = Owner::new(&count);
        // SAFETY: what is not true of the memory is refused.
        unsafe { DeviceArray::<f32, _>::from_device_memory(&device, change(address), 6, owner) }
    };
    let zero = take(|_| 0).map(drop);
    let unaligned = take(|address| address + 2).map(drop);
    assert!(matches!(zero, Err(Error::Foreign { .. })) && dropped() == 2);
    assert!(matches!(unaligned, Err(Error::Foreign { .. })));
    let (address, owner) = Owner::new(&count);
    // SAFETY: the owner keeps the six elements, which nothing else uses.
    let line = unsafe { DeviceArray::<f32, _>::from_device_memory(&device, address, 6, owner) }?;
    let (_, other) = Owner::new(&count);
    // SAFETY: the library refuses memory that an array uses.
    let again =
        unsafe { DeviceArray::<f32, _>::from_device_memory(&device, address + 8, 2, other) };
    assert!(matches!(again, Err(Error::Backend { .. })) && dropped() == 3);
    let (_, owner) = Owner::new(&count);
    // SAFETY: an array without bytes uses no memory.
    let none = unsafe { DeviceArray::<f32, _>::from_device_memory(&device, 0, (0, 3), owner) }?;
    assert_eq!((none.shape(), dropped()), (&[0, 3][..], 4));
    assert_eq!(line.copy_to_host()?.sum(), 15.0);
    Ok(())
}

#[test]
fn memory_of_an_array_is_given_away_and_taken_back() -> Result<()> {
    let device = lab();
    let stream = device.stream();
    let mut line = DeviceArray::<f32, _>::zeros_on(&stream, 100)?;
    let add = Kernel::<(InOut<f32>,)>::new("add").host(|_grid, (xs,)| {
        xs.iter_mut().for_each(|x| *x += 0.5);
    });
    add.launch_on(&stream, Grid::cover(100), (&mut line,))?;
    let (address, len_bytes, owner) = line.into_device_memory()?;
    assert_eq!((len_bytes, device.memory().in_use), (400, 400));
    // SAFETY: the owner keeps the 100 elements, which nothing else uses.
    let line = unsafe { DeviceArray::<f32, _>::from_device_memory(&device, address, 100, owner) }?;
    assert_eq!((line.copy_to_host()?.sum(), device.memory().in_use), (50.0, 400));
    drop(line);
    eventually(0, "bytes in use", || device.memory().in_use);

    let _here = device.enter();
    let numbers = SmartArray::from(vec![1_u32, 2, 3]);
    let (address, len_bytes, owner) = numbers.into_device_memory()?;
    let start = std::ptr::with_exposed_provenance::<u32>(address as usize);
    // SAFETY: the owner keeps `len_bytes` initialised bytes there, which nothing writes.
    let seen = unsafe { std::slice::from_raw_parts(start, len_bytes / 4) };
    assert_eq!(seen, [1, 2, 3]);
    drop(owner);
    eventually(0, "bytes in use", || device.memory().in_use);
    let unwritten = SmartArray::<f32, _>::uninit(3).into_device_memory().map(drop);
    assert!(matches!(unwritten, Err(Error::Uninitialised { .. })), "{unwritten:?}");
    assert_eq!(SmartArray::<f32, _>::zeros((0, 3)).into_device_memory()?.0, 0);
    Ok(())
}
