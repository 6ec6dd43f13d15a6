//! The errors of one launch, which goes on after most of them. Pure.
//!
//! Some are judged at the end only: a read of what no thread has written yet is a race if another
//! thread writes it later with no barrier in between, and a plain read beside atomic operations is
//! no error where it begins a loop of compare-and-swap.

use std::collections::HashSet;
use std::ops::Range;

use super::finding::{Finding, FindingKind, OtherThread};
use super::order::Stamp;

/// So many errors of a launch are told.
const FINDINGS_MAX: usize = 16;

/// So many are kept until the end, for several threads may make one.
const ENTRIES_MAX: usize = 1 << 10;

/// The errors of a launch, in the order in which they happened.
#[derive(Debug, Default)]
pub(super) struct Collected {
    entries: Vec<Entry>,
    /// The places of reads that began a compare-and-swap.
    begin_swaps: HashSet<usize>,
}

#[derive(Debug)]
struct Entry {
    finding: Finding,
    by: Stamp,
    address: usize,
    verdict: Verdict,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    Error,
    /// A read of what no thread has written until then.
    EarlyRead,
    /// Such a read, of what the thread has only copied to where nothing was written either. It is
    /// an error if another thread writes it later.
    Copied,
    /// A plain read, at this place of the code, of what others access atomically.
    BesideAtomics {
        code: usize,
    },
}

impl Collected {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether further errors would not be told.
    pub(super) fn is_full(&self) -> bool {
        self.entries.len() >= FINDINGS_MAX && self.errors().len() == FINDINGS_MAX
    }

    /// The first error.
    pub(super) fn first(&self) -> Option<&Finding> {
        let mut errors = self.entries.iter().filter(|entry| entry.verdict != Verdict::Copied);
        errors.next().map(|entry| &entry.finding)
    }

    pub(super) fn add(&mut self, finding: Finding) {
        if !self.entries.iter().any(|entry| is_same(&entry.finding, &finding)) {
            self.push(finding, Stamp::NOBODY, 0, Verdict::Error);
        }
    }

    pub(super) fn add_early_read(&mut self, finding: Finding, by: Stamp, address: usize) {
        self.push(finding, by, address, Verdict::EarlyRead);
    }

    pub(super) fn add_read_beside_atomics(
        &mut self,
        finding: Finding,
        by: Stamp,
        address: usize,
        code: usize,
    ) {
        self.push(finding, by, address, Verdict::BesideAtomics { code });
    }

    /// A thread writes what another one has accessed, and nothing orders the two. Returns whether
    /// those were early reads, or writes right behind one, which are races from now on.
    pub(super) fn write_late(
        &mut self,
        earlier: Stamp,
        written: &Range<usize>,
        writer: OtherThread,
    ) -> bool {
        let is_it = |entry: &&mut Entry| {
            let end = entry.address + entry.finding.len_bytes;
            let read = entry.address < written.end && written.start < end;
            let is_by = entry.by.is_of_thread(earlier)
                && (earlier.is_reading() || entry.by.is_at_time_of(earlier));
            read && is_by && matches!(entry.verdict, Verdict::EarlyRead | Verdict::Copied)
        };
        let late = self.entries.iter_mut().filter(is_it).map(|entry| {
            entry.verdict = Verdict::Error;
            entry.finding.kind = FindingKind::Race;
            entry.finding.left_out_by = None;
            entry.finding.other = Some(writer);
        });
        late.count() > 0
    }

    /// A thread compares and swaps. Returns whether it had read that address beside atomics, which
    /// is no error from now on.
    pub(super) fn swap(&mut self, by: Stamp, address: usize) -> bool {
        let count = self.entries.len();
        let Self { entries, begin_swaps } = self;
        entries.retain(|entry| match entry.verdict {
            Verdict::BesideAtomics { code }
                if entry.by.is_of_thread(by) && entry.address == address =>
            {
                begin_swaps.insert(code);
                false
            }
            _ => true,
        });
        self.entries.len() < count
    }

    /// What the last early read of this address has read is only copied.
    pub(super) fn copy_early_read(&mut self, address: usize) {
        let is_it =
            |entry: &&mut Entry| entry.address == address && entry.verdict == Verdict::EarlyRead;
        if let Some(entry) = self.entries.iter_mut().rfind(is_it) {
            entry.verdict = Verdict::Copied;
        }
    }

    /// The errors at the end of the launch: one of each kind, line and place.
    pub(super) fn errors(&self) -> Vec<Finding> {
        let mut errors: Vec<Finding> = Vec::new();
        for Entry { finding, verdict, .. } in &self.entries {
            let begins_swap = matches!(verdict, Verdict::BesideAtomics { code }
                if self.begin_swaps.contains(code));
            let is_none = begins_swap || *verdict == Verdict::Copied;
            if !is_none && !errors.iter().any(|error| is_same(error, finding)) {
                errors.push(finding.clone());
            }
        }
        errors.truncate(FINDINGS_MAX);
        errors
    }

    fn push(&mut self, finding: Finding, by: Stamp, address: usize, verdict: Verdict) {
        if self.entries.len() == ENTRIES_MAX {
            let copied = self.entries.iter().position(|entry| entry.verdict == Verdict::Copied);
            let Some(index) = copied else { return };
            self.entries.remove(index);
        }
        self.entries.push(Entry { finding, by, address, verdict });
    }
}

/// Whether two findings are the same error of two threads.
fn is_same(one: &Finding, other: &Finding) -> bool {
    let place = |finding: &Finding| (finding.argument, finding.variable.clone());
    (one.kind, &one.line) == (other.kind, &other.line) && place(one) == place(other)
}
