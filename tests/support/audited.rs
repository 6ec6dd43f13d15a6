//! The report of a piece of work.

use resident::audit::{self, Document, Report};
use resident::ndarray::Ix1;
use resident::{Result, SmartArray};

/// The report of what `work` does.
///
/// # Errors
///
/// Those of `work`.
pub fn report_of(work: impl FnOnce() -> Result<()>) -> Result<Report> {
    let (outcome, report) = audit::capture(work);
    outcome.map(|()| report)
}

/// As [`report_of`], as plain data.
///
/// # Errors
///
/// Those of `work`.
pub fn document_of(work: impl FnOnce() -> Result<()>) -> Result<Document> {
    report_of(work).map(|report| report.to_document())
}

/// An array on the host.
#[must_use]
pub fn ones(len: usize) -> SmartArray<f32, Ix1> {
    SmartArray::from(vec![1.0; len])
}
