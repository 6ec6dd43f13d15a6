//! Findings of programs that run for longer than records are kept: they are the same as those of
//! all records.

use resident::audit::{self, DocumentFinding, Report};
use resident::{Device, Result};
use support::lab::lab;

use crate::{RECORDS_KEPT, double, fill_records, grid, ones, report_of};

/// Two hundred rounds of down and up, an unread download, and small copies; then clean launches,
/// and writes of the host to another array.
fn bounced(device: &Device, clean_launches: u64, writes: u64) -> Result<Report> {
    let stream = device.stream();
    let kernel = double();
    let mut array = ones(100).named("bounced");
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
        fill_records(writes)?;
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
    let (short, long) = (bounced(&device, 0, 0)?, bounced(&device, 1_000, RECORDS_KEPT)?);
    assert!(long.to_document().records_forgotten >= 1_000);
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
    let stream = lab().stream();
    let kernel = double();
    let mut array = ones(100).named("state");
    const ROUNDS: u64 = 1_000;
    let report = report_of(|| {
        (0..ROUNDS).try_for_each(|_| {
            kernel.launch_on(&stream, grid(), (&mut array,))?;
            array.host_mut()?[0] += 1.0;
            fill_records(2 * RECORDS_KEPT / ROUNDS)
        })
    })?;
    assert!(report.to_document().records_forgotten >= RECORDS_KEPT);
    let findings = untimed(&report);
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    // The first upload remains, and the last download has no upload behind it.
    assert_eq!((finding.count, finding.bytes), (2 * (ROUNDS - 1), 800 * (ROUNDS - 1)));
    Ok(())
}

/// As many reports as a program likes; each has all.
#[test]
fn a_ledger_keeps_its_findings() -> Result<()> {
    let stream = lab().stream();
    let kernel = double();
    let mut array = ones(100).named("kept by the ledger");
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
    kernel.launch_on(&stream, grid(), (&mut array,))?;
    fill_records(RECORDS_KEPT)?;
    assert!(ledger.report().to_document().records_forgotten > 0);
    let last = found(&ledger);
    // One more upload.
    assert_eq!((last.len(), last[0].count), (1, 20));
    Ok(())
}
