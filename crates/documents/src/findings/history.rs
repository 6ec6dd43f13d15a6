//! The records of a document by array, by thread and by stream.

use std::collections::BTreeMap;

use crate::document::{Document, DocumentMemory, DocumentRecord, Finding};

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
    /// The device from which a copy between devices comes.
    pub(super) source: Option<&'d str>,
    /// How many of the bytes have other values than before, if that is known.
    pub(super) changed_bytes: Option<u64>,
    /// How long the calling thread was busy with it, if that is known.
    pub(super) host_ns: Option<u64>,
    /// Whether it is between a GPU and pageable memory of the host.
    pub(super) is_pageable: bool,
    /// The call that made the bytes stale.
    pub(super) stale_since: Option<&'d str>,
}

impl<'d> Copied<'d> {
    /// The place that it reads: a device, or `None` for the host.
    pub(super) fn from(&self) -> Option<&'d str> {
        match self.direction {
            "to_device" => None,
            "to_host" => Some(self.device),
            _ => self.source,
        }
    }

    /// The place that it writes: a device, or `None` for the host.
    pub(super) fn to(&self) -> Option<&'d str> {
        (self.direction != "to_host").then_some(self.device)
    }

    /// How long the device took for it.
    pub(super) fn duration_ns(&self) -> Option<u64> {
        self.times.map(|(started_ns, finished_ns)| finished_ns.saturating_sub(started_ns))
    }
}

/// What happens to one array.
#[derive(Clone, Copy, Debug)]
pub(super) enum ArrayEvent<'d> {
    Copied(Copied<'d>),
    Used(Used<'d>),
    Evicted(&'d DocumentMemory),
    /// A snapshot of it was dropped before anybody took it.
    Discarded(&'d DocumentMemory),
    /// Uses of which the records do not know, of a thread that does not count to the capture.
    Unknown,
}

/// A launch with an array, or another access of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Used<'d> {
    pub(super) is_launch: bool,
    /// `None` for the host.
    pub(super) device: Option<&'d str>,
    pub(super) reads: bool,
    pub(super) writes: bool,
    /// Whether it writes all of the array.
    pub(super) writes_all: bool,
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
        self.arrays.iter().map(|(array, indexes)| self.events(*array, indexes))
    }

    fn events(&self, array: u64, indexes: &[usize]) -> Vec<ArrayEvent<'d>> {
        let mut events = Vec::with_capacity(indexes.len());
        let mut next = None;
        for record in indexes.iter().map(|index| &self.document.records[*index]) {
            if let Some(numbers) = use_numbers(record, array) {
                if next.is_some_and(|next| Some(next) != numbers.first().copied().flatten()) {
                    events.push(ArrayEvent::Unknown);
                }
                next =
                    Some(numbers.last().copied().flatten().map_or(0, |last| last.wrapping_add(1)));
            }
            events.extend(event(record, array));
        }
        events
    }

    /// The records that name each array, in order; no array of which some uses are not known.
    pub(super) fn records_by_array(&self) -> impl Iterator<Item = (u64, Vec<&'d DocumentRecord>)> {
        let is_known = |(array, indexes): &(&u64, &Vec<usize>)| {
            let events = self.events(**array, indexes);
            !events.iter().any(|event| matches!(event, ArrayEvent::Unknown))
        };
        let records = &self.document.records;
        self.arrays.iter().filter(is_known).map(|(array, indexes)| {
            (*array, indexes.iter().map(|index| &records[*index]).collect())
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
        DocumentRecord::Wait { .. } | DocumentRecord::Message(_) | DocumentRecord::Barrier(_) => {
            Vec::new()
        }
        DocumentRecord::Allocation(memory)
        | DocumentRecord::Eviction(memory)
        | DocumentRecord::Discard(memory) => vec![memory.array],
        DocumentRecord::Access(access) => vec![access.array],
    }
}

/// The numbers of the uses of an array in a record, in order; `None` if it is no use.
fn use_numbers(record: &DocumentRecord, array: u64) -> Option<Vec<Option<u16>>> {
    match record {
        DocumentRecord::Copy { use_number, .. } => Some(vec![*use_number]),
        DocumentRecord::Launch { arguments, .. } => {
            let own = arguments.iter().filter(|argument| argument.array == array);
            Some(own.map(|argument| argument.use_number).collect())
        }
        DocumentRecord::Access(access) => Some(vec![Some(access.use_number)]),
        _ => None,
    }
}

fn event(record: &DocumentRecord, array: u64) -> Option<ArrayEvent<'_>> {
    match record {
        DocumentRecord::Copy { .. } => copied(record).map(ArrayEvent::Copied),
        DocumentRecord::Launch { arguments, device, .. } => {
            let own = arguments.iter().filter(|argument| argument.array == array);
            let uses = own.map(|argument| (&*argument.access, argument.is_whole));
            let used = used(Some(device), uses);
            Some(ArrayEvent::Used(Used { is_launch: true, ..used }))
        }
        DocumentRecord::Access(access) => {
            let one = [(&*access.access, access.is_whole)];
            Some(ArrayEvent::Used(used(access.device.as_deref(), one.into_iter())))
        }
        DocumentRecord::Eviction(memory) => Some(ArrayEvent::Evicted(memory)),
        DocumentRecord::Discard(memory) => Some(ArrayEvent::Discarded(memory)),
        DocumentRecord::Wait { .. }
        | DocumentRecord::Allocation(_)
        | DocumentRecord::Message(_)
        | DocumentRecord::Barrier(_) => None,
    }
}

/// What several uses by one call, which is no launch, are together.
fn used<'d>(device: Option<&'d str>, uses: impl Iterator<Item = (&'d str, bool)>) -> Used<'d> {
    let mut all = Used { is_launch: false, device, reads: false, writes: false, writes_all: false };
    for (access, is_whole) in uses {
        let writes = access != "in";
        all.reads |= access != "out";
        all.writes |= writes;
        all.writes_all |= writes && is_whole;
    }
    all
}

/// A call, and the stream of its work.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct CallOnStream<'d> {
    pub(super) site: &'d str,
    pub(super) device: &'d str,
    pub(super) stream: u32,
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
        source,
        changed_bytes,
        host_ns,
        is_pageable,
        stale_since,
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
        source: source.as_deref(),
        changed_bytes: *changed_bytes,
        host_ns: *host_ns,
        is_pageable: *is_pageable,
        stale_since: stale_since.as_deref(),
    })
}

/// The call sites, each once.
pub(super) fn each_once<'d>(sites: impl IntoIterator<Item = &'d str>) -> Vec<String> {
    let mut once: Vec<String> = Vec::new();
    for site in sites {
        if !once.iter().any(|known| known == site) {
            once.push(site.to_owned());
        }
    }
    once
}

/// What a finding says.
pub(super) struct Text {
    pub(super) kind: &'static str,
    pub(super) message: String,
    pub(super) change: &'static str,
}

/// A finding about an array, without its figures.
pub(super) fn about(name: &str, text: Text, sites: Vec<String>) -> Finding {
    Finding {
        kind: text.kind.to_owned(),
        message: text.message,
        change: text.change.to_owned(),
        sites,
        array: Some(name.to_owned()),
        count: 0,
        bytes: 0,
        nanoseconds: None,
    }
}

/// The sum, if all are known.
pub(super) fn total_ns(times: impl IntoIterator<Item = Option<u64>>) -> Option<u64> {
    times.into_iter().try_fold(0_u64, |total, time| Some(total.saturating_add(time?)))
}
