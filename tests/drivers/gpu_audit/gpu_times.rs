//! The times of a GPU's work, on the stand-in driver. Each test has its own process, because the
//! driver and its record of calls belong to one.

use std::time::Duration;

use resident::audit::{self, Document, DocumentRecord};
use resident::{Device, InOut, Kernel, Result, SmartArray};
use resident_stand_in::{Settings, take_calls};
use support::own_process;

use crate::body_on_gpu::device_with;
use crate::{document_of, grid, ones, report_of};

const PAUSE: Duration = Duration::from_millis(5);

/// A kernel that takes 5 ms, on the stand-in driver's device.
fn gpu() -> Result<(Device, Kernel<(InOut<f32>,)>)> {
    device_with(Settings::new(), || std::thread::sleep(PAUSE))
}

/// The name or the direction, and the times of each launch and copy.
fn times(document: &Document) -> Vec<(&str, Option<(u64, u64)>)> {
    let records = document.records.iter();
    let times = records.filter_map(|record| match record {
        DocumentRecord::Launch { name, started_ns, finished_ns, .. } => {
            Some((&**name, started_ns.zip(*finished_ns)))
        }
        DocumentRecord::Copy { direction, started_ns, finished_ns, .. } => {
            Some((&**direction, started_ns.zip(*finished_ns)))
        }
        _ => None,
    });
    times.collect()
}

/// Two launches on arrays of different sizes, on two streams, and downloads.
fn work(device: &Device, kernel: &Kernel<(InOut<f32>,)>) -> Result<()> {
    for len in [100, 200_000] {
        let stream = device.new_stream()?;
        let mut array = ones(len);
        kernel.launch_on(&stream, grid(), (&mut array,))?;
        array.host().map(drop)?;
    }
    device.synchronize()
}

#[test]
fn launches_and_copies_have_the_times_of_the_device_while_a_guard_lives() -> Result<()> {
    own_process!();
    let (device, kernel) = gpu()?;
    work(&device, &kernel)?;
    let document = document_of(|| {
        let _guard = audit::time_device(&device)?;
        work(&device, &kernel)
    })?;
    let times = times(&document);
    let names: Vec<_> = times.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["to_device", "waits", "to_host"].repeat(2));
    let (mut first_ns, mut last_ns) = (None, 0);
    for (name, work) in times {
        let (started_ns, finished_ns) = work.unwrap_or_else(|| panic!("{name}: {document:?}"));
        // The driver rounds to half a microsecond. All times are as late as the wait by which the
        // clocks are compared, which a busy machine makes long.
        assert!(last_ns <= started_ns + 100_000, "{name} from {started_ns}, after {last_ns}");
        let first_ns = *first_ns.get_or_insert(started_ns);
        let end_ns = first_ns + document.duration_ns + 100_000;
        assert!((started_ns..=end_ns).contains(&finished_ns), "{name} until {finished_ns}");
        if name == "waits" {
            let took = Duration::from_nanos(finished_ns - started_ns);
            let all = Duration::from_nanos(document.duration_ns);
            assert!((PAUSE..=all).contains(&took), "{took:?} of {all:?}");
        }
        last_ns = finished_ns;
    }
    Ok(())
}

#[test]
fn without_a_guard_there_are_no_times_and_no_events() -> Result<()> {
    own_process!();
    let (device, kernel) = gpu()?;
    work(&device, &kernel)?;
    let timed_events = |work: &dyn Fn() -> Result<()>| -> Result<(usize, Document)> {
        take_calls();
        let document = document_of(work)?;
        let is_record = |name: &str| name.starts_with("cuEventRecord");
        let records = take_calls().into_iter().filter(|call| is_record(&call.name)).count();
        Ok((records, document))
    };
    let (before, untimed) = timed_events(&|| work(&device, &kernel))?;
    assert!(times(&untimed).iter().all(|(_, times)| times.is_none()), "{untimed:?}");
    let guard = audit::time_device(&device)?;
    let (during, _) = timed_events(&|| work(&device, &kernel))?;
    drop(guard);
    let (after, _) = timed_events(&|| work(&device, &kernel))?;
    // Two for each of six pieces of work.
    assert_eq!((before + 12, before), (during, after));
    Ok(())
}

#[test]
fn a_program_that_only_copies_has_the_times_of_all_its_copies() -> Result<()> {
    // More than there are times that wait to be read.
    const COPIES: usize = 17_000;
    own_process!();
    let (device, _) = gpu()?;
    let stream = device.stream();
    let mut array = ones(4);
    let document = document_of(|| {
        let _guard = audit::time_device(&device)?;
        for _ in 0..COPIES / 100 {
            for _ in 0..100 {
                array.host_mut()?[0] += 1.0;
                array.prefetch(&stream)?;
            }
            stream.synchronize()?;
        }
        Ok(())
    })?;
    let times = times(&document);
    let timed = times.iter().filter(|(_, times)| times.is_some()).count();
    assert_eq!((times.len(), timed), (COPIES, COPIES));
    Ok(())
}

#[test]
fn the_hosts_wait_for_a_device_of_another_kind_is_recorded() -> Result<()> {
    own_process!();
    let (device, kernel) = gpu()?;
    let (stream, other) = (device.stream(), Device::cpu().new_stream()?);
    let mut array = ones(4);
    let document = document_of(|| {
        kernel.launch_on(&stream, grid(), (&mut array,))?;
        other.wait(&stream.record()?)
    })?;
    let waits = document.records.iter().filter_map(|record| match record {
        DocumentRecord::Wait { device, site, reason, .. } => Some((device, site, reason)),
        _ => None,
    });
    let [(waited_for, site, reason)] = waits.collect::<Vec<_>>()[..] else {
        panic!("one wait: {document:?}")
    };
    assert_eq!((waited_for, &**reason), (&device.name(), "other_kind"));
    assert!(site.contains(file!()), "{site}");
    Ok(())
}

#[test]
fn embedded_devices_need_no_guard() -> Result<()> {
    let device = support::lab::lab();
    let report = report_of(|| {
        let _guard = audit::time_device(&device)?;
        SmartArray::from(vec![1_u8; 10]).prefetch(&device.stream())?;
        device.synchronize()
    })?;
    assert!(times(&report.to_document())[0].1.is_some());
    Ok(())
}
