//! Copies from the host to a device.

use std::sync::Arc;

use smallvec::SmallVec;

use super::pipeline::Pipeline;
use super::plan::{Route, RoutedCopies};
use super::report::{Moved, stale_since};
use crate::audit::Direction;
use crate::device::Stream;
use crate::error::Result;
use crate::storage::ArrayState;
use crate::transfer::access::request::{Regions, Request};
use resident_backend::host_copy::PendingCopy;
use resident_backend::{Address, CopyBox, CopyWork, HostMemory, Memory, Position, Work, host_copy};
use resident_core::coherence::Location;

/// An upload that the copy thread pool packs into staging memory.
struct StagedUpload {
    /// Dropped before `staging`, so that the packing has ended then.
    packing: SmallVec<[PendingCopy; 1]>,
    staging: Arc<dyn HostMemory>,
    /// The copies from staging memory to the device.
    parts: SmallVec<[CopyBox; 1]>,
}

impl Request<'_> {
    /// Queues a copy from the host, or makes it. The device reads pinned memory directly, so later
    /// writes by the host wait for the copy. After this returns, no work reads pageable memory, so
    /// that the caller may write it: if the stream is idle and runs on this process's threads, this
    /// thread makes the copy; else it packs the memory into staging memory.
    pub(super) fn upload(
        &self,
        stream: &Stream,
        location: Location,
        copies: &RoutedCopies,
        pipeline: &mut Pipeline,
    ) -> Result<()> {
        if let Route::Staged { chunk_bytes_max, .. } = copies.route {
            let memory_order = self.storage.memory_order();
            let chunks = memory_order.split_regions(&copies.regions, chunk_bytes_max);
            return self.upload_pageable(stream, location, chunks, pipeline);
        }
        let regions = &copies.regions;
        let mut state = self.storage.lock();
        let Some(host) = state.host.clone() else { return Ok(()) };
        let work = Work::Copy(self.upload_work(&state, location, host, self.same_offsets(regions)));
        let position = self.submit_write(&mut state, stream, location, regions, work)?;
        let from = state.host_location();
        self.record_read(&mut state, stream, from, regions, position);
        self.record_upload(&mut state, stream, location, regions, position, pipeline);
        Ok(())
    }

    /// Copies chunks of pageable memory, in order. The copy thread pool packs the later ones while
    /// this thread queues the first.
    fn upload_pageable(
        &self,
        stream: &Stream,
        location: Location,
        chunks: SmallVec<[Regions; 1]>,
        pipeline: &mut Pipeline,
    ) -> Result<()> {
        let mut staged: SmallVec<[(Regions, StagedUpload); 4]> = SmallVec::new();
        for regions in chunks {
            let is_first = staged.is_empty();
            if !is_first || !self.upload_at_once(stream, location, &regions, pipeline)? {
                let upload = self.stage(stream, &regions)?;
                staged.push((regions, upload));
            }
        }
        for (regions, StagedUpload { packing, staging, parts }) in staged {
            drop(packing);
            let mut state = self.storage.lock();
            let work = Work::Copy(self.upload_work(&state, location, staging, parts));
            let position = self.submit_write(&mut state, stream, location, &regions, work)?;
            self.record_upload(&mut state, stream, location, &regions, position, pipeline);
        }
        Ok(())
    }

    /// Copies pageable memory on this thread, if the stream is idle and nothing else uses the
    /// regions at the destination. Returns whether it did.
    ///
    /// The copy waits for nothing, so this thread keeps its claim meanwhile. The host memory stays
    /// as it is, for the reasons that `stage` gives.
    fn upload_at_once(
        &self,
        stream: &Stream,
        location: Location,
        regions: &Regions,
        pipeline: &mut Pipeline,
    ) -> Result<bool> {
        if !stream.queue().may_begin_copy() {
            return Ok(false);
        }
        let mut state = self.storage.lock();
        let Some(host) = state.host.clone() else { return Ok(false) };
        if !self.conflicts_of_write(&state, stream, location, regions).is_empty() {
            return Ok(false);
        }
        let parts = self.same_offsets(regions);
        let mut work = || self.upload_work(&state, location, host.clone(), parts.clone());
        let begun = stream.queue().begin_copy(&mut work);
        let begun = begun.map_err(|error| self.copy_error(stream, &error))?;
        let Some(copy) = begun else { return Ok(false) };
        self.record_upload(&mut state, stream, location, regions, copy.position, pipeline);
        drop(state);
        copy.run();
        Ok(true)
    }

    fn upload_work(
        &self,
        state: &ArrayState,
        location: Location,
        source: Arc<dyn HostMemory>,
        parts: SmallVec<[CopyBox; 1]>,
    ) -> Box<CopyWork> {
        let address = state.device_copy(location).address().unwrap_or(Address(0));
        let (source, destination) = (Memory::Host(source), Memory::Device(address));
        Box::new(self.copy_work("upload of", source, destination, parts))
    }

    /// Records an upload that has its position.
    fn record_upload(
        &self,
        state: &mut ArrayState,
        stream: &Stream,
        location: Location,
        regions: &Regions,
        position: Position,
        pipeline: &mut Pipeline,
    ) {
        pipeline.push(stream.clone(), position);
        let since = stale_since(state, location, regions);
        let moved = Moved::at(position, Direction::ToDevice, self.bytes_of(regions));
        pipeline.add_copy(moved, stream.device_ref(), stream, since);
        self.record_copy(state, stream, location, regions, position);
    }

    /// The copies of regions from one copy of the whole array to another.
    pub(in crate::transfer) fn same_offsets(&self, regions: &Regions) -> SmallVec<[CopyBox; 1]> {
        let memory_order = self.storage.memory_order();
        let copy = |region| memory_order.footprint(region).copy_to_same_offsets();
        regions.iter().map(copy).collect()
    }

    /// Starts to pack regions of the host memory into staging memory.
    fn stage(&self, stream: &Stream, regions: &Regions) -> Result<StagedUpload> {
        let memory_order = self.storage.memory_order();
        let staging = self.staging(stream, self.bytes_of(regions))?;
        // For a device behind a PCIe link several threads copy, because the link is faster than one
        // thread. The embedded device has neither a link nor pinned memory.
        let has_link = staging.is_pinned_for(stream.device_ref().kind());
        let (mut packing, mut parts) = (SmallVec::new(), SmallVec::new());
        let mut packed_bytes = 0;
        for region in regions {
            let part = memory_order.footprint(region).copy_from_packed(packed_bytes);
            let (from, to, packed) =
                (self.storage.host_base(), staging.base(), part.clone().reversed());
            if has_link {
                // SAFETY: `host_base` is the start of `memory_order.len_bytes()` initialised bytes,
                // and the copies of `Footprint::copy_from_packed` stay within the host memory and
                // the staging memory, which `StagedUpload` keeps until the packing has dropped. The
                // region is valid on the host and `Missing` has waited for queued work that
                // wrote it. Queued work never writes valid elements, and the caller's borrow of the
                // part, which outlives the call, excludes writes by the host. So nothing writes the
                // bytes that are read.
                packing.push(unsafe { host_copy::start_copy(from, to, &packed) });
            } else {
                // SAFETY: as above.
                unsafe { host_copy::copy_box(from, to, &packed) };
            }
            packed_bytes += memory_order.region_bytes(region);
            parts.push(part);
        }
        Ok(StagedUpload { packing, staging, parts })
    }
}
