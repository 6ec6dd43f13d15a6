//! Each finding: a program that shows it, the same program with the change, which must not, and
//! that the change saves what the finding says.

use std::collections::BTreeMap;
use std::time::Duration;

use resident::audit::{self, DocumentFinding, DocumentRecord, Report};
use resident::ndarray::{Ix1, Ix2, s};
use resident::{Device, Emulation, In, InOut, Kernel, Result, SmartArray};
use support::lab::lab;

use crate::{copy, double, grid, of_kind, ones, report_of};

/// The finding of this kind, at lines of this file; the text of the report has it.
fn only(report: &Report, kind: &str) -> DocumentFinding {
    let found = crate::only(report, kind);
    assert!(!found.sites.is_empty() && found.sites[0].contains("findings.rs"), "{found:?}");
    let text = report.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(&format!("finding: {}", found.message)));
    found
}

/// The finding of this kind that the one program has and the other has not, which copies just so
/// much less.
fn mended(kind: &str, before: &Report, after: &Report) -> DocumentFinding {
    let finding = only(before, kind);
    let flow = before.traffic().moved() - after.traffic().moved();
    assert_eq!((finding.count, finding.bytes), (flow.count, flow.bytes), "{finding:?}");
    assert_none(after);
    finding
}

fn assert_none(report: &Report) {
    assert_eq!(report.findings(), [], "a correct program");
}

const ROUNDS: usize = 10;

#[test]
fn an_array_that_goes_up_and_down_in_a_loop() -> Result<()> {
    let stream = lab().stream();
    let loops = |by_host: bool| {
        let mut array = ones(100).named("state");
        report_of(|| {
            for _ in 0..ROUNDS {
                double().launch_on(&stream, grid(), (&mut array,))?;
                match by_host {
                    true => array.host_mut()?[0] += 1.0,
                    false => double().launch_on(&stream, grid(), (&mut array,))?,
                }
            }
            array.host().map(drop)
        })
    };
    let finding = mended("bounce", &loops(true)?, &loops(false)?);
    assert_eq!(finding.array.as_deref(), Some("state"));
    assert_eq!(finding.sites.len(), 2);
    Ok(())
}

#[test]
fn programs_that_stream_through_a_device_are_correct() -> Result<()> {
    let device = lab();
    let stream = device.stream();
    // A buffer that the host overwrites for each round.
    let mut frame = SmartArray::from(vec![0.0_f32; 100]);
    let mut shown = 0.0;
    assert_none(&report_of(|| {
        for round in 0..ROUNDS {
            frame.host_overwrite()?.fill(round as f32);
            double().launch_on(&stream, grid(), (&mut frame,))?;
            shown += frame.host()?.sum();
        }
        Ok(())
    })?);
    // Explicit copies of a device array.
    let mut there = resident::DeviceArray::<f32, _>::zeros_on(&stream, 100)?;
    let mut here = ndarray::Array1::<f32>::zeros(100);
    assert_none(&report_of(|| {
        for _ in 0..ROUNDS {
            there.copy_from_host(&here)?;
            double().launch_on(&stream, grid(), (&mut there,))?;
            there.copy_to_host_into(&mut here)?;
        }
        Ok(())
    })?);
    Ok(())
}

#[test]
fn an_array_that_is_evicted_and_copied_again() -> Result<()> {
    let loops = |memory_bytes: u64| {
        let device = Device::emulated(Emulation::new().memory(memory_bytes));
        let arrays = [0_u8, 1].map(|number| SmartArray::from(vec![number; 600]));
        report_of(|| {
            for _ in 0..ROUNDS {
                for array in &arrays {
                    array.prefetch(&device.stream())?;
                    device.synchronize()?;
                }
            }
            Ok(())
        })
    };
    let (before, after) = (loops(1000)?, loops(2000)?);
    let findings = before.findings();
    let total = |of: fn(&DocumentFinding) -> u64| findings.iter().map(of).sum::<u64>();
    assert!(findings.iter().all(|finding| finding.kind == "evicted"), "{findings:?}");
    let found = (total(|finding| finding.count), total(|finding| finding.bytes));
    let flow = before.traffic().moved() - after.traffic().moved();
    assert_eq!(found, (flow.count, flow.bytes));
    assert_none(&after);
    Ok(())
}

