//! Makes plain data of reports.

use std::collections::BTreeMap;

use super::process;
use super::report::{Report, Site};
use crate::audit::captures::latest::Records;
use crate::audit::captures::steps::access_name;
use crate::audit::captures::timed::Recorded;
use crate::audit::recording::block::{
    AccessEvent, BarrierEvent, CopyEvent, EventKind, LaunchEvent, MemoryEvent, MessageEvent,
    WaitEvent,
};
use crate::audit::recording::cause::Cause;
use crate::audit::recording::facts::{ArgumentRecord, ArrayEntry, MemoryChange};
use crate::storage;
use resident_documents::{
    Document, DocumentAccess, DocumentArgument, DocumentArray, DocumentBarrier, DocumentFinding,
    DocumentMemory, DocumentMessage, DocumentRecord, DocumentSite,
};

impl Report {
    /// The report as plain data.
    ///
    /// ```
    /// use resident::{Device, SmartArray, audit};
    ///
    /// let array = SmartArray::from(vec![0_u8; 1000]).named("photo");
    /// let ((), report) = audit::capture(|| array.prefetch(&Device::cpu().stream()).unwrap());
    /// let document = report.to_document();
    /// assert_eq!((document.to_device.bytes, &*document.sites[0].array), (1000, "photo"));
    /// assert_eq!(document.to_json(), report.to_json());
    /// ```
    #[must_use]
    pub fn to_document(&self) -> Document {
        let traffic = self.traffic();
        let kept = &self.records;
        let records = kept.in_order();
        let mut document = Document::default();
        document.version = 1;
        document.to_device = traffic.to_device;
        document.to_host = traffic.to_host;
        document.between_devices = traffic.between_devices;
        document.avoided = traffic.avoided;
        document.compared_contents = Some(self.compared_contents());
        document.conservative = self.conservative();
        document.sent = self.sent();
        document.received = self.received();
        document.peer_waits = kept.peer_waits;
        document.padding = self.padding();
        document.launches = kept.launches;
        document.waits = kept.waits;
        document.allocations = kept.allocations;
        document.evictions = kept.evictions;
        document.duration_ns = kept.duration_ns;
        document.started_unix_ns = kept.started_unix_ns;
        let rank = process::rank();
        document.rank = rank.map(|of| of.rank);
        document.ranks = rank.and_then(|of| of.size);
        document.host = process::host().map(str::to_owned);
        document.process = Some(process::this());
        document.written_unix_ns = kept.started_unix_ns + kept.duration_ns;
        document.memory = self.memory().to_vec();
        document.sites = self.sites().iter().map(site).collect();
        document.streams = self.streams();
        document.arrays = arrays(&records);
        document.records = records.iter().filter_map(|record| record.to_document(kept)).collect();
        document.records_forgotten = kept.forgotten();
        document.findings = kept.findings();
        document
    }

    /// What could be saved, the largest first: patterns in all records, each with its call sites,
    /// what it costs, and what to change. Arrays of one name that are used at the same lines are
    /// one finding; so are unnamed arrays of one line. Records that made room for later ones count
    /// too. For that a report remembers 8,192 arrays at the same time, those that were used the
    /// longest ago giving way, 16,384 findings of each kind, and 65,536 names and lines.
    ///
    /// | kind | what it is |
    /// |---|---|
    /// | `bounce` | an array that goes down and up again in a loop |
    /// | `evicted` | a copy that a full device gave up, and that was copied there again |
    /// | `few_changes` | whole arrays copied for the sake of a few elements |
    /// | `idle_host_memory` | host memory of an array that only a device goes on to use |
    /// | `overwritten_upload` | a prefetch to a device, overwritten before anything reads it |
    /// | `pageable_copies` | many or large copies to a GPU from memory that is not page-locked |
    /// | `repeated_upload` | equal contents that are copied to a device again |
    /// | `round_trip` | an array that the host takes to write, and copies back as it was |
    /// | `serial_copy` | copies that wait for kernels with which they have nothing to do |
    /// | `small_copies` | many small copies of one array that could be one |
    /// | `stalling_wait` | waits after which the host reads nothing, between pieces of work |
    /// | `tiny_arguments` | tiny arrays, each uploaded for one launch, that could be scalars |
    /// | `unchanged_argument` | an `InOut` argument that no launch of a kernel has changed |
    /// | `unread_download` | a prefetch or a snapshot that the host did not read |
    /// | `unread_write_back` | contents that were copied because their memory was freed, and that nothing read again |
    /// | `unused_upload` | an upload to an array that was dropped before anything read it there |
    ///
    /// The report cannot show whether the host's part of a `bounce` can be done on a device.
    /// `unread_write_back` proposes [`discard`](crate::SmartArray::discard), and
    /// `idle_host_memory` [`release_host`](crate::SmartArray::release_host). The latter is about
    /// dropped arrays of 16 MiB and more of which a device has changed all: reads by the host of
    /// contents that are valid there are not recorded.
    /// `serial_copy` needs the times of a device: see [`DocumentRecord`]. `few_changes`,
    /// `repeated_upload`, `round_trip` and `unchanged_argument` need
    /// [`compare_contents`](crate::audit::compare_contents()); a report without it says so.
    /// That a kernel overwrites an `InOut` without reading it cannot be seen from outside: the
    /// checker of CUDA C notes it
    /// ([`FindingKind::UnreadContents`](crate::emulation::FindingKind::UnreadContents)).
    ///
    /// ```
    /// use resident::{Device, SmartArray, audit};
    ///
    /// let mut array = SmartArray::from(vec![1_u32; 100]).named("values");
    /// array.gpu_mut_on(&Device::cpu().stream())?;
    /// let (sum, report) = audit::capture(|| {
    ///     (0..100).map(|index| array.get(index)).sum::<resident::Result<u32>>()
    /// });
    /// assert_eq!(sum?, 100);
    /// let findings = report.findings();
    /// assert_eq!((&*findings[0].kind, findings[0].count), ("small_copies", 99));
    /// # Ok::<(), resident::Error>(())
    /// ```
    #[must_use]
    pub fn findings(&self) -> Vec<DocumentFinding> {
        self.records.findings()
    }
}

