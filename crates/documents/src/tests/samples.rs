//! Records, of which a test says only what it is about.

use std::ops::Range;

use crate::document::{
    Document, DocumentAccess, DocumentArgument, DocumentBarrier, DocumentFinding, DocumentMemory,
    DocumentMessage, DocumentRecord,
};
use crate::findings;

/// A copy by the call `copy.rs:1:1` on stream 0 of the device `gpu`: queued, started and finished
/// at these times.
#[derive(Clone, Copy)]
pub(super) struct Copy {
    pub(super) site: &'static str,
    pub(super) stream: u32,
    pub(super) array: u64,
    pub(super) name: &'static str,
    pub(super) direction: &'static str,
    pub(super) source: Option<&'static str>,
    pub(super) bytes: u64,
    pub(super) cause: &'static str,
    pub(super) stale_since: Option<&'static str>,
    pub(super) launch: Option<u64>,
    pub(super) use_number: Option<u16>,
    pub(super) changed_bytes: Option<u64>,
    pub(super) contents_hash: Option<u64>,
    pub(super) host_ns: Option<u64>,
    pub(super) is_pageable: bool,
    pub(super) queued_ns: u64,
    pub(super) times: Option<(u64, u64)>,
}

impl Copy {
    pub(super) const UP: Self = Self {
        site: "copy.rs:1:1",
        stream: 0,
        array: 1,
        name: "x",
        direction: "to_device",
        source: None,
        bytes: 100,
        cause: "launch",
        stale_since: None,
        launch: None,
        use_number: Some(0),
        changed_bytes: None,
        contents_hash: None,
        host_ns: None,
        is_pageable: false,
        queued_ns: 0,
        times: Some((0, 10)),
    };

    pub(super) const DOWN: Self = Self { direction: "to_host", cause: "host", ..Self::UP };

    pub(super) fn record(self) -> DocumentRecord {
        DocumentRecord::Copy {
            queued_ns: self.queued_ns,
            started_ns: self.times.map(|times| times.0),
            finished_ns: self.times.map(|times| times.1),
            thread: "main".to_owned(),
            device: "gpu".to_owned(),
            stream: self.stream,
            site: self.site.to_owned(),
            array: self.array,
            name: self.name.to_owned(),
            direction: self.direction.to_owned(),
            source: self.source.map(str::to_owned),
            bytes: self.bytes,
            padding: 4,
            cause: self.cause.to_owned(),
            stale_since: self.stale_since.map(str::to_owned),
            launch: self.launch,
            use_number: self.use_number,
            changed_bytes: self.changed_bytes,
            contents_hash: self.contents_hash,
            host_ns: self.host_ns,
            is_pageable: self.is_pageable,
        }
    }
}

/// A launch of `kernel` by the call `launch.rs:2:2` on stream 0 of the device `gpu`.
#[derive(Clone)]
pub(super) struct Launch {
    pub(super) id: u64,
    pub(super) stream: u32,
    pub(super) called_ns: Option<u64>,
    pub(super) queued_ns: u64,
    pub(super) times: Option<(u64, u64)>,
    pub(super) arguments: Vec<DocumentArgument>,
}

impl Launch {
    pub(super) fn of(arguments: &[DocumentArgument]) -> Self {
        let arguments = arguments.to_vec();
        Self { id: 1, stream: 0, called_ns: None, queued_ns: 0, times: Some((0, 10)), arguments }
    }

    pub(super) fn record(self) -> DocumentRecord {
        DocumentRecord::Launch {
            id: self.id,
            called_ns: self.called_ns,
            queued_ns: self.queued_ns,
            started_ns: self.times.map(|times| times.0),
            finished_ns: self.times.map(|times| times.1),
            thread: "main".to_owned(),
            device: "gpu".to_owned(),
            stream: self.stream,
            site: "launch.rs:2:2".to_owned(),
            name: "kernel".to_owned(),
            arguments: self.arguments,
        }
    }
}

/// An argument that is the whole array.
pub(super) fn argument(array: u64, access: &str, use_number: u16) -> DocumentArgument {
    let (access, use_number) = (access.to_owned(), Some(use_number));
    DocumentArgument { array, access, is_whole: true, use_number, changed_bytes: None }
}

/// A wait by the call `wait.rs:3:3` for stream 0 of the device `gpu`.
pub(super) fn wait(reason: &str, times: Range<u64>) -> DocumentRecord {
    DocumentRecord::Wait {
        queued_ns: times.start,
        finished_ns: times.end,
        thread: "main".to_owned(),
        device: "gpu".to_owned(),
        stream: 0,
        site: "wait.rs:3:3".to_owned(),
        reason: reason.to_owned(),
    }
}

/// An access of the whole array by the call `access.rs:4:4`; on the host without a device.
pub(super) fn access(device: Option<&str>, access: &str, use_number: u16) -> DocumentAccess {
    DocumentAccess {
        queued_ns: 0,
        thread: "main".to_owned(),
        device: device.map(str::to_owned),
        site: "access.rs:4:4".to_owned(),
        array: 1,
        name: "x".to_owned(),
        access: access.to_owned(),
        is_whole: true,
        use_number,
    }
}

/// Memory on the device `gpu`.
pub(super) fn memory(site: &str, bytes: u64) -> DocumentMemory {
    DocumentMemory {
        queued_ns: 0,
        thread: "main".to_owned(),
        device: "gpu".to_owned(),
        site: site.to_owned(),
        bytes,
        array: 1,
        name: "x".to_owned(),
    }
}

/// A message by the call `send.rs:5:5`, for which the thread waited ten nanoseconds.
pub(super) fn message(direction: &str, peer: u32, queued_ns: u64) -> DocumentMessage {
    DocumentMessage {
        queued_ns,
        waited_ns: 10,
        thread: "main".to_owned(),
        device: "host".to_owned(),
        site: "send.rs:5:5".to_owned(),
        name: "x".to_owned(),
        direction: direction.to_owned(),
        peer: Some(peer),
        bytes: 100,
        cause: "mpi".to_owned(),
    }
}

/// A barrier by the call `barrier.rs:6:6`, in which the thread waited twenty nanoseconds.
pub(super) fn barrier(number: u64, queued_ns: u64) -> DocumentBarrier {
    DocumentBarrier {
        queued_ns,
        waited_ns: 20,
        thread: "main".to_owned(),
        site: "barrier.rs:6:6".to_owned(),
        number,
    }
}

/// The findings in these records, which took no time.
pub(super) fn found(records: Vec<DocumentRecord>) -> Vec<DocumentFinding> {
    found_within(0, records)
}

/// The findings in these records, which took this time.
pub(super) fn found_within(duration_ns: u64, records: Vec<DocumentRecord>) -> Vec<DocumentFinding> {
    findings::of(&Document { duration_ns, records, ..Document::default() })
}

/// The only finding, whose kind this is.
#[track_caller]
pub(super) fn only(kind: &str, found: &[DocumentFinding]) -> DocumentFinding {
    let [finding] = found else { panic!("one {kind}: {found:?}") };
    assert_eq!(finding.kind, kind);
    finding.clone()
}

/// Copies whose uses are numbered from 0 on.
pub(super) fn numbered(copies: impl IntoIterator<Item = Copy>) -> Vec<DocumentRecord> {
    let numbers = 0_u16..;
    let numbered = copies.into_iter().zip(numbers).map(|(copy, number)| (copy, Some(number)));
    numbered.map(|(copy, use_number)| Copy { use_number, ..copy }.record()).collect()
}
