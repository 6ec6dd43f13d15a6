//! A short cut for an array that one stream uses again and again: as a whole, or parts of it.
//!
//! Beside the array's state lies a summary of it for one stream: what this stream may do with the
//! device's copy without a copy or a wait. Launches that find their stream there leave their marks
//! in the summary, and do not look at the state. Everyone else gets the state from
//! [`Storage::lock`](super::Storage::lock), which first moves these marks to the state. Changing
//! the state through the guard ends the summary, so it is never out of date.
//!
//! Launches on parts leave their marks in the table of parts that launches used before. They look
//! at no box: all of the array is valid on the device, its uses are in the stream's own order, and
//! no work of the stream can fail without them (`RawStream::fallible_upto`), so that they need not
//! name what wrote the elements.

use std::ops::{Deref, DerefMut};

use super::published::Published;
use super::{ArrayState, PartId, PartUse, PartUseEnd};
use crate::device::Stream;
use crate::traffic::{Direction, Flow, Traffic};
use resident_backend::sync::{ArrayLevel, ShortGuard, ShortLock};
use resident_backend::{Address, Dependencies, Position, StreamId, failure};
use resident_core::Access;
use resident_core::coherence::Location;
use resident_core::layout::MemoryOrder;
use resident_core::ordering::{Mark, StreamKey, UseEnd};

/// The lock of an array's state and its summary.
#[derive(Debug)]
pub(crate) struct SummarisedState(ShortLock<Summarised, ArrayLevel>);

/// An array's state and its summary.
#[derive(Debug)]
struct Summarised {
    sole: SoleUse,
    state: ArrayState,
}

/// The summary for one stream, and the marks that it has left. Those of parts are in the table of
/// parts; the other fields are about the whole array.
#[derive(Debug)]
struct SoleUse {
    /// The stream's number, with [`OF_PARTS`] if it uses parts; or [`NO_STREAM`].
    stream: StreamId,
    address: Address,
    /// The stream's last write of which a read must know because it may fail; `START` if there is
    /// none.
    written_by: Position,
    /// The last read after that write that is not in the state yet; `START` if there is none.
    read: Position,
    /// The number of marks that are not in the state yet.
    marks: u64,
    /// The number of the last use.
    last_use: u64,
    key: StreamKey,
    location: Location,
    /// Whether the stream's device is the only holder.
    may_write: bool,
    /// Whether the state lacks a write: that at `written_by`, or one that is complete.
    has_new_write: bool,
}

/// No stream has this number.
const NO_STREAM: StreamId = StreamId(0);

/// Numbers of streams are counted from 1, and so lack this bit.
const OF_PARTS: u64 = 1 << 63;

#[inline]
const fn of_parts(stream: StreamId) -> StreamId {
    StreamId(stream.0 | OF_PARTS)
}

impl Summarised {
    fn new(state: ArrayState) -> Self {
        let (stream, address, none) = (NO_STREAM, Address(0), Position::START);
        let (key, location) = (StreamKey::NONE, Location::HOST);
        let sole = SoleUse {
            stream,
            address,
            written_by: none,
            read: none,
            marks: 0,
            last_use: 0,
            key,
            location,
            may_write: false,
            has_new_write: false,
        };
        Self { sole, state }
    }

    /// Moves the marks to the state.
    #[inline(never)]
    fn settle(&mut self, memory_order: &MemoryOrder) {
        let Self { sole, state } = self;
        let copy = state.device_copy_mut(sole.location);
        copy.last_use = sole.last_use;
        if sole.is_of_parts() {
            let bytes = 2 * state.settle_parts(memory_order, sole.location, sole.key);
            state.count_launcher(memory_order, Flow { count: 2 * sole.marks, bytes });
            sole.marks = 0;
            return;
        }
        let uses = copy.uses.uniform_mut();
        debug_assert!(uses.is_some(), "a summary exists only while all elements are used alike");
        if let Some(uses) = uses {
            if sole.has_new_write {
                uses.record(Access::Overwrite, Mark::write(sole.key, sole.written_by));
            }
            if sole.read != Position::START {
                uses.record(Access::Read, Mark::lossless(sole.key, UseEnd::at(sole.read)));
            }
        }
        let copies = 2 * sole.marks;
        let launcher = Flow { count: copies, bytes: copies * memory_order.len_bytes() };
        state.count_launcher(memory_order, launcher);
        (sole.has_new_write, sole.read, sole.marks) = (false, Position::START, 0);
    }
}

