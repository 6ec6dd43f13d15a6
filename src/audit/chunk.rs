//! Events as plain data: what a thread keeps of copies, launches, waits and allocations until a
//! report needs them.
//!
//! A thread appends events to an [`OpenChunk`]. An event names arrays, kernels, streams and devices
//! by an index into tables of the same chunk, so that appending one clones no names. A full chunk,
//! or one that a report needs, is closed and shared by the captures to which it counts.

use std::sync::Arc;

use super::cause::Cause;
use super::record::{
    ArgumentRecord, ArrayEntry, Copied, Launched, MemoryChange, MemoryUse, QueueSpan, Record,
    Staleness, StreamEntry,
};
use crate::call_site::CallSite;
use crate::device::Stream;
use crate::storage::Storage;
use crate::timeline::{self, WaitReason};
use crate::traffic::{Direction, Flow};

/// A chunk with so many events is full.
const EVENTS_MAX: usize = 1 << 10;

/// Something that happened, and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    /// When the host queued the work, or began to wait.
    pub(super) queued_ns: u64,
    /// The call that caused it.
    pub(super) site: CallSite,
    pub(super) kind: EventKind,
}

/// What happened, with an index into the chunk's list of such events.
#[derive(Clone, Copy, Debug)]
pub(super) enum EventKind {
    Copy(u32),
    Launch(u32),
    Wait(u32),
    Memory(u32),
}

/// The properties of a launch. Numbers without another meaning are indexes into the chunk's tables.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaunchEvent {
    kernel: u32,
    pub(super) stream: u32,
    /// The first argument, and how many there are.
    arguments: (u32, u8),
    position: u64,
    pub(super) id: u64,
}

/// The properties of a wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitEvent {
    pub(super) device: u32,
    /// The stream's number on its device.
    pub(super) stream_number: u32,
    pub(super) reason: WaitReason,
    pub(super) finished_ns: u64,
}

/// The properties of an allocation or an eviction.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemoryEvent {
    pub(super) kind: MemoryChange,
    pub(super) array: u32,
    pub(super) device: u32,
    pub(super) bytes: u64,
}

/// The properties of a copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct CopyEvent {
    pub(super) key: CopyKey,
    pub(super) bytes: u64,
    /// How many of the bytes were up to date at the destination.
    pub(super) padding: u64,
    /// The first and the last position in the stream's queue.
    positions: (u64, u64),
    /// The launch that needed it; 0 if none did.
    pub(super) launch: u64,
}

/// What the copies of one line of a report have in common. Call sites are compared by address: a
/// report joins those that are equal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct CopyKey {
    site: SiteAddress,
    since: Option<SiteAddress>,
    never_there: bool,
    pub(super) direction: Direction,
    pub(super) cause: Cause,
    pub(super) array: u32,
    pub(super) stream: u32,
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

/// The properties of the events of a chunk.
#[derive(Debug, Default)]
struct Lists {
    copies: Vec<CopyEvent>,
    launches: Vec<LaunchEvent>,
    arguments: Vec<ArgumentRecord>,
    waits: Vec<WaitEvent>,
    memory: Vec<MemoryEvent>,
}

/// Events of one thread, in their order, and the tables to which they refer.
#[derive(Debug)]
pub(super) struct Chunk {
    pub(super) thread: Arc<str>,
    pub(super) events: Vec<Event>,
    lists: Lists,
    arrays: Vec<ArrayEntry>,
    kernels: Vec<Arc<str>>,
    streams: Vec<StreamEntry>,
    devices: Vec<Arc<str>>,
    /// The copies that the launches did not have to make.
    pub(super) avoided: Flow,
}

impl Lists {
    /// Takes the lists: see [`replace`].
    fn replace(&mut self, has_successor: bool) -> Self {
        let Self { copies, launches, arguments, waits, memory } = self;
        Self {
            copies: replace(copies, has_successor),
            launches: replace(launches, has_successor),
            arguments: replace(arguments, has_successor),
            waits: replace(waits, has_successor),
            memory: replace(memory, has_successor),
        }
    }
}

impl Chunk {
    pub(super) fn copies(&self) -> &[CopyEvent] {
        &self.lists.copies
    }

    pub(super) fn copy(&self, index: u32) -> &CopyEvent {
        &self.lists.copies[index as usize]
    }

    pub(super) fn launches(&self) -> &[LaunchEvent] {
        &self.lists.launches
    }

    pub(super) fn launch(&self, index: u32) -> &LaunchEvent {
        &self.lists.launches[index as usize]
    }

    pub(super) fn wait(&self, index: u32) -> &WaitEvent {
        &self.lists.waits[index as usize]
    }

    pub(super) fn memory(&self, index: u32) -> &MemoryEvent {
        &self.lists.memory[index as usize]
    }

