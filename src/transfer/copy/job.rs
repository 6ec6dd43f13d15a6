//! One copy of elements of an array from one of its copies to another: built, queued after the uses
//! with which it conflicts, recorded and counted. What all copies share is here too, whatever
//! memories they are between.
//!
//! Large copies through staging memory are made in chunks. So the staging memory is bounded, and
//! the host packs one chunk while the device copies another. The backend limits the size of a chunk
//! (`Backend::chunk_bytes_max`). Reports count one copy per call, however many chunks it took.

use std::sync::Arc;

use smallvec::SmallVec;

use super::plan::{Route, RoutedCopies, chunks_per_batch};
use super::report::{Moved, count, stale_since};
use crate::audit::{self, Direction};
use crate::device::{Device, Stream};
use crate::error::{Error, Result};
use crate::storage::{ArrayState, StaleOrigin, StateGuard};
use crate::transfer::access::request::{
    Marks, Queued, Regions, Request, collect_conflicts, users_of_other_kinds,
};
use resident_backend::failure::{self, Inquiry};
use resident_backend::{
    Address, BackendError, CopyBox, CopyWork, Copying, Dependencies, FailureKind, FillWork,
    HostMemory, Maker, Memory, Position, scope,
};
use resident_core::Access;
use resident_core::coherence::{Location, Region, Span};
use resident_core::layout::Selection;
use resident_core::ordering::UseEnd;

/// The boxes of bytes of one copy.
pub(in crate::transfer) type Boxes = SmallVec<[CopyBox; 1]>;

/// Where a copy reads the elements.
#[derive(Debug)]
pub(in crate::transfer) enum ReadFrom {
    /// In the array's copy at a location.
    Copy(Location),
    /// In staging memory, where the host's elements are packed.
    Staging(Arc<dyn HostMemory>, Boxes),
}

/// A copy of elements that are stale at its destination. The caller has a claim on them there,
/// which it may keep while it makes the copy itself, because the copy waits for nothing.
#[derive(Debug)]
pub(in crate::transfer) struct CopyJob<'j> {
    pub(in crate::transfer) request: &'j Request<'j>,
    pub(in crate::transfer) stream: &'j Stream,
    pub(in crate::transfer) from: ReadFrom,
    pub(in crate::transfer) to: Location,
    pub(in crate::transfer) regions: &'j Regions,
    /// With `Maker::Caller`, also a copy is declined whose destination something else uses.
    pub(in crate::transfer) maker: Maker,
    pub(in crate::transfer) purpose: Purpose,
}

/// What a copy is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::transfer) enum Purpose {
    /// The destination needs the elements. If the copy fails, the source still has them.
    Use,
    /// The source is freed after the copy, so that the elements are lost if it fails.
    WriteBack,
    /// As `WriteBack`, but the source is freed once the copy is complete, and kept if it fails.
    AwaitedWriteBack,
}

/// The memories of a copy.
struct Ends {
    direction: Direction,
    source: Memory,
    destination: Memory,
    /// The device of the source, if it is not the stream's.
    peer: Option<Device>,
}

