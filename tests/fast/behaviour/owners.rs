//! Arrays over memory of owners of the program: read in place, and never written.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use support::bodies::{Gate, add, one};
use support::flags::gated;
use support::prelude::*;

/// An owner that counts its drops, and whose drop uses the library.
struct Counted {
    elements: Vec<u32>,
    drops: Arc<AtomicU32>,
}

impl AsRef<[u32]> for Counted {
    fn as_ref(&self) -> &[u32] {
        &self.elements
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let array = SmartArray::from(vec![1_u32, 2]);
        assert_eq!(array.sum().expect("a sum"), 3);
        let _devices = audit::inventory();
        self.drops.fetch_add(1, Ordering::SeqCst);
    }
}

fn table() -> Arc<[u32]> {
    (0..1000).collect()
}

/// An array over the table, used on a device first.
fn uploaded(device: &Device, table: &Arc<[u32]>) -> Result<SmartArray<u32, Ix1>> {
    let array = SmartArray::from_owner(Arc::clone(table));
    drop(array.gpu_on(&device.stream())?);
    Ok(array)
}

fn is_in_place(array: &SmartArray<u32, Ix1>, table: &Arc<[u32]>) -> Result<bool> {
    Ok(array.host()?.as_ptr() == table.as_ptr())
}

#[test]
fn reads_are_in_place_wherever_they_are() -> Result<()> {
    let (device, table) = (Device::emulated(Emulation::new()), table());
    let array = uploaded(&device, &table)?;
    assert!(is_in_place(&array, &table)?);
    assert_eq!(array.slice(s![10..12]).to_vec()?, [10, 11]);
    assert_eq!(array.traffic().to_device.bytes, 4000);
    let lone = array.try_clone()?;
    assert_eq!(lone.to_vec()?, *table);
    assert!(is_in_place(&array, &table)?);
    assert!(array.host()?.as_array().is_none(), "no `Array` has an owner's memory");
    assert_eq!(Arc::strong_count(&table), 2);
    drop((array, lone));
    assert_eq!(Arc::strong_count(&table), 1);
    Ok(())
}

/// Writes of the host, each as a function of the array.
type Write = fn(&mut SmartArray<u32, Ix1>) -> Result<()>;

#[test]
fn each_write_of_the_host_copies_first() -> Result<()> {
    let writes: [(&str, Write); 8] = [
        ("host_mut", |a| a.host_mut().map(|mut a| a[3] = 7)),
        ("host_overwrite", |a| a.host_overwrite().map(|mut a| a.fill(7))),
        ("a part", |a| a.slice_mut(s![2..5]).host_overwrite().map(|mut a| a.fill(7))),
        ("set", |a| a.set(3, 7)),
        ("fill", |a| a.slice_mut(s![3..4]).fill(7)),
        ("copy_from_slice", |a| a.slice_mut(s![3..5]).copy_from_slice(&[7, 7])),
        ("assign", |a| a.assign(&SmartArray::full(1000, 7_u32))),
        ("call", |a| add().call(one(), (7 - 3, a))),
    ];
    for (name, write) in writes {
        for is_uploaded in [false, true] {
            let (device, table) = (Device::emulated(Emulation::new()), table());
            let _here = device.enter();
            let mut array = match is_uploaded {
                true => uploaded(&device, &table)?,
                false => SmartArray::from_owner(Arc::clone(&table)),
            };
            write(&mut array)?;
            assert_eq!((array.get(3)?, table[3]), (7, 3), "{name}");
            let expected: Vec<u32> = match name {
                "host_overwrite" | "assign" => vec![7; 1000],
                "call" => (4..1004).collect(),
                "a part" => (0..1000).map(|n| if (2..5).contains(&n) { 7 } else { n }).collect(),
                "copy_from_slice" => (0..1000).map(|n| if n == 4 { 7 } else { n }).collect(),
                _ => (0..1000).collect(),
            };
            let rest = |all: &[u32]| [&all[..3], &all[4..]].concat();
            assert_eq!(rest(&array.to_vec()?), rest(&expected), "{name}");
            assert_eq!(*table, *Vec::from_iter(0..1000), "{name} wrote the owner's memory");
            assert_eq!(array.into_array()?.to_vec()[3], 7, "{name}");
        }
    }
    Ok(())
}

#[test]
fn copies_to_the_host_leave_the_owner_as_it_was() -> Result<()> {
    for seed in [None, Some(1), Some(2)] {
        let emulation = seed.map_or(Emulation::new(), |seed| Emulation::new().seed(seed));
        let (device, table) = (Device::emulated(emulation.poison(true)), table());
        let mut array = uploaded(&device, &table)?;
        add().launch_on(&device.stream(), one(), (1, &mut array.slice_mut(s![..10])))?;
        assert_eq!(array.slice(s![10..]).host()?.as_ptr(), table[10..].as_ptr(), "it is valid");
        array.prefetch_host()?;
        let expected: Vec<u32> = (1..11).chain(10..1000).collect();
        assert_eq!(array.to_vec()?, expected);
        assert_eq!(array.traffic().to_host.bytes, 40);
        assert_eq!(*table, *Vec::from_iter(0..1000));
        let host = array.host()?.as_ptr();
        assert_eq!(array.into_array()?.as_ptr(), host, "the copy is the array's own");
    }
    Ok(())
}

