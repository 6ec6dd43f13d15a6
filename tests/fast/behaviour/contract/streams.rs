//! Streams and events.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};

use resident::ops;
use support::prelude::*;

/// A kernel that counts its runs; each run waits for a permit.
fn counted(permits: mpsc::Receiver<()>) -> (Kernel<(InOut<u8>,)>, Arc<AtomicU32>) {
    let runs = Arc::new(AtomicU32::new(0));
    let (seen, permits) = (Arc::clone(&runs), std::sync::Mutex::new(permits));
    let kernel = Kernel::<(InOut<u8>,)>::new("counted").host(move |_grid, (bytes,)| {
        permits.lock().expect("one body at a time").recv().expect("a permit");
        bytes.fill(7);
        seen.fetch_add(1, Ordering::SeqCst);
    });
    (kernel, runs)
}

#[test]
fn a_device_has_one_default_stream_and_as_many_others_as_are_made() -> Result<()> {
    let device = lab();
    assert_eq!(device.stream(), device.stream());
    let (one, other) = (device.new_stream()?, device.new_stream()?);
    assert!(one != other && one != device.stream());
    assert_eq!(one, one.clone());
    assert_eq!(one.device(), device);
    assert!(format!("{one}").contains(&device.name()) && format!("{one:?}").contains("Stream"));
    Ok(())
}

#[test]
fn an_event_is_complete_once_the_work_before_it_is() -> Result<()> {
    let device = lab();
    let stream = device.new_stream()?;
    let (permit, permits) = mpsc::channel();
    let (kernel, _) = counted(permits);
    let mut array = SmartArray::<u8, _>::zeros(4);
    kernel.launch_on(&stream, Grid::cover(4), (&mut array,))?;
    let event = stream.record()?;
    assert!(!event.is_complete()?);
    permit.send(()).expect("the body listens");
    event.synchronize()?;
    assert!(event.is_complete()?);
    assert_eq!(event, event.clone());
    assert_ne!(event, stream.record()?);
    assert!(!format!("{event} {event:?}").is_empty());
    Ok(())
}

#[test]
fn a_stream_and_a_device_may_be_dropped_with_work_in_flight() -> Result<()> {
    let device = lab();
    let mut array = SmartArray::<u8, _>::zeros(4);
    let (permit, permits) = mpsc::channel();
    let (kernel, _) = counted(permits);
    kernel.launch_on(&device.new_stream()?, Grid::cover(4), (&mut array,))?;
    drop(device);
    permit.send(()).expect("the body listens");
    assert_eq!(array.host()?.to_vec(), [7; 4]);
    Ok(())
}

/// The streams on which these calls queue work on the device, by number, without repetitions.
fn streams_of(device: &Device, work: impl FnOnce() -> Result<()>) -> Result<Vec<u32>> {
    const WORK: [CallKind; 5] = [
        CallKind::Upload,
        CallKind::Download,
        CallKind::CopyWithin,
        CallKind::Fill,
        CallKind::Launch,
    ];
    let log = device.emulation().expect("an emulated device");
    let before = log.calls().len();
    work()?;
    device.synchronize()?;
    let calls = log.calls().into_iter().skip(before);
    let mut streams: Vec<u32> =
        calls.filter(|call| WORK.contains(&call.kind)).filter_map(|call| call.stream).collect();
    streams.sort_unstable();
    streams.dedup();
    Ok(streams)
}

fn doubling() -> Kernel<(InOut<f32>,)> {
    Kernel::<(InOut<f32>,)>::new("double")
        .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0))
}

/// An array that is newest on the device, where a stream of its own has written it.
fn newest_on(device: &Device) -> Result<SmartArray<f32, Ix1>> {
    let mut array = SmartArray::from(vec![1.0_f32; 64]);
    doubling().launch_on(&device.new_stream()?, Grid::cover(64), (&mut array,))?;
    device.synchronize()?;
    Ok(array)
}

type Call<'a> = (&'static str, Box<dyn FnOnce() -> Result<()> + 'a>);

/// Adds a call to a list.
macro_rules! call {
    ($calls:ident, $name:literal, $call:expr) => {
        $calls.push(($name, Box::new($call)))
    };
}

