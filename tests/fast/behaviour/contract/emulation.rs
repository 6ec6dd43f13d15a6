//! The settings of emulated devices.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use resident::emulation::Outcome;
use support::prelude::*;

#[test]
fn with_a_seed_nothing_runs_by_itself() -> Result<()> {
    let device = Device::emulated(Emulation::new().seed(7));
    let ran = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&ran);
    let kernel = Kernel::<(InOut<u8>,)>::new("mark")
        .host(move |_grid, (_,)| seen.store(true, Ordering::SeqCst));
    kernel.launch_on(&device.stream(), Grid::cover(1), (&mut SmartArray::<u8, _>::zeros(1),))?;
    assert!(!ran.load(Ordering::SeqCst));
    device.synchronize()?;
    assert!(ran.load(Ordering::SeqCst));
    Ok(())
}

/// The order in which bodies of four streams run.
fn order_under(seed: u64) -> Result<Vec<u32>> {
    let device = Device::emulated(Emulation::new().seed(seed));
    let order = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&order);
    let kernel = Kernel::<(u32, InOut<u8>)>::new("note")
        .host(move |_grid, (name, _)| seen.lock().expect("no panic").push(name));
    for name in 0..4_u32 {
        kernel.launch_on(
            &device.new_stream()?,
            Grid::cover(1),
            (name, &mut SmartArray::<u8, _>::zeros(1)),
        )?;
    }
    device.synchronize()?;
    let order = order.lock().expect("no panic").clone();
    Ok(order)
}

#[test]
fn a_seed_gives_one_order_and_seeds_give_many() -> Result<()> {
    let orders = (0..40).map(order_under).collect::<Result<std::collections::BTreeSet<_>>>()?;
    assert!(orders.len() > 5, "40 seeds gave {orders:?}");
    for seed in 0..10 {
        assert_eq!(order_under(seed)?, order_under(seed)?);
    }
    Ok(())
}

#[test]
fn calls_are_numbered_labelled_and_sized() -> Result<()> {
    let device = Device::emulated(Emulation::new());
    let log = device.emulation().expect("this device is emulated");
    let photo = SmartArray::from(vec![1.0_f32; 10]).named("photo");
    photo.prefetch(&device.stream())?;
    let calls = log.calls();
    assert_eq!((calls[0].kind, calls[0].len_bytes), (CallKind::Allocate, 40));
    let upload = calls.iter().find(|call| call.kind == CallKind::Upload).expect("one upload");
    assert_eq!((upload.len_bytes, upload.outcome), (40, Outcome::Accepted));
    assert!(upload.label.contains("\"photo\""), "{}", upload.label);
    assert!(Device::cpu().emulation().is_none());
    Ok(())
}

#[test]
fn the_nth_call_fails_once_when_submitted() -> Result<()> {
    let device = Device::emulated(Emulation::new().fail(Fault::nth(2)));
    let array = SmartArray::from(vec![1.0_f32; 10]);
    let refused = array.prefetch(&device.stream()).expect_err("call 2 is the upload");
    assert!(matches!(refused, Error::Backend { .. }), "{refused:?}");
    array.prefetch(&device.stream())?;
    assert_eq!(array.host()?.sum(), 10.0);
    Ok(())
}

#[test]
fn poison_shows_where_a_promise_was_not_kept() -> Result<()> {
    let idle = Kernel::<(Out<u32>,)>::new("idle").host(|_grid, (_,)| {});
    for (poison, expected) in [(true, u32::MAX), (false, 0)] {
        let device = Device::emulated(Emulation::new().poison(poison));
        let mut array = SmartArray::<u32, _>::uninit(4);
        idle.launch_on(&device.stream(), Grid::cover(4), (&mut array,))?;
        assert_eq!(array.host()?.to_vec(), [expected; 4], "poison: {poison}");
    }
    Ok(())
}

/// Whatever they held before, and nothing beside them. Release builds leave old contents.
#[test]
fn elements_that_a_body_leaves_out_hold_poison_on_every_embedded_device() -> Result<()> {
    let first =
        Kernel::<(Out<u16, Ix2>,)>::new("first").host(|_grid, (mut out,)| out.row_mut(0).fill(7));
    let left = if cfg!(debug_assertions) { u16::MAX } else { 1 };
    for device in [Device::cpu(), Device::emulated(Emulation::new())] {
        let mut array = SmartArray::<u16, _>::ones((6, 5)).named("table");
        drop(array.gpu_mut_on(&device.stream())?);
        let mut part = array.slice_mut(s![1..;2, ..;-2]);
        first.launch_on(&device.stream(), Grid::cover(9), (&mut part,))?;
        let mut expected = Array2::from_elem((6, 5), 1_u16);
        expected.slice_mut(s![1..;2, ..;2]).fill(left);
        expected.slice_mut(s![1, ..;2]).fill(7);
        assert_eq!(*array.host()?, expected, "{device}");
        // Contents of other holders are as they were.
        array.fill(2)?;
        first.call(Grid::cover(9), (&mut array.slice_mut(s![..1, ..]),))?;
        assert_eq!((array.get((0, 4))?, array.get((1, 4))?), (7, 2));
    }
    Ok(())
}