fn site(site: &Site) -> DocumentSite {
    DocumentSite {
        site: site.location.to_string(),
        array: site.array.clone(),
        direction: site.direction.to_string(),
        device: site.device.clone(),
        source: site.source.clone(),
        peer: site.peer,
        cause: site.cause.to_string(),
        count: site.flow.count,
        bytes: site.flow.bytes,
        stale_since: site.stale_since.map(|location| location.to_string()),
        never_there: site.never_there,
    }
}

impl Recorded<'_> {
    /// `None` for the ends of arrays.
    fn to_document(self, records: &Records) -> Option<DocumentRecord> {
        let Self { block, event } = self;
        Some(match event.kind {
            EventKind::Copy(copy) => self.copy(records, block.copy(copy)),
            EventKind::Launch(launch) => self.launch(records, block.launch(launch)),
            EventKind::Wait(wait) => self.wait(records, block.wait(wait)),
            EventKind::Memory(memory) => self.memory(records, block.memory(memory)),
            EventKind::Access(access) => self.access(records, block.access(access)),
            EventKind::Message(message) => self.message(records, block.message(message)),
            EventKind::Barrier(barrier) => self.barrier(records, block.barrier(barrier)),
            EventKind::End(_) => return None,
        })
    }

    fn copy(self, records: &Records, copy: &CopyEvent) -> DocumentRecord {
        let Self { block, event } = self;
        let times = records.times(block.span_of_copy(copy));
        let key = &copy.key;
        let stream = block.stream(copy.key.stream);
        let array = block.array(key.array);
        DocumentRecord::Copy {
            queued_ns: records.since_start(event.queued_ns),
            started_ns: times.map(|times| times.0),
            finished_ns: times.map(|times| times.1),
            thread: block.thread.to_string(),
            device: stream.device.to_string(),
            stream: stream.number,
            site: event.site.to_string(),
            array: array.id,
            name: array.name.to_string(),
            direction: key.direction.to_string(),
            source: block.source(key).map(ToString::to_string),
            bytes: copy.bytes,
            padding: copy.padding,
            cause: key.cause.to_string(),
            stale_since: key.staleness().since().map(|location| location.to_string()),
            launch: (copy.launch > 0).then_some(copy.launch),
            use_number: copy.use_number,
            changed_bytes: copy.details.changed_bytes,
            contents_hash: copy.details.contents_hash,
            host_ns: copy.details.host_ns,
            is_pageable: copy.details.is_pageable,
        }
    }

    fn launch(self, records: &Records, launch: &LaunchEvent) -> DocumentRecord {
        let Self { block, event } = self;
        let times = records.times(block.span_of_launch(launch));
        let stream = block.stream(launch.stream);
        let argument = |(index, argument): (usize, &ArgumentRecord)| DocumentArgument {
            array: argument.array_id(),
            access: access_name(argument.access()).to_owned(),
            is_whole: argument.is_whole(),
            use_number: Some(argument.use_number()),
            changed_bytes: records.changed_bytes(launch.id, index),
        };
        let called_ns = (launch.called_ns > 0).then_some(launch.called_ns);
        DocumentRecord::Launch {
            id: launch.id,
            called_ns: called_ns.map(|called_ns| records.since_start(called_ns)),
            queued_ns: records.since_start(event.queued_ns),
            started_ns: times.map(|times| times.0),
            finished_ns: times.map(|times| times.1),
            thread: block.thread.to_string(),
            device: stream.device.to_string(),
            stream: stream.number,
            site: event.site.to_string(),
            name: block.kernel_name(launch).to_owned(),
            arguments: block.arguments(launch).iter().enumerate().map(argument).collect(),
        }
    }

    fn wait(self, records: &Records, wait: &WaitEvent) -> DocumentRecord {
        let Self { block, event } = self;
        DocumentRecord::Wait {
            queued_ns: records.since_start(event.queued_ns),
            finished_ns: records.since_start(wait.finished_ns),
            thread: block.thread.to_string(),
            device: block.device(wait.device).to_string(),
            stream: wait.stream_number,
            site: event.site.to_string(),
            reason: wait.reason.as_str().to_owned(),
        }
    }

    fn memory(self, records: &Records, memory: &MemoryEvent) -> DocumentRecord {
        let Self { block, event } = self;
        let array = block.array(memory.array);
        let document = DocumentMemory {
            queued_ns: records.since_start(event.queued_ns),
            thread: block.thread.to_string(),
            device: block.device(memory.device).to_string(),
            site: event.site.to_string(),
            bytes: memory.bytes,
            array: array.id,
            name: array.name.to_string(),
        };
        match memory.kind {
            MemoryChange::Allocation => DocumentRecord::Allocation(document),
            MemoryChange::Eviction => DocumentRecord::Eviction(document),
            MemoryChange::Discard => DocumentRecord::Discard(document),
        }
    }

    fn access(self, records: &Records, access: &AccessEvent) -> DocumentRecord {
        let Self { block, event } = self;
        let array = block.array(access.array);
        DocumentRecord::Access(DocumentAccess {
            queued_ns: records.since_start(event.queued_ns),
            thread: block.thread.to_string(),
            device: access.device.map(|device| block.device(device).to_string()),
            site: event.site.to_string(),
            array: array.id,
            name: array.name.to_string(),
            access: access_name(access.access).to_owned(),
            is_whole: access.is_whole,
            use_number: access.use_number,
        })
    }
}

