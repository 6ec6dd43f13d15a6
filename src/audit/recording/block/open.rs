//! The block to which a thread appends events.

use std::sync::Arc;

use super::{
    AccessEvent, BarrierEvent, CopyDetails, CopyEvent, CopyKey, EndEvent, Event, EventKind,
    LaunchEvent, Lists, MemoryEvent, MessageEvent, MessageKey, RecordBlock, SiteAddress, WaitEvent,
};
use crate::audit::recording::contents;
use crate::audit::recording::facts::{
    Accessed, ArgumentRecord, ArrayEntry, BarrierRecord, Copied, Discarded, Launched, MemoryChange,
    MemoryUse, MessageRecord, Record, Staleness, StreamEntry, called_ns,
};
use crate::device::Stream;
use crate::storage::Storage;
use crate::traffic::Flow;
use resident_backend::call_site::CallSite;
use resident_backend::timeline;
use resident_core::Access;

/// A block with so many events is full.
const EVENTS_MAX: usize = 1 << 10;

/// A table of a block: values that are found by their keys. Only the latest few are: a value that
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

/// The block to which a thread appends events.
#[derive(Debug)]
pub(in crate::audit) struct OpenBlock {
    thread: Arc<str>,
    events: Vec<Event>,
    lists: Lists,
    /// By the array's number, and how often it was named.
    arrays: Table<(u64, u32), ArrayEntry>,
    /// By the address of the title, which the table keeps.
    kernels: Table<usize, Arc<str>>,
    /// By the stream's number in the process.
    streams: Table<u64, StreamEntry>,
    devices: Vec<Arc<str>>,
    names: Vec<Arc<str>>,
    launcher: Flow,
    compares_contents: bool,
}

impl OpenBlock {
    pub(in crate::audit) fn new(thread: Arc<str>) -> Self {
        Self {
            thread,
            events: Vec::new(),
            lists: Lists::default(),
            arrays: Table::new(),
            kernels: Table::new(),
            streams: Table::new(),
            devices: Vec::new(),
            names: Vec::new(),
            launcher: Flow::default(),
            compares_contents: false,
        }
    }

    pub(in crate::audit) fn is_full(&self) -> bool {
        self.events.len() >= EVENTS_MAX
    }

    /// Closes the block, and begins another one. `None` if it is empty.
    pub(in crate::audit) fn close(&mut self) -> Option<RecordBlock> {
        if self.events.is_empty() {
            return None;
        }
        // Waits and messages began before they are recorded.
        self.events.sort_by_key(|event| event.queued_ns);
        let next = if self.is_full() { Next::IsAlike } else { Next::IsUnknown };
        Some(RecordBlock {
            thread: Arc::clone(&self.thread),
            events: replace(&mut self.events, next),
            lists: self.lists.replace(next),
            arrays: self.arrays.take(),
            kernels: self.kernels.take(),
            streams: self.streams.take(),
            devices: std::mem::take(&mut self.devices),
            names: std::mem::take(&mut self.names),
            launcher: std::mem::take(&mut self.launcher),
            compares_contents: std::mem::take(&mut self.compares_contents),
        })
    }

    pub(in crate::audit) fn push_copy(&mut self, copied: &Copied<'_>, launch: u64) {
        self.compares_contents |= contents::is_asked_for_here();
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
        let Copied { changed_bytes, contents_hash, host_ns, is_pageable, is_explicit, .. } =
            *copied;
        let details =
            CopyDetails { changed_bytes, contents_hash, host_ns, is_pageable, is_explicit };
        let use_number = Some(copied.storage.next_use());
        let copy = CopyEvent { key, bytes, padding, positions, launch, use_number, details };
        let kind = EventKind::Copy(push(&mut self.lists.copies, copy));
        self.events.push(Event { queued_ns: copied.queued_at_ns(), site: copied.site, kind });
    }