/// The lock on an array's state, which has all marks. Changing the state ends the summary.
#[derive(Debug)]
pub(crate) struct StateGuard<'a> {
    summarised: ShortGuard<'a, Summarised>,
}

impl<'a> StateGuard<'a> {
    #[inline]
    fn new(mut summarised: ShortGuard<'a, Summarised>, memory_order: &MemoryOrder) -> Self {
        if summarised.sole.marks != 0 {
            summarised.settle(memory_order);
        }
        Self { summarised }
    }

    /// Summarises the state for a stream, which has just used the copy at `location`, if all uses
    /// are its own and the whole array is valid there.
    pub(crate) fn summarise(mut self, stream: &Stream, key: StreamKey, location: Location) {
        let Summarised { sole, state } = &mut *self.summarised;
        let copy = state.device_copy(location);
        let (Some(address), Some(uses), Some(content)) =
            (copy.address(), copy.uses.uniform(), state.coherence.uniform())
        else {
            return;
        };
        let is_sole = uses.conflicts_only_with(Access::Overwrite, key)
            && content.is_valid(location)
            && !state.expects_waits_for(key)
            && !state.is_watched()
            && !state.has_new_failures();
        if is_sole {
            let written_by = uses.writer().and_then(|writer| writer.written_by());
            *sole = SoleUse {
                stream: stream.id(),
                address,
                written_by: written_by.unwrap_or(Position::START),
                read: Position::START,
                marks: 0,
                last_use: copy.last_use,
                key,
                location,
                may_write: content.is_only_at(location),
                has_new_write: false,
            };
        }
    }
}

impl StateGuard<'_> {
    /// As [`summarise`](Self::summarise), for launches on parts. The stream has just used one.
    #[inline]
    pub(crate) fn summarise_parts(mut self, stream: &Stream, location: Location) {
        let Summarised { sole, state } = &mut *self.summarised;
        let Some(key) = state.find_key(stream) else { return };
        // What is often so if several streams use the array comes first.
        let is_sole = !state.expects_waits_for(key)
            && stream.work_fails_as_one()
            && !state.is_watched()
            && !state.has_new_failures()
            && state.is_used_by_one(location, key);
        let copy = state.device_copy(location);
        let (Some(address), Some(content)) = (copy.address(), state.coherence.uniform()) else {
            return;
        };
        if is_sole && content.is_valid(location) {
            let (last_use, none) = (copy.last_use, Position::START);
            *sole = SoleUse {
                stream: of_parts(stream.id()),
                address,
                written_by: none,
                read: none,
                marks: 0,
                last_use,
                key,
                location,
                may_write: content.is_only_at(location),
                has_new_write: false,
            };
        }
    }
}

impl Deref for StateGuard<'_> {
    type Target = ArrayState;

    #[inline]
    fn deref(&self) -> &ArrayState {
        &self.summarised.state
    }
}

impl DerefMut for StateGuard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut ArrayState {
        self.summarised.sole.stream = NO_STREAM;
        &mut self.summarised.state
    }
}

impl SummarisedState {
    pub(super) fn new(state: ArrayState) -> Self {
        Self(ShortLock::new(Summarised::new(state)))
    }

