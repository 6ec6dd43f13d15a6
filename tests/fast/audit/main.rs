//! The audit: records, findings, documents, and reports at exit.

mod at_exit;
mod attribute;
mod avoided;
mod causes;
mod counters;
mod documents;
#[cfg(target_os = "linux")]
mod exits;
mod findings;
mod freed_memory;
mod logs;
mod long_programs;
mod memory;
mod memory_events;
mod memory_use;
mod messages;
mod pages;
mod records;
mod scopes;
mod snapshots;
mod traces;
mod unused_copies;

use resident::audit::{DocumentFinding, Report};
use resident::{In, Kernel, Out, Result};
use support::audited::{document_of, ones, report_of};
use support::bodies::{double, one as grid};

#[global_allocator]
static ALLOCATOR: support::allocations::Counting = support::allocations::Counting;

/// Copies an array.
fn copy() -> Kernel<(In<f32>, Out<f32>)> {
    Kernel::<(In<f32>, Out<f32>)>::new("copy").host(|_grid, (from, to)| to.copy_from_slice(from))
}

/// How many records are kept.
const RECORDS_KEPT: u64 = 1 << 16;

/// Records so many writes of the host to an array of its own, to fill the records: they cost less
/// than launches.
fn fill_records(count: u64) -> Result<()> {
    let mut array = ones(4);
    (0..count).try_for_each(|_| array.host_mut().map(drop))
}

fn of_kind(report: &Report, kind: &str) -> Vec<DocumentFinding> {
    let mut findings = report.findings();
    findings.retain(|finding| finding.kind == kind);
    findings
}

/// The only finding of this kind.
#[track_caller]
fn only(report: &Report, kind: &str) -> DocumentFinding {
    let found = of_kind(report, kind);
    let [finding] = &found[..] else { panic!("one {kind}: {:?}", report.findings()) };
    finding.clone()
}