    /// Appends an access, unless the same access was appended last. A write that follows its own
    /// read is one access.
    pub(in crate::audit) fn push_access(&mut self, accessed: &Accessed<'_>) {
        let Accessed { storage, device, access, is_whole, site } = *accessed;
        let array = self.array(storage);
        let device = device.map(|device| self.device(device.name_str()));
        if let Some(last) = self.last_access(site)
            && (last.array, last.device, last.is_whole) == (array, device, is_whole)
            && last.access == Access::Read
        {
            if access != Access::Read {
                last.access = Access::ReadWrite;
            }
            return;
        }
        let use_number = storage.next_use();
        let event = AccessEvent { array, device, access, is_whole, use_number };
        let index = push(&mut self.lists.accesses, event);
        self.push(site, EventKind::Access(index));
    }

    /// The event that was appended last, if it is an access by this call.
    fn last_access(&mut self, site: CallSite) -> Option<&mut AccessEvent> {
        match self.events.last()? {
            Event { kind: EventKind::Access(index), site: last, .. }
                if std::ptr::eq(*last, site) =>
            {
                self.lists.accesses.get_mut(*index as usize)
            }
            _ => None,
        }
    }

    /// Appends a copy that was reported to a subscriber.
    pub(in crate::audit) fn push_record(&mut self, record: &Record) {
        let array = (record.array.id, 0);
        let array = self.arrays.index(array, array.0, || record.array.clone());
        let stream_id = record.stream.stream_id;
        let stream = self.streams.index(stream_id, stream_id, || record.stream.clone());
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
        let details = CopyDetails::default();
        let copy = CopyEvent { key, bytes, padding, positions, launch, use_number: None, details };
        let kind = EventKind::Copy(push(&mut self.lists.copies, copy));
        self.events.push(Event { queued_ns: record.queued_ns, site: record.site, kind });
    }

