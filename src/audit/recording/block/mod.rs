//! Events as plain data: what a thread keeps of copies, launches, waits and allocations until a
//! report needs them.
//!
//! A thread appends events to an [open](open::OpenBlock) block. An event names arrays, kernels,
//! streams and devices by an index into tables of the same block, so that appending one clones no
//! names. A full block, or one that a report needs, is closed and shared by the captures to which
//! it counts.

pub(in crate::audit) mod open;

use std::sync::Arc;

use crate::audit::recording::cause::Cause;
use crate::audit::recording::facts::{
    ArgumentRecord, ArrayEntry, MemoryChange, Staleness, StreamEntry, StreamSpan, kernel_name,
};
use crate::traffic::{Direction, Flow};
use resident_backend::call_site::CallSite;
use resident_backend::timeline::WaitReason;
use resident_core::Access;

/// Something that happened, and when.
#[derive(Clone, Copy, Debug)]
pub(in crate::audit) struct Event {
    /// When the host queued the work, or began to wait.
    pub(in crate::audit) queued_ns: u64,
    /// The call that caused it.
    pub(in crate::audit) site: CallSite,
    pub(in crate::audit) kind: EventKind,
}

/// What happened, with an index into the block's list of such events.
#[derive(Clone, Copy, Debug)]
pub(in crate::audit) enum EventKind {
    Copy(u32),
    Launch(u32),
    Wait(u32),
    Memory(u32),
    Access(u32),
    Message(u32),
    Barrier(u32),
    End(u32),
}

/// The properties of a launch. Numbers without another meaning are indexes into the block's tables.
#[derive(Clone, Copy, Debug)]
pub(in crate::audit) struct LaunchEvent {
    kernel: u32,
    pub(in crate::audit) stream: u32,
    /// The first argument, and how many there are.
    arguments: (u32, u8),
    position: u64,
    pub(in crate::audit) id: u64,
    /// When it was called.
    pub(in crate::audit) called_ns: u64,
}

/// The properties of an access that is no launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::audit) struct AccessEvent {
    pub(in crate::audit) array: u32,
    /// `None` for the host's copy.
    pub(in crate::audit) device: Option<u32>,
    pub(in crate::audit) access: Access,
    pub(in crate::audit) is_whole: bool,
    /// Which use of the array it is.
    pub(in crate::audit) use_number: u16,
}

/// The properties of a wait.
#[derive(Clone, Copy, Debug)]
pub(in crate::audit) struct WaitEvent {
    pub(in crate::audit) device: u32,
    /// The stream's number on its device.
    pub(in crate::audit) stream_number: u32,
    pub(in crate::audit) reason: WaitReason,
    pub(in crate::audit) finished_ns: u64,
}

/// The properties of an allocation or an eviction.
#[derive(Clone, Copy, Debug)]
pub(in crate::audit) struct MemoryEvent {
    pub(in crate::audit) kind: MemoryChange,
    pub(in crate::audit) array: u32,
    pub(in crate::audit) device: u32,
    pub(in crate::audit) bytes: u64,
}

/// The properties of a message to or from another process.
#[derive(Clone, Copy, Debug)]
pub(in crate::audit) struct MessageEvent {
    pub(in crate::audit) key: MessageKey,
    pub(in crate::audit) bytes: u64,
    pub(in crate::audit) waited_ns: u64,
}

/// What the messages of one line of a report have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::audit) struct MessageKey {
    site: SiteAddress,
    pub(in crate::audit) direction: Direction,
    /// The rank of the other process; `None` for collective operations.
    pub(in crate::audit) peer: Option<u32>,
    name: u32,
    device: u32,
}

/// The properties of a barrier.
#[derive(Clone, Copy, Debug)]
pub(in crate::audit) struct BarrierEvent {
    pub(in crate::audit) number: u64,
    pub(in crate::audit) waited_ns: u64,
}

/// The end of an array.
#[derive(Clone, Copy, Debug)]
pub(in crate::audit) struct EndEvent {
    pub(in crate::audit) array: u64,
    /// Which use of the array it is.
    pub(in crate::audit) use_number: u16,
}

/// The properties of a copy.
#[derive(Clone, Copy, Debug)]
pub(in crate::audit) struct CopyEvent {
    pub(in crate::audit) key: CopyKey,
    pub(in crate::audit) bytes: u64,
    /// How many of the bytes were up to date at the destination before elements between stale
    /// parts were made stale there.
    pub(in crate::audit) padding: u64,
    /// The first and the last position in the stream.
    positions: (u64, u64),
    /// The launch that needed it; 0 if none did.
    pub(in crate::audit) launch: u64,
    /// Which use of the array it is; `None` if that is not known.
    pub(in crate::audit) use_number: Option<u16>,
    pub(in crate::audit) details: CopyDetails,
}

/// Properties that not all copies have.
#[derive(Clone, Copy, Default, Debug)]
pub(in crate::audit) struct CopyDetails {
    /// How many of the bytes have other values than before at the destination.
    pub(in crate::audit) changed_bytes: Option<u64>,
    /// A hash of the bytes, if contents are compared and it is an upload of a whole array.
    pub(in crate::audit) contents_hash: Option<u64>,
    /// How long the calling thread was busy with it.
    pub(in crate::audit) host_ns: Option<u64>,
    /// Whether it is between a GPU and pageable memory of the host.
    pub(in crate::audit) is_pageable: bool,
    /// Whether the array is an explicit one, which no launcher copies.
    pub(in crate::audit) is_explicit: bool,
}

