//! What a device keeps of streams that came and went.

use super::Device;
use super::streams::UNREPORTED_MAX;
use crate::backend::embedded::Emulation;
use crate::backend::{FailureKind, FailureRecord, failure};

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
        };
        failure::record(stream.id(), stream.queue().tail(), record.into());
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