impl CopyJob<'_> {
    /// Queues the copy after the uses with which it conflicts, or makes it; from then on the
    /// elements count as valid at the destination. Returns whether it did: if the state has changed
    /// since the plan was made, the caller plans again.
    pub(in crate::transfer) fn run(
        &self,
        mut state: StateGuard<'_>,
        pipeline: &mut Pipeline,
    ) -> Result<bool> {
        let Self { request, stream, to, regions, .. } = *self;
        let Some(ends) = self.ends(&state).filter(|ends| !self.is_outdated(&state, ends)) else {
            return Ok(false);
        };
        let reads = self.reads();
        let depends = match reads {
            // The host has waited for the writers of its own memory.
            Some(from) if ends.direction != Direction::ToDevice => {
                request.wait_for_writers(&mut state, stream, from, regions)?
            }
            _ => Dependencies::new(),
        };
        let between = match reads {
            Some(from) if ends.direction == Direction::ToHost => {
                request.between(&state, stream, from, regions)
            }
            _ => None,
        };
        let marks = request.conflicts_of_write(&state, stream, to, regions);
        if self.maker == Maker::Caller && !marks.is_empty() {
            return Ok(false);
        }
        request.make_wait(&mut state, stream, &marks)?;
        let work = || self.work(&ends, depends, between.as_ref());
        let copying = start(stream, self.maker, work);
        let copying = copying.map_err(|error| request.stale_copy_error(stream, &error))?;
        if let Copying::Declined = copying {
            return Ok(false);
        }
        let position = copying.position();
        if let Some(peer) = &ends.peer {
            peer.record_remote_use(stream.core(), position);
        }
        self.count(&state, &ends, position, pipeline);
        if let (Some(from), Purpose::Use) = (reads, self.purpose) {
            state.number_use_of(request.storage.memory_order(), from, regions);
        }
        // What this thread reads itself, it has read when the call returns.
        for from in reads.into_iter().filter(|_| self.maker != Maker::Caller) {
            request.record_read(&mut state, stream, from, regions, position);
            if let Some(between) = between {
                let between = Regions::from_iter([between]);
                request.record_read(&mut state, stream, from, &between, position);
            }
        }
        request.record_copy(&mut state, stream, to, regions, position);
        drop(state);
        copying.run();
        Ok(true)
    }

    /// The location of the array's own memory that the copy reads.
    fn reads(&self) -> Option<Location> {
        match self.from {
            ReadFrom::Copy(location) => Some(location),
            ReadFrom::Staging(..) => None,
        }
    }

    /// `None` if the host has no memory for the array.
    fn ends(&self, state: &ArrayState) -> Option<Ends> {
        let host = state.host_location();
        let memory_at = |location: Location| {
            if location == host {
                return state.host.clone().map(|host| Memory::Host(host));
            }
            let address = state.device_copy(location).base();
            Some(Memory::Device(address.unwrap_or(Address(0))))
        };
        let source = match &self.from {
            ReadFrom::Copy(from) => memory_at(*from)?,
            ReadFrom::Staging(staging, _) => Memory::Host(Arc::clone(staging)),
        };
        let (direction, peer) = match self.from {
            _ if self.to == host => (Direction::ToHost, None),
            ReadFrom::Copy(from) if from != host => {
                (Direction::BetweenDevices, Some(state.device_copy(from).device.clone()))
            }
            _ => (Direction::ToDevice, None),
        };
        Some(Ends { direction, source, destination: memory_at(self.to)?, peer })
    }

    /// Whether the source is no longer valid, because a failure was noticed, or whether devices of
    /// another kind use the host memory again.
    fn is_outdated(&self, state: &ArrayState, ends: &Ends) -> bool {
        let is_used_by_others = || {
            let others = users_of_other_kinds(state, self.stream.device_ref(), self.regions);
            // Open uses are those for which the caller has waited: the claim allows no new guard.
            others.iter().any(|mark| mark.end != UseEnd::OPEN)
        };
        let is_stale = || self.reads().is_some_and(|from| !state.holds(from, self.regions));
        match ends.direction {
            Direction::ToDevice => false,
            Direction::ToHost => is_stale() || is_used_by_others(),
            _ => is_stale(),
        }
    }

    fn work(&self, ends: &Ends, depends: Dependencies, between: Option<&Region>) -> Box<CopyWork> {
        let operation = match ends.direction {
            Direction::ToHost if self.purpose != Purpose::Use => "write-back of",
            Direction::ToDevice => "upload of",
            Direction::ToHost => "download of",
            _ => "copy between devices of",
        };
        let boxes = match &self.from {
            ReadFrom::Copy(_) => self.request.same_offsets(self.regions),
            ReadFrom::Staging(_, boxes) => boxes.clone(),
        };
        let (source, destination) = (ends.source.clone(), ends.destination.clone());
        let copy = self.request.copy_work(operation, source, destination, boxes);
        let source_device = ends.peer.as_ref().map(|peer| Arc::clone(peer.backend()) as _);
        let may_read_between = between.is_some();
        let loss = match self.purpose {
            Purpose::WriteBack => FailureKind::Contents,
            Purpose::Use | Purpose::AwaitedWriteBack => copy.loss,
        };
        Box::new(CopyWork { source_device, may_read_between, depends, loss, ..copy })
    }

    /// Adds the copy to those of the call, before it is recorded.
    fn count(&self, state: &ArrayState, ends: &Ends, position: Position, pipeline: &mut Pipeline) {
        let since = stale_since(state, self.to, self.regions);
        let moved = Moved::at(position, ends.direction, self.request.bytes_of(self.regions));
        let device = ends.peer.as_ref().unwrap_or(self.stream.device_ref());
        pipeline.add_copy(moved, device, self.stream, since);
        if ends.peer.is_none() {
            pipeline.push(self.stream.clone(), position);
        }
    }
}