    /// Locks the state, which then has all marks.
    #[inline]
    pub(super) fn lock(&self, memory_order: &MemoryOrder) -> StateGuard<'_> {
        StateGuard::new(self.0.lock(), memory_order)
    }

    /// Acquires the whole array for a launch on a stream, if the array has a summary for it: pins
    /// the copy, and returns its address. Adds to `depends` the stream's own work that wrote the
    /// array and may still fail. `epoch` is the current epoch of failures. Otherwise returns the
    /// lock on the state.
    #[inline(always)]
    pub(crate) fn acquire(
        &self,
        memory_order: &MemoryOrder,
        stream: &Stream,
        epoch: u64,
        access: Access,
        depends: &mut Dependencies,
    ) -> Result<Address, StateGuard<'_>> {
        let mut summarised = self.0.lock();
        let Summarised { sole, state } = &mut *summarised;
        let is_ready = sole.stream == stream.id()
            && state.failure_epoch() == epoch
            && (sole.may_write || !access.writes());
        if !is_ready {
            return Err(StateGuard::new(summarised, memory_order));
        }
        if sole.written_by != Position::START && access != Access::Overwrite {
            sole.add_dependency(stream, epoch, depends);
        }
        state.pin();
        Ok(sole.address)
    }

    /// Marks the whole array as used by a launch for which [`acquire`](Self::acquire) pinned it,
    /// counts the launch, and unpins it. `number` is that of the use. Returns whether the array is
    /// an explicit one. If the summary has ended meanwhile, returns the lock on the state.
    #[inline(always)]
    pub(crate) fn mark(
        &self,
        memory_order: &MemoryOrder,
        published: &Published,
        stream: StreamId,
        access: Access,
        position: Position,
        number: u64,
    ) -> Result<bool, StateGuard<'_>> {
        let mut summarised = self.0.lock();
        let sole = &mut summarised.sole;
        let is_ready = sole.stream == stream && (sole.may_write || !access.writes());
        if !is_ready {
            return Err(StateGuard::new(summarised, memory_order));
        }
        if access.writes() {
            (sole.has_new_write, sole.written_by, sole.read) = (true, position, Position::START);
            published.forget_readers();
        } else {
            sole.read = sole.read.max(position);
        }
        sole.marks += 1;
        sole.last_use = number;
        summarised.state.unpin();
        Ok(summarised.state.is_explicit())
    }
}

impl SummarisedState {
    /// As [`acquire`](Self::acquire), a part that launches used before, if the array has a summary
    /// for parts. Such a launch depends on no work that can fail without it. Otherwise returns the
    /// lock on the state.
    #[inline(always)]
    pub(crate) fn acquire_part(
        &self,
        memory_order: &MemoryOrder,
        stream: &Stream,
        part: &PartUse<'_>,
    ) -> Result<(Address, PartId), StateGuard<'_>> {
        let mut summarised = self.0.lock();
        let Summarised { sole, state } = &mut *summarised;
        let is_ready = sole.stream == of_parts(stream.id())
            && (sole.may_write || !part.access.writes())
            && !state.has_new_failures()
            && stream.work_fails_as_one();
        if is_ready && let Some(id) = state.find_part(part) {
            state.pin();
            return Ok((sole.address, id));
        }
        Err(StateGuard::new(summarised, memory_order))
    }

    /// As [`mark`](Self::mark), of a part for which [`acquire_part`](Self::acquire_part) pinned the
    /// array. Returns the bytes of the part; 0 if the array is an explicit one.
    #[inline(always)]
    pub(crate) fn mark_part(
        &self,
        memory_order: &MemoryOrder,
        published: &Published,
        id: PartId,
        access: Access,
        end: PartUseEnd<'_>,
    ) -> Result<u64, StateGuard<'_>> {
        let mut summarised = self.0.lock();
        let Summarised { sole, state } = &mut *summarised;
        let is_ready =
            sole.stream == of_parts(end.stream.id()) && (sole.may_write || !access.writes());
        let left = if is_ready { state.leave_mark(id, end.position) } else { None };
        let Some(len_bytes) = left else { return Err(StateGuard::new(summarised, memory_order)) };
        if access.writes() {
            published.forget_readers();
        }
        sole.marks += 1;
        sole.last_use = end.number;
        state.unpin();
        Ok(if state.is_explicit() { 0 } else { len_bytes })
    }
}