/// Each kind of call of a coherent array that names no stream and queues work on the device.
fn calls_of_coherent_arrays(device: &Device) -> Result<Vec<Call<'_>>> {
    let mut arrays = Vec::new();
    for _ in 0..12 {
        arrays.push(newest_on(device)?);
    }
    let mut next = move || arrays.pop().expect("enough arrays");
    let new = || SmartArray::from(vec![1.0_f32; 64]);
    let mut calls: Vec<Call<'_>> = Vec::new();
    let mut a = new();
    call!(calls, "launch", move || doubling().launch(Grid::cover(64), (&mut a,)));
    let a = new();
    call!(calls, "gpu", move || a.gpu().map(drop));
    let mut a = new();
    call!(calls, "gpu_mut", move || a.gpu_mut().map(drop));
    let (mut a, b) = (next(), next());
    call!(calls, "assign", move || a.assign(&b));
    let a = next();
    call!(calls, "try_clone", move || a.try_clone().map(drop));
    let a = next();
    call!(calls, "get", move || a.get(3).map(drop));
    let mut a = next();
    call!(calls, "set", move || a.set(3, 5.0));
    let a = next();
    call!(calls, "host", move || a.host().map(drop));
    let mut a = next();
    call!(calls, "host_mut", move || a.host_mut().map(drop));
    let a = next();
    call!(calls, "prefetch_host", move || a.prefetch_host());
    let a = next();
    call!(calls, "into_array", move || a.into_array().map(drop));
    let (a, b, mut c) = (new(), new(), new());
    call!(calls, "ops", move || ops::add(&a, &b, &mut c));
    let a = next();
    call!(calls, "sum", move || a.sum().map(drop));
    let a = new();
    let to = device.clone();
    call!(calls, "into_device", move || a.into_device(&to).map(drop));
    Ok(calls)
}

/// As [`calls_of_coherent_arrays`], for device arrays.
fn calls_of_device_arrays(device: &Device) -> Result<Vec<Call<'_>>> {
    let line = Array1::<f32>::ones(64);
    let host = line.clone();
    let here = |value| DeviceArray::from_host_on(&device.stream(), &Array1::from_elem(64, value));
    let mut calls: Vec<Call<'_>> = Vec::new();
    call!(calls, "from_host", move || DeviceArray::from_host(&host).map(drop));
    call!(calls, "full", || DeviceArray::<f32, _>::full(64, 2.0).map(drop));
    call!(calls, "zeros", || DeviceArray::<f32, _>::zeros(64).map(drop));
    let d = here(1.0)?;
    call!(calls, "copy_to_host", move || d.copy_to_host().map(drop));
    let (d, mut to) = (here(1.0)?, line.clone());
    call!(calls, "copy_to_host_into", move || d.copy_to_host_into(&mut to));
    let (mut d, from) = (here(1.0)?, line.clone());
    call!(calls, "copy_from_host", move || d.copy_from_host(&from));
    let (mut d, from) = (here(1.0)?, here(2.0)?);
    call!(calls, "copy_from_device", move || d.copy_from_device(&from));
    let (d, mut pinned) = (here(1.0)?, PinnedArray::<f32, _>::uninit(64)?);
    call!(calls, "copy_to_pinned", move || d.copy_to_pinned(&mut pinned));
    let (mut d, pinned) = (here(1.0)?, PinnedArray::from_array(line.clone())?);
    call!(calls, "copy_from_pinned", move || d.copy_from_pinned(&pinned));
    let d = here(1.0)?;
    call!(calls, "to_contiguous", move || d.to_contiguous().map(drop));
    let mut d = here(1.0)?;
    call!(calls, "fill of a device array", move || d.fill(3.0));
    let mut d = here(1.0)?;
    call!(calls, "set of a device array", move || d.set(3, 3.0));
    let d = here(1.0)?;
    call!(calls, "get of a device array", move || d.get(3).map(drop));
    let d = here(1.0)?;
    call!(calls, "sum of a device array", move || d.sum().map(drop));
    Ok(calls)
}

