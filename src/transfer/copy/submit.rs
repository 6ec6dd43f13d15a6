//! Queues work on an array, after the uses with which the work conflicts, and records the work as a
//! use.

use smallvec::SmallVec;

use crate::device::Stream;
use crate::error::{Error, Result};
use crate::storage::{ArrayState, UseKind};
use crate::transfer::access::request::{Marks, Regions, Request, add_writers, collect_conflicts};
use resident_backend::{
    BackendError, CopyBox, CopyWork, Dependencies, FailureKind, Memory, Position, Work,
};
use resident_core::Access;
use resident_core::coherence::Location;
use resident_core::ordering::{Mark, UseEnd};

impl Request<'_> {
    /// A copy that depends on nothing, and whose source has the contents if it fails. `operation`
    /// is its name in messages, such as `upload of`.
    #[inline]
    pub(in crate::transfer) fn copy_work(
        &self,
        operation: &'static str,
        source: Memory,
        destination: Memory,
        parts: SmallVec<[CopyBox; 1]>,
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

    /// Queues a copy or a fill of elements that are stale at the destination, so that a refusal in
    /// the middle changes no contents.
    pub(in crate::transfer) fn submit(&self, stream: &Stream, work: Work) -> Result<Position> {
        let submitted = stream.submit_timed(work);
        submitted.map_err(|error| self.copy_error(stream, &error).with_contents_unchanged())
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

    /// Queues work on `stream` that copies `regions` to `location`, after all uses of those bytes.
    /// From then on the regions count as valid at `location`. Work that uses them must wait for the
    /// returned position.
    pub(in crate::transfer) fn submit_write(
        &self,
        state: &mut ArrayState,
        stream: &Stream,
        location: Location,
        regions: &Regions,
        work: Work,
    ) -> Result<Position> {
        let marks = self.conflicts_of_write(state, stream, location, regions);
        self.make_wait(state, stream, &marks)?;
        self.submit(stream, work)
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
}
