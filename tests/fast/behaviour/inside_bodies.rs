//! Calls of the library inside kernel bodies: calls that would have to wait are refused, other
//! calls work, and no call hangs.

use std::sync::{Arc, Mutex};

use support::bodies::{Gate, add, assert_ordered, modes, one};
use support::flags::gated;
use support::prelude::*;

type Numbers = SmartArray<u32, Ix1>;

fn numbers() -> Numbers {
    SmartArray::from((0..8).collect::<Vec<u32>>())
}

/// Runs `call` inside a body on the device's default stream, after the work queued there, and
/// returns its result.
fn inside<T: Send + 'static>(device: &Device, call: impl Fn() -> T + Send + Sync + 'static) -> T {
    let result = Arc::new(Mutex::new(None));
    let inner = Arc::clone(&result);
    let body = Kernel::<(InOut<u32>,)>::new("caller")
        .host(move |_, (_,): (&mut [u32],)| *inner.lock().unwrap() = Some(call()));
    body.launch_on(&device.stream(), one(), (&mut numbers(),)).unwrap();
    device.stream().synchronize().unwrap();
    result.lock().unwrap().take().expect("the body has run")
}

#[test]
fn calls_inside_bodies_work_or_are_refused() {
    run_cases(CASES, |case| in_both_modes(*case));
}

fn in_both_modes(case: fn(Device)) {
    for emulation in modes() {
        without_deadlock(move || {
            let device = Device::emulated(emulation());
            case(device.clone());
            device.synchronize().unwrap();
            assert_ordered(&device);
        });
    }
}

#[track_caller]
fn assert_refused<T>(outcome: &Result<T>) {
    match outcome {
        Err(error @ Error::InsideKernel { .. }) => {
            assert!(
                error.to_string().contains("make the call before the launch or after it"),
                "{error}"
            );
        }
        Err(other) => panic!("{other:?} is not InsideKernel"),
        Ok(_) => panic!("it did not have to wait"),
    }
}

/// An array whose newest contents come from work queued on the device's default stream.
fn changed_on(device: &Device) -> Arc<Numbers> {
    let mut array = numbers();
    add().launch_on(&device.stream(), one(), (1, &mut array)).unwrap();
    Arc::new(array)
}

