//! The records of a document by array, by thread and by stream.

use std::collections::BTreeMap;

use crate::audit::document::{Document, DocumentMemory, DocumentRecord};

/// The records in order, and where each array occurs in them.
pub(super) struct History<'d> {
    pub(super) document: &'d Document,
    /// For each array the indexes of the records that name it.
    arrays: BTreeMap<u64, Vec<usize>>,
}

/// A copy, as far as findings are concerned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copied<'d> {
    pub(super) queued_ns: u64,
    /// When the device began and finished it.
    pub(super) times: Option<(u64, u64)>,
    pub(super) device: &'d str,
    pub(super) stream: u32,
    pub(super) site: &'d str,
    pub(super) array: u64,
    pub(super) name: &'d str,
    pub(super) direction: &'d str,
    pub(super) cause: &'d str,
    pub(super) bytes: u64,
    /// The call that made the bytes stale.
    pub(super) stale_since: Option<&'d str>,
    pub(super) thread: &'d str,
}

impl Copied<'_> {
    /// How long the device took for it.
    pub(super) fn duration_ns(&self) -> Option<u64> {
        self.times.map(|(started_ns, finished_ns)| finished_ns.saturating_sub(started_ns))
    }
}

/// What happens to one array.
#[derive(Clone, Copy, Debug)]
pub(super) enum ArrayEvent<'d> {
    Copied(Copied<'d>),
    /// A launch with the array; whether it may read it, and whether it writes all of it.
    Launched {
        reads: bool,
        is_whole: bool,
        thread: &'d str,
    },
    Evicted(&'d DocumentMemory),
}

impl<'d> History<'d> {
    pub(super) fn of(document: &'d Document) -> Self {
        let mut arrays: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (index, record) in document.records.iter().enumerate() {
            for array in arrays_of(record) {
                let indexes = arrays.entry(array).or_default();
                if indexes.last() != Some(&index) {
                    indexes.push(index);
                }
            }
        }
        Self { document, arrays }
    }

    /// What happens to each array, in order.
    pub(super) fn arrays(&self) -> impl Iterator<Item = Vec<ArrayEvent<'d>>> {
        let records = &self.document.records;
        self.arrays.iter().map(|(array, indexes)| {
            indexes.iter().filter_map(|index| event(&records[*index], *array)).collect()
        })
    }

    pub(super) fn records(&self) -> impl Iterator<Item = &'d DocumentRecord> {
        self.document.records.iter()
    }
}

fn arrays_of(record: &DocumentRecord) -> Vec<u64> {
    match record {
        DocumentRecord::Copy { array, .. } => vec![*array],
        DocumentRecord::Launch { arguments, .. } => arguments.iter().map(|it| it.array).collect(),
        DocumentRecord::Wait { .. } => Vec::new(),
        DocumentRecord::Allocation(memory) | DocumentRecord::Eviction(memory) => {
            vec![memory.array]
        }
    }
}

fn event(record: &DocumentRecord, array: u64) -> Option<ArrayEvent<'_>> {
    match record {
        DocumentRecord::Copy { .. } => copied(record).map(ArrayEvent::Copied),
        DocumentRecord::Launch { arguments, thread, .. } => {
            let uses = || arguments.iter().filter(|it| it.array == array);
            Some(ArrayEvent::Launched {
                reads: uses().any(|it| it.access != "out"),
                is_whole: uses().any(|it| it.access != "in" && it.is_whole),
                thread,
            })
        }
        DocumentRecord::Eviction(memory) => Some(ArrayEvent::Evicted(memory)),
        DocumentRecord::Wait { .. } | DocumentRecord::Allocation(_) => None,
    }
}

/// The copy of a record of one.
pub(super) fn copied(record: &DocumentRecord) -> Option<Copied<'_>> {
    let DocumentRecord::Copy {
        queued_ns,
        started_ns,
        finished_ns,
        device,
        stream,
        site,
        array,
        name,
        direction,
        cause,
        bytes,
        stale_since,
        thread,
        ..
    } = record
    else {
        return None;
    };
    Some(Copied {
        queued_ns: *queued_ns,
        times: started_ns.zip(*finished_ns),
        device,
        stream: *stream,
        site,
        array: *array,
        name,
        direction,
        cause,
        bytes: *bytes,
        stale_since: stale_since.as_deref(),
        thread,
    })
}

/// Adds a call site that is not in the list yet.
pub(super) fn add_site(sites: &mut Vec<String>, site: &str) {
    if !sites.iter().any(|known| known == site) {
        sites.push(site.to_owned());
    }
}

/// The sum, if all are known.
pub(super) fn total_ns(times: impl IntoIterator<Item = Option<u64>>) -> Option<u64> {
    times.into_iter().try_fold(0_u64, |total, time| Some(total.saturating_add(time?)))
}
