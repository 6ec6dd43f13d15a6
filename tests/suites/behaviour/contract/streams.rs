//! Streams and events.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use resident::{Device, Emulation, Grid, InOut, Kernel, Link, Result, SmartArray, Stream};

use support::lab::lab;

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
fn synchronize_waits_until_the_work_has_run() -> Result<()> {
    let device = lab();
    let (permit, permits) = mpsc::channel();
    let (kernel, runs) = counted(permits);
    let mut array = SmartArray::<u8, _>::zeros(4);
    kernel.launch_on(&device.stream(), Grid::cover(4), (&mut array,))?;
    assert!(
        !device.stream().is_idle()?,
        "the body waits for its permit: a launch returns when it is queued"
    );
    permit.send(()).expect("the body listens");
    device.stream().synchronize()?;
    assert!(device.stream().is_idle()?);
    assert_eq!(runs.load(Ordering::SeqCst), 1);
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
fn a_stream_that_waits_for_an_event_starts_after_it() -> Result<()> {
    let device = lab();
    let (first, second) = (device.new_stream()?, device.new_stream()?);
    let (permit, permits) = mpsc::channel();
    let (kernel, runs) = counted(permits);
    let mut array = SmartArray::<u8, _>::zeros(4);
    kernel.launch_on(&first, Grid::cover(4), (&mut array,))?;
    second.wait(&first.record()?)?;
    let (ran, result) = mpsc::channel();
    let seen = Arc::clone(&runs);
    let after = Kernel::<(InOut<u8>,)>::new("after").host(move |_grid, (_,)| {
        ran.send(seen.load(Ordering::SeqCst)).expect("the test listens");
    });
    after.launch_on(&second, Grid::cover(4), (&mut SmartArray::<u8, _>::zeros(4),))?;
    permit.send(()).expect("the body listens");
    second.synchronize()?;
    assert_eq!(result.recv(), Ok(1), "the waiting stream's body saw the other's effect");
    Ok(())
}

#[test]
fn events_of_other_devices_can_be_waited_for() -> Result<()> {
    let (one, other) = (lab(), lab());
    other.stream().wait(&one.stream().record()?)?;
    other.synchronize()
}

#[test]
fn modelled_time_between_events_is_the_links() -> Result<()> {
    let link = Link { bytes_per_second: 1e9, latency: Duration::from_micros(5) };
    let device = Device::emulated(Emulation::new().seed(3).link(link));
    let stream = device.stream();
    let array = SmartArray::from(vec![1_u8; 1_000_000]);
    let before = stream.record()?;
    array.prefetch(&stream)?;
    let after = stream.record()?;
    stream.synchronize()?;
    assert_eq!(after.elapsed_since(&before)?, Duration::from_micros(1005));
    assert!(before.elapsed_since(&after).is_err() || before.elapsed_since(&after)?.is_zero());
    Ok(())
}

fn queue_and_leave(stream: &Stream, kernel: &Kernel<(InOut<u8>,)>, panics: bool) {
    let _guard = stream.auto_synchronize();
    kernel
        .launch_on(stream, Grid::cover(4), (&mut SmartArray::<u8, _>::zeros(4),))
        .expect("queued");
    assert!(!panics, "leaves by unwinding");
}

#[test]
fn a_stream_synchronises_itself_when_its_guard_drops_unwinding_included() {
    let device = Device::emulated(Emulation::new().seed(1));
    let (permit, permits) = mpsc::channel();
    let (kernel, runs) = counted(permits);
    permit.send(()).expect("open");
    permit.send(()).expect("open");
    queue_and_leave(&device.stream(), &kernel, false);
    assert_eq!(runs.load(Ordering::SeqCst), 1, "with a seed only a wait runs anything");
    let unwound =
        catch_unwind(AssertUnwindSafe(|| queue_and_leave(&device.stream(), &kernel, true)));
    assert!(unwound.is_err());
    assert_eq!(runs.load(Ordering::SeqCst), 2);
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
