//! The clocks of the ranks of a job, compared.

use std::collections::BTreeMap;

use resident_documents::{Document, DocumentBarrier, DocumentRecord};

use super::Job;

/// How the times of one rank become those of the joined trace.
pub(crate) struct Clock {
    pub(super) rank: u32,
    /// What is added to them.
    pub(super) shift_ns: u64,
    pub(super) mark: Mark,
}

/// By what a clock was compared with that of the first rank.
#[derive(Clone, Copy)]
pub(super) enum Mark {
    /// It is the first.
    First,
    /// By so many barriers, according to which the clocks differ by more and less, so much.
    Barriers { count: usize, spread_ns: u64 },
    /// By the system's clocks, which two hosts set by themselves.
    System,
}

/// The clocks in the order of the ranks. The rank that began first is not shifted.
pub(super) fn of(job: &Job) -> Vec<Clock> {
    let mut documents = job.documents();
    let Some((first_rank, first)) = documents.next() else { return Vec::new() };
    let mut offsets = vec![(first_rank, 0, Mark::First)];
    offsets.extend(documents.map(|(rank, document)| {
        let (offset_ns, mark) = compared(first, document);
        (rank, offset_ns, mark)
    }));
    let least_ns = offsets.iter().map(|(_, offset_ns, _)| *offset_ns).min().unwrap_or(0);
    let clock = |(rank, offset_ns, mark): (u32, i128, Mark)| Clock {
        rank,
        shift_ns: u64::try_from(offset_ns - least_ns).unwrap_or(u64::MAX),
        mark,
    };
    offsets.into_iter().map(clock).collect()
}

/// What is added to times of `other` to make them times of `first`: the middle one of what their
/// common barriers say, else what the system's clocks do.
fn compared(first: &Document, other: &Document) -> (i128, Mark) {
    let (known, own) = (barriers(first), barriers(other));
    let offset = |(number, left_ns): (&u64, &u64)| {
        known.get(number).map(|known_ns| i128::from(*known_ns) - i128::from(*left_ns))
    };
    let mut offsets: Vec<i128> = own.iter().filter_map(offset).collect();
    offsets.sort_unstable();
    let (Some(least), Some(most)) = (offsets.first(), offsets.last()) else {
        let began = [other, first].map(|document| i128::from(document.started_unix_ns));
        return (began[0] - began[1], Mark::System);
    };
    let spread_ns = u64::try_from(most - least).unwrap_or(u64::MAX);
    (offsets[offsets.len() / 2], Mark::Barriers { count: offsets.len(), spread_ns })
}

/// When a process left its barriers, by their numbers.
fn barriers(document: &Document) -> BTreeMap<u64, u64> {
    let barrier = |record: &DocumentRecord| match record {
        DocumentRecord::Barrier(DocumentBarrier { number, queued_ns, .. }) => {
            Some((*number, *queued_ns))
        }
        _ => None,
    };
    document.records.iter().filter_map(barrier).collect()
}
