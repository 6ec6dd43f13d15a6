//! Streams and events.

use resident::ops;
use support::bodies::Gate;
use support::prelude::*;

#[test]
fn a_device_has_one_default_stream_and_as_many_others_as_are_made() -> Result<()> {
    let device = lab();
    assert_eq!(device.stream(), device.stream());
    let (one, other) = (device.new_stream()?, device.new_stream()?);
    assert!(one != other && one != device.stream());
    assert_eq!(one, one.clone());
    assert_eq!(one.device(), device);
    assert!(format!("{one}").contains(&device.name()) && format!("{one:?}").contains("Stream"));
    let event = one.record()?;
    assert!(event == event.clone() && event != one.record()?);
    assert!(!format!("{event} {event:?}").is_empty());
    Ok(())
}

#[test]
fn a_stream_and_a_device_may_be_dropped_with_work_in_flight() -> Result<()> {
    let device = lab();
    let (gate, mut array) = (Gate::default(), SmartArray::<u8, _>::zeros(4));
    let body = gate.clone();
    let kernel = Kernel::<(InOut<u8>,)>::new("gated").host(move |_grid, (bytes,)| {
        body.pass();
        bytes.fill(7);
    });
    kernel.launch_on(&device.new_stream()?, Grid::cover(4), (&mut array,))?;
    drop(device);
    gate.open();
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

/// What a call may use: coherent arrays that are new on the host, and newest on the device; arrays
/// of the device; and an array of the host and a pinned one.
struct Given {
    new: [SmartArray<f32, Ix1>; 3],
    there: [SmartArray<f32, Ix1>; 2],
    explicit: [DeviceArray<f32, Ix1>; 2],
    host: Array1<f32>,
    pinned: PinnedArray<f32, Ix1>,
}

fn given(device: &Device) -> Result<Given> {
    let host = Array1::<f32>::ones(64);
    let explicit = || DeviceArray::from_host_on(&device.stream(), &host);
    Ok(Given {
        new: [(); 3].map(|()| SmartArray::from(host.clone())),
        there: [newest_on(device)?, newest_on(device)?],
        explicit: [explicit()?, explicit()?],
        pinned: PinnedArray::from_array(host.clone())?,
        host,
    })
}

type Call = fn(Given) -> Result<()>;

/// Each kind of call that names no stream and queues work on the device.
const CALLS: &[(&str, Call)] = &[
    ("launch", |mut it| doubling().launch(Grid::cover(64), (&mut it.new[0],))),
    ("gpu", |it| it.new[0].gpu().map(drop)),
    ("gpu_mut", |mut it| it.new[0].gpu_mut().map(drop)),
    ("assign", |Given { there: [mut a, b], .. }| a.assign(&b)),
    ("try_clone", |it| it.there[0].try_clone().map(drop)),
    ("get", |it| it.there[0].get(3).map(drop)),
    ("set", |mut it| it.there[0].set(3, 5.0)),
    ("host", |it| it.there[0].host().map(drop)),
    ("host_mut", |mut it| it.there[0].host_mut().map(drop)),
    ("prefetch_host", |it| it.there[0].prefetch_host()),
    ("into_array", |Given { there: [a, _], .. }| a.into_array().map(drop)),
    ("ops", |Given { new: [a, b, mut c], .. }| ops::add(&a, &b, &mut c)),
    ("sum", |it| it.there[0].sum().map(drop)),
    ("into_device", |Given { new: [a, ..], .. }| a.into_device(&Device::current()?).map(drop)),
    ("from_host", |it| DeviceArray::from_host(&it.host).map(drop)),
    ("full", |_| DeviceArray::<f32, _>::full(64, 2.0).map(drop)),
    ("zeros", |_| DeviceArray::<f32, _>::zeros(64).map(drop)),
    ("copy_to_host", |it| it.explicit[0].copy_to_host().map(drop)),
    ("copy_to_host_into", |mut it| it.explicit[0].copy_to_host_into(&mut it.host)),
    ("copy_from_host", |mut it| it.explicit[0].copy_from_host(&it.host)),
    ("copy_from_device", |Given { explicit: [mut d, from], .. }| d.copy_from_device(&from)),
    ("copy_to_pinned", |mut it| it.explicit[0].copy_to_pinned(&mut it.pinned)),
    ("copy_from_pinned", |mut it| it.explicit[0].copy_from_pinned(&it.pinned)),
    ("to_contiguous", |it| it.explicit[0].to_contiguous().map(drop)),
    ("fill of a device array", |mut it| it.explicit[0].fill(3.0)),
    ("set of a device array", |mut it| it.explicit[0].set(3, 3.0)),
    ("get of a device array", |it| it.explicit[0].get(3).map(drop)),
    ("sum of a device array", |it| it.explicit[0].sum().map(drop)),
];

#[test]
fn every_call_without_a_stream_uses_the_entered_one() -> Result<()> {
    let device = lab();
    let _device = device.enter();
    let stream = device.new_stream()?;
    let number = streams_of(&device, || SmartArray::from(vec![1_u8]).prefetch(&stream))?;
    assert!(number.len() == 1 && number != [0]);
    for (name, call) in CALLS {
        let (first, second) = (given(&device)?, given(&device)?);
        let _scope = stream.enter();
        assert_eq!(streams_of(&device, || call(first))?, number, "{name}");
        let _within = device.enter();
        let seen = streams_of(&device, || call(second))?;
        assert_eq!(seen, [0], "{name}, in a scope of the device");
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
