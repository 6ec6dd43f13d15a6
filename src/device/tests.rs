//! What a device keeps of streams that came and went.

use ndarray::s;

use super::Device;
use super::streams::UNREPORTED_MAX;
use crate::{Grid, InOut, Kernel, SmartArray};
use resident_backend::{FailureKind, FailureRecord, failure};
use resident_embedded::Emulation;

fn device() -> Device {
    Device::emulated(Emulation::new())
}

#[test]
fn dropped_streams_leave_nothing_behind() {
    let device = device();
    let kept: Vec<_> = (0..5).map(|_| device.new_stream().expect("a stream")).collect();
    for _ in 0..10_000 {
        let stream = device.new_stream().expect("a stream");
        drop(stream.record().expect("an event"));
    }
    assert!(device.0.streams.lock().list.len() <= 32);
    assert_eq!(kept.len(), 5);
}

#[test]
fn a_stream_remembers_a_bounded_number_of_waits_and_events() {
    let device = device();
    let stream = device.new_stream().expect("a stream");
    for _ in 0..1_000 {
        let other = device.new_stream().expect("a stream");
        stream.wait(&other.record().expect("an event")).expect("a wait");
        drop(stream.record().expect("an event"));
    }
    let log = stream.core().log.lock();
    assert!(log.waits.len() <= 32 && log.events.len() <= 32);
}

#[test]
fn failures_of_dropped_streams_are_returned_by_the_device_and_bounded() {
    let device = device();
    for number in 0..200 {
        let stream = device.new_stream().expect("a stream");
        drop(stream.record().expect("an event"));
        let record = FailureRecord {
            kind: FailureKind::Contents,
            operation: format!("operation {number}"),
            site: None,
            cause: "a test".to_owned(),
            inherited: false,
            left_out: None,
        };
        failure::record(stream.id(), stream.raw().tail(), record.into());
    }
    let mut reported = 0;
    while let Err(error) = device.synchronize() {
        assert!(reported > 0 || error.to_string().contains("operation 0"), "{error}");
        reported += 1;
    }
    // Those of streams that were still in the list come on top.
    assert!((UNREPORTED_MAX..UNREPORTED_MAX + 33).contains(&reported), "{reported}");
    assert!(device.0.streams.lock().list.len() <= 32);
}

/// A kernel that fails at each launch, on one stream and on streams that come and go.
#[test]
fn records_of_failures_that_are_over_are_removed() {
    let device = device();
    let fails = Kernel::<(InOut<u32>,)>::new("fails")
        .host(|_, (_values,)| std::panic::resume_unwind(Box::new("no such value")));
    let mut array = SmartArray::<u32, ndarray::Ix1>::zeros(64);
    for turn in 0..6_000 {
        let stream = if turn % 2 == 0 { device.stream() } else { device.new_stream().unwrap() };
        fails.launch_on(&stream, Grid::cover(1), (&mut array,)).expect("launched");
        if turn % 10 == 0 {
            assert!(matches!(array.host(), Err(crate::Error::Lost { .. })));
        }
        array.host_overwrite().expect("room").fill(turn);
    }
    assert!(failure::kept() < 3_000, "{} records", failure::kept());
    assert_eq!(array.host().expect("it was written")[0], 5_999);
    fails.launch_on(&device.stream(), Grid::cover(1), (&mut array,)).expect("launched");
    assert!(matches!(array.host(), Err(crate::Error::Lost { .. })));
    // `synchronize` still returns the first failures of a stream, each once.
    let mut reported = 0;
    while device.stream().synchronize().is_err() {
        reported += 1;
    }
    assert!((UNREPORTED_MAX..3_000).contains(&reported), "{reported}");
}

/// Guards that read, on streams that come and go, of the whole array and of parts.
#[test]
fn dropped_read_guards_keep_no_stream() {
    let device = device();
    let array = SmartArray::<f32, ndarray::Ix1>::zeros(64);
    for turn in 0..10_000 {
        let stream = device.new_stream().expect("a stream");
        drop(array.gpu_on(&stream).expect("room"));
        let part = turn % 32;
        drop(array.slice(s![part..part + 2]).gpu_on(&stream).expect("room"));
        // At last without a backlog: streams are kept while they have work.
        if turn >= 9_900 {
            device.synchronize().expect("nothing failed");
        }
    }
    let kept = device.0.streams.lock().list.len();
    assert!(kept <= 64, "{kept} streams are kept");
}

/// A stream is kept while a guard exists, even if many others came and went, and writes wait for
/// the work that is queued with the guard.
#[test]
fn a_live_read_guard_keeps_its_stream() {
    let device = device();
    let mut array = SmartArray::<u32, ndarray::Ix1>::zeros(64);
    let (mut left, right) = array.view_mut().split_at(ndarray::Axis(0), 32);
    let streams: Vec<_> = (0..3).map(|_| device.new_stream().expect("a stream")).collect();
    let guards: Vec<_> = streams.iter().map(|stream| right.gpu_on(stream).expect("room")).collect();
    let touch = Kernel::<(InOut<u32>,)>::new("touch").host(|_, (_part,)| ());
    for _ in 0..200 {
        let stream = device.new_stream().expect("a stream");
        drop(right.gpu_on(&stream).expect("room"));
        touch.launch_on(&stream, Grid::cover(1), (&mut left,)).expect("launched");
    }
    for (guard, stream) in guards.iter().zip(&streams) {
        assert_eq!(guard.stream(), *stream);
    }
}