/// Each kind of call that names no stream and queues work on the device.
fn calls_without_a_stream(device: &Device) -> Result<Vec<Call<'_>>> {
    let mut calls = calls_of_coherent_arrays(device)?;
    calls.extend(calls_of_device_arrays(device)?);
    Ok(calls)
}

#[test]
fn every_call_without_a_stream_uses_the_entered_one() -> Result<()> {
    let device = lab();
    let _device = device.enter();
    let stream = device.new_stream()?;
    let number = streams_of(&device, || SmartArray::from(vec![1_u8]).prefetch(&stream))?;
    assert!(number.len() == 1 && number != [0]);
    for (name, call) in calls_without_a_stream(&device)? {
        let _scope = stream.enter();
        assert_eq!(streams_of(&device, call)?, number, "{name}");
    }
    for (name, call) in calls_without_a_stream(&device)? {
        let _scope = stream.enter();
        let _within = device.enter();
        assert_eq!(streams_of(&device, call)?, [0], "{name}, in a scope of the device");
    }
    Ok(())
}

#[test]
fn a_fill_of_a_coherent_array_is_made_on_the_entered_stream_at_its_first_use() -> Result<()> {
    let (device, mut array) = (lab(), SmartArray::<f32, _>::uninit(64));
    let stream = device.new_stream()?;
    let number = streams_of(&device, || SmartArray::from(vec![1_u8]).prefetch(&stream))?;
    let _scope = stream.enter();
    let filled = streams_of(&device, || {
        array.fill(2.0)?;
        array.gpu().map(drop)
    })?;
    assert_eq!(filled, number);
    Ok(())
}

#[test]
fn the_innermost_scope_of_a_device_or_a_stream_is_current() -> Result<()> {
    let (one, other) = (lab(), lab());
    let array = SmartArray::from(vec![1.0_f32; 8]);
    let stream_of_gpu = || array.gpu().map(|guard| guard.stream());
    let (first, second) = (one.new_stream()?, other.new_stream()?);
    let of_one = first.enter();
    assert_eq!((Device::current()?, stream_of_gpu()?), (one.clone(), first.clone()));
    {
        let _other = other.enter();
        assert_eq!((Device::current()?, stream_of_gpu()?), (other.clone(), other.stream()));
        let within = second.enter();
        assert_eq!(stream_of_gpu()?, second);
        let _one = one.enter();
        assert_eq!((Device::current()?, stream_of_gpu()?), (one.clone(), one.stream()));
        drop(within);
        assert_eq!(stream_of_gpu()?, one.stream(), "scopes may end in any order");
    }
    assert_eq!(stream_of_gpu()?, first);
    std::thread::scope(|threads| {
        let elsewhere = threads.spawn(|| stream_of_gpu().is_ok_and(|stream| stream == first));
        assert!(!elsewhere.join().expect("no panic"), "scopes belong to their thread");
    });
    let there = DeviceArray::from_host_on(&other.stream(), &Array1::<f32>::ones(8))?;
    let of_other = streams_of(&other, || there.copy_to_host().map(drop))?;
    assert_eq!(of_other, [0], "a stream of another device is not used");
    drop(of_one);
    Ok(())
}

#[test]
fn a_forgotten_scope_leaves_its_stream_current_and_its_device_open() {
    std::thread::spawn(|| {
        let stream = lab().new_stream().expect("a stream");
        std::mem::forget(stream.enter());
        let number = format!("{stream}");
        drop(stream);
        let mut array = SmartArray::<f32, _>::ones(8);
        doubling().launch(Grid::cover(8), (&mut array,)).expect("the device lives");
        assert_eq!(array.gpu().expect("the device lives").stream().to_string(), number);
        assert_eq!(array.host().expect("the device lives")[0], 2.0);
    })
    .join()
    .expect("no panic");
}

/// A guard of a scope belongs to its thread.
fn _is_not_send() {
    trait AmbiguousIfSend<A> {
        fn check() {}
    }
    impl<T: ?Sized> AmbiguousIfSend<()> for T {}
    impl<T: ?Sized + Send> AmbiguousIfSend<u8> for T {}
    <resident::Entered as AmbiguousIfSend<_>>::check();
}
