//! What is recorded of copies, launches, waits and memory, and that it is bounded.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use resident::audit::{self, Document, DocumentRecord, GroupBy};
use resident::ndarray::Ix1;
use resident::{Device, DeviceArray, Emulation, In, Kernel, Result, SmartArray};
use support::lab::lab;
use support::own_process;

use crate::{RECORDS_KEPT, copy, document_of, double, fill_records, grid, ones, report_of};

#[test]
fn a_launch_is_recorded_with_its_arguments_and_the_copies_it_caused() -> Result<()> {
    let stream = lab().new_stream()?;
    let source = ones(10).named("source");
    let mut target = SmartArray::<f32, _>::zeros(10).named("target");
    let line = line!() + 2;
    let document = document_of(|| {
        copy().launch_on(&stream, grid(), (&source, &mut target))?;
        double().launch_on(&stream, grid(), (&mut target,))?;
        stream.synchronize()
    })?;
    // No wait, if the work was over when `synchronize` was called.
    assert!(document.launches == 2 && document.waits.count <= 1, "{:?}", document.waits);
    let launches: Vec<_> = launches(&document).collect();
    let [(first, name, site, arguments), (second, ..)] = &launches[..] else { panic!("two") };
    assert!(first != second && *name == "copy");
    assert!(site.starts_with(&format!("{}:{line}:", file!())), "{site}");
    let id =
        |name| document.arrays.iter().find(|array| array.name == name).expect("it is there").id;
    assert!(document.arrays.iter().all(|array| array.element == "f32" && array.shape == [10]));
    let expected = [(id("source"), "in", true), (id("target"), "out", true)];
    assert_eq!(*arguments, expected);
    let [DocumentRecord::Copy { launch, name, bytes, .. }] = &copies(&document)[..] else {
        panic!("one copy")
    };
    assert_eq!((launch, &**name, *bytes), (&Some(*first), "source", 40));
    Ok(())
}

type Launched<'d> = (u64, &'d str, &'d str, Vec<(u64, &'d str, bool)>);

fn launches(document: &Document) -> impl Iterator<Item = Launched<'_>> {
    document.records.iter().filter_map(|record| match record {
        DocumentRecord::Launch { id, name, site, arguments, .. } => {
            let arguments = arguments.iter().map(|it| (it.array, &*it.access, it.is_whole));
            Some((*id, &**name, &**site, arguments.collect()))
        }
        _ => None,
    })
}

fn copies(document: &Document) -> Vec<DocumentRecord> {
    let is_copy = |record: &&DocumentRecord| matches!(record, DocumentRecord::Copy { .. });
    document.records.iter().filter(is_copy).cloned().collect()
}

#[test]
fn work_that_is_over_has_times_in_the_order_of_its_stream() -> Result<()> {
    let stream = lab().new_stream()?;
    let mut array = ones(1000);
    let document = document_of(|| {
        (0..5).try_for_each(|_| double().launch_on(&stream, grid(), (&mut array,)))?;
        stream.synchronize()
    })?;
    let mut last_ns = 0;
    for record in &document.records {
        let (DocumentRecord::Copy { queued_ns, started_ns, finished_ns, .. }
        | DocumentRecord::Launch { queued_ns, started_ns, finished_ns, .. }) = record
        else {
            continue;
        };
        let (started_ns, finished_ns) = started_ns.zip(*finished_ns).expect("it is over");
        assert!(last_ns <= started_ns && started_ns <= finished_ns);
        assert!(finished_ns <= document.duration_ns && *queued_ns <= document.duration_ns);
        last_ns = finished_ns;
    }
    assert!(last_ns > 0);
    Ok(())
}

/// The reasons and the lines of the waits.
fn waits(document: &Document) -> Vec<(&str, &str)> {
    let records = document.records.iter();
    let waits = records.filter_map(|record| match record {
        DocumentRecord::Wait { reason, site, .. } => Some((&**reason, &**site)),
        _ => None,
    });
    waits.collect()
}

