//! What could be saved: patterns in the records of a report, each with what it costs and what to
//! change. Pure: it reads plain data only.
//!
//! To add a pattern: a file here with a function that returns findings, a line in [`of`], and two
//! programs in `tests/suites/audit/findings.rs`, one that shows it and one that must not.

mod bounce;
mod evicted;
mod few_changes;
mod history;
mod pageable_copies;
mod replay;
mod serial_copy;
mod small_copies;
mod stalling_wait;
mod unchanged_argument;
mod unused_copy;

use std::cmp::Reverse;

use self::history::History;
use crate::document::{Document, Finding};

/// The findings, the largest first: by bytes, then by time, then by the number of copies.
#[must_use]
pub fn of(document: &Document) -> Vec<Finding> {
    let history = History::of(document);
    let mut findings = Vec::new();
    findings.extend(bounce::find(&history));
    findings.extend(evicted::find(&history));
    findings.extend(few_changes::find(&history));
    findings.extend(pageable_copies::find(&history));
    findings.extend(serial_copy::find(&history));
    findings.extend(small_copies::find(&history));
    findings.extend(stalling_wait::find(&history));
    findings.extend(unchanged_argument::find(&history));
    findings.extend(unused_copy::find(&history));
    findings.sort_by_key(|finding| {
        Reverse((finding.bytes, finding.nanoseconds.unwrap_or(0), finding.count))
    });
    findings
}