/// The work that one call has queued so far.
#[derive(Debug, Default)]
pub(in crate::transfer) struct Pipeline {
    /// All chunks, in order.
    pub(super) queued: Queued,
    /// The number of chunks that the call has waited for.
    waited: usize,
    /// The largest number of chunks in flight; 0 until one is queued.
    in_flight_max: usize,
    copied: SmallVec<[CopyTotal; 1]>,
    /// When the call began to queue copies, for captures and subscribers; 0 if there are none.
    begun_ns: u64,
    /// Keeps the records of failures of the queued work.
    inquiry: Option<Inquiry>,
}

/// The copies from one location to another, for the reports.
#[derive(Debug)]
struct CopyTotal {
    moved: Moved,
    /// The device of the copies; for copies between two devices, the source.
    device: Device,
    stream: Stream,
    stale_since: StaleOrigin,
}

impl Pipeline {
    /// Keeps the records of failures of work that is queued from now on. Called before each chunk.
    pub(in crate::transfer) fn inquiry(&mut self) {
        if self.inquiry.is_none() {
            self.inquiry = Some(Inquiry::begin());
            self.begun_ns = audit::listened_ns();
        }
    }

    /// Adds a queued copy to the location of the call. `stale_since` is the origin of their
    /// staleness at the destination.
    fn add_copy(
        &mut self,
        moved: Moved,
        device: &Device,
        stream: &Stream,
        stale_since: StaleOrigin,
    ) {
        let queued_ns = audit::listened_ns();
        let is_same = |known: &&mut CopyTotal| {
            known.moved.direction == moved.direction && known.device == *device
        };
        match self.copied.iter_mut().find(is_same) {
            Some(known) => {
                known.moved.bytes += moved.bytes;
                if known.stream == *stream {
                    known.moved.last = moved.last;
                }
                known.stale_since = known.stale_since.or_later(stale_since);
            }
            None => self.copied.push(CopyTotal {
                moved: Moved { queued_ns, begun_ns: self.begun_ns, ..moved },
                device: device.clone(),
                stream: stream.clone(),
                stale_since,
            }),
        }
    }

    /// Adds queued work that a later chunk may have to wait for.
    fn push(&mut self, stream: Stream, position: Position) {
        self.in_flight_max = stream.device_ref().properties().chunks_in_flight_max;
        self.queued.push((stream, position));
    }

    /// Whether the next chunks have to wait. Never true inside a kernel body, where no call may
    /// wait.
    pub(super) fn is_full(&self) -> bool {
        let in_flight = self.queued.len() - self.waited;
        in_flight + chunks_per_batch(self.in_flight_max) > self.in_flight_max.max(1)
            && !scope::is_in_body()
    }

    /// Records an event after the last chunk, so that a later chunk can wait for these only.
    pub(super) fn expect_more(&self) {
        self.queued.last().iter().for_each(|(stream, _)| stream.ensure_event_at_tail());
    }

    /// Waits for the oldest chunk in flight. The caller holds no lock and no claim.
    pub(in crate::transfer) fn wait(&mut self, request: &Request<'_>) -> Result<()> {
        let Some((stream, position)) = self.queued.get(self.waited) else { return Ok(()) };
        self.waited += 1;
        let waited = stream.wait_until(*position, request.site);
        waited.map_err(|error| request.call_error(stream.device_ref(), "waiting for", &error))
    }

    /// Whether a queued chunk has failed already.
    pub(in crate::transfer) fn has_failed(&self) -> bool {
        self.queued.iter().any(|(stream, position)| failure::at(stream.id(), *position).is_some())
    }

    /// Whether no copy was queued.
    pub(in crate::transfer) fn is_empty(&self) -> bool {
        self.copied.is_empty()
    }