    /// Appends a launch with this number.
    pub(in crate::audit) fn push_launch<'a>(
        &mut self,
        launched: &Launched<'a>,
        arguments: impl Iterator<Item = ArgumentRecord> + 'a,
        id: u64,
    ) {
        self.compares_contents |= contents::is_asked_for_here();
        let title = launched.title;
        let address = title.as_ptr().addr();
        let kernel = self.kernels.index(address, address as u64, || Arc::clone(title));
        let stream = self.stream(launched.stream);
        let first = self.lists.arguments.len();
        self.lists.arguments.extend(arguments);
        let arguments = (first as u32, (self.lists.arguments.len() - first) as u8);
        self.launcher += launched.launcher;
        let position = launched.position;
        let called_ns = called_ns();
        let launch = LaunchEvent { kernel, stream, arguments, position, id, called_ns };
        let index = push(&mut self.lists.launches, launch);
        self.push(launched.site, EventKind::Launch(index));
    }

    pub(in crate::audit) fn push_wait(&mut self, wait: &timeline::Wait<'_>) {
        let timeline::Wait { awaited, started_ns, finished_ns } = *wait;
        let timeline::Awaited { device, stream, site, reason } = awaited;
        let device = self.device(device);
        let wait = WaitEvent { device, stream_number: stream, reason, finished_ns };
        let kind = EventKind::Wait(push(&mut self.lists.waits, wait));
        self.events.push(Event { queued_ns: started_ns, site, kind });
    }

    pub(in crate::audit) fn push_memory(&mut self, used: &MemoryUse<'_>) {
        let array = self.array(used.storage);
        let device = self.device(used.device.name_str());
        let memory = MemoryEvent { kind: used.kind, array, device, bytes: used.bytes };
        let index = push(&mut self.lists.memory, memory);
        self.push(used.site, EventKind::Memory(index));
    }

    pub(in crate::audit) fn push_end(&mut self, storage: &Storage) {
        let end = EndEvent { array: storage.number(), use_number: storage.next_use() };
        let kind = EventKind::End(push(&mut self.lists.ends, end));
        self.events.push(Event { queued_ns: timeline::now_ns(), site: storage.made_at(), kind });
    }

    pub(in crate::audit) fn push_discard(&mut self, discarded: &Discarded) {
        let Discarded { array, device, bytes, site } = discarded;
        let array = self.arrays.index((array.id, 0), array.id, || array.clone());
        let kind = MemoryChange::Discard;
        let device = self.device(device);
        let bytes = *bytes;
        let index = push(&mut self.lists.memory, MemoryEvent { kind, array, device, bytes });
        self.push(site, EventKind::Memory(index));
    }

    pub(in crate::audit) fn push_message(&mut self, message: &MessageRecord) {
        let MessageRecord { bytes, waited_ns, direction, peer, site, .. } = *message;
        let name = self.name(&message.array);
        let device = self.device(&message.device);
        let key = MessageKey { site: SiteAddress(site), direction, peer, name, device };
        let message_event = MessageEvent { key, bytes, waited_ns };
        let kind = EventKind::Message(push(&mut self.lists.messages, message_event));
        self.events.push(Event { queued_ns: message.recorded_ns, site, kind });
    }

    pub(in crate::audit) fn push_barrier(&mut self, barrier: BarrierRecord) {
        let BarrierRecord { number, left_ns, waited_ns, site } = barrier;
        let event = BarrierEvent { number, waited_ns };
        let kind = EventKind::Barrier(push(&mut self.lists.barriers, event));
        self.events.push(Event { queued_ns: left_ns, site, kind });
    }

    #[inline]
    fn push(&mut self, site: CallSite, kind: EventKind) {
        self.events.push(Event { queued_ns: timeline::now_ns(), site, kind });
    }

    #[inline]
    fn array(&mut self, storage: &Storage) -> u32 {
        let key = (storage.number(), storage.published.times_named());
        self.arrays.index(key, key.0, || ArrayEntry::of(storage))
    }

    #[inline]
    fn stream(&mut self, stream: &Stream) -> u32 {
        let stream_id = stream.id().0;
        self.streams.index(stream_id, stream_id, || StreamEntry::of(stream))
    }

    /// The index of a name. Only the latest few are searched.
    fn name(&mut self, name: &Arc<str>) -> u32 {
        let searched = self.names.len().saturating_sub(32);
        let known = self.names[searched..].iter().position(|known| known == name);
        let index = known.map_or(self.names.len(), |index| searched + index);
        if known.is_none() {
            self.names.push(Arc::clone(name));
        }
        index as u32
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

/// What follows a block.
#[derive(Clone, Copy)]
enum Next {
    /// Probably a block like it, since it is full.
    IsAlike,
    IsUnknown,
}

/// Takes a list, and leaves an empty one: with room for a few more values if the next is alike.
/// What is taken is kept for long, so it has no room to spare.
fn replace<T>(list: &mut Vec<T>, next: Next) -> Vec<T> {
    let room = match next {
        Next::IsAlike => list.len() + list.len() / 16,
        Next::IsUnknown => 0,
    };
    let mut taken = std::mem::replace(list, Vec::with_capacity(room));
    taken.shrink_to_fit();
    taken
}

impl Lists {
    /// Takes the lists: see [`replace`].
    fn replace(&mut self, next: Next) -> Self {
        Self {
            copies: replace(&mut self.copies, next),
            launches: replace(&mut self.launches, next),
            arguments: replace(&mut self.arguments, next),
            waits: replace(&mut self.waits, next),
            memory: replace(&mut self.memory, next),
            accesses: replace(&mut self.accesses, next),
            messages: replace(&mut self.messages, next),
            barriers: replace(&mut self.barriers, next),
            ends: replace(&mut self.ends, next),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Next, replace};

    /// Blocks are kept by the thousand, and each has a few launches more or less than the one
    /// before it.
    #[test]
    fn a_list_that_is_taken_has_no_room_to_spare() {
        let mut list: Vec<u64> = Vec::new();
        for len in [900, 901, 899, 940, 3, 0, 950] {
            list.extend(0..len);
            let taken = replace(&mut list, Next::IsAlike);
            assert_eq!((taken.len() as u64, list.len()), (len, 0));
            assert!(taken.capacity() <= taken.len() + 8, "{} for {len}", taken.capacity());
            let room = taken.len() + taken.len() / 16;
            assert!((room..2 * room + 8).contains(&list.capacity()), "{}", list.capacity());
        }
        list.push(1);
        drop(replace(&mut list, Next::IsUnknown));
        assert_eq!(list.capacity(), 0);
    }
}