/// What the copies of one line of a report have in common. Call sites are compared by address: a
/// report joins those that are equal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::audit) struct CopyKey {
    site: SiteAddress,
    since: Option<SiteAddress>,
    never_there: bool,
    pub(in crate::audit) direction: Direction,
    pub(in crate::audit) cause: Cause,
    pub(in crate::audit) array: u32,
    pub(in crate::audit) stream: u32,
    source: Option<u32>,
}

/// A call site that is compared by its address.
#[derive(Clone, Copy, Debug)]
struct SiteAddress(CallSite);

impl PartialEq for SiteAddress {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for SiteAddress {}

impl std::hash::Hash for SiteAddress {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        std::ptr::hash(self.0, state);
    }
}

/// The properties of the events of a block.
#[derive(Debug, Default)]
struct Lists {
    copies: Vec<CopyEvent>,
    launches: Vec<LaunchEvent>,
    arguments: Vec<ArgumentRecord>,
    waits: Vec<WaitEvent>,
    memory: Vec<MemoryEvent>,
    accesses: Vec<AccessEvent>,
    messages: Vec<MessageEvent>,
    barriers: Vec<BarrierEvent>,
    ends: Vec<EndEvent>,
}

/// Events of one thread, in their order, and the tables to which they refer.
#[derive(Debug)]
pub(in crate::audit) struct RecordBlock {
    pub(in crate::audit) thread: Arc<str>,
    pub(in crate::audit) events: Vec<Event>,
    lists: Lists,
    arrays: Vec<ArrayEntry>,
    kernels: Vec<Arc<str>>,
    streams: Vec<StreamEntry>,
    devices: Vec<Arc<str>>,
    /// Of the arrays that messages name.
    names: Vec<Arc<str>>,
    /// The copies of a launcher that copies each array argument in and out.
    pub(in crate::audit) launcher: Flow,
    /// Whether contents were compared for some of the events.
    pub(in crate::audit) compares_contents: bool,
}

impl RecordBlock {
    pub(in crate::audit) fn copies(&self) -> &[CopyEvent] {
        &self.lists.copies
    }

    pub(in crate::audit) fn copy(&self, index: u32) -> &CopyEvent {
        &self.lists.copies[index as usize]
    }

    pub(in crate::audit) fn launches(&self) -> &[LaunchEvent] {
        &self.lists.launches
    }

    pub(in crate::audit) fn launch(&self, index: u32) -> &LaunchEvent {
        &self.lists.launches[index as usize]
    }

    pub(in crate::audit) fn wait(&self, index: u32) -> &WaitEvent {
        &self.lists.waits[index as usize]
    }

    pub(in crate::audit) fn memory(&self, index: u32) -> &MemoryEvent {
        &self.lists.memory[index as usize]
    }

    pub(in crate::audit) fn access(&self, index: u32) -> &AccessEvent {
        &self.lists.accesses[index as usize]
    }

    pub(in crate::audit) fn messages(&self) -> &[MessageEvent] {
        &self.lists.messages
    }

    pub(in crate::audit) fn message(&self, index: u32) -> &MessageEvent {
        &self.lists.messages[index as usize]
    }

    pub(in crate::audit) fn barrier(&self, index: u32) -> &BarrierEvent {
        &self.lists.barriers[index as usize]
    }

    pub(in crate::audit) fn end(&self, index: u32) -> &EndEvent {
        &self.lists.ends[index as usize]
    }

    /// How many of the events are ends of arrays.
    pub(in crate::audit) fn ends(&self) -> usize {
        self.lists.ends.len()
    }

    /// The name of the array of a message.
    pub(in crate::audit) fn name_of(&self, message: &MessageKey) -> &Arc<str> {
        &self.names[message.name as usize]
    }

    /// Whose memory a message was in.
    pub(in crate::audit) fn device_of(&self, message: &MessageKey) -> &Arc<str> {
        self.device(message.device)
    }

    pub(in crate::audit) fn array(&self, index: u32) -> &ArrayEntry {
        &self.arrays[index as usize]
    }

    pub(in crate::audit) fn stream(&self, index: u32) -> &StreamEntry {
        &self.streams[index as usize]
    }

    pub(in crate::audit) fn device(&self, index: u32) -> &Arc<str> {
        &self.devices[index as usize]
    }

    pub(in crate::audit) fn arguments(&self, launch: &LaunchEvent) -> &[ArgumentRecord] {
        let (first, count) = launch.arguments;
        &self.lists.arguments[first as usize..][..usize::from(count)]
    }

    pub(in crate::audit) fn kernel_name(&self, launch: &LaunchEvent) -> &str {
        kernel_name(&self.kernels[launch.kernel as usize])
    }

    /// The source device of a copy between two devices.
    pub(in crate::audit) fn source(&self, copy: &CopyKey) -> Option<&Arc<str>> {
        copy.source.map(|device| self.device(device))
    }

    pub(in crate::audit) fn span_of_copy(&self, copy: &CopyEvent) -> StreamSpan {
        let (first, last) = copy.positions;
        StreamSpan { stream_id: self.stream(copy.key.stream).stream_id, first, last }
    }

    pub(in crate::audit) fn span_of_launch(&self, launch: &LaunchEvent) -> StreamSpan {
        let stream_id = self.stream(launch.stream).stream_id;
        StreamSpan { stream_id, first: launch.position, last: launch.position }
    }
}

impl MessageKey {
    pub(in crate::audit) fn site(&self) -> CallSite {
        self.site.0
    }
}

impl CopyKey {
    pub(in crate::audit) fn site(&self) -> CallSite {
        self.site.0
    }

    pub(in crate::audit) fn staleness(&self) -> Staleness {
        match self.since {
            Some(SiteAddress(site)) => Staleness::Since(site),
            None if self.never_there => Staleness::NeverThere,
            None => Staleness::Unreported,
        }
    }
}
