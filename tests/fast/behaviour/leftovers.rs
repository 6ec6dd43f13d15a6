//! Memory is used again. What a safe body leaves out of its `Out`, or a guard of the memory that it
//! is to overwrite, never shows the contents of another array.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use resident::ops::Elementwise;
use support::bodies::{Gate, broken_output, one};
use support::prelude::*;

/// What another array held, in each element.
const SECRET: u32 = 0x5EC2_E700;
const LEN: usize = 1000;

type Numbers = SmartArray<u32, Ix1>;

/// Writes nothing.
fn lazy() -> Kernel<(Out<u32>,)> {
    Kernel::new("lazy").host(|_, (_,): (&mut [u32],)| ())
}

/// Writes nothing, in two dimensions.
fn lazy_table() -> Kernel<(Out<u32, Ix2>,)> {
    Kernel::<(Out<u32, Ix2>,)>::new("lazy table").host(|_, (_,)| ())
}

fn secrets() -> Numbers {
    SmartArray::from(vec![SECRET; LEN])
}

/// A device without poison, as in a release build, on which arrays of secrets were freed.
fn used(emulation: Emulation) -> Device {
    let device = Device::emulated(emulation.poison(false));
    free_secrets(&device, 4);
    device
}

/// Fills memory of the device, which then has that many free blocks of this length.
fn free_secrets(device: &Device, count: usize) {
    let arrays: Vec<Numbers> = (0..count).map(|_| secrets()).collect();
    arrays.iter().for_each(|array| array.prefetch(&device.stream()).unwrap());
    drop(arrays);
    device.synchronize().unwrap();
    assert!(device.memory().pooled >= 4 * LEN as u64, "there is memory to be used again");
}

fn unwritten() -> Numbers {
    SmartArray::uninit(LEN)
}

#[track_caller]
fn assert_clear(seen: &[u32]) {
    assert!(!seen.is_empty() && !seen.contains(&SECRET), "another array's: {:?}", &seen[..4]);
}