    /// Adds the copies to the totals and reports them.
    pub(in crate::transfer) fn close(&self, request: &Request<'_>) {
        if !self.copied.is_empty() {
            let mut state = request.storage.lock();
            for CopyTotal { moved, device, stream, stale_since } in &self.copied {
                count(request, &mut state, *moved, device, stream, *stale_since);
            }
        }
    }
}

/// Queues a copy, or takes its position for this thread to make it, as `maker` allows. Each copy of
/// each call is queued here.
pub(in crate::transfer) fn start(
    stream: &Stream,
    maker: Maker,
    work: impl FnOnce() -> Box<CopyWork>,
) -> std::result::Result<Copying, BackendError> {
    // Nothing is built for a copy that would be declined.
    if maker == Maker::Caller && !stream.is_idle_on_host() {
        return Ok(Copying::Declined);
    }
    let begun = stream.begin_timing();
    let copying = stream.raw().copy(work(), maker)?;
    stream.end_timing(begun, copying.position());
    Ok(copying)
}

/// As [`start`], of a copy that the stream makes.
pub(in crate::transfer) fn queue(
    stream: &Stream,
    work: Box<CopyWork>,
) -> std::result::Result<Position, BackendError> {
    start(stream, Maker::Stream, || work).map(|copying| copying.position())
}

impl Request<'_> {
    /// A copy that depends on nothing, and whose source has the contents if it fails. `operation`
    /// is its name in messages, such as `upload of`.
    #[inline]
    pub(in crate::transfer) fn copy_work(
        &self,
        operation: &'static str,
        source: Memory,
        destination: Memory,
        parts: Boxes,
    ) -> CopyWork {
        CopyWork {
            may_read_between: false,
            loss: FailureKind::Copy,
            source,
            destination,
            source_device: None,
            parts,
            depends: Dependencies::new(),
            label: self.storage.label(operation, self.site),
        }
    }

    /// The error of a refused copy or fill of elements that are stale at the destination: a refusal
    /// in the middle changes no contents.
    fn stale_copy_error(&self, stream: &Stream, error: &BackendError) -> Error {
        self.copy_error(stream, error).with_contents_unchanged()
    }

    pub(in crate::transfer) fn copy_error(&self, stream: &Stream, error: &BackendError) -> Error {
        self.call_error(stream.device_ref(), "copying", error)
    }

    /// Queues a fill of `regions` at `location` on `stream`, after all uses of those bytes.
    /// From then on the regions count as valid at `location`. Work that uses them must wait for the
    /// returned position.
    pub(in crate::transfer) fn submit_fill(
        &self,
        state: &mut ArrayState,
        stream: &Stream,
        location: Location,
        regions: &Regions,
        work: FillWork,
    ) -> Result<Position> {
        let marks = self.conflicts_of_write(state, stream, location, regions);
        self.make_wait(state, stream, &marks)?;
        let begun = stream.begin_timing();
        let filled = stream.raw().fill(Box::new(work));
        let position = filled.map_err(|error| self.stale_copy_error(stream, &error))?;
        stream.end_timing(begun, position);
        Ok(position)
    }

    /// The copies of regions from one copy of the whole array to another.
    pub(in crate::transfer) fn same_offsets(&self, regions: &Regions) -> Boxes {
        let memory_order = self.storage.memory_order();
        let copy = |region| memory_order.footprint(region).copy_to_same_offsets();
        regions.iter().map(copy).collect()
    }
}

/// Pins the staging memory for downloads of these lengths to pageable memory, so that no memory has
/// to be pinned under the array's lock.
pub(in crate::transfer) fn prepare_downloads(
    device: &Device,
    lens_bytes: impl Iterator<Item = u64>,
) {
    let lens_bytes: SmallVec<[u64; 4]> = lens_bytes.collect();
    device.backend().prepare_downloads(&lens_bytes);
}