#[test]
fn an_upload_that_is_overwritten_before_use() -> Result<()> {
    let stream = lab().stream();
    let source = ones(100);
    let program = |prefetches: bool| {
        let mut target = SmartArray::from(vec![0.0_f32; 100]).named("target");
        report_of(|| {
            if prefetches {
                target.prefetch(&stream)?;
            }
            copy().launch_on(&stream, grid(), (&source, &mut target))
        })
    };
    source.prefetch(&stream)?;
    let finding = mended("overwritten_upload", &program(true)?, &program(false)?);
    assert_eq!((finding.count, finding.bytes), (1, 400));
    // Read first, or only partly overwritten: the upload is needed.
    let mut target = SmartArray::from(vec![0.0_f32; 100]);
    assert_none(&report_of(|| {
        target.prefetch(&stream)?;
        double().launch_on(&stream, grid(), (&mut target,))?;
        copy().launch_on(&stream, grid(), (&source, &mut target))
    })?);
    let (half, mut parted) = (ones(50), SmartArray::from(vec![0.0; 100]));
    assert_none(&report_of(|| {
        parted.prefetch(&stream)?;
        let mut part = parted.slice_mut(s![..50]);
        copy().launch_on(&stream, grid(), (&half, &mut part))
    })?);
    Ok(())
}

