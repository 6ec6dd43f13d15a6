//! What a report says of memory: peaks, and whose memory it was.

use resident::audit::{self, DocumentMemoryUse, Report};
use resident::{
    Device, Emulation, Error, ManagedArray, MappedArray, PinnedArray, Result, SmartArray,
};
use support::own_process;

use crate::report_of;

type Bytes = SmartArray<u8, ndarray::Ix1>;

fn bytes(len: usize, name: &str) -> Bytes {
    SmartArray::from(vec![1_u8; len]).named(name)
}

fn of<'r>(report: &'r Report, device: &str) -> &'r DocumentMemoryUse {
    report.memory().iter().find(|memory| memory.device == device).expect("the device was used")
}

/// Name, count and bytes of the holders at the peak.
fn holders(memory: &DocumentMemoryUse) -> Vec<(&str, u64, u64)> {
    let holders = memory.peak.holders.iter();
    holders.map(|holder| (&*holder.array, holder.count, holder.bytes)).collect()
}

#[test]
fn a_peak_has_the_arrays_of_its_moment() -> Result<()> {
    let device = Device::emulated(Emulation::new());
    let stream = device.stream();
    let early = bytes(7, "early");
    early.prefetch(&stream)?;
    let (outcome, report) = audit::capture(|| -> Result<Vec<Bytes>> {
        let lasting = bytes(1000, "lasting");
        lasting.prefetch(&stream)?;
        for _ in 0..3 {
            let two = [bytes(100, "temporary"), bytes(100, "temporary")];
            two.iter().try_for_each(|array| array.prefetch(&stream))?;
        }
        let later = bytes(50, "later");
        later.prefetch(&stream)?;
        drop(early);
        Ok(vec![lasting, later])
    });
    let live = outcome?;
    let memory = of(&report, &device.name());
    assert_eq!((memory.before, memory.in_use, memory.peak.bytes), (7, 1050, 1207));
    assert_eq!(memory.in_use, device.memory().in_use);
    let expected = [("lasting", 1, 1000), ("temporary", 2, 200), ("(before the report)", 0, 7)];
    assert_eq!(holders(memory), expected);
    let site = memory.peak.holders[0].site.as_deref().expect("a call");
    assert!(site.contains("memory_use.rs:"), "{site}");
    let most = memory.series.iter().find(|point| point.bytes >= 1207).expect("a point");
    assert_eq!((most.bytes, most.at_ns), (1207, memory.peak.at_ns));
    assert!(memory.peak.at_ns <= report.to_document().duration_ns);
    let text = report.to_string();
    assert!(text.contains("1_050 bytes in use, peak 1_207 after"), "{text}");
    assert!(text.contains("200 bytes: 2 x temporary"), "{text}");
    drop(live);
    Ok(())
}

#[test]
fn where_nothing_happened_a_report_says_what_is_in_use() -> Result<()> {
    let device = Device::emulated(Emulation::new());
    let array = bytes(30, "idle");
    array.prefetch(&device.stream())?;
    let ((), report) = audit::capture(|| ());
    let memory = of(&report, &device.name());
    assert_eq!(
        (memory.before, memory.in_use, memory.peak.bytes, memory.peak.at_ns),
        (30, 30, 30, 0)
    );
    drop(array);
    let ((), report) = audit::capture(|| ());
    assert!(report.memory().iter().all(|memory| memory.device != device.name()));
    Ok(())
}

#[test]
fn a_refused_allocation_has_the_arrays_that_filled_the_device() -> Result<()> {
    let device = Device::emulated(Emulation::new().memory(1000));
    let stream = device.stream();
    let mut kept = bytes(900, "fills it");
    let (outcome, report) = audit::capture(|| {
        let _guard = kept.gpu_mut_on(&stream)?;
        bytes(400, "too much").prefetch(&stream)
    });
    assert!(matches!(outcome, Err(Error::OutOfMemory { .. })), "{outcome:?}");
    let memory = of(&report, &device.name());
    let refusal = memory.out_of_memory.as_ref().expect("memory was refused");
    assert_eq!(
        (refusal.refused, refusal.bytes, &*refusal.holders[0].array),
        (Some(400), 900, "fills it")
    );
    let text = report.to_string();
    assert!(text.contains("400 more bytes were refused"), "{text}");
    Ok(())
}

#[test]
fn evictions_and_dropped_threads_free_memory() -> Result<()> {
    let device = Device::emulated(Emulation::new().memory(1000));
    let stream = device.stream();
    let report = report_of(|| {
        let [first, second] = ["first", "second"].map(|name| bytes(600, name));
        first.prefetch(&stream)?;
        stream.synchronize()?;
        second.prefetch(&stream)?;
        // Another thread, which the capture does not count, frees both.
        std::thread::scope(|threads| threads.spawn(move || drop((first, second))).join())
            .expect("no panic");
        Ok(())
    })?;
    let memory = of(&report, &device.name());
    assert_eq!((memory.peak.bytes, memory.in_use), (600, 0));
    Ok(())
}

#[test]
fn pinned_mapped_and_managed_memory_count_where_they_are() -> Result<()> {
    own_process!();
    let device = Device::emulated(Emulation::new());
    let _here = device.enter();
    let report = report_of(|| {
        let _pinned = PinnedArray::<u8, _>::zeros(100)?;
        let _mapped = MappedArray::<u8, _>::zeros(20)?;
        let _managed = ManagedArray::<u8, _>::zeros(3000)?;
        let locked = bytes(4, "locked");
        locked.page_lock()?;
        assert_eq!((device.memory().in_use, device.memory().pinned), (3000, 124));
        Ok(())
    })?;
    let (host, managed) = (of(&report, "host"), of(&report, &device.name()));
    assert_eq!((host.peak.bytes, host.in_use), (124, 0));
    assert_eq!((managed.peak.bytes, managed.in_use), (3000, 0));
    assert_eq!(host.peak.holders.len(), 3);
    Ok(())
}

#[test]
fn a_ledger_that_begins_again_has_a_peak_of_its_own() -> Result<()> {
    let device = Device::emulated(Emulation::new());
    let stream = device.stream();
    let ledger = audit::Ledger::attach();
    let lasting = bytes(10, "lasting");
    lasting.prefetch(&stream)?;
    bytes(500, "of the first day").prefetch(&stream)?;
    assert_eq!(of(&ledger.report(), &device.name()).peak.bytes, 510);
    ledger.reset();
    bytes(20, "of the second day").prefetch(&stream)?;
    let report = ledger.report();
    let memory = of(&report, &device.name());
    assert_eq!((memory.before, memory.peak.bytes, memory.in_use), (10, 30, 10));
    assert_eq!(holders(memory), [("of the second day", 1, 20), ("lasting", 1, 10)]);
    Ok(())
}

/// Documents of long programs stay small.
#[test]
fn a_long_series_is_bounded_and_its_peak_exact() -> Result<()> {
    let device = Device::emulated(Emulation::new());
    let stream = device.stream();
    let report = report_of(|| {
        for round in 0..2_000_usize {
            bytes(if round == 1_210 { 777 } else { 1 + round % 5 }, "frame").prefetch(&stream)?;
        }
        Ok(())
    })?;
    let memory = of(&report, &device.name());
    assert!((2..=1024).contains(&memory.series.len()), "{}", memory.series.len());
    assert_eq!(memory.peak.bytes, 777);
    assert!(memory.series.iter().any(|point| point.bytes == 777));
    Ok(())
}