    pub(super) fn array(&self, index: u32) -> &ArrayEntry {
        &self.arrays[index as usize]
    }

    pub(super) fn stream(&self, index: u32) -> &StreamEntry {
        &self.streams[index as usize]
    }

    pub(super) fn device(&self, index: u32) -> &Arc<str> {
        &self.devices[index as usize]
    }

    pub(super) fn arguments(&self, launch: &LaunchEvent) -> &[ArgumentRecord] {
        let (first, count) = launch.arguments;
        &self.lists.arguments[first as usize..][..usize::from(count)]
    }

    /// The kernel's name, which is in quotation marks in its title: `kernel "blur"`.
    pub(super) fn kernel_name(&self, launch: &LaunchEvent) -> &str {
        let title = &*self.kernels[launch.kernel as usize];
        let quoted = title.strip_prefix("kernel \"").unwrap_or(title);
        quoted.strip_suffix('"').unwrap_or(quoted)
    }

    /// The source device of a copy between two devices.
    pub(super) fn source(&self, copy: &CopyKey) -> Option<&Arc<str>> {
        copy.source.map(|device| self.device(device))
    }

    pub(super) fn span_of_copy(&self, copy: &CopyEvent) -> QueueSpan {
        let (first, last) = copy.positions;
        QueueSpan { queue: self.stream(copy.key.stream).queue, first, last }
    }

    pub(super) fn span_of_launch(&self, launch: &LaunchEvent) -> QueueSpan {
        let queue = self.stream(launch.stream).queue;
        QueueSpan { queue, first: launch.position, last: launch.position }
    }
}

impl CopyKey {
    pub(super) fn site(&self) -> CallSite {
        self.site.0
    }

    pub(super) fn staleness(&self) -> Staleness {
        match self.since {
            Some(SiteAddress(site)) => Staleness::Since(site),
            None if self.never_there => Staleness::NeverThere,
            None => Staleness::Unreported,
        }
    }
}

/// A table of a chunk: values that are found by their keys. Only the latest few are: a value that
/// is not found is entered again, which does no harm.
#[derive(Debug)]
struct Table<K, V> {
    values: Vec<V>,
    /// For each of some hashes the last key, and the index of its value.
    latest: [Option<(K, u32)>; 32],
}

impl<K: Copy + PartialEq, V> Table<K, V> {
    const fn new() -> Self {
        Self { values: Vec::new(), latest: [const { None }; 32] }
    }

    /// The index of the value with this key. `number` is most of the key.
    #[inline]
    fn index(&mut self, key: K, number: u64, make: impl FnOnce() -> V) -> u32 {
        let hash = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 59;
        match &mut self.latest[hash as usize] {
            Some((known, index)) if *known == key => *index,
            slot => {
                let index = self.values.len() as u32;
                self.values.push(make());
                *slot = Some((key, index));
                index
            }
        }
    }

    fn take(&mut self) -> Vec<V> {
        if !self.values.is_empty() {
            self.latest = [const { None }; 32];
        }
        std::mem::take(&mut self.values)
    }
}

/// The chunk to which a thread appends events.
#[derive(Debug)]
pub(super) struct OpenChunk {
    thread: Arc<str>,
    events: Vec<Event>,
    lists: Lists,
    /// By the array's number, and how often it was named.
    arrays: Table<(u64, u32), ArrayEntry>,
    /// By the address of the title, which the table keeps.
    kernels: Table<*const u8, Arc<str>>,
    /// By the number of the queue.
    streams: Table<u64, StreamEntry>,
    devices: Vec<Arc<str>>,
    avoided: Flow,
}

// SAFETY: the addresses in `kernels` are compared and never dereferenced.
unsafe impl Send for OpenChunk {}

