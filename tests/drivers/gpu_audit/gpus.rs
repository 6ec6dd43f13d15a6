//! What the audit says of copies of a GPU, on the stand-in driver. Each test has its own process,
//! because the driver belongs to one.

use std::{env, fs};

use resident::audit::DocumentRecord;
use resident::{Device, Result, SmartArray};
use support::own_process;
use support::test_name;

use crate::{document_of, report_of};

/// Memory is pageable or not only for GPUs.
#[test]
fn copies_of_pageable_memory_that_a_gpu_needs_again_and_again() -> Result<()> {
    own_process!();
    // Its device copies nothing before somebody waits, so the calling thread only queues.
    let settings = resident_stand_in::Settings::new().seed(1);
    resident_stand_in::load(settings).expect("the stand-in driver loads");
    let device = Device::cuda(0)?;
    let stream = device.new_stream()?;
    let program = |is_locked: bool, frames: usize| {
        let mut frame = SmartArray::from(vec![1_u8; 4 << 20]).named("frame");
        let _here = device.enter();
        if is_locked {
            frame.page_lock()?;
        }
        frame.prefetch(&stream)?;
        let work = || {
            (0..frames).try_for_each(|_| {
                stream.synchronize()?;
                frame.host_mut()?[0] += 1;
                frame.prefetch(&stream)?;
                frame.gpu_on(&stream).map(drop)
            })
        };
        let seen = report_of(work)?;
        let records = seen.to_document().records.into_iter();
        let host_ns = records.filter_map(|record| match record {
            DocumentRecord::Copy { host_ns, .. } => host_ns,
            _ => None,
        });
        Ok((host_ns.collect::<Vec<u64>>(), seen))
    };
    let ((before_ns, before), (after_ns, after)) = (program(false, 10)?, program(true, 10)?);
    let findings = before.findings();
    let [finding] = &findings[..] else { panic!("one finding: {findings:?}") };
    assert_eq!(finding.kind, "pageable_copies");
    assert_eq!(finding.nanoseconds, Some(before_ns.iter().sum()));
    // Other programs make single copies slow.
    let least = |times: &[u64]| times.iter().copied().min().expect("ten copies");
    assert!(least(&after_ns) < least(&before_ns), "{after_ns:?} of {before_ns:?}");
    assert_eq!((after.findings(), program(false, 3)?.1.findings()), (vec![], vec![]));
    Ok::<(), resident::Error>(())
}

/// A copy of many chunks is queued when its first chunk is.
#[test]
fn a_copy_in_chunks_is_queued_with_its_first_chunk() -> Result<()> {
    own_process!();
    let settings = resident_stand_in::Settings::new().seed(1);
    resident_stand_in::load(settings).expect("the stand-in driver loads");
    let stream = Device::cuda(0)?.new_stream()?;
    let mut array = SmartArray::from(vec![1_u8; 48 << 20]);
    // The staging memory is allocated first.
    array.prefetch(&stream)?;
    stream.synchronize()?;
    array.host_mut()?[0] = 2;
    let document = document_of(|| array.prefetch(&stream))?;
    let is_copy = |record: &&DocumentRecord| matches!(record, DocumentRecord::Copy { .. });
    let copies: Vec<_> = document.records.iter().filter(is_copy).collect();
    let [DocumentRecord::Copy { queued_ns, bytes, host_ns, is_pageable, .. }] = &copies[..] else {
        panic!("one copy: {document:?}")
    };
    assert!(*bytes == 48 << 20 && *is_pageable);
    // Much of the call came after the first chunk.
    let (host_ns, end_ns) = (host_ns.expect("it is known"), document.duration_ns);
    assert!(*queued_ns + host_ns / 4 < end_ns, "{queued_ns} {host_ns} {end_ns}");
    Ok(())
}

#[test]
fn uses_on_foreign_streams() -> Result<()> {
    own_process!();
    resident_stand_in::load(resident_stand_in::Settings::new()).expect("the stand-in loads");
    let gpu = Device::cuda(0)?;
    let stream = gpu.stream();
    let foreign = gpu.cuda_context()?.new_stream().expect("a stream");
    let mut theirs = foreign.alloc_zeros::<f32>(10).expect("there is memory");
    let arrays = ["lent once", "lent twice"].map(|name| SmartArray::ones(10).named(name));
    let report = report_of(|| {
        for index in [0, 1, 1] {
            let guard = arrays[index].gpu_on(&stream)?;
            foreign.memcpy_dtod(&guard, &mut theirs).expect("queued");
        }
        Ok(())
    })?;
    let text = report.to_string();
    let expected = [
        "Nothing was copied, launched or waited for.",
        "memory of cuda:0: 80 bytes in use, peak 80 after ",
        "    40 bytes: lent once, at ",
        "    40 bytes: lent twice, at ",
        "1 use of lent once on foreign streams, waited for",
        "2 uses of lent twice on foreign streams, waited for",
    ];
    assert_eq!(text.lines().count(), expected.len(), "{text}");
    for (line, expected) in text.lines().zip(expected) {
        assert!(line.starts_with(expected), "{text}");
    }
    Ok(())
}

#[test]
#[ignore = "loads the stand-in driver: run in processes of its own by the test below"]
fn moves_to_a_gpu() -> Result<()> {
    resident_stand_in::load(resident_stand_in::Settings::new()).expect("the driver loads");
    let device = Device::cuda(0)?;
    SmartArray::from(vec![1_u8; 1234]).prefetch(&device.stream())?;
    device.synchronize()
}

/// The report that a test of this program writes at its end, with these words in `RESIDENT_AUDIT`.
fn json_with(words: &str, test: &str) -> String {
    let path = env::temp_dir().join(format!("resident-audit-{}.json", std::process::id()));
    let value = format!("{words}json:{}", path.display());
    let output = own_process::run(test, &[("RESIDENT_AUDIT", &value)]);
    own_process::assert_success(&output, test);
    let json = fs::read_to_string(&path).expect("it was written");
    fs::remove_file(path).expect("it is there");
    json
}

#[test]
fn gpus_are_timed_if_that_is_asked_for() {
    let is_timed = |json: String| {
        assert!(json.contains(r#""started_ns": "#), "{json}");
        !json.contains(r#""started_ns": null"#)
    };
    assert!(!is_timed(json_with("", test_name!(moves_to_a_gpu))));
    assert!(is_timed(json_with("gpu-times,", test_name!(moves_to_a_gpu))));
}
