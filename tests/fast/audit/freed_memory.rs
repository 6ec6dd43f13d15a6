//! Findings about memory that is freed: contents that are written back and not read again, and host
//! memory that is kept for nothing. As in `findings`, the change saves what the finding says.

use resident::audit::{DocumentFinding, Report};
use resident::ndarray::{Ix1, s};
use resident::{Device, Emulation, In, InOut, Kernel, Out, Result, SmartArray};

use crate::{double, grid, of_kind, ones, only, report_of};

type Numbers = SmartArray<f32, Ix1>;

/// What a program does with an array of 400 bytes.
type Step<'f> = &'f dyn Fn(&mut Numbers) -> Result<()>;

/// Writes arrays.
fn write() -> Kernel<(Out<f32>,)> {
    Kernel::<(Out<f32>,)>::new("write").host(|_grid, (xs,)| xs.fill(1.0))
}

/// A device with room for one array of 400 bytes.
fn small() -> Device {
    Device::emulated(Emulation::new().memory(500))
}

/// A program on a device that is full: it writes an array there, discards it or not, has it evicted
/// by another, and goes on.
fn evicted(device: &Device, discards: bool, then: Step<'_>) -> Result<Report> {
    let stream = device.stream();
    let other = ones(100);
    report_of(|| {
        let mut scratch = Numbers::uninit(100).named("scratch");
        write().launch_on(&stream, grid(), (&mut scratch,))?;
        if discards {
            scratch.discard();
        }
        other.prefetch(&stream)?;
        then(&mut scratch)?;
        drop(scratch);
        device.synchronize()
    })
}

