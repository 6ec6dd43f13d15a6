//! Copies towards a device: each source's pieces become one piece of work.

use std::sync::Arc;

use smallvec::SmallVec;

use super::evict::make_room;
use super::window::Window;
use super::{Marks, Request};
use crate::audit::Direction;
use crate::backend::{
    Address, BackendErrorKind, CopyPart, CopyWork, Dependencies, FailureKind, FillWork, HostMemory,
    Memory, Position, Work, bytes, crew,
};
use crate::coherence::{Access, ConstantId, Piece, Place, Region, Source};
use crate::device::{self, Device, Stream};
use crate::error::Result;
use crate::order::{At, Mark, Touch};
use crate::storage::{HostBuffer, State};

/// Memory that an upload is read from, and its parts.
type Staged = (Arc<dyn HostMemory>, SmallVec<[CopyPart; 1]>);

/// The regions that one source gives.
type Regions = SmallVec<[Region; 1]>;

impl Request<'_> {
    /// Gives the device memory for the array if it has none, and queues the copies of `pieces` to
    /// it on `stream`. The part is claimed.
    pub(super) fn fetch(
        &self,
        stream: &Stream,
        place: Place,
        pieces: &[Piece],
        window: &mut Window,
    ) -> Result<()> {
        self.allocate(stream, place)?;
        for (source, regions) in by_source(pieces) {
            match source {
                Source::Constant(value) => {
                    self.fill_from_constant(stream, place, value, &regions)?
                }
                Source::Place(Place::HOST) => self.upload(stream, place, &regions, window)?,
                Source::Place(from) => {
                    self.copy_from_device(stream, place, from, &regions, window)?
                }
            }
        }
        Ok(())
    }

    fn allocate(&self, stream: &Stream, place: Place) -> Result<()> {
        if self.storage.lock().slot(place).address.is_some() {
            return Ok(());
        }
        let device = stream.device_ref();
        device.settle_orphans();
        device.look_at_frees();
        let label = self.storage.label("memory for", self.site);
        let len_bytes = self.storage.space().len_bytes();
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
        if state.slot(place).address.is_some() {
            // Another part of the same array got there first.
            drop(state);
            device.free_later(stream, address);
            return Ok(());
        }
        state.slot_mut(place).address = Some(address);
        // Other streams may use the memory only behind its allocation.
        let at = At::position(stream.queue().tail());
        let mark = Mark::harmless(state.key_of(stream), at);
        let space = self.storage.space();
        state.slot_mut(place).uses.mark(space.extents(), None, Touch::Write, mark);
        Ok(())
    }

    /// From the host. Page-locked memory is read by the device itself, and what is to write it
    /// waits for that; the bytes of ordinary memory are packed into staging memory now, so that the
    /// caller may change them as soon as this returns.
    fn upload(
        &self,
        stream: &Stream,
        place: Place,
        regions: &Regions,
        window: &mut Window,
    ) -> Result<()> {
        let locked = self
            .storage
            .lock()
            .host
            .clone()
            .filter(|host| host.is_page_locked(stream.device_ref().kind()));
        let is_direct = locked.is_some();
        let (source, parts) = match locked {
            Some(host) => {
                let parts = self.parts_by_device(regions, &host, stream.device_ref());
                (host as Arc<dyn HostMemory>, parts)
            }
            None => self.stage(stream.device_ref(), regions)?,
        };
        let mut state = self.storage.lock();
        let address = state.slot(place).address.unwrap_or(Address(0));
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
            self.queue_write(&mut state, stream, place, regions, Work::Copy(Box::new(work)))?;
        if is_direct {
            self.note_reading(&mut state, stream, Place::HOST, regions, position);
        }
        window.push(stream.clone(), position);
        let since = self.since(&state, place, regions);
        window.add(Direction::ToDevice, stream.device_ref(), stream, self.bytes_of(regions), since);
        self.note_queued(&mut state, stream, place, regions, position);
        Ok(())
    }

    fn bytes_of(&self, regions: &Regions) -> u64 {
        regions.iter().map(|region| self.storage.space().region_bytes(region)).sum()
    }

    /// Queued work reads `regions` at `from`: what is to write them there comes behind it.
    pub(super) fn note_reading(
        &self,
        state: &mut State,
        stream: &Stream,
        from: Place,
        regions: &Regions,
        position: Position,
    ) {
        let mark = Mark::harmless(state.key_of(stream), At::position(position));
        for region in regions {
            state.uses_mut(from).mark(
                self.storage.space().extents(),
                Some(region),
                Touch::Read,
                mark,
            );
        }
    }

    /// Packs regions of the host's copy, which is valid there and which nothing writes.
    fn stage(&self, device: &Device, regions: &Regions) -> Result<Staged> {
        let space = self.storage.space();
        let staging = self.staging(device, self.bytes_of(regions))?;
        // The embedded device has no link that one thread could not keep up with: it is made of the
        // same memory.
        let copy_part =
            if staging.is_page_locked(device.kind()) { crew::copy_part } else { bytes::copy_part };
        let mut parts: SmallVec<[CopyPart; 1]> = SmallVec::new();
        let mut packed = 0;
        for region in regions {
            let part = space.out_of_packed(region, packed);
            // SAFETY: `host_base` is the start of `space.len_bytes()` initialised bytes, and the
            // part lies within both by construction of `Space::out_of_packed`. The region is valid
            // on the host, `acquire_on` has waited for what was queued to write it, nothing queued
            // may write valid elements, and the caller's borrow of the part keeps the host's own
            // writers out.
            unsafe {
                copy_part(self.storage.host_base(), staging.base(), &part.clone().reversed())
            };
            packed += space.region_bytes(region);
            parts.push(part);
        }
        Ok((staging, parts))
    }

    /// Memory to pack an upload into: the device's own page-locked one, or ordinary memory.
    fn staging(&self, device: &Device, len_bytes: u64) -> Result<Arc<dyn HostMemory>> {
        if let Some(staging) = device.backend().staging(len_bytes) {
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
        place: Place,
        from: Place,
        regions: &Regions,
        window: &mut Window,
    ) -> Result<()> {
        let space = self.storage.space();
        let mut state = self.storage.lock();
        let source = state.slot(from).device.clone();
        if !state.holds(from, regions) {
            // The caller finds the elements stale, and plans again.
            return Ok(());
        }
        let depends = self.read_behind(&state, stream, from, regions)?;
        let work = CopyWork {
            may_read_between: false,
            loss: FailureKind::Copy,
            source: Memory::Device(state.slot(from).address.unwrap_or(Address(0))),
            destination: Memory::Device(state.slot(place).address.unwrap_or(Address(0))),
            source_device: Some(Arc::clone(source.backend())),
            parts: regions.iter().map(|region| space.same_place(region)).collect(),
            depends,
            label: self.storage.label("copy between devices of", self.site),
        };
        let position =
            self.queue_write(&mut state, stream, place, regions, Work::Copy(Box::new(work)))?;
        source.visited_by(stream.core(), position);
        self.note_reading(&mut state, stream, from, regions, position);
        let since = self.since(&state, place, regions);
        window.add(Direction::BetweenDevices, &source, stream, self.bytes_of(regions), since);
        self.note_queued(&mut state, stream, place, regions, position);
        Ok(())
    }

    /// Fills from a constant: no transfer, and nothing is counted.
    fn fill_from_constant(
        &self,
        stream: &Stream,
        place: Place,
        value: ConstantId,
        regions: &Regions,
    ) -> Result<()> {
        let space = self.storage.space();
        let mut state = self.storage.lock();
        let work = FillWork {
            loss: FailureKind::Copy,
            address: state.slot(place).address.unwrap_or(Address(0)),
            parts: regions.iter().map(|region| space.footprint(region)).collect(),
            pattern: state.constant_value(value, space.element_bytes()),
            poison: false,
            depends: Dependencies::new(),
            label: self.storage.label(device::FILL, self.site),
        };
        let position =
            self.queue_write(&mut state, stream, place, regions, Work::Fill(Box::new(work)))?;
        self.note_queued(&mut state, stream, place, regions, position);
        Ok(())
    }

    /// Queues work on `stream` that writes `regions` at `place`, behind all uses of those bytes.
    pub(super) fn queue_write(
        &self,
        state: &mut State,
        stream: &Stream,
        place: Place,
        regions: &Regions,
        work: Work,
    ) -> Result<Position> {
        let mut marks = Marks::new();
        for region in regions {
            collect(state, place, region, Touch::Write, stream, &mut marks);
        }
        state
            .order(stream, &marks)
            .map_err(|refusal| self.refused(stream.device_ref(), "ordering uses of", &refusal))?;
        stream
            .queue()
            .submit(work)
            .map_err(|refusal| self.refused(stream.device_ref(), "copying", &refusal))
    }

    /// Queues work on `stream` that reads `regions` at `from`; it was ordered by `read_behind`.
    pub(super) fn submit_read(
        &self,
        state: &mut State,
        stream: &Stream,
        from: Place,
        regions: &Regions,
        work: Work,
    ) -> Result<Position> {
        let position = stream
            .queue()
            .submit(work)
            .map_err(|refusal| self.refused(stream.device_ref(), "copying", &refusal))?;
        self.note_reading(state, stream, from, regions, position);
        Ok(position)
    }

    /// Orders `stream` behind the writers of `regions` at `from`, and returns those that may still
    /// fail.
    pub(super) fn read_behind(
        &self,
        state: &State,
        stream: &Stream,
        from: Place,
        regions: &Regions,
    ) -> Result<Dependencies> {
        let mut marks = Marks::new();
        let mut depends = Dependencies::new();
        for region in regions {
            collect(state, from, region, Touch::Read, stream, &mut marks);
            state.uses(from).writers(Some(region), |mark| {
                if let (Some(writer), Some(position)) = (state.stream(mark.stream), mark.work())
                    && !state.is_over(mark)
                    && !depends.contains(&(writer.id(), position))
                {
                    depends.push((writer.id(), position));
                }
            });
        }
        state
            .order(stream, &marks)
            .map_err(|refusal| self.refused(stream.device_ref(), "ordering uses of", &refusal))?;
        Ok(depends)
    }

    /// What other streams have queued to write at `from`, and is not over.
    pub(super) fn foreign_writers(
        &self,
        state: &State,
        from: Place,
        region: &Region,
        stream: &Stream,
    ) -> Marks {
        let mut marks = Marks::new();
        collect(state, from, region, Touch::Read, stream, &mut marks);
        marks
    }

    /// The copy to `place` is queued: it is valid there from now on, for whoever comes behind
    /// `position`.
    fn note_queued(
        &self,
        state: &mut State,
        stream: &Stream,
        place: Place,
        regions: &Regions,
        position: Position,
    ) {
        let space = self.storage.space();
        let mark = Mark::written(state.key_of(stream), position);
        for region in regions {
            state.uses_mut(place).mark(space.extents(), Some(region), Touch::Write, mark);
            state.coherence.apply(place, region, Access::Read);
        }
        self.storage.publish(state);
        if self.is_ahead() || state.is_worth_events() {
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
    state: &State,
    place: Place,
    region: &Region,
    touch: Touch,
    stream: &Stream,
    marks: &mut Marks,
) {
    state.uses(place).before(Some(region), touch, |mark| {
        let own = state.stream(mark.stream) == Some(stream);
        if !own && !marks.contains(&mark) && !state.is_over(mark) {
            marks.push(mark);
        }
    });
}

/// The regions of each source, in the order in which sources first appear.
pub(super) fn by_source(pieces: &[Piece]) -> SmallVec<[(Source, Regions); 1]> {
    let mut sources: SmallVec<[(Source, Regions); 1]> = SmallVec::new();
    for piece in pieces {
        match sources.iter_mut().find(|(source, _)| *source == piece.source) {
            Some((_, regions)) => regions.push(piece.region),
            None => sources.push((piece.source, SmallVec::from_slice(&[piece.region]))),
        }
    }
    sources
}