impl OpenChunk {
    pub(super) fn new(thread: Arc<str>) -> Self {
        Self {
            thread,
            events: Vec::new(),
            lists: Lists::default(),
            arrays: Table::new(),
            kernels: Table::new(),
            streams: Table::new(),
            devices: Vec::new(),
            avoided: Flow::default(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.events.len() >= EVENTS_MAX
    }

    /// Closes the chunk, and begins another one. `None` if it is empty.
    pub(super) fn close(&mut self) -> Option<Chunk> {
        if self.events.is_empty() {
            return None;
        }
        // After a full chunk there is probably another one like it.
        let is_full = self.is_full();
        let mut chunk = Chunk {
            thread: Arc::clone(&self.thread),
            events: replace(&mut self.events, is_full),
            lists: self.lists.replace(is_full),
            arrays: self.arrays.take(),
            kernels: self.kernels.take(),
            streams: self.streams.take(),
            devices: std::mem::take(&mut self.devices),
            avoided: std::mem::take(&mut self.avoided),
        };
        if !is_full {
            chunk.events.shrink_to_fit();
        }
        Some(chunk)
    }

    pub(super) fn push_copy(&mut self, copied: &Copied<'_>, launch: u64) {
        let array = self.array(copied.storage);
        let stream = self.stream(copied.stream);
        let source = copied.source.map(|device| self.device(device.name_str()));
        let key = CopyKey {
            site: SiteAddress(copied.site),
            since: copied.staleness.since().map(SiteAddress),
            never_there: copied.staleness == Staleness::NeverThere,
            direction: copied.direction,
            cause: copied.cause,
            array,
            stream,
            source,
        };
        let Copied { bytes, padding, positions, .. } = *copied;
        let index =
            push(&mut self.lists.copies, CopyEvent { key, bytes, padding, positions, launch });
        self.push(copied.site, EventKind::Copy(index));
    }

    /// Appends a copy of which a subscriber was told.
    pub(super) fn push_record(&mut self, record: &Record) {
        let array = (record.array.id, 0);
        let array = self.arrays.index(array, array.0, || record.array.clone());
        let queue = record.stream.queue;
        let stream = self.streams.index(queue, queue, || record.stream.clone());
        let key = CopyKey {
            site: SiteAddress(record.site),
            since: record.staleness.since().map(SiteAddress),
            never_there: record.staleness == Staleness::NeverThere,
            direction: record.direction,
            cause: record.cause,
            array,
            stream,
            source: record.source.as_deref().map(|device| self.device(device)),
        };
        let Record { bytes, padding, positions, launch, .. } = *record;
        let index =
            push(&mut self.lists.copies, CopyEvent { key, bytes, padding, positions, launch });
        let (queued_ns, site) = (record.queued_ns, record.site);
        self.events.push(Event { queued_ns, site, kind: EventKind::Copy(index) });
    }

    /// Appends a launch with this number.
    pub(super) fn push_launch<'a>(
        &mut self,
        launched: &Launched<'a>,
        arguments: impl Iterator<Item = ArgumentRecord> + 'a,
        id: u64,
    ) {
        let title = launched.title;
        let address = title.as_ptr();
        let kernel = self.kernels.index(address, address.addr() as u64, || Arc::clone(title));
        let stream = self.stream(launched.stream);
        let first = self.lists.arguments.len();
        self.lists.arguments.extend(arguments);
        let arguments = (first as u32, (self.lists.arguments.len() - first) as u8);
        self.avoided += launched.avoided;
        let position = launched.position;
        let launch = LaunchEvent { kernel, stream, arguments, position, id };
        let index = push(&mut self.lists.launches, launch);
        self.push(launched.site, EventKind::Launch(index));
    }

    pub(super) fn push_wait(&mut self, wait: &timeline::Wait<'_>) {
        let timeline::Wait { device, stream, site, reason, started_ns, finished_ns } = *wait;
        let device = self.device(device);
        let wait = WaitEvent { device, stream_number: stream, reason, finished_ns };
        let kind = EventKind::Wait(push(&mut self.lists.waits, wait));
        self.events.push(Event { queued_ns: started_ns, site, kind });
    }

    pub(super) fn push_memory(&mut self, used: &MemoryUse<'_>) {
        let array = self.array(used.storage);
        let device = self.device(used.device.name_str());
        let bytes = used.storage.memory_order().len_bytes();
        let memory = MemoryEvent { kind: used.kind, array, device, bytes };
        let index = push(&mut self.lists.memory, memory);
        self.push(used.site, EventKind::Memory(index));
    }

    #[inline]
    fn push(&mut self, site: CallSite, kind: EventKind) {
        self.events.push(Event { queued_ns: timeline::now_ns(), site, kind });
    }

    #[inline]
    fn array(&mut self, storage: &Storage) -> u32 {
        let key = (storage.number(), storage.times_named());
        self.arrays.index(key, key.0, || ArrayEntry::of(storage))
    }

    #[inline]
    fn stream(&mut self, stream: &Stream) -> u32 {
        let queue = stream.id().0;
        self.streams.index(queue, queue, || StreamEntry::of(stream))
    }

    /// The index of a device. There are few, and few events need one.
    fn device(&mut self, name: &str) -> u32 {
        let known = self.devices.iter().position(|known| **known == *name);
        let index = known.unwrap_or_else(|| {
            self.devices.push(name.into());
            self.devices.len() - 1
        });
        index as u32
    }
}

/// Appends a value, and returns its index.
#[inline]
fn push<T>(list: &mut Vec<T>, value: T) -> u32 {
    list.push(value);
    list.len() as u32 - 1
}

/// Takes a list, and leaves an empty one: with room for as many values if `has_successor`.
fn replace<T>(list: &mut Vec<T>, has_successor: bool) -> Vec<T> {
    let next = Vec::with_capacity(if has_successor { list.len() } else { 0 });
    std::mem::replace(list, next)
}