#[test]
fn contents_that_are_written_back_and_not_read_again() -> Result<()> {
    let device = Device::cpu();
    let stream = device.stream();
    let overwrites: [(&str, Step<'_>); 8] = [
        ("dropped", &|_| Ok(())),
        ("discarded", &|array| {
            array.discard();
            Ok(())
        }),
        ("a launch", &|array| write().launch_on(&stream, grid(), (array,))),
        ("gpu_overwrite", &|array| array.gpu_overwrite_on(&stream).map(drop)),
        ("host_overwrite", &|array| array.host_overwrite().map(drop)),
        ("fill", &|array| array.fill(2.0)),
        ("assign", &|array| array.assign(&ones(100))),
        ("halves", &|array| {
            array.slice_mut(s![..50]).fill(2.0)?;
            array.slice_mut(s![50..]).fill(3.0)
        }),
    ];
    for (name, overwrite) in overwrites {
        let device = small();
        let [before, after] =
            [false, true].map(|discards| evicted(&device, discards, overwrite).expect(name));
        let finding = only(&before, "unread_write_back");
        assert_eq!((finding.count, finding.bytes), (1, 400), "{name}");
        let flow = before.traffic().moved() - after.traffic().moved();
        assert_eq!((finding.count, finding.bytes), (flow.count, flow.bytes), "{name}");
        assert_eq!(of_kind(&after, "unread_write_back"), [], "{name}");
        assert!(finding.change.contains("`discard()`") && finding.sites.len() == 2, "{finding:?}");
        assert!(finding.sites.iter().all(|site| site.contains(file!())), "{finding:?}");
    }
    Ok(())
}

#[test]
fn contents_that_something_reads_after_the_write_back_are_needed() -> Result<()> {
    let reads: [(&str, Step<'_>); 11] = [
        ("host", &|array| array.host().map(drop)),
        ("try_host", &|array| array.try_host().map(drop)),
        ("a part", &|array| array.slice(s![3..4]).host().map(drop)),
        ("get", &|array| array.get(7).map(drop)),
        ("to_vec", &|array| array.to_vec().map(drop)),
        ("host_mut", &|array| array.host_mut().map(drop)),
        ("sum", &|array| array.sum().map(drop)),
        ("an upload", &|array| array.gpu_on(&Device::cpu().stream()).map(drop)),
        ("a clone", &|array| array.try_clone().map(drop)),
        ("assign", &|array| Numbers::zeros(100).assign(&*array)),
        ("a snapshot", &|array| array.snapshot_on(&Device::cpu().stream())?.wait().map(drop)),
    ];
    for (name, read) in reads {
        for seed in [None, Some(1)] {
            let emulation = Emulation::new().memory(500);
            let device =
                Device::emulated(seed.map_or(emulation.clone(), |seed| emulation.seed(seed)));
            let seen = evicted(&device, false, &|array| {
                device.synchronize()?;
                read(array)
            })?;
            assert_eq!(of_kind(&seen, "unread_write_back"), [], "{name}");
            assert_eq!(seen.traffic().to_host.bytes.min(400), 400, "{name}");
        }
    }
    Ok(())
}

/// The same of a copy whose memory goes page by page.
#[test]
fn pages_that_something_reads_after_the_write_back_are_needed() -> Result<()> {
    let reads: [(&str, Step<'_>); 4] = [
        ("host", &|array| array.host().map(drop)),
        ("to_vec", &|array| array.to_vec().map(drop)),
        ("host_mut", &|array| array.host_mut().map(drop)),
        ("an upload", &|array| array.gpu_on(&Device::cpu().stream()).map(drop)),
    ];
    for (name, read) in reads {
        let device = Device::emulated(Emulation::new().memory(500).page_bytes(16));
        let (stream, others) = (device.stream(), [ones(60), ones(60)]);
        let seen = report_of(|| {
            let mut scratch = Numbers::uninit(100).named("scratch");
            for part in [s![..40], s![40..]] {
                write().launch_on(&stream, grid(), (&mut scratch.slice_mut(part),))?;
            }
            // The first pages are written back. The host reads the others before they go.
            others[0].prefetch(&stream)?;
            device.synchronize()?;
            drop(scratch.slice(s![40..]).host()?);
            others[1].prefetch(&stream)?;
            device.synchronize()?;
            read(&mut scratch)
        })?;
        assert_eq!(of_kind(&seen, "unread_write_back"), [], "{name}");
        assert!(seen.to_document().evictions.count > 0, "{name}");
    }
    Ok(())
}

#[test]
fn a_watch_and_the_owner_of_the_array_read_what_was_written_back() -> Result<()> {
    let device = Device::emulated(Emulation::new().memory(500).seed(1));
    let stream = device.stream();
    let other = ones(100);
    for watches in [false, true] {
        let seen = report_of(|| {
            let mut array = Numbers::uninit(100);
            let watch = if watches { Some(array.watch()?) } else { None };
            write().launch_on(&stream, grid(), (&mut array,))?;
            // The watch is busy with the state before.
            write().launch_on(&stream, grid(), (&mut array,))?;
            other.prefetch(&stream)?;
            match watch {
                Some(watch) => watch.changed().map(drop),
                None => array.into_array().map(drop),
            }
        })?;
        assert_eq!(of_kind(&seen, "unread_write_back"), [], "{watches}");
        assert!(seen.to_document().evictions.count > 0);
    }
    Ok(())
}

#[test]
fn copies_that_are_released_by_the_program() -> Result<()> {
    let device = Device::emulated(Emulation::new());
    let _here = device.enter();
    let stream = device.stream();
    let releases: [(&str, Step<'_>); 2] = [
        ("release_on", &|array| {
            write().launch_on(&stream, grid(), (&mut *array,))?;
            array.release_on(&device)
        }),
        ("release_host", &|array| {
            array.host_overwrite()?.fill(3.0);
            array.release_host()
        }),
    ];
    for (name, release) in releases {
        let program = |reads: bool| {
            report_of(|| {
                let mut array = Numbers::uninit(100).named(name);
                release(&mut array)?;
                if reads { array.host().map(drop) } else { Ok(()) }
            })
        };
        let finding = only(&program(false)?, "unread_write_back");
        assert_eq!((finding.count, finding.bytes), (1, 400), "{name}");
        assert!(finding.message.contains("\" is copied to "), "{finding:?}");
        assert_eq!(of_kind(&program(true)?, "unread_write_back"), [], "{name}");
    }
    Ok(())
}

/// The number of elements of 16 MiB.
const MANY: usize = 4 << 20;

/// Some bytes of host memory, and launches that change an array of them.
fn simulated(len: usize, launches: usize, then: Step<'_>) -> Result<Vec<DocumentFinding>> {
    let stream = Device::cpu().stream();
    let touch = Kernel::<(InOut<f32>,)>::new("touch").host(|_grid, _| ());
    let seen = report_of(|| {
        let mut state = SmartArray::from(vec![1.0_f32; len]).named("state");
        touch.launch_on(&stream, grid(), (&mut state,))?;
        then(&mut state)?;
        for _ in 1..launches {
            touch.launch_on(&stream, grid(), (&mut state,))?;
        }
        stream.synchronize()
    })?;
    Ok(seen.findings())
}

#[test]
fn host_memory_that_is_not_used_again() -> Result<()> {
    let found = simulated(MANY, 8, &|_| Ok(()))?;
    let [finding] = &found[..] else { panic!("one finding: {found:?}") };
    assert_eq!(finding.kind, "idle_host_memory");
    assert_eq!((finding.count, finding.bytes, finding.host_memory_bytes), (0, 0, 16 << 20));
    assert!(finding.change.contains("`release_host()`"), "{finding:?}");
    assert!(finding.sites[0].contains(file!()), "{finding:?}");
    let correct: [(&str, usize, usize, Step<'_>); 5] = [
        ("it is freed", MANY, 8, &|state| state.release_host()),
        ("it is read", MANY, 8, &|state| state.slice(s![..1]).host().map(drop)),
        ("it is overwritten", MANY, 8, &|state| state.host_overwrite().map(drop)),
        ("it is small", MANY - 1, 8, &|_| Ok(())),
        ("the array is short-lived", MANY, 7, &|_| Ok(())),
    ];
    for (name, len, launches, then) in correct {
        assert_eq!(simulated(len, launches, then)?, [], "{name}");
    }
    Ok(())
}

#[test]
fn host_memory_of_an_array_that_goes_on_or_is_read_last_is_used() -> Result<()> {
    let stream = Device::cpu().stream();
    let read = Kernel::<(In<f32>,)>::new("read").host(|_grid, _| ());
    let mut table = SmartArray::from(vec![1.0_f32; MANY]);
    let seen = report_of(|| {
        for _ in 0..10 {
            double().launch_on(&stream, grid(), (&mut table.slice_mut(s![..4]),))?;
            read.launch_on(&stream, grid(), (&table,))?;
        }
        Ok(())
    })?;
    assert_eq!(of_kind(&seen, "idle_host_memory"), []);
    // What the host reads of contents that are valid there leaves no record.
    let seen = report_of(|| {
        for _ in 0..10 {
            read.launch_on(&stream, grid(), (&table,))?;
        }
        table.into_array().map(drop)
    })?;
    assert_eq!(of_kind(&seen, "idle_host_memory"), []);
    Ok(())
}
