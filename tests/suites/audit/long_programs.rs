//! Findings of programs that run for longer than records are kept: they are the same as those of
//! all records.

use resident::audit::{self, DocumentFinding, Report};
use resident::{Device, Result, SmartArray};
use support::lab::lab;

use crate::{double, grid};

/// More events than are kept.
const CLEAN_LAUNCHES: u64 = 70_000;

/// Two hundred rounds of down and up, an unread download, and small copies; then clean launches.
fn bounced(device: &Device, clean_launches: u64) -> Result<Report> {
    let stream = device.stream();
    let kernel = double();
    let mut array = SmartArray::from(vec![1.0_f32; 100]).named("bounced");
    let (outcome, report) = audit::capture(|| {
        for _ in 0..200 {
            kernel.launch_on(&stream, grid(), (&mut array,))?;
            array.host_mut()?[0] += 1.0;
        }
        kernel.launch_on(&stream, grid(), (&mut array,))?;
        array.prefetch_host()?;
        kernel.launch_on(&stream, grid(), (&mut array,))?;
        for index in 0..50 {
            array.get(index)?;
        }
        for _ in 0..clean_launches {
            kernel.launch_on(&stream, grid(), (&mut array,))?;
        }
        stream.synchronize()
    });
    outcome.map(|()| report)
}

/// Without what depends on the machine.
fn untimed(report: &Report) -> Vec<DocumentFinding> {
    let mut findings = report.findings();
    findings.retain(|finding| finding.kind != "stalling_wait");
    findings.iter_mut().for_each(|finding| finding.nanoseconds = None);
    findings.sort_by(|one, other| one.kind.cmp(&other.kind));
    findings
}

#[test]
fn a_finding_does_not_depend_on_how_long_the_program_runs_afterwards() -> Result<()> {
    let device = lab();
    let (short, long) = (bounced(&device, 0)?, bounced(&device, CLEAN_LAUNCHES)?);
    assert!(long.to_document().records_forgotten > 0);
    let kinds = |findings: &[DocumentFinding]| {
        findings.iter().map(|finding| finding.kind.clone()).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&untimed(&short)), ["bounce", "small_copies", "unread_download"]);
    assert_eq!(untimed(&long), untimed(&short));
    assert_eq!(long.to_document().findings, long.findings());
    let text = long.to_string();
    assert!(text.contains("\"bounced\" goes down from"), "{text}");
    Ok(())
}

#[test]
fn findings_of_dropped_and_of_kept_records_are_one() -> Result<()> {
    let device = lab();
    let stream = device.stream();
    let kernel = double();
    let mut array = SmartArray::from(vec![1.0_f32; 100]).named("state");
    const ROUNDS: u64 = 30_000;
    let (outcome, report) = audit::capture(|| {
        (0..ROUNDS).try_for_each(|_| {
            kernel.launch_on(&stream, grid(), (&mut array,))?;
            array.host_mut()?[0] += 1.0;
            Ok::<(), resident::Error>(())
        })
    });
    outcome?;
    let findings = untimed(&report);
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    // The first upload remains, and the last download has no upload behind it.
    assert_eq!((finding.count, finding.bytes), (2 * (ROUNDS - 1), 800 * (ROUNDS - 1)));
    Ok(())
}

/// As many reports as a program likes; each has all.
#[test]
fn a_ledger_keeps_its_findings() -> Result<()> {
    let device = lab();
    let stream = device.stream();
    let kernel = double();
    let mut array = SmartArray::from(vec![1.0_f32; 100]).named("kept by the ledger");
    let ledger = audit::Ledger::attach();
    let found = |ledger: &audit::Ledger| {
        let findings = ledger.report().findings().into_iter();
        findings.filter(|it| it.array.as_deref() == Some("kept by the ledger")).collect::<Vec<_>>()
    };
    for _ in 0..10 {
        kernel.launch_on(&stream, grid(), (&mut array,))?;
        array.host_mut()?[0] += 1.0;
    }
    let first = found(&ledger);
    assert_eq!((first.len(), first[0].count), (1, 18));
    for _ in 0..CLEAN_LAUNCHES {
        kernel.launch_on(&stream, grid(), (&mut array,))?;
    }
    let last = found(&ledger);
    // One more upload.
    assert_eq!((last.len(), last[0].count), (1, 20));
    Ok(())
}
