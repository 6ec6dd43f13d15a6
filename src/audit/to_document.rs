//! Makes plain data of reports.

use std::collections::BTreeMap;

use super::document::{
    Document, DocumentArgument, DocumentArray, DocumentMemory, DocumentRecord, DocumentSite,
    Finding,
};
use super::findings;
use super::record::{
    ArgumentRecord, CopyRecord, Event, LaunchRecord, MemoryEvent, MemoryRecord, Record,
};
use super::records::Records;
use super::report::{Report, Site};
use crate::access::Access;
use crate::storage;
use crate::timeline::WaitReason;

impl Report {
    /// The report as plain data.
    #[must_use]
    pub fn to_document(&self) -> Document {
        let (traffic, kept) = (self.traffic(), &self.records);
        let records = kept.in_order();
        let mut document = Document {
            version: 1,
            to_device: traffic.to_device,
            to_host: traffic.to_host,
            between_devices: traffic.between_devices,
            avoided: traffic.avoided,
            padding: self.padding(),
            launches: kept.launches,
            waits: kept.waits,
            allocations: kept.allocations,
            evictions: kept.evictions,
            duration_ns: kept.duration_ns,
            sites: self.sites().iter().map(DocumentSite::of).collect(),
            arrays: arrays(&records),
            records: records.iter().map(|record| DocumentRecord::of(kept, record)).collect(),
            records_forgotten: kept.forgotten,
            findings: Vec::new(),
        };
        document.findings = findings::of(&document);
        document
    }

    /// What could be saved, the largest first: patterns in the latest records, each with its call
    /// sites, what it costs, and what to change.
    ///
    /// | kind | what it is |
    /// |---|---|
    /// | `bounce` | an array that goes down and up again in a loop |
    /// | `evicted` | a copy that a full device gave up, and that was copied there again |
    /// | `overwritten_upload` | a prefetch that a kernel overwrites without reading it |
    /// | `serial_copy` | copies that wait for kernels with which they have nothing to do |
    /// | `small_copies` | many small copies of one array that could be one |
    /// | `stalling_wait` | waits after which the host reads nothing, between pieces of work |
    ///
    /// `serial_copy` needs the times of a device: see [`DocumentRecord`].
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
    pub fn findings(&self) -> Vec<Finding> {
        self.to_document().findings
    }
}

impl DocumentSite {
    fn of(site: &Site) -> Self {
        Self {
            site: site.location.to_string(),
            array: site.array.clone(),
            direction: site.direction.to_string(),
            device: site.device.clone(),
            source: site.source.clone(),
            cause: site.cause.to_string(),
            count: site.flow.count,
            bytes: site.flow.bytes,
            stale_since: site.stale_since.map(|location| location.to_string()),
            never_there: site.never_there,
        }
    }
}

impl DocumentRecord {
    fn of(records: &Records, record: &Record) -> Self {
        match &record.event {
            Event::Copy { copy, launch } => Self::copy(records, record, copy, *launch),
            Event::Launch { launch, id } => Self::launch(records, record, launch, *id),
            Event::Wait(wait) => Self::Wait {
                queued_ns: records.since_start(record.queued_ns),
                finished_ns: records.since_start(wait.finished_ns),
                thread: record.thread.to_string(),
                device: wait.device.to_string(),
                stream: wait.stream,
                site: wait.site.to_string(),
                reason: match wait.reason {
                    WaitReason::Synchronize => "synchronize".to_owned(),
                    WaitReason::Contents => "contents".to_owned(),
                },
            },
            Event::Memory(memory) => Self::memory(records, record, memory),
        }
    }

    fn copy(records: &Records, record: &Record, copy: &CopyRecord, launch: Option<u64>) -> Self {
        let times = records.times(copy.span);
        Self::Copy {
            queued_ns: records.since_start(record.queued_ns),
            started_ns: times.map(|times| times.0),
            finished_ns: times.map(|times| times.1),
            thread: record.thread.to_string(),
            device: copy.device.to_string(),
            stream: copy.stream,
            site: copy.site.to_string(),
            array: copy.array_id,
            name: copy.array.to_string(),
            direction: copy.direction.to_string(),
            source: copy.source.as_deref().map(str::to_owned),
            bytes: copy.bytes,
            padding: copy.padding,
            cause: copy.cause.to_string(),
            stale_since: copy.staleness.since().map(|location| location.to_string()),
            launch,
        }
    }

    fn launch(records: &Records, record: &Record, launch: &LaunchRecord, id: u64) -> Self {
        let times = records.times(launch.span);
        let argument = |argument: &ArgumentRecord| DocumentArgument {
            array: argument.array_id,
            access: access_name(argument.access).to_owned(),
            is_whole: argument.is_whole,
        };
        Self::Launch {
            id,
            queued_ns: records.since_start(record.queued_ns),
            started_ns: times.map(|times| times.0),
            finished_ns: times.map(|times| times.1),
            thread: record.thread.to_string(),
            device: launch.device.to_string(),
            stream: launch.stream,
            site: launch.site.to_string(),
            name: launch.name().to_owned(),
            arguments: launch.arguments.iter().map(argument).collect(),
        }
    }

    fn memory(records: &Records, record: &Record, memory: &MemoryRecord) -> Self {
        let document = DocumentMemory {
            queued_ns: records.since_start(record.queued_ns),
            thread: record.thread.to_string(),
            device: memory.device.to_string(),
            site: memory.site.to_string(),
            bytes: memory.bytes,
            array: memory.array_id,
            name: memory.array.to_string(),
        };
        match memory.kind {
            MemoryEvent::Allocation => Self::Allocation(document),
            MemoryEvent::Eviction => Self::Eviction(document),
        }
    }
}

fn access_name(access: Access) -> &'static str {
    match access {
        Access::Read => "in",
        Access::ReadWrite => "in_out",
        Access::Overwrite => "out",
    }
}

/// The arrays of copies, and those of launches that are still alive.
fn arrays(records: &[&Record]) -> Vec<DocumentArray> {
    let mut arrays = BTreeMap::new();
    let mut launched = Vec::new();
    for record in records {
        match &record.event {
            Event::Copy { copy, .. } => {
                arrays.insert(copy.array_id, DocumentArray::of_copy(copy));
            }
            Event::Launch { launch, .. } => {
                launched.extend(launch.arguments.iter().map(|argument| argument.array_id));
            }
            Event::Wait(_) | Event::Memory(_) => {}
        }
    }
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

impl DocumentArray {
    fn of_copy(copy: &CopyRecord) -> Self {
        Self {
            id: copy.array_id,
            name: copy.array.to_string(),
            element: storage::short_type(copy.element),
            shape: copy.shape.to_vec(),
        }
    }
}
