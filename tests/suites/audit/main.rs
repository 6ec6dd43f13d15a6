//! The audit: records, findings, documents, and reports at exit.

mod at_exit;
mod attribute;
mod avoided;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod body_on_gpu;
mod causes;
mod counters;
mod documents;
#[cfg(target_os = "linux")]
mod exits;
mod findings;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod gpu_times;
mod logs;
mod long_programs;
mod memory;
mod memory_use;
mod messages;
mod pages;
mod readme;
mod records;
mod scopes;
mod snapshots;
mod subscribers;
mod traces;
mod unused_copies;
#[cfg(all(target_os = "linux", feature = "cuda"))]
mod waits;

use resident::audit::{self, Document, Finding, Report};
use resident::ndarray::Ix1;
use resident::{Grid, In, InOut, Kernel, Out, Result, SmartArray};

#[global_allocator]
static ALLOCATOR: support::allocations::Counting = support::allocations::Counting;

/// Doubles each element.
fn double() -> Kernel<(InOut<f32>,)> {
    Kernel::<(InOut<f32>,)>::new("double")
        .host(|_grid, (xs,)| xs.iter_mut().for_each(|x| *x *= 2.0))
}

/// Copies an array.
fn copy() -> Kernel<(In<f32>, Out<f32>)> {
    Kernel::<(In<f32>, Out<f32>)>::new("copy").host(|_grid, (from, to)| to.copy_from_slice(from))
}

/// A grid for arrays of any length: host bodies run once.
fn grid() -> Grid {
    Grid::cover(1)
}

fn ones(len: usize) -> SmartArray<f32, Ix1> {
    SmartArray::from(vec![1.0; len])
}

/// How many records are kept.
const RECORDS_KEPT: u64 = 1 << 16;

/// Records so many writes of the host to an array of its own, to fill the records: they cost less
/// than launches.
fn fill_records(count: u64) -> Result<()> {
    let mut array = ones(4);
    (0..count).try_for_each(|_| array.host_mut().map(drop))
}

/// The report of what `work` does.
fn report_of(work: impl FnOnce() -> Result<()>) -> Result<Report> {
    let (outcome, report) = audit::capture(work);
    outcome.map(|()| report)
}

fn document_of(work: impl FnOnce() -> Result<()>) -> Result<Document> {
    report_of(work).map(|report| report.to_document())
}

fn of_kind(report: &Report, kind: &str) -> Vec<Finding> {
    let mut findings = report.findings();
    findings.retain(|finding| finding.kind == kind);
    findings
}

/// The only finding of this kind.
#[track_caller]
fn only(report: &Report, kind: &str) -> Finding {
    let found = of_kind(report, kind);
    let [finding] = &found[..] else { panic!("one {kind}: {:?}", report.findings()) };
    finding.clone()
}