/// The owner's memory may be pinned, which takes one download. Its copy is not.
#[test]
fn a_download_is_made_for_the_copy_of_the_owners_memory() -> Result<()> {
    for is_pinned in [false, true] {
        let device = Device::emulated(Emulation::new().pieces(1000));
        let _here = device.enter();
        let mut array = SmartArray::from_owner(table());
        if is_pinned {
            array.page_lock()?;
        }
        add().launch(one(), (1, &mut array))?;
        assert_eq!(array.to_vec()?, Vec::from_iter(1..1001));
        let calls = device.emulation().expect("emulated").calls();
        let downloads = calls.iter().filter(|call| call.kind == CallKind::Download);
        assert_eq!(downloads.count(), 4, "pinned: {is_pinned}");
    }
    Ok(())
}

#[test]
fn guards_of_other_parts_stay_valid_while_the_memory_is_replaced() -> Result<()> {
    let table = table();
    let mut array = SmartArray::from_owner(Arc::clone(&table));
    let (left, mut right) = array.split_at_mut(Axis(0), 500);
    let barrier = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            let guard = left.host().expect("the left half");
            barrier.wait();
            barrier.wait();
            assert_eq!(guard.sum(), (0..500_u32).sum::<u32>());
            assert_eq!(left.host().expect("again").sum(), (0..500_u32).sum::<u32>());
        });
        barrier.wait();
        right.host_mut().expect("the right half").fill(0);
        barrier.wait();
    });
    assert_eq!(array.sum()?, (0..500_u32).sum::<u32>());
    assert_eq!(table[999], 999);
    Ok(())
}

/// An array over an owner that counts its drops.
fn counted() -> (SmartArray<u32, Ix1>, Arc<AtomicU32>) {
    let drops = Arc::new(AtomicU32::new(0));
    let owner = Counted { elements: vec![5; 1 << 16], drops: Arc::clone(&drops) };
    (SmartArray::from_owner(owner), drops)
}

#[test]
fn an_owner_drops_once_and_without_locks_while_its_array_drops() -> Result<()> {
    let uses: [(&str, Write); 5] = [
        ("none", |_| Ok(())),
        ("a read", |a| a.host().map(drop)),
        ("an upload", |a| a.prefetch(&Device::current()?.stream())),
        ("a write", |a| a.set(3, 7)),
        ("both", |a| a.prefetch(&Device::current()?.stream()).and_then(|()| a.set(3, 7))),
    ];
    for (name, use_it) in uses {
        let device = Device::emulated(Emulation::new());
        let _here = device.enter();
        let (mut array, drops) = counted();
        use_it(&mut array)?;
        assert_eq!(drops.load(Ordering::SeqCst), 0, "{name}: guards may read it");
        drop(array);
        assert_eq!(drops.load(Ordering::SeqCst), 1, "{name}");
        let (mut array, drops) = counted();
        use_it(&mut array)?;
        assert_eq!(array.into_array()?.len(), 1 << 16);
        assert_eq!(drops.load(Ordering::SeqCst), 1, "{name}, into_array");
    }
    let drops = Arc::new(AtomicU32::new(0));
    let owner = |elements| Counted { elements, drops: Arc::clone(&drops) };
    SmartArray::from_owner_shaped(owner(vec![5; 3]), (2, 2)).unwrap_err();
    assert_eq!(drops.load(Ordering::SeqCst), 1, "it does not fit");
    assert_eq!(SmartArray::from_owner(owner(vec![])).into_array()?.len(), 0);
    assert_eq!(drops.load(Ordering::SeqCst), 2, "it is empty");
    Ok(())
}

#[test]
fn an_owner_drops_once_queued_work_has_read_it() -> Result<()> {
    let device = Device::emulated(Emulation::new());
    let _here = device.enter();
    let (stream, gate, table) = (device.stream(), Gate::default(), table());
    let array = SmartArray::from_owner(Arc::clone(&table));
    array.page_lock()?;
    gated(&gate).launch(one(), (&mut SmartArray::from(vec![1_u32]),))?;
    array.prefetch(&stream)?;
    drop(array);
    assert_eq!(Arc::strong_count(&table), 2, "the upload reads it");
    gate.open();
    device.synchronize()?;
    assert_eq!(Arc::strong_count(&table), 1);
    Ok(())
}

#[test]
fn shapes_are_checked_and_owners_within_the_array_are_found() -> Result<()> {
    let inline = SmartArray::from_owner_shaped([1_u8, 2, 3, 4, 5, 6], (2, 3).f())?;
    assert_eq!(inline.host()?, ndarray::array![[1, 3, 5], [2, 4, 6]]);
    assert_eq!(inline.into_array()?.strides(), [1, 2]);
    let error = SmartArray::from_owner_shaped(vec![0_u8; 5], (2, 3)).expect_err("5 are not 6");
    let text = "shape: from_owner_shaped expects 6 elements for shape [2, 3] but got an owner of 5";
    assert!(error.to_string().starts_with(text), "{error}");
    let empty = SmartArray::from_owner(Vec::<f32>::new());
    assert_eq!((empty.to_vec()?, empty.into_array()?.len()), (vec![], 0));
    let locked = SmartArray::from_owner(table());
    locked.page_lock()?;
    assert_eq!(locked.sum()?, 499_500);
    Ok(())
}