impl Recorded<'_> {
    fn message(self, records: &Records, message: &MessageEvent) -> DocumentRecord {
        let Self { block, event } = self;
        let MessageEvent { key, bytes, waited_ns } = message;
        DocumentRecord::Message(DocumentMessage {
            queued_ns: records.since_start(event.queued_ns),
            waited_ns: *waited_ns,
            thread: block.thread.to_string(),
            device: block.device_of(key).to_string(),
            site: event.site.to_string(),
            name: block.name_of(key).to_string(),
            direction: key.direction.to_string(),
            peer: key.peer,
            bytes: *bytes,
            cause: Cause::Mpi.to_string(),
        })
    }

    fn barrier(self, records: &Records, barrier: &BarrierEvent) -> DocumentRecord {
        let Self { block, event } = self;
        DocumentRecord::Barrier(DocumentBarrier {
            queued_ns: records.since_start(event.queued_ns),
            waited_ns: barrier.waited_ns,
            thread: block.thread.to_string(),
            site: event.site.to_string(),
            number: barrier.number,
        })
    }
}

/// The arrays of copies, and those of launches that are still alive.
fn arrays(records: &[Recorded<'_>]) -> Vec<DocumentArray> {
    let mut arrays = BTreeMap::new();
    let mut launched = Vec::new();
    for Recorded { block, event } in records {
        match event.kind {
            EventKind::Copy(copy) => {
                let array = block.array(block.copy(copy).key.array);
                arrays.insert(array.id, array);
            }
            EventKind::Launch(launch) => {
                let arguments = block.arguments(block.launch(launch));
                launched.extend(arguments.iter().map(|argument| argument.array_id()));
            }
            EventKind::Access(access) => {
                let array = block.array(block.access(access).array);
                arrays.insert(array.id, array);
            }
            EventKind::Wait(_)
            | EventKind::Memory(_)
            | EventKind::Message(_)
            | EventKind::Barrier(_)
            | EventKind::End(_) => {}
        }
    }
    let mut arrays: BTreeMap<u64, DocumentArray> =
        arrays.into_iter().map(|(id, array)| (id, array_entry(array))).collect();
    launched.sort_unstable();
    launched.dedup();
    launched.retain(|id| !arrays.contains_key(id));
    if !launched.is_empty() {
        let live = storage::live_arrays();
        let wanted = live.iter().filter(|array| launched.binary_search(&array.number()).is_ok());
        arrays.extend(wanted.map(|array| {
            let document = DocumentArray {
                id: array.number(),
                name: array.name().to_string(),
                element: array.element_name(),
                shape: array.shape().to_vec(),
            };
            (array.number(), document)
        }));
    }
    arrays.into_values().collect()
}

fn array_entry(array: &ArrayEntry) -> DocumentArray {
    DocumentArray {
        id: array.id,
        name: array.name.to_string(),
        element: storage::short_type(array.element),
        shape: array.shape.to_vec(),
    }
}
