//! What could be saved: patterns in the records of a report, each with what it costs and what to
//! change. Pure: it reads plain data only.
//!
//! Records are looked at one after the other and not again, so that findings of all records need
//! little memory: see [`Analysis`].
//!
//! To add a pattern: a file here that gets steps and has a function that returns findings, its
//! calls in [`Analysis`] or, for what concerns one array, in `arrays.rs`, and two programs in
//! `tests/fast/audit/findings.rs`, one that shows it and one that must not.

mod arrays;
mod bounce;
mod evicted;
mod few_changes;
mod idle_host_memory;
mod pageable_copies;
mod repeated_upload;
mod replay;
mod serial_copy;
mod small_copies;
mod stalling_wait;
mod step;
mod stream_calls;
mod symbols;
mod tally;
mod tiny_arguments;
mod unchanged_argument;
mod unread_write_back;
mod unused_copy;
mod used;

use std::cmp::Reverse;

use self::arrays::{Arrays, Found};
use self::tally::Groups;
use crate::document::{Document, DocumentFinding};

pub use self::step::{Accessed, Argument, Copied, Launched, Memory, Step, Waited};

/// The findings in the records of a document, the largest first: by bytes, then by time, then by
/// the number of copies, then by the memory of the host.
#[must_use]
pub fn of(document: &Document) -> Vec<DocumentFinding> {
    let mut analysis = Analysis::default();
    for step in document.records.iter().filter_map(Step::of) {
        analysis.add(&step);
    }
    analysis.findings(document.duration_ns)
}

/// Looks for patterns in steps that come one after the other.
///
/// Its memory is bounded: it knows of 8,192 arrays, of 65,536 texts (names, call sites), of 16,384
/// findings of each kind and as many contents, and of 4,096 streams at the same time. Where there
/// is more, arrays that were used the longest ago are taken to have ended, and later findings,
/// contents and streams are not told of.
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    arrays: Arrays,
    found: Found,
    few_changes: Groups<few_changes::Key>,
    pageable_copies: Groups<pageable_copies::Key>,
    serial_copies: serial_copy::SerialCopies,
    stalling_waits: stalling_wait::StallingWaits,
}

impl Analysis {
    /// Looks at the next step.
    pub fn add(&mut self, step: &Step<'_>) {
        let Self { arrays, found, .. } = self;
        match step {
            Step::Copied(copy) => {
                arrays.add_copy(copy, found);
                few_changes::add(copy, &mut found.symbols, &mut self.few_changes);
                pageable_copies::add(copy, &mut found.symbols, &mut self.pageable_copies);
                self.serial_copies.add_copy(copy, &mut found.symbols);
            }
            Step::Launched(launch) => {
                found.parameters.add(launch, &mut found.symbols);
                arrays.add_launch(launch, found);
                self.serial_copies.add_launch(launch, &mut found.symbols);
            }
            Step::Accessed(access) => arrays.add_access(access, found),
            Step::Evicted(memory) => arrays.add_eviction(memory, found),
            Step::Discarded(memory) => arrays.add_discard(memory, found),
            Step::Ended { array, use_number } => arrays.end(*array, *use_number, found),
            Step::Waited(_) | Step::Talked { .. } => {}
        }
        self.stalling_waits.add(step, &mut found.symbols);
    }

    /// The findings in all steps so far, of a report of this duration: the largest first.
    #[must_use]
    pub fn findings(self, duration_ns: u64) -> Vec<DocumentFinding> {
        let Self { arrays, mut found, .. } = self;
        arrays.close(&mut found);
        let symbols = &found.symbols;
        let mut findings = [
            bounce::findings(&found.bounces, symbols),
            evicted::findings(&found.evicted, symbols),
            few_changes::findings(&self.few_changes, symbols),
            idle_host_memory::findings(&found.idle_host_memory, symbols),
            pageable_copies::findings(&self.pageable_copies, symbols),
            found.uploads.findings(symbols),
            self.serial_copies.findings(duration_ns, symbols),
            small_copies::findings(&found.small_copies, symbols),
            self.stalling_waits.findings(duration_ns, symbols),
            tiny_arguments::findings(&found.tiny_arguments, symbols),
            found.parameters.findings(symbols),
            unread_write_back::findings(&found.unread_write_backs, symbols),
            unused_copy::findings(&found.unused, symbols),
        ]
        .concat();
        findings.sort_by_key(|finding| {
            let DocumentFinding { bytes, nanoseconds, count, host_memory_bytes, .. } = finding;
            Reverse((*bytes, nanoseconds.unwrap_or(0), *count, *host_memory_bytes))
        });
        findings
    }
}