/// What a program sees of memory that held secrets.
type Case = (&'static str, fn(&Device) -> Result<Vec<u32>>);

const CASES: &[Case] = &[
    ("a whole array", |device| {
        let mut array = unwritten();
        lazy().launch_on(&device.stream(), one(), (&mut array,))?;
        array.to_vec()
    }),
    ("a device array", |device| {
        let mut array = DeviceArray::<u32, _>::uninit_on(&device.stream(), LEN)?;
        lazy().launch_on(&device.stream(), one(), (&mut array,))?;
        Ok(array.copy_to_host()?.to_vec())
    }),
    ("parts, of which one was uploaded", |device| {
        let mut array = unwritten();
        array.slice_mut(s![..10]).fill(3)?;
        array.slice(s![..10]).prefetch(&device.stream())?;
        for _ in 0..2 {
            lazy().launch_on(&device.stream(), one(), (&mut array.slice_mut(s![10..400]),))?;
            lazy().launch_on(&device.stream(), one(), (&mut array.slice_mut(s![300..]),))?;
        }
        assert_eq!(array.slice(s![..10]).to_vec()?, [3; 10]);
        array.to_vec()
    }),
    ("columns", |device| {
        let mut table = SmartArray::<u32, _>::uninit((20, LEN / 20));
        lazy_table().launch_on(&device.stream(), one(), (&mut table.slice_mut(s![.., ..7]),))?;
        lazy_table().launch_on(&device.stream(), one(), (&mut table.slice_mut(s![.., 7..]),))?;
        table.to_vec()
    }),
    ("what the body itself sees", |device| {
        let is_seen = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_seen);
        let look = Kernel::<(Out<u32>,)>::new("look")
            .host(move |_, (xs,)| seen.store(xs.contains(&SECRET), Ordering::Relaxed));
        let mut array = unwritten();
        look.launch_on(&device.stream(), one(), (&mut array,))?;
        device.synchronize()?;
        Ok(vec![if is_seen.load(Ordering::Relaxed) { SECRET } else { 0 }; 4])
    }),
    ("one of two outputs", |device| {
        let half = Kernel::<(Out<u32>, Out<u32>)>::new("half").host(|_, (x, _)| x.fill(1));
        let (mut x, mut y) = (unwritten(), unwritten());
        half.launch_on(&device.stream(), one(), (&mut x, &mut y))?;
        assert_eq!(x.to_vec()?, [1; LEN]);
        y.to_vec()
    }),
    ("a closure for each element", |device| {
        let forgetful = Elementwise::<(In<u32>, Out<u32>)>::new("forgetful", "y = x", ["x", "y"]);
        let forgetful = forgetful.host(|(_, _)| ());
        let (x, mut y) = (SmartArray::full(LEN, 1), unwritten());
        forgetful.apply_on(&device.stream(), (&x, &mut y))?;
        y.to_vec()
    }),
    ("a body that is called for each element", |device| {
        let forgetful = Kernel::<(Out<u32>,)>::new("forgetful").host_each(|_, (_,)| ());
        let mut array = unwritten();
        forgetful.launch_on(&device.stream(), one(), (&mut array,))?;
        array.to_vec()
    }),
    ("a text that assigns on a condition, and a body in Rust that does so", |device| {
        let text = "if (x > 5) y = x";
        let some = Elementwise::<(In<u32>, Out<u32>)>::new("some", text, ["x", "y"]);
        let some = some.host(|(x, y)| {
            if x > 5 {
                *y = x;
            }
        });
        let (x, mut y) = (SmartArray::from((0..LEN as u32).collect::<Vec<_>>()), unwritten());
        some.apply_on(&device.stream(), (&x, &mut y))?;
        y.to_vec()
    }),
    ("a guard", |device| {
        let mut array = unwritten();
        drop(array.gpu_overwrite_on(&device.stream())?);
        array.to_vec()
    }),
    ("guards of parts", |device| {
        let mut array = unwritten();
        drop(array.slice_mut(s![..;2]).gpu_overwrite_on(&device.stream())?);
        drop(array.slice_mut(s![1..;2]).gpu_overwrite_on(&device.new_stream()?)?);
        array.to_vec()
    }),
    ("a guard of a device array", |device| {
        let mut array = DeviceArray::<u32, _>::uninit_on(&device.stream(), LEN)?;
        drop(array.gpu_overwrite_on(&device.stream())?);
        Ok(array.copy_to_host()?.to_vec())
    }),
    ("a launch after one that did not run", |device| {
        let gate = Gate::default();
        let (x, mut y, mut z) = (SmartArray::<u32, _>::zeros(LEN), unwritten(), unwritten());
        broken_output(&gate).launch_on(&device.stream(), one(), (&x, &mut y))?;
        let copy = Kernel::<(In<u32>, Out<u32>)>::new("copy").host(|_, (_, _)| ());
        copy.launch_on(&device.stream(), one(), (&y, &mut z))?;
        gate.open();
        lazy().launch_on(&device.stream(), one(), (&mut z,))?;
        assert!(device.synchronize().is_err(), "the first failed");
        z.to_vec()
    }),
    ("memory that was released", |device| {
        let mut before = secrets();
        before.prefetch(&device.stream())?;
        before.release_on(device)?;
        let mut array = unwritten();
        lazy().launch_on(&device.stream(), one(), (&mut array,))?;
        array.to_vec()
    }),
    ("memory of an array that was evicted", |device| {
        device.trim()?;
        device.set_memory_limit(Some(4 * LEN as u64 + 100))?;
        let before = secrets();
        before.prefetch(&device.stream())?;
        let mut array = unwritten();
        lazy().launch_on(&device.stream(), one(), (&mut array,))?;
        assert_eq!(before.residency().on(device), Absent);
        array.to_vec()
    }),
    ("memory that is the array's for the second time", |device| {
        let mut array = SmartArray::full(LEN, 1_u32);
        array.prefetch(&device.stream())?;
        drop(array.host()?);
        array.release_on(device)?;
        free_secrets(device, 2);
        lazy().launch_on(&device.stream(), one(), (&mut array,))?;
        array.to_vec()
    }),
    ("a part that a peer had", |device| {
        let other = used(Emulation::new());
        let mut array = unwritten();
        array.slice_mut(s![..10]).fill(3)?;
        lazy().launch_on(&other.stream(), one(), (&mut array.slice_mut(s![10..500]),))?;
        array.slice(s![..500]).prefetch(&device.stream())?;
        lazy().launch_on(&device.stream(), one(), (&mut array.slice_mut(s![500..]),))?;
        array.to_vec()
    }),
    ("a body that is called", |_| {
        drop(secrets());
        let mut array = unwritten();
        lazy().call(one(), (&mut array,))?;
        array.to_vec()
    }),
    ("a guard of the host", |_| {
        drop(secrets());
        let mut array = unwritten();
        drop(array.host_overwrite()?);
        array.to_vec()
    }),
    ("pinned, mapped and managed memory", |device| {
        let held = Array1::from_elem(LEN, SECRET);
        drop(PinnedArray::from_array(held.clone())?);
        drop(MappedArray::from_array(held.clone())?);
        drop(ManagedArray::from_array(held)?);
        let mut pinned = PinnedArray::<u32, _>::uninit(LEN)?;
        let mut mapped = MappedArray::<u32, _>::zeros(LEN)?;
        let mut managed = ManagedArray::<u32, _>::zeros(LEN)?;
        drop(pinned.host_overwrite()?);
        lazy().launch_on(&device.stream(), one(), (&mut mapped,))?;
        lazy().launch_on(&device.stream(), one(), (&mut managed,))?;
        let (mapped, managed) = (mapped.host()?.to_vec(), managed.host()?.to_vec());
        Ok([pinned.to_vec()?, mapped, managed].concat())
    }),
];