type Case = (&'static str, fn(Device));

const CASES: &[Case] = &[
    ("looking at what is on the device would wait and is refused", |device| {
        let array = changed_on(&device);
        let inner = Arc::clone(&array);
        let outcomes = inside(&device, move || {
            let clone = inner.try_clone().unwrap();
            [
                inner.host().map(drop),
                inner.get(3).map(drop),
                inner.slice(s![2..4]).host().map(drop),
                clone.host().map(drop),
            ]
        });
        outcomes.iter().for_each(assert_refused);
        assert_eq!(
            array.host().unwrap().to_vec(),
            (1..9).collect::<Vec<_>>(),
            "it works as before"
        );
    }),
    ("synchronising inside a body is refused", |device| {
        let (own, stream, event) =
            (device.clone(), device.stream(), device.stream().record().unwrap());
        let other = device.new_stream().unwrap();
        let pending = other.record().unwrap();
        let outcomes = inside(&device, move || {
            [
                own.synchronize(),
                stream.synchronize(),
                stream.record().and_then(|event| event.synchronize()),
            ]
        });
        outcomes.iter().for_each(assert_refused);
        event.synchronize().unwrap();
        pending.synchronize().unwrap();
    }),
    ("waiting for a host function inside a body is refused", |device| {
        let (stream, (end, may_end)) = (device.new_stream().unwrap(), std::sync::mpsc::channel());
        let function = stream.launch_host_function(move || may_end.recv().unwrap()).unwrap();
        let function = Mutex::new(Some(function));
        let outcome = inside(&device, move || function.lock().unwrap().take().unwrap().wait());
        assert_refused(&outcome);
        end.send(()).unwrap();
    }),
    ("a guard that synchronises does not hang inside a body", |device| {
        let stream = device.stream();
        inside(&device, move || drop(stream.auto_synchronize()));
    }),
    ("waiting for a snapshot inside a body is refused and another can be taken", |device| {
        let array = changed_on(&device);
        let (inner, stream) = (Arc::clone(&array), device.stream());
        assert_refused(&inside(&device, move || inner.snapshot_on(&stream)?.wait()));
        assert_eq!(array.snapshot_on(&device.stream()).unwrap().wait().unwrap()[7], 8);
    }),
    ("what need not wait works inside a body", |device| {
        let array = Arc::new(numbers());
        array.prefetch(&device.stream()).unwrap();
        let (inner, own) = (Arc::clone(&array), device.clone());
        let seen = inside(&device, move || -> Result<u32> {
            assert_eq!(inner.residency().host(), Valid);
            assert_eq!((inner.len(), own.stream().is_idle()?), (8, false));
            assert!(format!("{inner:?}").contains("u32"));
            let constant = SmartArray::<u32, _>::full(8, 5);
            let snapshot = inner.snapshot_on(&own.stream())?.wait()?;
            Ok(inner.host()?.sum()
                + inner.get(3)?
                + constant.host()?.sum()
                + snapshot[1]
                + own.memory().in_use.min(1) as u32)
        });
        assert_eq!(seen, Ok(28 + 3 + 40 + 1 + 1));
    }),
    ("a body may launch and its launch runs behind it", |device| {
        let array = Arc::new(Mutex::new(numbers()));
        let (inner, stream, other) =
            (Arc::clone(&array), device.stream(), device.new_stream().unwrap());
        let outcome = inside(&device, move || {
            let mut array = inner.lock().unwrap();
            add().launch_on(&stream, one(), (1, &mut *array))?;
            add().launch_on(&other, one(), (1, &mut *array))?;
            array.fill_on(&other, 6)?;
            add().launch_on(&stream, one(), (1, &mut *array))
        });
        assert_eq!(outcome, Ok(()));
        assert_eq!(array.lock().unwrap().host().unwrap().to_vec(), [7; 8]);
    }),
    ("a body may call a kernel on the host", |device| {
        let sum = inside(&device, || {
            let mut array = numbers();
            add().call(one(), (1, &mut array)).map(|()| array.host().unwrap().sum())
        });
        assert_eq!(sum, Ok(36));
    }),
    ("arrays streams and devices may be dropped inside a body", |device| {
        let own: Arc<Mutex<Vec<Numbers>>> = Arc::default();
        for _ in 0..3 {
            let array = numbers();
            array.prefetch(&device.new_stream().unwrap()).unwrap();
            own.lock().unwrap().push(array);
        }
        let inner = Arc::clone(&own);
        let mode = Device::emulated(Emulation::new());
        inside(&device, move || {
            inner.lock().unwrap().clear();
            let (other, mut array) = (mode.new_stream().unwrap(), numbers());
            add().launch_on(&other, one(), (1, &mut array)).unwrap();
        });
        device.synchronize().unwrap();
        assert_eq!(device.memory().in_use, 0);
    }),
    ("an array that only a body still has is dropped with the body", |device| {
        let array = changed_on(&device);
        let body = Kernel::<(InOut<u32>,)>::new("owner")
            .host(move |_, (_,): (&mut [u32],)| assert_eq!(array.len(), 8));
        body.launch_on(&device.stream(), one(), (&mut numbers(),)).unwrap();
        drop(body);
        device.synchronize().unwrap();
        assert_eq!(device.memory().in_use, 0);
    }),
];

#[test]
fn a_body_does_not_wait_for_a_transfer_that_another_body_holds_up() {
    without_deadlock(|| {
        let (device, gate) = (Device::emulated(Emulation::new()), Gate::default());
        let mut array = numbers();
        gated(&gate).launch_on(&device.new_stream().unwrap(), one(), (&mut array,)).unwrap();
        array.prefetch_host().unwrap();
        let array = Arc::new(array);
        let inner = Arc::clone(&array);
        assert_refused(&inside(&device, move || inner.host().map(drop)));
        gate.open();
        assert_eq!(array.host().unwrap().to_vec(), (1..9).collect::<Vec<_>>());
        assert_ordered(&device);
    });
}

#[test]
fn no_room_inside_a_body_is_an_error_where_room_would_have_to_be_waited_for() {
    for seeded in [false, true] {
        without_deadlock(move || {
            let limited = Emulation::new().memory(256);
            let device = Device::emulated(if seeded { limited.seed(1) } else { limited });
            let doomed = Arc::new(Mutex::new(Some(SmartArray::<u32, _>::zeros(40))));
            doomed.lock().unwrap().as_ref().unwrap().prefetch(&device.stream()).unwrap();
            let (inner, stream) = (Arc::clone(&doomed), device.stream());
            let outcome = inside(&device, move || {
                inner.lock().unwrap().take();
                SmartArray::<u32, _>::zeros(40).prefetch(&stream)
            });
            assert_refused(&outcome);
            SmartArray::<u32, _>::zeros(40).prefetch(&device.stream()).unwrap();
        });
    }
}
