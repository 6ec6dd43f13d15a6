//! One copy of elements of an array from one of its copies to another: built, queued after the uses
//! with which it conflicts, recorded and counted. What all copies share is here too, whatever
//! memories they are between.

use std::sync::Arc;

use smallvec::SmallVec;

use super::pipeline::Pipeline;
use super::report::{Moved, stale_since};
use crate::audit::Direction;
use crate::device::{Device, Stream};
use crate::error::{Error, Result};
use crate::storage::{ArrayState, StateGuard, UseKind};
use crate::transfer::access::request::{
    Marks, Regions, Request, add_writers, collect_conflicts, users_of_other_kinds,
};
use resident_backend::{
    Address, BackendError, CopyBox, CopyWork, Copying, Dependencies, FailureKind, FillWork,
    HostMemory, Maker, Memory, Position,
};
use resident_core::Access;
use resident_core::coherence::{Location, Region};
use resident_core::ordering::{Mark, UseEnd};

/// The boxes of bytes of one copy.
pub(in crate::transfer) type Boxes = SmallVec<[CopyBox; 1]>;

/// Where a copy reads the elements.
#[derive(Debug)]
pub(super) enum ReadFrom {
    /// In the array's copy at a location.
    Copy(Location),
    /// In staging memory, where the host's elements are packed.
    Staging(Arc<dyn HostMemory>, Boxes),
}

/// A copy of elements that are stale at its destination. The caller has a claim on them there,
/// which it may keep while it makes the copy itself, because the copy waits for nothing.
#[derive(Debug)]
pub(super) struct CopyJob<'j> {
    pub(super) request: &'j Request<'j>,
    pub(super) stream: &'j Stream,
    pub(super) from: ReadFrom,
    pub(super) to: Location,
    pub(super) regions: &'j Regions,
    /// With `Maker::Caller`, also a copy is declined whose destination something else uses.
    pub(super) maker: Maker,
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
    pub(super) fn run(&self, mut state: StateGuard<'_>, pipeline: &mut Pipeline) -> Result<bool> {
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
            let address = state.device_copy(location).address();
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
        Box::new(CopyWork { source_device, may_read_between: between.is_some(), depends, ..copy })
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
    let copying = stream.queue().copy(work(), maker)?;
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

    /// Makes `stream` wait for these uses.
    pub(in crate::transfer) fn make_wait(
        &self,
        state: &mut ArrayState,
        stream: &Stream,
        marks: &Marks,
    ) -> Result<()> {
        state
            .make_wait(stream, marks)
            .map_err(|error| self.call_error(stream.device_ref(), "ordering uses of", &error))
    }

    /// The error of a refused copy or fill of elements that are stale at the destination: a refusal
    /// in the middle changes no contents.
    fn stale_copy_error(&self, stream: &Stream, error: &BackendError) -> Error {
        self.copy_error(stream, error).with_contents_unchanged()
    }

    pub(in crate::transfer) fn copy_error(&self, stream: &Stream, error: &BackendError) -> Error {
        self.call_error(stream.device_ref(), "copying", error)
    }

    /// The uses of `regions` at `location` for which a write on `stream` must wait.
    pub(in crate::transfer) fn conflicts_of_write(
        &self,
        state: &ArrayState,
        stream: &Stream,
        location: Location,
        regions: &Regions,
    ) -> Marks {
        let mut marks = Marks::new();
        for region in regions {
            let access = Access::Overwrite;
            collect_conflicts(state, location, Some(region), access, stream, &mut marks);
        }
        marks
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
        let filled = stream.queue().fill(Box::new(work));
        let position = filled.map_err(|error| self.stale_copy_error(stream, &error))?;
        stream.end_timing(begun, position);
        Ok(position)
    }

    /// Makes `stream` wait for the writers of `regions` at `from`. Returns the writers that may
    /// still fail.
    pub(in crate::transfer) fn wait_for_writers(
        &self,
        state: &mut ArrayState,
        stream: &Stream,
        from: Location,
        regions: &Regions,
    ) -> Result<Dependencies> {
        let (mut marks, mut depends) = (Marks::new(), Dependencies::new());
        for region in regions {
            collect_conflicts(state, from, Some(region), Access::Read, stream, &mut marks);
            add_writers(state, from, Some(region), &mut depends);
        }
        self.make_wait(state, stream, &marks)?;
        Ok(depends)
    }

    /// Records that queued work reads `regions` at `from`. Later writes there wait for it.
    pub(in crate::transfer) fn record_read(
        &self,
        state: &mut ArrayState,
        stream: &Stream,
        from: Location,
        regions: &Regions,
        position: Position,
    ) {
        let mark = Mark::lossless(state.assign_key(stream), UseEnd::at(position));
        let extents = self.storage.memory_order().extents();
        for region in regions {
            state.record_use(from, extents, Some(region), Access::Read, mark);
        }
    }

    /// Records that queued work copies `regions` to `location`, where they are valid from now on.
    pub(in crate::transfer) fn record_copy(
        &self,
        state: &mut ArrayState,
        stream: &Stream,
        location: Location,
        regions: &Regions,
        position: Position,
    ) {
        let mark = Mark::write(state.assign_key(stream), position);
        let extents = self.storage.memory_order().extents();
        if location == state.host_location() {
            state.note_host_memory_write();
        }
        for region in regions {
            state.record_use(location, extents, Some(region), Access::Overwrite, mark);
            state.coherence.apply(extents, location, region, Access::Read);
        }
        self.storage.publish(state);
        let is_expected =
            location != Location::HOST && state.takes_expected_wait(stream, UseKind::Write);
        if self.is_ahead_of_use || is_expected {
            stream.ensure_event_at_tail();
        }
    }

    /// The copies of regions from one copy of the whole array to another.
    pub(in crate::transfer) fn same_offsets(&self, regions: &Regions) -> Boxes {
        let memory_order = self.storage.memory_order();
        let copy = |region| memory_order.footprint(region).copy_to_same_offsets();
        regions.iter().map(copy).collect()
    }
}