#[test]
fn what_nothing_writes_is_not_another_arrays() -> Result<()> {
    for emulation in [Emulation::new, || Emulation::new().seed(3)] {
        for (name, case) in CASES {
            println!("{name}");
            let device = used(emulation());
            let _here = device.enter();
            let seen = case(&device)?;
            assert_clear(&seen);
            assert_ordered(&device);
        }
    }
    Ok(())
}

/// The plain device poisons outputs of bodies in debug builds, but no guards.
#[test]
fn the_plain_device_shows_nothing_of_another_array() -> Result<()> {
    let device = Device::cpu();
    free_secrets(&device, 4);
    let (mut by_body, mut by_guard) = (unwritten(), unwritten());
    lazy().launch_on(&device.stream(), one(), (&mut by_body,))?;
    assert_clear(&by_body.to_vec()?);
    drop(by_guard.gpu_overwrite_on(&device.stream())?);
    assert_clear(&by_guard.to_vec()?);
    Ok(())
}

/// An array's own old contents need not be cleared, and are not.
#[test]
fn what_nothing_writes_is_the_arrays_own() -> Result<()> {
    let device = used(Emulation::new());
    let fill = Kernel::<(u32, Out<u32>)>::new("fill").host(|_, (x, xs)| xs.fill(x));
    let stream = device.stream();
    let mut array = unwritten();
    for round in 0..3 {
        fill.launch_on(&stream, one(), (round, &mut array.slice_mut(s![..300])))?;
        lazy().launch_on(&stream, one(), (&mut array.slice_mut(s![..300]),))?;
        assert_eq!(array.slice(s![..300]).to_vec()?, [round; 300]);
    }
    fill.launch_on(&stream, one(), (7, &mut array))?;
    lazy().launch_on(&stream, one(), (&mut array,))?;
    // A guard looks at what the memory has now, not at what queued work writes.
    device.synchronize()?;
    drop(array.gpu_overwrite_on(&stream)?);
    lazy().launch_on(&stream, one(), (&mut array.slice_mut(s![5..9]),))?;
    assert_eq!(array.to_vec()?, [7; LEN]);
    let uploaded = SmartArray::full(LEN, 8_u32);
    let mut uploaded = SmartArray::from(uploaded.into_array()?);
    free_secrets(&device, 2);
    uploaded.prefetch(&stream)?;
    lazy().launch_on(&stream, one(), (&mut uploaded,))?;
    assert_eq!(uploaded.to_vec()?, [8; LEN]);
    Ok(())
}