/// The newest copy of an array, which stays where it is while this lives.
#[derive(Debug)]
pub(crate) struct PinnedCopy<'a> {
    state: &'a SummarisedState,
    memory_order: &'a MemoryOrder,
    /// A stream of the copy's device on which a read comes after the write of the array.
    pub(crate) stream: Stream,
    pub(crate) address: Address,
    /// The epoch of failures that the state reflects.
    pub(crate) epoch: u64,
    /// Whether it is of an array of launches.
    is_launched: bool,
    /// The bytes that were copied to the host, of which no report tells.
    read_bytes: u64,
}

impl PinnedCopy<'_> {
    /// Counts a copy of a few bytes to the host, and unpins the copy.
    pub(crate) fn count_read(mut self, len_bytes: u64) {
        self.read_bytes = len_bytes;
        let traffic = Traffic::of(Direction::ToHost, len_bytes);
        let launched = if self.is_launched { traffic.moved() } else { Flow::default() };
        self.stream.device_ref().count(&traffic, launched);
    }
}

impl Drop for PinnedCopy<'_> {
    fn drop(&mut self) {
        let mut summarised = self.state.0.lock();
        if self.read_bytes > 0 {
            let traffic = Traffic::of(Direction::ToHost, self.read_bytes);
            summarised.state.count_traffic(self.memory_order, &traffic);
        }
        summarised.state.unpin();
    }
}

impl SummarisedState {
    /// Pins the only copy that has the newest contents, if it is on a device, and if work of one
    /// stream wrote the whole array.
    pub(crate) fn pin_newest<'a>(
        &'a self,
        memory_order: &'a MemoryOrder,
    ) -> Option<PinnedCopy<'a>> {
        let mut summarised = self.0.lock();
        let Summarised { sole, state } = &mut *summarised;
        // The host reads memory of its own without a copy.
        let is_newest = sole.stream != NO_STREAM
            && !sole.is_of_parts()
            && sole.may_write
            && sole.location != state.host_location()
            && !state.has_new_failures()
            && sole.written_by != Position::START;
        let writing = state.stream(sole.key).filter(|_| is_newest)?;
        let copy = state.device_copy(sole.location);
        let end = if sole.has_new_write {
            UseEnd::at(sole.written_by)
        } else {
            copy.uses.uniform()?.writer()?.end
        };
        // What else the writing stream has to do need not be waited for.
        let is_over = writing.core().is_done(end);
        let stream = if is_over { copy.device.stream() } else { writing.clone() };
        let (address, epoch) = (sole.address, state.failure_epoch());
        state.pin();
        // Only launches summarise a state, and none copies an explicit array.
        let is_launched = !state.is_explicit();
        let state = self;
        Some(PinnedCopy { state, memory_order, stream, address, epoch, is_launched, read_bytes: 0 })
    }
}

impl SoleUse {
    #[inline]
    fn is_of_parts(&self) -> bool {
        self.stream.0 & OF_PARTS != 0
    }

    /// Adds the stream's last write to a launch's dependencies, unless it is complete: then forgets
    /// it, so that it is not looked at again. For the first entry this is rarely checked, because
    /// that reads memory which the executing thread writes.
    #[inline]
    fn add_dependency(&mut self, stream: &Stream, epoch: u64, depends: &mut Dependencies) {
        const MARKS_PER_CHECK: u64 = 32;
        let dependency = (self.stream, self.written_by);
        if depends.is_empty() && !self.marks.is_multiple_of(MARKS_PER_CHECK) {
            depends.push(dependency);
        } else if !depends.contains(&dependency) {
            self.add_later_dependency(stream, epoch, depends);
        }
    }

    #[inline(never)]
    fn add_later_dependency(&mut self, stream: &Stream, epoch: u64, depends: &mut Dependencies) {
        // A failure raises the epoch before its position counts as complete.
        if stream.core().is_done(UseEnd::at(self.written_by)) && failure::epoch() == epoch {
            self.written_by = Position::START;
        } else {
            depends.push((self.stream, self.written_by));
        }
    }
}