impl Request<'_> {
    /// Queues a copy from the device at `from` to the host memory, or makes it. Does not wait for
    /// other work. The copy runs on `asked` if that belongs to the device.
    pub(super) fn download(
        &self,
        from: Location,
        copies: &RoutedCopies,
        asked: Option<&Stream>,
        maker: Maker,
        pipeline: &mut Pipeline,
    ) -> Result<()> {
        let Route::Staged { chunk_bytes_max, .. } = copies.route else {
            return self.download_chunk(from, &copies.regions, asked, maker, pipeline);
        };
        let memory_order = self.storage.memory_order();
        let chunks = memory_order.split_regions(&copies.regions, chunk_bytes_max);
        let device = self.storage.lock().device_copy(from).device.clone();
        let lens_bytes = chunks.iter().flat_map(|regions| self.staged_bytes(&device, regions));
        prepare_downloads(&device, lens_bytes);
        for (number, regions) in chunks.iter().enumerate() {
            if number > 0 {
                // The host unpacks the chunk before this one while the device copies this one.
                pipeline.expect_more();
            }
            self.download_chunk(from, regions, asked, maker, pipeline)?;
        }
        Ok(())
    }

    /// The lengths of the staging memory of a download: with what lies between the parts if it may
    /// read that too, which shows only once the array is locked, and without.
    pub(in crate::transfer) fn staged_bytes(
        &self,
        device: &Device,
        regions: &Regions,
    ) -> SmallVec<[u64; 2]> {
        let packed_bytes = self.bytes_of(regions);
        let parts = self.same_offsets(regions);
        let has_gaps = parts.len() > 1 || parts.iter().any(|part| !part.axes.is_empty());
        let with_gaps = has_gaps.then(|| device.backend().staged_bytes(&parts));
        let with_gaps = with_gaps.filter(|len_bytes| *len_bytes != packed_bytes);
        [packed_bytes].into_iter().chain(with_gaps).collect()
    }

    fn download_chunk(
        &self,
        from: Location,
        regions: &Regions,
        asked: Option<&Stream>,
        maker: Maker,
        pipeline: &mut Pipeline,
    ) -> Result<()> {
        let state = self.storage.lock();
        let stream = &self.download_stream(&state, from, regions, asked);
        let (from, to) = (ReadFrom::Copy(from), state.host_location());
        let purpose = Purpose::Use;
        let job = CopyJob { request: self, stream, from, to, regions, maker, purpose };
        job.run(state, pipeline).map(drop)
    }

    /// The box from the first to the last of the regions in memory, if one copy may read the whole
    /// box. This is so if all its elements have contents and no other stream writes any of them.
    /// Later writers wait for the recorded read.
    fn between(
        &self,
        state: &ArrayState,
        stream: &Stream,
        from: Location,
        regions: &Regions,
    ) -> Option<Region> {
        let whole = self.storage.memory_order().whole();
        let is_alone = matches!(self.selection, Selection::Whole) || !state.has_pins();
        let is_used = stream.device_ref().properties().reads_between_parts;
        if !is_used || !is_alone || whole.axes() == 0 {
            return None;
        }
        let spans = || regions.iter().map(|region| region.span(0));
        let start = spans().map(|span| span.start()).min()?;
        let end = spans().map(|span| span.end()).max()?;
        let between = whole.with_span(0, Span::new(start, end, 1));
        let has_no_writer = || {
            let mut writers = Marks::new();
            let access = Access::Read;
            collect_conflicts(state, from, Some(&between), access, stream, &mut writers);
            writers.is_empty()
        };
        let is_more = regions.as_slice() != [between];
        (is_more && state.holds(from, &[between]) && has_no_writer()).then_some(between)
    }

    /// The stream for a download: `asked` if it belongs to the device, or else the stream that this
    /// thread entered; else the stream of the last writer if it is still busy, on which no event is
    /// needed; else the default stream, so that the copy does not wait for unrelated work.
    pub(in crate::transfer) fn download_stream(
        &self,
        state: &ArrayState,
        from: Location,
        regions: &Regions,
        asked: Option<&Stream>,
    ) -> Stream {
        let device = &*state.device_copy(from).device;
        let asked = asked.filter(|stream| stream.device_ref() == device).cloned();
        if let Some(asked) = asked.or_else(|| device.entered_stream()) {
            return asked;
        }
        let mut writer = None;
        for region in regions {
            state.uses(from).visit_writers(Some(region), |mark| {
                if !state.is_retired(mark) {
                    let stream = state.stream(mark.stream);
                    writer = stream.filter(|stream| stream.device_ref() == device).cloned();
                }
            });
        }
        writer.unwrap_or_else(|| device.stream())
    }
}
