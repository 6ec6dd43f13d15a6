//! Copies between devices whose destination can access the source's memory.

use std::sync::Arc;

use super::pipeline::Pipeline;
use super::report::{Moved, stale_since};
use crate::audit::Direction;
use crate::device::Stream;
use crate::error::Result;
use crate::transfer::access::request::{Regions, Request};
use resident_backend::{Address, CopyWork, Memory, Work};
use resident_core::coherence::Location;

impl Request<'_> {
    /// Queues a copy from the device at `from`.
    pub(super) fn copy_from_peer(
        &self,
        stream: &Stream,
        location: Location,
        from: Location,
        regions: &Regions,
        pipeline: &mut Pipeline,
    ) -> Result<()> {
        let mut state = self.storage.lock();
        let source = state.device_copy(from).device.clone();
        if !state.holds(from, regions) {
            // The source became invalid after the plan was made, because a failure was noticed. The
            // caller plans again.
            return Ok(());
        }
        let depends = self.wait_for_writers(&mut state, stream, from, regions)?;
        let address = |location| state.device_copy(location).address().unwrap_or(Address(0));
        let (from_there, to_here) =
            (Memory::Device(address(from)), Memory::Device(address(location)));
        let parts = self.same_offsets(regions);
        let work = Work::Copy(Box::new(CopyWork {
            source_device: Some(Arc::clone(source.backend()) as _),
            depends,
            ..self.copy_work("copy between devices of", from_there, to_here, parts)
        }));
        let position = self.submit_write(&mut state, stream, location, regions, work)?;
        source.record_remote_use(stream.core(), position);
        self.record_read(&mut state, stream, from, regions, position);
        let since = stale_since(&state, location, regions);
        let moved = Moved::at(position, Direction::BetweenDevices, self.bytes_of(regions));
        pipeline.add_copy(moved, &source, stream, since);
        self.record_copy(&mut state, stream, location, regions, position);
        Ok(())
    }
}
