//! Uses of the same bytes are ordered even if they are on different streams; other uses are not.

use std::sync::mpsc;
use std::sync::{Arc, Mutex};

use resident::ndarray::s;
use resident::{Device, Emulation, Grid, In, InOut, Kernel, Out, Result, SmartArray};

use support::lab::lab;

#[test]
fn uses_of_the_same_bytes_keep_their_order_on_any_streams() -> Result<()> {
    let push = Kernel::<(u32, InOut<u32>)>::new("push")
        .host(|_grid, (digit, xs)| xs.iter_mut().for_each(|x| *x = *x * 10 + digit));
    for seed in 0..50 {
        let devices = [
            Device::emulated(Emulation::new().seed(seed)),
            Device::emulated(Emulation::new().seed(seed + 1)),
        ];
        let mut array = SmartArray::<u32, _>::zeros(6);
        for digit in 1..=8_u32 {
            let stream = devices[digit as usize % 2].new_stream()?;
            push.launch_on(&stream, Grid::cover(6), (digit, &mut array))?;
        }
        assert_eq!(array.host()?.to_vec(), [12_345_678; 6], "seed {seed}");
        for device in &devices {
            assert!(device.emulation().is_some_and(|log| log.hazards().is_empty()), "seed {seed}");
        }
    }
    Ok(())
}

#[test]
fn a_write_waits_for_all_readers() -> Result<()> {
    let copy = Kernel::<(In<u32>, Out<u32>)>::new("copy")
        .host(|_grid, (from, to)| to.copy_from_slice(from));
    let clear = Kernel::<(Out<u32>,)>::new("clear").host(|_grid, (xs,)| xs.fill(0));
    for seed in 0..50 {
        let device = Device::emulated(Emulation::new().seed(seed));
        let mut source = SmartArray::<u32, _>::full(6, 5);
        let mut copies: Vec<_> = (0..3).map(|_| SmartArray::<u32, _>::uninit(6)).collect();
        for target in &mut copies {
            copy.launch_on(&device.new_stream()?, Grid::cover(6), (&source, target))?;
        }
        clear.launch_on(&device.new_stream()?, Grid::cover(6), (&mut source,))?;
        for target in &copies {
            assert_eq!(target.host()?.to_vec(), [5; 6], "seed {seed}");
        }
        assert!(device.emulation().is_some_and(|log| log.hazards().is_empty()), "seed {seed}");
    }
    Ok(())
}

#[test]
fn uses_of_disjoint_parts_do_not_wait_for_each_other() -> Result<()> {
    let device = lab();
    let (permit, permits) = mpsc::channel::<()>();
    let permits = Mutex::new(permits);
    let blocked = Kernel::<(InOut<u32>,)>::new("blocked").host(move |_grid, (xs,)| {
        permits.lock().expect("one body").recv().expect("a permit");
        xs.fill(1);
    });
    let free = Kernel::<(InOut<u32>,)>::new("free").host(|_grid, (xs,)| xs.fill(2));
    let (first, second) = (device.new_stream()?, device.new_stream()?);
    let mut array = SmartArray::<u32, _>::zeros(8);
    drop(array.gpu_on(&device.stream())?);
    device.synchronize()?;
    let (mut left, mut right) = array.split_at_mut(ndarray::Axis(0), 4);
    blocked.launch_on(&first, Grid::cover(4), (&mut left,))?;
    free.launch_on(&second, Grid::cover(4), (&mut right,))?;
    second.synchronize()?;
    assert!(!first.is_idle()?, "its body still waits");
    assert_eq!(right.host()?.to_vec(), [2; 4], "and this half was downloaded meanwhile");
    permit.send(()).expect("the body listens");
    assert_eq!(array.host()?.to_vec(), [1, 1, 1, 1, 2, 2, 2, 2]);
    Ok(())
}

#[test]
fn a_launch_is_ordered_behind_work_that_a_forgotten_guard_announced() -> Result<()> {
    let order = Arc::new(Mutex::new(Vec::new()));
    let note = |name: &'static str| {
        let order = Arc::clone(&order);
        Kernel::<(InOut<u32>,)>::new(name)
            .host(move |_grid, (_,)| order.lock().expect("no panic").push(name))
    };
    for seed in 0..50 {
        order.lock().expect("no panic").clear();
        let device = Device::emulated(Emulation::new().seed(seed));
        let (foreign, other) = (device.new_stream()?, device.new_stream()?);
        let (mut array, mut bystander) =
            (SmartArray::<u32, _>::zeros(4), SmartArray::<u32, _>::zeros(4));
        let guard = array.gpu_mut_on(&foreign)?;
        note("unrelated").launch_on(
            &foreign,
            Grid::cover(4),
            (&mut bystander.slice_mut(s![..2]),),
        )?;
        let _early = foreign.record()?;
        // This launch represents work that other code queues on the guard's stream: the library
        // does not see that it accesses the array.
        note("foreign").launch_on(
            &foreign,
            Grid::cover(4),
            (&mut bystander.slice_mut(s![2..]),),
        )?;
        std::mem::forget(guard);
        note("after").launch_on(&other, Grid::cover(4), (&mut array,))?;
        device.synchronize()?;
        let order = order.lock().expect("no panic");
        let at = |name: &str| order.iter().position(|seen| *seen == name);
        assert!(at("foreign") < at("after"), "seed {seed}: {order:?}");
    }
    Ok(())
}

#[test]
fn a_chain_on_one_stream_takes_no_event() -> Result<()> {
    use resident::emulation::CallKind;
    let device = lab();
    let add = Kernel::<(In<u32>, InOut<u32>)>::new("add")
        .host(|_grid, (x, y)| y.iter_mut().zip(x).for_each(|(y, x)| *y += x));
    let (x, mut y) = (SmartArray::from(vec![1_u32; 8]), SmartArray::<u32, _>::zeros(8));
    for _ in 0..10 {
        add.launch_on(&device.stream(), Grid::cover(8), (&x, &mut y))?;
    }
    assert_eq!(y.host()?.to_vec(), [10; 8]);
    let kinds: Vec<CallKind> =
        device.emulation().expect("emulated").calls().iter().map(|call| call.kind).collect();
    assert!(
        !kinds.contains(&CallKind::RecordEvent) && !kinds.contains(&CallKind::WaitEvent),
        "{kinds:?}"
    );
    Ok(())
}
