//! Copies towards a device: each source's pieces become one piece of work.

use std::sync::Arc;

use smallvec::SmallVec;

use super::evict::make_room;
use super::window::Pipeline;
use super::{Marks, Request};
use crate::access::Access;
use crate::audit::Direction;
use crate::backend::{
    Address, BackendErrorKind, CopyBox, CopyWork, Dependencies, FailureKind, FillWork, HostMemory,
    Memory, Position, Work, host_copy,
};
use crate::coherence::{ConstantId, Location, PlannedCopy, Region, Source};
use crate::device::{self, Device, Stream};
use crate::error::Result;
use crate::ordering::{Mark, UseEnd};
use crate::storage::{ArrayState, HostBuffer};

/// Memory that an upload is read from, and its parts.
type Staged = (Arc<dyn HostMemory>, SmallVec<[CopyBox; 1]>);

/// The regions that one source gives.
type Regions = SmallVec<[Region; 1]>;

impl Request<'_> {
    /// Gives the device memory for the array if it has none, and queues the copies of `pieces` to
    /// it on `stream`. The part is claimed.
    pub(super) fn fetch(
        &self,
        stream: &Stream,
        location: Location,
        pieces: &[PlannedCopy],
        window: &mut Pipeline,
    ) -> Result<()> {
        self.allocate(stream, location)?;
        for (source, regions) in by_source(pieces) {
            match source {
                Source::Constant(value) => {
                    self.fill_from_constant(stream, location, value, &regions)?
                }
                Source::Location(Location::HOST) => {
                    self.upload(stream, location, &regions, window)?
                }
                Source::Location(from) => {
                    self.copy_from_device(stream, location, from, &regions, window)?
                }
            }
        }
        Ok(())
    }

    fn allocate(&self, stream: &Stream, location: Location) -> Result<()> {
        if self.storage.lock().device_copy(location).address.is_some() {
            return Ok(());
        }
        let device = stream.device_ref();
        device.run_deferred_frees();
        device.reap_frees();
        let label = self.storage.label("memory for", self.site);
        let len_bytes = self.storage.memory_order().len_bytes();
        let first = stream.queue().allocate(len_bytes, &label);
        let address = first.or_else(|refusal| {
            let is_full = matches!(refusal.kind, BackendErrorKind::OutOfMemory { .. });
            if is_full && make_room(device, len_bytes, self) {
                stream.queue().allocate(len_bytes, &label)
            } else {
                Err(refusal)
            }
        });
        let address = address.map_err(|refusal| self.refused(device, "allocating", &refusal))?;
        let mut state = self.storage.lock();
        if state.device_copy(location).address.is_some() {
            // Another part of the same array got there first.
            drop(state);
            device.defer_free(stream, address);
            return Ok(());
        }
        state.device_copy_mut(location).address = Some(address);
        // Other streams may use the memory only behind its allocation.
        let at = UseEnd::at(stream.queue().tail());
        let mark = Mark::lossless(state.assign_key(stream), at);
        let memory_order = self.storage.memory_order();
        state.device_copy_mut(location).uses.record(
            memory_order.extents(),
            None,
            Access::Overwrite,
            mark,
        );
        Ok(())
    }

    /// From the host. Page-locked memory is read by the device itself, and what is to write it
    /// waits for that; the bytes of ordinary memory are packed into staging memory now, so that the
    /// caller may change them as soon as this returns.
    fn upload(
        &self,
        stream: &Stream,
        location: Location,
        regions: &Regions,
        window: &mut Pipeline,
    ) -> Result<()> {
        let locked = self
            .storage
            .lock()
            .host
            .clone()
            .filter(|host| host.is_pinned_for(stream.device_ref().kind()));
        let is_direct = locked.is_some();
        let (source, parts) = match locked {
            Some(host) => {
                let parts = regions
                    .iter()
                    .map(|region| {
                        self.storage.memory_order().footprint(region).copy_to_same_offsets()
                    })
                    .collect();
                (host as Arc<dyn HostMemory>, parts)
            }
            None => self.stage(stream.device_ref(), regions)?,
        };
        let mut state = self.storage.lock();
        let address = state.device_copy(location).address.unwrap_or(Address(0));
        let work = CopyWork {
            may_read_between: false,
            loss: FailureKind::Copy,
            source: Memory::Host(source),
            destination: Memory::Device(address),
            source_device: None,
            parts,
            depends: Dependencies::new(),
            label: self.storage.label("upload of", self.site),
        };
        let position =
            self.queue_write(&mut state, stream, location, regions, Work::Copy(Box::new(work)))?;
        if is_direct {
            self.record_read(&mut state, stream, Location::HOST, regions, position);
        }
        window.push(stream.clone(), position);
        let since = self.since(&state, location, regions);
        window.add(Direction::ToDevice, stream.device_ref(), stream, self.bytes_of(regions), since);
        self.record_arrival(&mut state, stream, location, regions, position);
        Ok(())
    }

    fn bytes_of(&self, regions: &Regions) -> u64 {
        regions.iter().map(|region| self.storage.memory_order().region_bytes(region)).sum()
    }

    /// Queued work reads `regions` at `from`: what is to write them there comes behind it.
    pub(super) fn record_read(
        &self,
        state: &mut ArrayState,
        stream: &Stream,
        from: Location,
        regions: &Regions,
        position: Position,
    ) {
        let mark = Mark::lossless(state.assign_key(stream), UseEnd::at(position));
        for region in regions {
            state.uses_mut(from).record(
                self.storage.memory_order().extents(),
                Some(region),
                Access::Read,
                mark,
            );
        }
    }

    /// Packs regions of the host's copy, which is valid there and which nothing writes.
    fn stage(&self, device: &Device, regions: &Regions) -> Result<Staged> {
        let memory_order = self.storage.memory_order();
        let staging = self.staging(device, self.bytes_of(regions))?;
        // The embedded device has no link that one thread could not keep up with: it is made of the
        // same memory.
        let copy_part = if staging.is_pinned_for(device.kind()) {
            host_copy::copy_box_in_parallel
        } else {
            host_copy::copy_box
        };
        let mut parts: SmallVec<[CopyBox; 1]> = SmallVec::new();
        let mut packed = 0;
        for region in regions {
            let part = memory_order.footprint(region).copy_from_packed(packed);
            // SAFETY: `host_base` is the start of `memory_order.len_bytes()` initialised bytes, and
            // the part lies within both by construction of `Footprint::copy_from_packed`. The region
            // is valid on the host, `acquire_on` has waited for what was queued to write it,
            // nothing queued may write valid elements, and the caller's borrow of the part keeps
            // the host's own writers out.
            unsafe {
                copy_part(self.storage.host_base(), staging.base(), &part.clone().reversed())
            };
            packed += memory_order.region_bytes(region);
            parts.push(part);
        }
        Ok((staging, parts))
    }

    /// Memory to pack an upload into: the device's own page-locked one, or ordinary memory.
    fn staging(&self, device: &Device, len_bytes: u64) -> Result<Arc<dyn HostMemory>> {
        if let Some(staging) = device.backend().allocate_staging(len_bytes) {
            return Ok(staging);
        }
        let ordinary = usize::try_from(len_bytes).ok().and_then(HostBuffer::zeroed::<u8>);
        ordinary
            .map(|buffer| Arc::new(buffer) as Arc<dyn HostMemory>)
            .ok_or_else(|| super::host_full(self.storage))
    }

    fn copy_from_device(
        &self,
        stream: &Stream,
        location: Location,
        from: Location,
        regions: &Regions,
        window: &mut Pipeline,
    ) -> Result<()> {
        let memory_order = self.storage.memory_order();
        let mut state = self.storage.lock();
        let source = state.device_copy(from).device.clone();
        if !state.holds(from, regions) {
            // The caller finds the elements stale, and plans again.
            return Ok(());
        }
        let depends = self.wait_for_writers(&state, stream, from, regions)?;
        let work = CopyWork {
            may_read_between: false,
            loss: FailureKind::Copy,
            source: Memory::Device(state.device_copy(from).address.unwrap_or(Address(0))),
            destination: Memory::Device(state.device_copy(location).address.unwrap_or(Address(0))),
            source_device: Some(Arc::clone(source.backend()) as _),
            parts: regions
                .iter()
                .map(|region| memory_order.footprint(region).copy_to_same_offsets())
                .collect(),
            depends,
            label: self.storage.label("copy between devices of", self.site),
        };
        let position =
            self.queue_write(&mut state, stream, location, regions, Work::Copy(Box::new(work)))?;
        source.visited_by(stream.core(), position);
        self.record_read(&mut state, stream, from, regions, position);
        let since = self.since(&state, location, regions);
        window.add(Direction::BetweenDevices, &source, stream, self.bytes_of(regions), since);
        self.record_arrival(&mut state, stream, location, regions, position);
        Ok(())
    }

    /// Fills from a constant: no transfer, and nothing is counted.
    fn fill_from_constant(
        &self,
        stream: &Stream,
        location: Location,
        value: ConstantId,
        regions: &Regions,
    ) -> Result<()> {
        let memory_order = self.storage.memory_order();
        let mut state = self.storage.lock();
        let work = FillWork {
            loss: FailureKind::Constant,
            address: state.device_copy(location).address.unwrap_or(Address(0)),
            parts: regions.iter().map(|region| memory_order.footprint(region)).collect(),
            pattern: state.constant_value(value, memory_order.element_bytes()),
            depends: Dependencies::new(),
            label: self.storage.label(device::FILL, self.site),
        };
        let position =
            self.queue_write(&mut state, stream, location, regions, Work::Fill(Box::new(work)))?;
        self.record_arrival(&mut state, stream, location, regions, position);
        Ok(())
    }

    /// Queues work on `stream` that writes `regions` at `location`, behind all uses of those bytes.
    pub(super) fn queue_write(
        &self,
        state: &mut ArrayState,
        stream: &Stream,
        location: Location,
        regions: &Regions,
        work: Work,
    ) -> Result<Position> {
        let mut marks = Marks::new();
        for region in regions {
            collect(state, location, region, Access::Overwrite, stream, &mut marks);
        }
        state
            .make_wait(stream, &marks)
            .map_err(|refusal| self.refused(stream.device_ref(), "ordering uses of", &refusal))?;
        stream
            .queue()
            .submit(work)
            .map_err(|refusal| self.refused(stream.device_ref(), "copying", &refusal))
    }

    /// Queues work on `stream` that reads `regions` at `from`; it was ordered by `wait_for_writers`.
    pub(super) fn submit_read(
        &self,
        state: &mut ArrayState,
        stream: &Stream,
        from: Location,
        regions: &Regions,
        work: Work,
    ) -> Result<Position> {
        let position = stream
            .queue()
            .submit(work)
            .map_err(|refusal| self.refused(stream.device_ref(), "copying", &refusal))?;
        self.record_read(state, stream, from, regions, position);
        Ok(position)
    }

    /// Orders `stream` behind the writers of `regions` at `from`, and returns those that may still
    /// fail.
    pub(super) fn wait_for_writers(
        &self,
        state: &ArrayState,
        stream: &Stream,
        from: Location,
        regions: &Regions,
    ) -> Result<Dependencies> {
        let mut marks = Marks::new();
        let mut depends = Dependencies::new();
        for region in regions {
            collect(state, from, region, Access::Read, stream, &mut marks);
            state.uses(from).visit_writers(Some(region), |mark| {
                if let (Some(writer), Some(position)) =
                    (state.stream(mark.stream), mark.written_by())
                    && !state.is_retired(mark)
                    && !depends.contains(&(writer.id(), position))
                {
                    depends.push((writer.id(), position));
                }
            });
        }
        state
            .make_wait(stream, &marks)
            .map_err(|refusal| self.refused(stream.device_ref(), "ordering uses of", &refusal))?;
        Ok(depends)
    }

    /// What other streams have queued to write at `from`, and is not over.
    pub(super) fn foreign_writers(
        &self,
        state: &ArrayState,
        from: Location,
        region: &Region,
        stream: &Stream,
    ) -> Marks {
        let mut marks = Marks::new();
        collect(state, from, region, Access::Read, stream, &mut marks);
        marks
    }

    /// The copy to `location` is queued: it is valid there from now on, for whoever comes behind
    /// `position`.
    fn record_arrival(
        &self,
        state: &mut ArrayState,
        stream: &Stream,
        location: Location,
        regions: &Regions,
        position: Position,
    ) {
        let memory_order = self.storage.memory_order();
        let mark = Mark::write(state.assign_key(stream), position);
        for region in regions {
            state.uses_mut(location).record(
                memory_order.extents(),
                Some(region),
                Access::Overwrite,
                mark,
            );
            state.coherence.apply(location, region, Access::Read);
        }
        self.storage.publish(state);
        if self.is_ahead() || state.has_several_streams() {
            stream.record_in_time();
        }
    }

    /// Asked for ahead of its use: others will wait for it, and should not wait for what is queued
    /// behind it.
    pub(super) fn is_ahead(&self) -> bool {
        matches!(self.cause, crate::audit::Cause::Prefetch | crate::audit::Cause::Explicit)
    }
}

fn collect(
    state: &ArrayState,
    location: Location,
    region: &Region,
    access: Access,
    stream: &Stream,
    marks: &mut Marks,
) {
    state.uses(location).visit_conflicts(Some(region), access, |mark| {
        let own = state.stream(mark.stream) == Some(stream);
        if !own && !marks.contains(&mark) && !state.is_retired(mark) {
            marks.push(mark);
        }
    });
}

/// The regions of each source, in the order in which sources first appear.
pub(super) fn by_source(pieces: &[PlannedCopy]) -> SmallVec<[(Source, Regions); 1]> {
    let mut sources: SmallVec<[(Source, Regions); 1]> = SmallVec::new();
    for piece in pieces {
        match sources.iter_mut().find(|(source, _)| *source == piece.source) {
            Some((_, regions)) => regions.push(piece.region),
            None => sources.push((piece.source, SmallVec::from_slice(&[piece.region]))),
        }
    }
    sources
}
