//! The counters of the process. Other threads count too, so each test is a process of its own.

use std::thread;
use std::time::Duration;

use resident::audit::{self, Counters};
use resident::internal::{Transfer, record_transfer};
use resident::{Device, DeviceArray, Emulation, InOut, Kernel, PinnedArray, Result, SmartArray};
use support::lab::lab;
use support::own_process;

use crate::{copy, double, grid, ones, report_of};

#[test]
fn counters_count_what_captures_report_and_need_none() -> Result<()> {
    own_process!();
    let device = lab();
    let stream = device.stream();
    let mut array = ones(100);
    let before = audit::counters();
    assert_eq!((before.launches, before.traffic.moved().count, before.live_arrays), (0, 0, 1));
    // So slow that the host comes before it has run, and waits.
    let slow = Kernel::<(InOut<f32>,)>::new("slow")
        .host(|_grid, (_xs,)| thread::sleep(Duration::from_millis(20)));
    let work = |array: &mut SmartArray<f32, _>| {
        for _ in 0..3 {
            slow.launch_on(&stream, grid(), (&mut *array,))?;
        }
        array.host().map(drop)
    };
    work(&mut array)?;
    let now = audit::counters();
    assert_eq!(
        (now.launches, now.traffic.to_device.bytes, now.traffic.to_host.bytes),
        (3, 400, 400)
    );
    assert_eq!((now.allocations.count, now.device_memory.in_use), (1, 400));
    assert_eq!(now.waits.count, 1);
    assert!(now.waits.nanoseconds > 0);
    let report = report_of(|| work(&mut array))?;
    let later = audit::counters();
    assert_eq!(later.traffic.avoided, device.traffic().avoided);
    assert_eq!(later.traffic - now.traffic, report.traffic() - resident::Traffic::default());
    assert_eq!(later.launches - now.launches, report.launches());
    drop(array);
    let last = audit::counters();
    assert_eq!((last.live_arrays, last.device_memory.in_use), (0, 0));
    assert_eq!(last.device_memory.peak, 400);
    Ok(())
}

#[test]
fn launches_without_arrays_that_a_launcher_copies_count_too() -> Result<()> {
    own_process!();
    let stream = lab().stream();
    let source = DeviceArray::from_host_on(&stream, &ndarray::Array1::<f32>::ones(10))?;
    let mut destination = DeviceArray::<f32, ndarray::Ix1>::zeros_on(&stream, 10)?;
    for _ in 0..5 {
        copy().launch_on(&stream, grid(), (&source, &mut destination))?;
    }
    let now = audit::counters();
    assert_eq!((now.launches, now.traffic.avoided.count), (5, 0));
    Ok(())
}

/// Both devices count a copy between them, and one of them ends before the counters are read.
#[test]
fn devices_that_end_keep_their_counts_and_copies_between_two_count_once() -> Result<()> {
    own_process!();
    let [one, other] = [(); 2].map(|()| Device::emulated(Emulation::new()));
    let mut array = ones(100);
    double().launch_on(&one.stream(), grid(), (&mut array,))?;
    double().launch_on(&other.stream(), grid(), (&mut array,))?;
    let moved = array.traffic();
    assert_eq!((moved.between_devices.count, moved.between_devices.bytes), (1, 400));
    let before = audit::counters();
    assert_eq!((before.traffic, before.launches), (moved, 2));
    drop((array, one, other));
    let after = audit::counters();
    assert_eq!((after.traffic, after.launches), (moved, 2));
    Ok(())
}

#[test]
fn evictions_messages_and_pinned_memory_count() -> Result<()> {
    own_process!();
    let stream = Device::emulated(Emulation::new().memory(1000)).stream();
    let arrays = [(); 2].map(|()| SmartArray::from(vec![1_u8; 600]));
    arrays[0].prefetch(&stream)?;
    stream.synchronize()?;
    arrays[1].prefetch(&stream)?;
    record_transfer(Transfer::sent(70, "a", 1));
    record_transfer(Transfer::received(80, "a", 1));
    let pinned = PinnedArray::<u8, _>::zeros(50)?;
    let now = audit::counters();
    assert_eq!((now.evictions.count, now.evictions.bytes), (1, 600));
    assert_eq!((now.sent.bytes, now.received.bytes), (70, 80));
    assert_eq!((now.pinned_memory.in_use, now.pinned_memory.peak), (50, 50));
    assert_eq!((now.device_memory.in_use, now.device_memory.peak), (600, 600));
    drop(pinned);
    assert_eq!(audit::counters().pinned_memory.in_use, 0);
    Ok(())
}

