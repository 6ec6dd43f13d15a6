//! What findings are made of: records with the names of others, without a copy of any text.

use crate::document::{DocumentAccess, DocumentMemory, DocumentRecord};

/// One record, as far as findings are concerned.
#[derive(Clone, Debug)]
pub enum Step<'a> {
    /// A copy.
    Copied(Copied<'a>),
    /// A launch.
    Launched(Launched<'a>),
    /// A wait for a stream.
    Waited(Waited<'a>),
    /// A copy that was freed to make room.
    Evicted(Memory<'a>),
    /// A snapshot that was dropped before anybody took it.
    Discarded(Memory<'a>),
    /// An access that is no launch.
    Accessed(Accessed<'a>),
    /// The end of an array.
    Ended {
        /// The array's number.
        array: u64,
        /// Which use of the array it is.
        use_number: Option<u16>,
    },
    /// A message or a barrier of this thread.
    Talked {
        /// The thread.
        thread: &'a str,
    },
}

/// A copy.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the fields of `DocumentRecord`")]
pub struct Copied<'a> {
    pub queued_ns: u64,
    /// When the device began and finished it.
    pub times: Option<(u64, u64)>,
    pub thread: &'a str,
    pub device: &'a str,
    pub stream: u32,
    pub site: &'a str,
    pub array: u64,
    pub name: &'a str,
    pub direction: &'a str,
    pub cause: &'a str,
    pub bytes: u64,
    /// The device from which a copy between devices comes.
    pub source: Option<&'a str>,
    pub changed_bytes: Option<u64>,
    pub contents_hash: Option<u64>,
    pub host_ns: Option<u64>,
    pub is_pageable: bool,
    /// The call that made the bytes stale.
    pub stale_since: Option<&'a str>,
    pub use_number: Option<u16>,
}

/// A launch.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the fields of `DocumentRecord`")]
pub struct Launched<'a> {
    pub times: Option<(u64, u64)>,
    pub thread: &'a str,
    pub device: &'a str,
    pub stream: u32,
    pub site: &'a str,
    pub kernel: &'a str,
    pub arguments: Vec<Argument<'a>>,
}

/// An array argument of a launch.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the fields of `DocumentArgument`")]
pub struct Argument<'a> {
    pub array: u64,
    pub access: &'a str,
    pub is_whole: bool,
    pub use_number: Option<u16>,
    pub changed_bytes: Option<u64>,
}

/// A wait.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the fields of `DocumentRecord`")]
pub struct Waited<'a> {
    pub thread: &'a str,
    pub device: &'a str,
    pub stream: u32,
    pub site: &'a str,
    pub reason: &'a str,
    pub finished_ns: u64,
}

/// Memory of an array on a device.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the fields of `DocumentMemory`")]
pub struct Memory<'a> {
    pub device: &'a str,
    pub site: &'a str,
    pub bytes: u64,
    pub array: u64,
}

/// An access.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the fields of `DocumentAccess`")]
pub struct Accessed<'a> {
    pub device: Option<&'a str>,
    pub site: &'a str,
    pub array: u64,
    pub access: &'a str,
    pub is_whole: bool,
    pub use_number: u16,
}

impl<'a> Copied<'a> {
    /// The place that it reads: a device, or `None` for the host.
    pub(super) fn from(&self) -> Option<&'a str> {
        match self.direction {
            "to_device" => None,
            "to_host" => Some(self.device),
            _ => self.source,
        }
    }

    /// The place that it writes: a device, or `None` for the host.
    pub(super) fn to(&self) -> Option<&'a str> {
        (self.direction != "to_host").then_some(self.device)
    }

    /// How long the device took for it.
    pub(super) fn duration_ns(&self) -> Option<u64> {
        self.times.map(|(started_ns, finished_ns)| finished_ns.saturating_sub(started_ns))
    }
}

impl<'a> Step<'a> {
    /// The step of a record; `None` if findings have nothing to do with it.
    pub(super) fn of(record: &'a DocumentRecord) -> Option<Self> {
        Some(match record {
            DocumentRecord::Copy { .. } => Self::Copied(copied(record)?),
            DocumentRecord::Launch { .. } => Self::Launched(launched(record)?),
            DocumentRecord::Wait { thread, device, stream, site, reason, finished_ns, .. } => {
                let (stream, finished_ns) = (*stream, *finished_ns);
                Self::Waited(Waited { thread, device, stream, site, reason, finished_ns })
            }
            DocumentRecord::Allocation(_) => return None,
            DocumentRecord::Eviction(memory) => Self::Evicted(memory.into()),
            DocumentRecord::Discard(memory) => Self::Discarded(memory.into()),
            DocumentRecord::Access(access) => Self::Accessed(access.into()),
            DocumentRecord::Message(message) => Self::Talked { thread: &message.thread },
            DocumentRecord::Barrier(barrier) => Self::Talked { thread: &barrier.thread },
        })
    }
}

impl<'a> From<&'a DocumentMemory> for Memory<'a> {
    fn from(memory: &'a DocumentMemory) -> Self {
        let DocumentMemory { device, site, bytes, array, .. } = memory;
        Self { device, site, bytes: *bytes, array: *array }
    }
}

impl<'a> From<&'a DocumentAccess> for Accessed<'a> {
    fn from(of: &'a DocumentAccess) -> Self {
        let DocumentAccess { device, site, array, access, is_whole, use_number, .. } = of;
        Self {
            device: device.as_deref(),
            site,
            array: *array,
            access,
            is_whole: *is_whole,
            use_number: *use_number,
        }
    }
}

fn copied(record: &DocumentRecord) -> Option<Copied<'_>> {
    let DocumentRecord::Copy {
        queued_ns,
        started_ns,
        finished_ns,
        thread,
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
        contents_hash,
        host_ns,
        is_pageable,
        stale_since,
        use_number,
        ..
    } = record
    else {
        return None;
    };
    Some(Copied {
        queued_ns: *queued_ns,
        times: started_ns.zip(*finished_ns),
        thread,
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
        contents_hash: *contents_hash,
        host_ns: *host_ns,
        is_pageable: *is_pageable,
        stale_since: stale_since.as_deref(),
        use_number: *use_number,
    })
}

fn launched(record: &DocumentRecord) -> Option<Launched<'_>> {
    let DocumentRecord::Launch {
        started_ns,
        finished_ns,
        thread,
        device,
        stream,
        site,
        name,
        arguments,
        ..
    } = record
    else {
        return None;
    };
    let arguments = arguments.iter().map(|argument| Argument {
        array: argument.array,
        access: &argument.access,
        is_whole: argument.is_whole,
        use_number: argument.use_number,
        changed_bytes: argument.changed_bytes,
    });
    Some(Launched {
        times: started_ns.zip(*finished_ns),
        thread,
        device,
        stream: *stream,
        site,
        kernel: name,
        arguments: arguments.collect(),
    })
}
