//! Modelled time, exact to the nanosecond, and lower bounds of real time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::fixtures::{
    Accepting, HostBytes, allocate, body, contiguous, copy, download, exchange, fill, finish, flat,
    queue_of, seeded, upload,
};
use crate::{EmbeddedDevice, Emulation, Link};
use resident_backend::{Backend, BackendErrorKind, EventTiming, Memory, Work};

const LINK: Link = Link { bytes_per_second: 1e9, latency: Duration::from_nanos(500) };

#[test]
fn a_transfer_takes_latency_and_length() {
    assert_eq!(LINK.transfer_time(0), Duration::from_nanos(500));
    assert_eq!(LINK.transfer_time(1000), Duration::from_nanos(1500));
    for bytes_per_second in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(
            Link { bytes_per_second, ..LINK }.transfer_time(u64::MAX),
            Duration::from_nanos(500)
        );
    }
    let slow = Link { bytes_per_second: f64::MIN_POSITIVE, latency: Duration::MAX };
    assert_eq!(slow.transfer_time(u64::MAX), Duration::MAX);
}

#[test]
fn each_stream_has_its_own_modelled_time_whatever_the_seed() {
    for seed in 0..50 {
        let device = EmbeddedDevice::emulated(Emulation::new().seed(seed).link(LINK));
        let (one, two) = (queue_of(&device), device.new_stream(None).unwrap());
        let (first, second) = (allocate(&one, 1000).unwrap(), allocate(&two, 1000).unwrap());
        let start = one.record(EventTiming::Enabled).unwrap();
        one.queued(upload(&HostBytes::new([1; 1000]), first, 1000)); // 1,500
        let uploaded = one.record(EventTiming::Enabled).unwrap();
        two.queued(fill(second, contiguous(0, 1000), &[2])); // 1,000
        two.queued(download(second, &HostBytes::new([0; 100]), 100)); // 600
        two.wait(uploaded.as_ref()).unwrap(); // at 1,600 already
        let behind = two.record(EventTiming::Enabled).unwrap();
        let within = copy("within", Memory::Device(first), Memory::Device(second), flat(10, 0, 0));
        two.queued(within); // 1,000
        one.follow(&two); // to 2,600
        one.launched(&body("none", |_| ()), &[]); // 1,000
        let end = one.record(EventTiming::Enabled).unwrap();
        [&one, &two].into_iter().for_each(finish);
        let elapsed = |later: &Arc<dyn resident_backend::RawEvent>| {
            later.elapsed_since(start.as_ref()).unwrap().as_nanos()
        };
        assert_eq!(
            (elapsed(&uploaded), elapsed(&behind), elapsed(&end)),
            (1500, 1600, 3600),
            "seed {seed}"
        );
        assert_eq!(
            start.elapsed_since(end.as_ref()).unwrap(),
            Duration::ZERO,
            "a reversed order is zero"
        );
    }
}

#[test]
fn between_devices_the_slower_link_counts() {
    let slow = Link { latency: Duration::from_nanos(9000), ..LINK };
    let (one, two) = (
        EmbeddedDevice::emulated(Emulation::new().seed(1).link(slow)),
        EmbeddedDevice::emulated(Emulation::new().seed(1).link(LINK)),
    );
    let (source, target) = (queue_of(&one), queue_of(&two));
    let (from, to) = (allocate(&source, 100).unwrap(), allocate(&target, 100).unwrap());
    let start = target.record(EventTiming::Enabled).unwrap();
    let work = exchange(&one, from, to, flat(100, 0, 0));
    target.queued(Work::Copy(work));
    let end = target.record(EventTiming::Enabled).unwrap();
    end.synchronize().unwrap();
    assert_eq!(end.elapsed_since(start.as_ref()).unwrap(), Duration::from_nanos(9100));
}

#[test]
fn missing_times_are_errors() {
    let device = seeded(1);
    let stream = queue_of(&device);
    let (timed, untimed) = (
        stream.record(EventTiming::Enabled).unwrap(),
        stream.record(EventTiming::Disabled).unwrap(),
    );
    let kind = |result: Result<Duration, resident_backend::BackendError>| result.unwrap_err().kind;
    assert_eq!(
        kind(timed.elapsed_since(timed.as_ref())),
        BackendErrorKind::NoTiming,
        "it has not completed"
    );
    finish(&stream);
    assert_eq!(timed.elapsed_since(timed.as_ref()).unwrap(), Duration::ZERO);
    assert_eq!(kind(untimed.elapsed_since(timed.as_ref())), BackendErrorKind::NoTiming);
    assert_eq!(kind(timed.elapsed_since(untimed.as_ref())), BackendErrorKind::NoTiming);
    let real = queue_of(&EmbeddedDevice::plain()).record(EventTiming::Enabled).unwrap();
    assert_eq!(kind(timed.elapsed_since(real.as_ref())), BackendErrorKind::NoTiming, "two clocks");
}

#[test]
fn without_a_seed_a_transfer_really_takes_its_time() {
    let link = Link { bytes_per_second: 1e6, latency: Duration::from_millis(5) };
    let stream = queue_of(&EmbeddedDevice::emulated(Emulation::new().link(link)));
    let address = allocate(&stream, 5000).unwrap();
    let (clock, start) = (Instant::now(), stream.record(EventTiming::Enabled).unwrap());
    stream.queued(upload(&HostBytes::new([1; 5000]), address, 5000));
    let end = stream.record(EventTiming::Enabled).unwrap();
    end.synchronize().unwrap();
    let elapsed = end.elapsed_since(start.as_ref()).unwrap();
    assert!(elapsed >= Duration::from_millis(10) && elapsed <= clock.elapsed(), "{elapsed:?}");
}