#[test]
fn counters_only_rise_while_devices_come_and_go() {
    own_process!();
    let work = || {
        let stream = Device::emulated(Emulation::new()).stream();
        let mut array = ones(10);
        double().launch_on(&stream, grid(), (&mut array,)).expect("a launch");
    };
    let rises = |earlier: &Counters, later: &Counters| {
        earlier.launches <= later.launches
            && earlier.traffic.to_device.count <= later.traffic.to_device.count
    };
    thread::scope(|threads| {
        let workers: Vec<_> =
            (0..4).map(|_| threads.spawn(|| (0..200).for_each(|_| work()))).collect();
        let mut last = audit::counters();
        while !workers.iter().all(|worker| worker.is_finished()) {
            let next = audit::counters();
            assert!(rises(&last, &next), "{last:?}, then {next:?}");
            last = next;
        }
    });
    assert_eq!((audit::counters().launches, audit::counters().live_arrays), (800, 0));
}

/// The name and the value of a label.
type Label<'a> = (&'a str, &'a str);

/// A sample of Prometheus's text format: `name{label="value"} number`, with at most one label.
fn sample(line: &str) -> Option<(&str, Option<Label<'_>>, f64)> {
    let is_name = |name: &str| {
        let mut bytes = name.bytes();
        bytes.next().is_some_and(|first| first.is_ascii_lowercase())
            && bytes.all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    let (series, value) = line.split_once(' ')?;
    let (name, label) = match series.strip_suffix("\"}") {
        Some(series) => {
            let (name, label) = series.split_once('{')?;
            (name, Some(label.split_once("=\"")?))
        }
        None => (series, None),
    };
    let names = [Some(name), label.map(|label| label.0), label.map(|label| label.1)];
    names.into_iter().flatten().all(is_name).then_some((name, label, value.parse().ok()?))
}

#[test]
fn each_line_of_the_text_for_prometheus_is_a_family_or_a_sample_of_it() -> Result<()> {
    own_process!();
    let array = ones(100);
    array.prefetch(&lab().stream())?;
    let counters = audit::counters();
    let text = counters.to_prometheus();
    assert!(text.ends_with('\n') && !text.contains("\n\n"), "{text}");
    let (mut family, mut families, mut samples) = (("", ""), Vec::new(), Vec::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').expect("a help");
            assert!(help.ends_with('.') && !help.contains('\\'), "{line}");
            let kind = lines.next().and_then(|line| line.strip_prefix("# TYPE "));
            family = kind.and_then(|kind| kind.split_once(' ')).expect("a type after the help");
            assert_eq!(family.0, name);
            assert_eq!(family.1, if name.ends_with("_total") { "counter" } else { "gauge" });
            assert!(!families.contains(&name), "{name} is there twice");
            families.push(name);
        } else {
            let (name, label, value) = sample(line).unwrap_or_else(|| panic!("{line:?}"));
            assert_eq!(name, family.0, "{line}");
            samples.push((name, label, value));
        }
    }
    assert_eq!((families.len(), samples.len()), (12, 22));
    let value = |name: &str, of: Option<(&str, &str)>| {
        let mut found = samples.iter().filter(|sample| (sample.0, sample.1) == (name, of));
        let value = found.next().unwrap_or_else(|| panic!("{name} {of:?}: {text}")).2;
        assert!(found.next().is_none(), "{name} {of:?} is there twice");
        value
    };
    assert_eq!(value("resident_copied_bytes_total", Some(("direction", "to_device"))), 400.0);
    assert_eq!(value("resident_copies_total", Some(("direction", "to_device"))), 1.0);
    assert_eq!(value("resident_copies_total", Some(("direction", "received"))), 0.0);
    assert_eq!(value("resident_live_arrays", None), 1.0);
    assert_eq!(value("resident_memory_bytes", Some(("memory", "device"))), 400.0);
    assert_eq!(value("resident_allocated_bytes_total", None), 400.0);
    let seconds = counters.waits.nanoseconds as f64 / 1e9;
    assert!((value("resident_wait_seconds_total", None) - seconds).abs() < 1e-9);
    Ok(())
}