#[test]
fn each_call_that_waits_for_a_device_is_recorded() -> Result<()> {
    // Its work runs only when a thread waits for it.
    let stream = Device::emulated(Emulation::new().seed(1)).new_stream()?;
    let slow = double();
    let array = ones(4);
    let own = DeviceArray::<f32, _>::zeros_on(&stream, 4)?;
    array.prefetch(&stream)?;
    stream.synchronize()?;
    type Call<'f, A> = &'f dyn Fn(&mut A) -> Result<()>;
    let watched = array.try_clone()?;
    let watch = watched.watch()?;
    let mut arrays = (array, own, watched);
    type Arrays = (SmartArray<f32, Ix1>, DeviceArray<f32, Ix1>, SmartArray<f32, Ix1>);
    let calls: [(&str, Call<'_, Arrays>); 7] = [
        ("contents", &|_| watch.changed().map(drop)),
        ("synchronize", &|_| stream.synchronize()),
        ("synchronize", &|_| {
            drop(stream.auto_synchronize());
            Ok(())
        }),
        ("contents", &|(array, ..)| array.host().map(drop)),
        ("contents", &|(_, own, _)| own.copy_to_host().map(drop)),
        ("contents", &|(_, own, _)| own.copy_to_host_into(&mut ndarray::Array1::zeros(4))),
        ("host_function", &|_| stream.launch_host_function(|| ())?.wait()),
    ];
    for (expected, call) in calls {
        let document = document_of(|| {
            slow.launch_on(&stream, grid(), (&mut arrays.0,))?;
            slow.launch_on(&stream, grid(), (&mut arrays.1,))?;
            slow.launch_on(&stream, grid(), (&mut arrays.2,))?;
            call(&mut arrays)
        })?;
        let waits = waits(&document);
        let is_here = |(reason, site): &(&str, &str)| *reason == expected && site.contains(file!());
        assert!(!waits.is_empty() && waits.iter().all(is_here), "{expected}: {waits:?}");
        stream.synchronize()?;
    }
    Ok(())
}

#[test]
fn a_launch_tells_when_it_was_called() -> Result<()> {
    let stream = lab().new_stream()?;
    let mut array = ones(100_000);
    let document = document_of(|| {
        (0..3).try_for_each(|_| double().launch_on(&stream, grid(), (&mut array,)))
    })?;
    let mut last_ns = 0;
    for record in &document.records {
        if let DocumentRecord::Launch { called_ns, queued_ns, .. } = record {
            let called_ns = called_ns.expect("it is recorded");
            assert!(last_ns <= called_ns && called_ns < *queued_ns, "{document:?}");
            last_ns = *queued_ns;
        }
    }
    let [DocumentRecord::Copy { queued_ns, .. }] = &copies(&document)[..] else { panic!("one") };
    assert!(*queued_ns < last_ns);
    Ok(())
}

#[test]
fn work_that_has_not_run_has_no_times() -> Result<()> {
    // Nothing runs before somebody waits.
    let device = Device::emulated(Emulation::new().seed(1));
    let mut array = ones(10);
    let document = document_of(|| double().launch_on(&device.stream(), grid(), (&mut array,)))?;
    for record in &document.records {
        if let DocumentRecord::Launch { started_ns, finished_ns, .. } = record {
            assert_eq!((started_ns, finished_ns), (&None, &None));
        }
    }
    assert_eq!(document.launches, 1);
    Ok(())
}

#[test]
fn allocations_and_evictions_are_recorded_and_added_up() -> Result<()> {
    let device = Device::emulated(Emulation::new().memory(1000));
    let arrays = [0, 1].map(|_| SmartArray::from(vec![1_u8; 600]));
    let report = report_of(|| {
        arrays.iter().try_for_each(|array| array.prefetch(&device.stream()))?;
        device.synchronize()
    })?;
    assert_eq!((report.allocations().count, report.allocations().bytes), (2, 1200));
    assert_eq!((report.evictions().count, report.evictions().bytes), (1, 600));
    let document = report.to_document();
    let is_eviction = |record: &&DocumentRecord| matches!(record, DocumentRecord::Eviction(_));
    assert_eq!(document.records.iter().filter(is_eviction).count(), 1);
    Ok(())
}

#[test]
fn an_allocation_counts_to_the_capture_in_which_it_was_made() -> Result<()> {
    let stream = lab().stream();
    let report = report_of(|| DeviceArray::<f32, _>::uninit_on(&stream, 100).map(drop))?;
    assert_eq!((report.allocations().count, report.allocations().bytes), (1, 400));
    let ((), empty) = audit::capture(|| ());
    assert_eq!(empty.allocations().count, 0);
    Ok(())
}

#[test]
fn totals_are_exact_when_old_records_are_forgotten() -> Result<()> {
    let stream = lab().stream();
    let mut array = ones(4);
    let kernel = double();
    const LAUNCHES: u64 = 5_000;
    let report = report_of(|| {
        (0..LAUNCHES).try_for_each(|_| kernel.launch_on(&stream, grid(), (&mut array,)))?;
        fill_records(RECORDS_KEPT)?;
        stream.synchronize()
    })?;
    let document = report.to_document();
    assert_eq!((document.launches, document.to_device.count), (LAUNCHES, 1));
    assert_eq!(document.records.len() as u64, RECORDS_KEPT);
    // One upload, one allocation, and at least one wait.
    let all = document.records.len() as u64 + document.records_forgotten;
    assert_eq!(all, LAUNCHES + RECORDS_KEPT + 2 + document.waits.count);
    Ok(())
}

#[test]
fn totals_are_those_of_the_device() -> Result<()> {
    let device = lab();
    let streams = [device.new_stream()?, device.new_stream()?];
    let mut arrays: Vec<_> = (1..6).map(|len| ones(10 * len)).collect();
    let report = report_of(|| {
        for round in 0..10 {
            for (number, array) in arrays.iter_mut().enumerate() {
                double().launch_on(&streams[(round + number) % 2], grid(), (&mut *array,))?;
                if (round + number) % 3 == 0 {
                    array.host_mut()?[0] += 1.0;
                }
            }
        }
        Ok(())
    })?;
    assert_eq!(report.traffic(), device.traffic());
    for key in [GroupBy::CallSite, GroupBy::Array, GroupBy::Device, GroupBy::Stream] {
        let moved: u64 = report.group_by(key).iter().map(|(_, flow)| flow.moved().bytes).sum();
        assert_eq!(moved, device.traffic().moved().bytes, "{key:?}");
    }
    assert_eq!(report.group_by(GroupBy::Array).len(), 5);
    let streams = report.group_by(GroupBy::Stream);
    assert!(streams.iter().any(|(name, _)| name.ends_with(" stream 1")), "{streams:?}");
    let document = report.to_document();
    assert_eq!(document.streams.len(), streams.len());
    for of in &document.streams {
        let name = format!("{} stream {}", of.device, of.stream.expect("there are few"));
        let (_, traffic) = streams.iter().find(|group| group.0 == name).expect("a group");
        assert_eq!((of.to_device, of.to_host), (traffic.to_device, traffic.to_host), "{name}");
    }
    Ok(())
}

/// Buffers in rotation are one group, if they have no names and one line makes them; a named one is
/// a group of its own.
#[test]
fn buffers_that_one_line_makes_are_one_group() -> Result<()> {
    let stream = lab().stream();
    let line = line!() + 1;
    let mut buffers = [(); 3].map(|()| SmartArray::from(vec![1_u8; 100]));
    buffers[2].set_name("the last");
    let report = report_of(|| buffers.iter().try_for_each(|buffer| buffer.prefetch(&stream)))?;
    let groups = report.group_by(GroupBy::Array);
    let [(of_line, flow), (named, _)] = &groups[..] else { panic!("two groups: {groups:?}") };
    assert!(of_line.contains(&format!("{}:{line}:", file!())), "{of_line}");
    assert_eq!((flow.moved().count, flow.moved().bytes, &**named), (2, 200, "the last"));
    Ok(())
}

/// The bytes of the arrays with this name.
fn bytes_of(ledger: &audit::Ledger, name: &str) -> u64 {
    let sites = ledger.report().sites();
    sites.iter().filter(|site| site.array == name).map(|site| site.flow.bytes).sum()
}

#[test]
fn an_attached_ledger_sees_all_threads_while_a_clone_lives() -> Result<()> {
    let ledger = audit::Ledger::attach();
    let clone = ledger.clone();
    let mut array = SmartArray::from(vec![1_u8; 123]).named("seen by the ledger");
    let stream = lab().stream();
    let upload = || array.prefetch(&stream);
    std::thread::scope(|threads| threads.spawn(upload).join().expect("no panic"))?;
    drop(ledger);
    let seen = |ledger| bytes_of(ledger, "seen by the ledger");
    assert_eq!(seen(&clone), 123);
    array.release_on(&stream.device())?;
    array.prefetch(&stream)?;
    assert_eq!(seen(&clone), 246);
    Ok(())
}

#[test]
fn copies_are_reported_under_the_name_that_the_array_has_then() -> Result<()> {
    let stream = lab().stream();
    let mut array = SmartArray::from(vec![1_u8; 10]).named("before");
    let document = document_of(|| {
        array.prefetch(&stream)?;
        array.set_name("after");
        array.host_mut()?[0] = 2;
        array.prefetch(&stream)
    })?;
    let names = copies(&document).into_iter().filter_map(|copy| match copy {
        DocumentRecord::Copy { name, .. } => Some(name),
        _ => None,
    });
    assert_eq!(names.collect::<Vec<_>>(), ["before", "after"]);
    Ok(())
}

#[test]
fn what_was_recorded_before_a_panic_is_reported() {
    let stream = lab().stream();
    let array = SmartArray::from(vec![1_u8; 77]);
    let (outcome, report) = audit::capture(|| {
        catch_unwind(AssertUnwindSafe(|| {
            array.prefetch(&stream).expect("enough memory");
            audit::capture(|| -> () { panic!("within a capture") })
        }))
    });
    assert!(outcome.is_err());
    assert_eq!(report.traffic().to_device.bytes, 77);
}

#[test]
fn an_attached_ledger_sees_nothing_that_came_before_it() -> Result<()> {
    let first = audit::Ledger::attach();
    let mut array = SmartArray::from(vec![1_u8; 31]).named("of two ledgers");
    let stream = lab().stream();
    array.prefetch(&stream)?;
    let second = audit::Ledger::attach();
    array.host_mut()?[0] = 2;
    array.prefetch(&stream)?;
    let seen = |ledger| bytes_of(ledger, "of two ledgers");
    assert_eq!((seen(&second), seen(&first)), (31, 62));
    Ok(())
}

/// The launches that threads have queued when a report is read are in it, each thread's in order,
/// although the threads still run and go on. In a process of its own: others would fill the ledger.
#[test]
fn a_report_has_what_all_threads_recorded_before_it_was_read() -> Result<()> {
    own_process!();
    const THREADS: usize = 3;
    const LAUNCHES: u64 = 3_000;
    let ledger = audit::Ledger::attach();
    let device = lab();
    let queued: [AtomicU64; THREADS] = Default::default();
    let arrays: Vec<_> = (0..THREADS).map(|_| ones(4)).collect();
    let kernel = Kernel::<(In<f32>,)>::new("read while reports are read").host(|_grid, _| ());
    let work = |number: usize| -> Result<()> {
        let stream = device.new_stream()?;
        for _ in 0..LAUNCHES {
            kernel.launch_on(&stream, grid(), (&arrays[number],))?;
            queued[number].fetch_add(1, Ordering::Release);
        }
        stream.synchronize()
    };
    let read = || {
        let before = queued.each_ref().map(|count| count.load(Ordering::Acquire));
        let document = ledger.report().to_document();
        let own = launches(&document).filter(|launch| launch.1 == "read while reports are read");
        let mut ids: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        own.for_each(|(id, .., arguments)| ids.entry(arguments[0].0).or_default().push(id));
        let mut counts: Vec<u64> = ids.values().map(|ids| ids.len() as u64).collect();
        assert!(ids.values().all(|ids| ids.is_sorted()), "in the order of each thread");
        counts.resize(THREADS, 0);
        let (mut before, total) = (before.to_vec(), counts.iter().sum::<u64>());
        before.sort_unstable();
        counts.sort_unstable();
        assert!(before.iter().zip(&counts).all(|(before, count)| before <= count), "{before:?}");
        total
    };
    std::thread::scope(|threads| {
        let work = &work;
        let workers: Vec<_> =
            (0..THREADS).map(|number| threads.spawn(move || work(number))).collect();
        while workers.iter().any(|worker| !worker.is_finished()) {
            read();
        }
        workers.into_iter().try_for_each(|worker| worker.join().expect("no panic"))
    })?;
    assert_eq!(read(), THREADS as u64 * LAUNCHES);
    Ok(())
}

/// How each access of a document is declared, and where it is.
fn accesses(document: &Document) -> Vec<(&str, Option<&str>)> {
    let records = document.records.iter();
    let accesses = records.filter_map(|record| match record {
        DocumentRecord::Access(access) => Some((&*access.access, access.device.as_deref())),
        _ => None,
    });
    accesses.collect()
}

/// A guard that writes what is newest elsewhere first reads it, by the same call.
#[test]
fn a_read_and_the_write_behind_it_by_one_call_are_one_access() -> Result<()> {
    let device = lab();
    let (stream, name) = (device.stream(), device.name());
    let array = || ones(8);
    let mut newest_there = array();
    double().launch_on(&stream, grid(), (&mut newest_there,))?;
    let downloaded = document_of(|| newest_there.host_mut().map(drop))?;
    assert_eq!(accesses(&downloaded), [("in_out", None)]);
    let uploaded = document_of(|| array().gpu_mut_on(&stream).map(drop))?;
    assert_eq!(accesses(&uploaded), [("in_out", Some(&*name))]);
    // Two calls are two accesses, and so are two arrays of one call.
    double().launch_on(&stream, grid(), (&mut newest_there,))?;
    let apart = document_of(|| {
        newest_there.host().map(drop)?;
        newest_there.host_mut().map(drop)?;
        newest_there.host_overwrite().map(drop)
    })?;
    assert_eq!(accesses(&apart), [("in", None), ("in_out", None), ("out", None)]);
    let mut two = [array(), array()];
    let each = document_of(|| two.iter_mut().try_for_each(|array| array.host_mut().map(drop)))?;
    assert_eq!(accesses(&each), [("in_out", None); 2]);
    Ok(())
}

#[test]
fn a_refused_launch_lends_its_number_to_no_other() -> Result<()> {
    let device = Device::emulated(Emulation::new().fail(resident::Fault::nth(3)));
    let stream = device.stream();
    let (first, mut second) = (ones(8), SmartArray::zeros(8));
    let mut third = ones(8);
    let document = document_of(|| {
        let refused = copy().launch_on(&stream, grid(), (&first, &mut second));
        assert!(refused.is_err());
        double().launch_on(&stream, grid(), (&mut third,))
    })?;
    let launch = launches(&document).next().expect("one was queued").0;
    for record in copies(&document) {
        let DocumentRecord::Copy { launch: caused_by, array, .. } = record else { continue };
        let third = document.arrays.iter().rev().find(|known| known.id == array).map(|it| it.id);
        assert_eq!(caused_by == Some(launch), third == document.arrays.last().map(|it| it.id));
    }
    Ok(())
}