#[test]
fn an_upload_that_other_calls_than_launches_make_useless() -> Result<()> {
    let stream = lab().stream();
    let source = ones(100);
    source.prefetch(&stream)?;
    let overwrites: [(&str, Overwrite<'_>); 5] = [
        ("gpu_overwrite", &|target| target.gpu_overwrite_on(&stream).map(drop)),
        ("assign", &|target| target.assign_on(&stream, &source)),
        ("fill", &|target| target.fill_on(&stream, 3.0)),
        ("host_overwrite", &|target| target.host_overwrite().map(drop)),
        ("host_mut", &|target| target.host_mut().map(drop)),
    ];
    for (name, overwrite) in overwrites {
        let program = |prefetches: bool| {
            let mut target = SmartArray::from(vec![0.0_f32; 100]).named(name);
            report_of(|| {
                if prefetches {
                    target.prefetch(&stream)?;
                }
                overwrite(&mut target)
            })
        };
        let finding = mended("overwritten_upload", &program(true)?, &program(false)?);
        assert_eq!((finding.count, finding.bytes), (1, 400), "{name}");
    }
    Ok(())
}

type Overwrite<'f> = &'f dyn Fn(&mut SmartArray<f32, Ix1>) -> Result<()>;

#[test]
fn an_upload_that_something_reads_before_it_is_overwritten_is_correct() -> Result<()> {
    let device = lab();
    let (stream, other) = (device.stream(), device.new_stream()?);
    let peer = Device::emulated(Emulation::new());
    let source = ones(100);
    let reads: [(&str, Overwrite<'_>); 8] = [
        ("a launch", &|array| double().launch_on(&stream, grid(), (array,))),
        ("a guard", &|array| array.gpu_on(&other).map(drop)),
        ("a guard that writes", &|array| array.gpu_mut_on(&stream).map(drop)),
        ("an assignment", &|array| SmartArray::<f32, _>::zeros(100).assign_on(&stream, &*array)),
        ("a clone", &|array| {
            array.gpu_mut_on(&stream).map(drop)?;
            array.try_clone().map(drop)
        }),
        ("a snapshot", &|array| {
            array.gpu_mut_on(&stream).map(drop)?;
            array.snapshot_on(&stream)?.wait().map(drop)
        }),
        ("another device", &|array| array.prefetch(&peer.stream())),
        ("a part", &|array| array.slice(s![..5]).gpu_on(&stream).map(drop)),
    ];
    for (name, read) in reads {
        let mut array = SmartArray::from(vec![0.0_f32; 100]).named(name);
        let seen = report_of(|| {
            array.prefetch(&stream)?;
            read(&mut array)?;
            // Both copies may have been read.
            drop(array.gpu_on(&peer.stream())?);
            copy().launch_on(&stream, grid(), (&source, &mut array))
        })?;
        assert_eq!(of_kind(&seen, "overwritten_upload"), [], "{name}");
    }
    Ok(())
}

#[test]
fn a_download_ahead_of_use_that_nobody_reads() -> Result<()> {
    let stream = lab().stream();
    let program = |prefetches: bool| {
        let mut state = ones(100).named("state");
        report_of(|| {
            for _ in 0..ROUNDS {
                double().launch_on(&stream, grid(), (&mut state,))?;
                if prefetches {
                    state.prefetch_host()?;
                }
            }
            state.host().map(drop)
        })
    };
    let finding = mended("unread_download", &program(true)?, &program(false)?);
    // The last one is read.
    assert_eq!((finding.count, finding.bytes), (ROUNDS as u64 - 1, 400 * (ROUNDS as u64 - 1)));
    Ok(())
}

#[test]
fn a_download_that_something_reads_is_correct() -> Result<()> {
    let device = lab();
    let stream = device.stream();
    let show = Kernel::<(In<f32>,)>::new("show").host(|_grid, _| ());
    let reads: [(&str, Overwrite<'_>); 8] = [
        ("host", &|array| array.host().map(drop)),
        ("a part", &|array| array.slice(s![3..4]).host().map(drop)),
        ("get", &|array| array.get(7).map(drop)),
        ("to_vec", &|array| array.to_vec().map(drop)),
        ("call", &|array| show.call(grid(), (&*array,))),
        ("host_mut", &|array| array.host_mut().map(drop)),
        ("the next upload", &|array| array.release_on(&device)),
        ("a clone on the host", &|array| SmartArray::<f32, _>::zeros(100).assign(&*array)),
    ];
    for (name, read) in reads {
        let mut state = ones(100).named(name);
        let seen = report_of(|| {
            for _ in 0..ROUNDS {
                double().launch_on(&stream, grid(), (&mut state,))?;
                state.prefetch_host()?;
                read(&mut state)?;
            }
            Ok(())
        })?;
        assert_eq!(of_kind(&seen, "unread_download"), [], "{name}");
    }
    Ok(())
}

#[test]
fn a_download_that_another_thread_reads_is_correct() -> Result<()> {
    let stream = lab().stream();
    let mut state = ones(100);
    // The other thread counts to no capture, to one of its own, and to this one.
    let by_another = |work: &(dyn Fn() + Sync), scope: u8| {
        let own = audit::scope();
        std::thread::scope(|threads| {
            let run = || match scope {
                0 => work(),
                1 => audit::capture(work).0,
                _ => own.run(work),
            };
            threads.spawn(run).join().expect("no panic");
        });
    };
    for scope in 0..3 {
        assert_none(&report_of(|| {
            for _ in 0..ROUNDS {
                double().launch_on(&stream, grid(), (&mut state,))?;
                state.prefetch_host()?;
                by_another(&|| drop(state.host().expect("nothing fails")), scope);
            }
            Ok(())
        })?);
    }
    Ok(())
}

#[test]
fn a_snapshot_that_nobody_takes() -> Result<()> {
    let device = lab();
    let stream = device.stream();
    let program = |takes: usize, drops: usize| {
        let mut state = ones(100).named("state");
        report_of(|| {
            double().launch_on(&stream, grid(), (&mut state,))?;
            for index in 0..takes + drops {
                let snapshot = state.snapshot_on(&stream)?;
                if index >= drops {
                    snapshot.wait()?;
                }
            }
            Ok(())
        })
    };
    let finding = mended("unread_download", &program(2, 3)?, &program(2, 0)?);
    assert_eq!(finding.bytes, 3 * 400);
    assert!(finding.message.starts_with("a snapshot of \"state\""), "{}", finding.message);
    // What is on the host is copied from no device.
    let array = ones(100);
    assert_none(&report_of(|| array.snapshot_on(&stream).map(drop))?);
    Ok(())
}

/// A loop in which a device reads what the host writes by `write`.
fn compared(write: Overwrite<'_>) -> Result<Report> {
    let stream = lab().stream();
    let show = Kernel::<(In<f32>,)>::new("show").host(|_grid, _| ());
    let mut field = ones(2000).named("field");
    field.prefetch(&stream)?;
    report_of(|| {
        let _guard = audit::compare_contents();
        for _ in 0..ROUNDS {
            write(&mut field)?;
            show.launch_on(&stream, grid(), (&field,))?;
        }
        Ok(())
    })
}

#[test]
fn an_array_that_goes_down_and_up_again_unchanged() -> Result<()> {
    let before = compared(&|field| field.host_mut().map(|field| assert_eq!(field.sum(), 2000.0)))?;
    let after = compared(&|field| field.host().map(|field| assert_eq!(field.sum(), 2000.0)))?;
    let finding = mended("round_trip", &before, &after);
    assert_eq!((finding.count, finding.bytes), (10, 80_000));
    // A program that changes it; and one that changes it back.
    assert_none(&compared(&|field| {
        field.host_mut()?.mapv_inplace(|x| x + 1.0);
        Ok(())
    })?);
    let back = compared(&|field| {
        field.host_mut()?[3] += 1.0;
        field.host_mut()?[3] -= 1.0;
        Ok(())
    })?;
    assert_eq!(only(&back, "round_trip").bytes, 80_000);
    Ok(())
}

#[test]
fn a_whole_array_that_is_copied_for_a_few_elements() -> Result<()> {
    let before = compared(&|field| {
        field.host_mut()?.slice_mut(s![7..12]).mapv_inplace(|x| x + 1.0);
        Ok(())
    })?;
    let after = compared(&|field| {
        field.slice_mut(s![7..12]).host_mut()?.mapv_inplace(|x| x + 1.0);
        Ok(())
    })?;
    let finding = mended("few_changes", &before, &after);
    assert_eq!(finding.bytes, 10 * (8000 - 5 * 4));
    assert!(finding.sites.iter().all(|site| site.contains(file!())), "{finding:?}");
    Ok(())
}

/// A loop with a kernel that declares to change its second argument, and changes the first.
fn with_table(changes: bool) -> Result<Report> {
    let device = lab();
    let stream = device.stream();
    let read = Kernel::<(InOut<f32>, In<f32>)>::new("add")
        .host(|_grid, (xs, table)| xs.iter_mut().zip(table).for_each(|(x, t)| *x += t));
    let change = Kernel::<(InOut<f32>, InOut<f32>)>::new("add")
        .host(|_grid, (xs, table)| xs.iter_mut().zip(table).for_each(|(x, t)| *x += *t));
    let mut state = ones(100).named("state");
    let mut table = ones(100).named("table");
    report_of(|| {
        let _guard = audit::compare_contents();
        for _ in 0..ROUNDS {
            match changes {
                true => change.launch_on(&stream, grid(), (&mut state, &mut table))?,
                false => read.launch_on(&stream, grid(), (&mut state, &table))?,
            }
            assert_eq!(table.host()?.sum(), 100.0);
        }
        state.host().map(drop)?;
        device.synchronize()
    })
}

#[test]
fn an_argument_that_no_launch_changes() -> Result<()> {
    let finding = mended("unchanged_argument", &with_table(true)?, &with_table(false)?);
    assert_eq!((finding.count, finding.bytes), (10, 4000));
    assert!(finding.message.contains("argument 1 of kernel \"add\""), "{finding:?}");
    Ok(())
}

#[test]
fn an_argument_that_a_launch_changes_is_correct() -> Result<()> {
    let stream = lab().stream();
    // Views of any strides; the last launch changes one element.
    let bump = Kernel::<(InOut<u16, Ix2>, u16)>::new("bump")
        .host(|_grid, (mut xs, by)| xs[[1, 0]] = xs[[1, 0]].wrapping_add(by));
    let mut table = SmartArray::from(ndarray::Array2::<u16>::zeros((30, 20)));
    let seen = report_of(|| {
        let _guard = audit::compare_contents();
        for by in [0, 0, 0, 0, 1] {
            let mut part = table.slice_mut(s![2..20;3, ..;-2]);
            bump.launch_on(&stream, grid(), (&mut part, by))?;
            table.host().map(drop)?;
        }
        stream.synchronize()
    })?;
    let records = seen.to_document().records.into_iter();
    let changed = records.filter_map(|record| match record {
        DocumentRecord::Launch { arguments, .. } => arguments[0].changed_bytes,
        _ => None,
    });
    assert_eq!(changed.collect::<Vec<_>>(), [0, 0, 0, 0, 2]);
    assert_none(&seen);
    Ok(())
}

#[test]
fn contents_are_compared_with_those_that_the_device_has() -> Result<()> {
    let device = lab();
    let stream = device.stream();
    let plain = ones(100);
    let mut field = ones(100);
    field.prefetch(&stream)?;
    let seen = report_of(|| {
        let _guard = audit::compare_contents();
        drop(field.host_mut()?);
        // The device's contents are others from here on: what was kept is of no use.
        field.fill_on(&stream, 5.0)?;
        field.host_overwrite()?.assign(&*plain.host()?);
        double().launch_on(&stream, grid(), (&mut field,))?;
        // Written by nobody before, and without a guard.
        let mut other = ones(100);
        drop(other.host_mut()?);
        other.prefetch(&stream)
    })?;
    assert_eq!(of_kind(&seen, "round_trip"), []);
    // Nobody asked.
    drop(plain.gpu_on(&stream)?);
    assert_none(&report_of(|| {
        drop(field.host_mut()?);
        field.gpu_on(&stream).map(drop)
    })?);
    Ok(())
}

#[test]
fn many_small_copies_that_could_be_one() -> Result<()> {
    let stream = lab().stream();
    let program = |one_by_one: bool| {
        let mut array = ones(100).named("values");
        drop(array.gpu_mut_on(&stream)?);
        report_of(|| match one_by_one {
            true => (0..100).try_for_each(|index| array.get(index).map(drop)),
            false => array.host().map(drop),
        })
    };
    mended("small_copies", &program(true)?, &program(false)?);
    // One element of each state: they cannot be one copy.
    let mut array = ones(100);
    assert_none(&report_of(|| {
        (0..100).try_for_each(|_| {
            double().launch_on(&stream, grid(), (&mut array,))?;
            array.get(0).map(drop)
        })
    })?);
    Ok(())
}

/// What could be saved if the program had run in these times, which no other load on the machine
/// changes: each call takes 1 us, work runs in the order of its stream, and a thread that has
/// waited does something else for as long as a piece of work takes.
fn findings_in(work: Duration, report: &Report) -> Vec<DocumentFinding> {
    let work_ns = work.as_nanos() as u64;
    let mut document = report.to_document();
    let (mut now_ns, mut idle_from) = (0, BTreeMap::<(String, u32), u64>::new());
    for record in &mut document.records {
        now_ns += 1000;
        match record {
            DocumentRecord::Copy { queued_ns, started_ns, finished_ns, device, stream, .. }
            | DocumentRecord::Launch {
                queued_ns, started_ns, finished_ns, device, stream, ..
            } => {
                let idle_ns = idle_from.entry((device.clone(), *stream)).or_default();
                let start_ns = now_ns.max(*idle_ns);
                *idle_ns = start_ns + work_ns;
                *queued_ns = now_ns;
                (*started_ns, *finished_ns) = (Some(start_ns), Some(*idle_ns));
            }
            DocumentRecord::Wait { queued_ns, finished_ns, device, stream, .. } => {
                let idle_ns = idle_from.get(&(device.clone(), *stream)).copied().unwrap_or(0);
                *queued_ns = now_ns;
                *finished_ns = now_ns.max(idle_ns);
                now_ns = *finished_ns + work_ns;
            }
            _ => {}
        }
    }
    document.duration_ns = now_ns;
    resident_documents::findings::of(&document)
}

#[test]
fn waits_between_launches() -> Result<()> {
    // Its work runs only when a thread waits for it.
    let stream = Device::emulated(Emulation::new().seed(1)).stream();
    let findings = |waits: bool| -> Result<Vec<DocumentFinding>> {
        let mut array = ones(100);
        let report = report_of(|| {
            for _ in 0..20 {
                double().launch_on(&stream, grid(), (&mut array,))?;
                if waits {
                    stream.synchronize()?;
                }
            }
            array.host().map(drop)
        })?;
        Ok(findings_in(Duration::from_micros(300), &report))
    };
    let found = findings(true)?;
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!(finding.kind, "stalling_wait");
    assert!(finding.sites[0].contains("findings.rs"), "{finding:?}");
    // Behind each wait but the last, the stream is idle until the next call.
    assert_eq!(finding.nanoseconds, Some(19 * 301_000));
    assert_eq!(findings(false)?, []);
    // Waits for contents are needed.
    let mut array = ones(100);
    let needed = report_of(|| {
        (0..20).try_for_each(|_| {
            double().launch_on(&stream, grid(), (&mut array,))?;
            array.prefetch_host()?;
            array.get(0).map(drop)
        })
    })?;
    assert_eq!(findings_in(Duration::from_micros(300), &needed), []);
    Ok(())
}

#[test]
fn copies_that_wait_for_a_kernel_that_does_not_use_them() -> Result<()> {
    let device = lab();
    let streams = [device.new_stream()?, device.new_stream()?];
    let findings = |copies_on: usize| -> Result<Vec<DocumentFinding>> {
        let mut state = ones(10);
        state.prefetch(&streams[0])?;
        let mut batches: Vec<_> = (0..8).map(|_| ones(1000)).collect();
        let report = report_of(|| {
            for batch in &mut batches {
                double().launch_on(&streams[0], grid(), (&mut state,))?;
                batch.prefetch(&streams[copies_on])?;
                double().launch_on(&streams[0], grid(), (batch,))?;
            }
            device.synchronize()
        })?;
        Ok(findings_in(Duration::from_millis(5), &report))
    };
    let found = findings(0)?;
    let [finding] = &found[..] else { panic!("{found:?}") };
    assert_eq!(finding.kind, "serial_copy");
    assert!(finding.nanoseconds.is_some_and(|saved_ns| saved_ns > 1_000_000), "{finding:?}");
    let found = findings(1)?;
    assert!(found.iter().all(|finding| finding.kind != "serial_copy"), "{found:?}");
    Ok(())
}
