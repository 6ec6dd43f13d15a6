//! Copies of contents to memory that no array owns: snapshots, `copy_to_host`, and the states of
//! watches. No copy of the array changes.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::audit::Direction;
use crate::device::{self, Stream};
use crate::error::{Error, Result};
use crate::storage::ArrayState;
use crate::transfer::access::request::{Queued, Regions, Request};
use crate::transfer::copy::job::{Boxes, queue};
use crate::transfer::copy::report::{Moved, count, stale_since};
use resident_backend::{
    Address, Bytes, CopyBox, CopyWork, FailureKind, FailureRecord, HostMemory, Memory, Position,
    failure, host_copy,
};
use resident_core::coherence::{
    Content, Location, PlannedCopy, Region, Source, Undefined, join_copies,
};
use resident_core::layout::{MemoryOrder, split_copies};

/// The newest contents of a request.
#[derive(Default)]
pub(in crate::transfer) struct Newest {
    /// Each part with contents, and the location from which it is read. Parts from one location are
    /// joined where they form a box. `Location::HOST` stands for a copy by the host. Parts of
    /// constants are `MemoryOrder::unbroken`.
    pub(in crate::transfer) parts: Vec<(Source, Region)>,
    /// Why some elements have no contents: because they were lost, if any were.
    pub(in crate::transfer) undefined: Option<Undefined>,
}

impl Newest {
    /// The host is read where `reads_host` is true of the contents, or no device has them, else the
    /// first device that has them. A device at the location `host` counts as the host: its driver
    /// copies within the host at once.
    pub(in crate::transfer) fn find(
        request: &Request<'_>,
        state: &ArrayState,
        host: Location,
        reads_host: impl Fn(Content) -> bool,
    ) -> Self {
        let memory_order = request.storage.memory_order();
        let mut newest = Self::default();
        let mut copies = Vec::new();
        request.selection.for_each_region(memory_order, |region| {
            state.coherence.visit_contents(region, |part, content| {
                let source = match content {
                    _ if reads_host(content) => Source::Location(Location::HOST),
                    Content::Undefined(why) => return newest.add_undefined(why),
                    Content::Constant { value, .. } => Source::Constant(value),
                    Content::Stored(holders) => {
                        let is_device = |location: &Location| *location != host;
                        let device = holders.locations().iter().find(is_device);
                        Source::Location(device.unwrap_or(Location::HOST))
                    }
                };
                copies.push(PlannedCopy { source, region: *part });
            });
            join_copies(region.axes(), &mut copies);
            copies.drain(..).for_each(|copy| newest.add(memory_order, copy));
        });
        newest
    }

    fn add(&mut self, memory_order: &MemoryOrder, PlannedCopy { source, region }: PlannedCopy) {
        if matches!(source, Source::Constant(_)) {
            let parts = memory_order.unbroken(&region).into_iter();
            self.parts.extend(parts.map(|part| (source, part)));
        } else {
            self.parts.push((source, region));
        }
    }

    fn add_undefined(&mut self, why: Undefined) {
        if !matches!(self.undefined, Some(Undefined::Lost(_))) {
            self.undefined = Some(why);
        }
    }
}

/// The parts that are copied from one device.
pub(in crate::transfer) struct DeviceParts {
    pub(in crate::transfer) location: Location,
    pub(in crate::transfer) regions: Regions,
    /// The copies of the regions. While the device makes those of the next operation, the host
    /// unpacks those of the one before.
    pub(super) operations: SmallVec<[Boxes; 1]>,
}

impl DeviceParts {
    pub(in crate::transfer) fn new(location: Location, region: Region, copies: Boxes) -> Self {
        let regions = Regions::from_iter([region]);
        Self { location, regions, operations: SmallVec::from_iter([copies]) }
    }

    /// Adds a part to those of the same device. If a region consists of several boxes of a view, it
    /// is added once for each box.
    pub(in crate::transfer) fn add(
        all: &mut SmallVec<[Self; 1]>,
        location: Location,
        region: Region,
        copies: Boxes,
    ) {
        let Some(known) = all.iter_mut().find(|known| known.location == location) else {
            return all.push(Self::new(location, region, copies));
        };
        if known.regions.last() != Some(&region) {
            known.regions.push(region);
        }
        known.operations[0].extend(copies);
    }

    /// Splits the copies so that one operation copies at most this number of bytes.
    pub(in crate::transfer) fn split(self, bytes_max: u64) -> Self {
        let operations = self.operations.into_iter();
        let operations = operations.flat_map(|copies| split_copies(copies, bytes_max)).collect();
        Self { operations, ..self }
    }
}

/// When the caller of a copy waits for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CallerWaits {
    /// So no event is recorded behind the last operation.
    AtOnce,
    /// Perhaps later.
    Later,
}

/// The copies of one call. What was queued stays known if a later copy is refused.
pub(in crate::transfer) struct CopyOut {
    pub(in crate::transfer) memory: Arc<dyn HostMemory>,
    waits: CallerWaits,
    /// What the work is called in messages: `snapshot of`.
    label: &'static str,
    pub(in crate::transfer) queued: Queued,
    /// The bytes that are copied from devices.
    pub(super) copied_bytes: u64,
    /// The bytes of the memory that the host has written.
    pub(in crate::transfer) host_bytes: u64,
    /// The bytes of the memory that each of `queued` writes.
    pub(super) queued_bytes: SmallVec<[u64; 1]>,
}

impl CopyOut {
    pub(in crate::transfer) fn new(
        memory: Arc<dyn HostMemory>,
        waits: CallerWaits,
        label: &'static str,
    ) -> Self {
        Self {
            memory,
            waits,
            label,
            queued: Queued::new(),
            copied_bytes: 0,
            host_bytes: 0,
            queued_bytes: SmallVec::new(),
        }
    }

    /// Ends the call, and drops its handle of the memory.
    pub(in crate::transfer) fn into_queued(self) -> Queued {
        self.queued
    }

    /// Fills the destinations of these copies with a constant.
    pub(in crate::transfer) fn fill(&mut self, constant: &Bytes, copies: &[CopyBox]) {
        self.host_bytes += len_bytes(copies);
        for copy in copies {
            // SAFETY: the copies of `Strided` and of `Footprint` stay within the memory, and
            // nothing else writes these bytes of it, because the parts of a call are disjoint.
            unsafe { host_copy::fill(self.memory.base(), &copy.destination(), constant) };
        }
    }

    /// Queues copies from a device, behind the work that wrote the parts. Later writes of the parts
    /// wait for them.
    pub(in crate::transfer) fn queue(
        &mut self,
        request: &Request<'_>,
        state: &mut ArrayState,
        stream: &Stream,
        DeviceParts { location, regions, operations }: DeviceParts,
    ) -> Result<()> {
        let depends = request.wait_for_writers(state, stream, location, &regions)?;
        let address = state.device_copy(location).base().unwrap_or(Address(0));
        let (mut left, before) = (operations.len(), self.queued.len());
        state.number_use_of(request.storage.memory_order(), location, &regions);
        for parts in operations {
            left -= 1;
            let (source, destination) =
                (Memory::Device(address), Memory::Host(Arc::clone(&self.memory)));
            let written_bytes = len_bytes(&parts);
            let copy = request.copy_work(self.label, source, destination, parts);
            let queued = queue(stream, Box::new(CopyWork { depends: depends.clone(), ..copy }));
            let position = queued.map_err(|error| request.copy_error(stream, &error))?;
            request.record_read(state, stream, location, &regions, position);
            self.queued_bytes.push(written_bytes);
            if left > 0 || self.waits == CallerWaits::Later {
                stream.ensure_event_at_tail();
            }
            self.queued.push((stream.clone(), position));
        }
        let since = stale_since(state, Location::HOST, &regions);
        let own = &self.queued[before..];
        let copied = Moved::of(own, Direction::ToHost, request.bytes_of(&regions));
        self.copied_bytes += copied.bytes;
        count(request, state, copied, stream.device_ref(), stream, since);
        Ok(())
    }
}

pub(in crate::transfer) fn len_bytes(copies: &[CopyBox]) -> u64 {
    copies.iter().map(CopyBox::len_bytes).sum()
}

/// Waits for the copies of one call to memory outside the array, and returns whether they have
/// arrived. `false` if work that should have written their source failed, and the contents are
/// valid elsewhere: the caller copies again. Returns an error if a copy failed, or if the contents
/// are lost. No `synchronize` returns the failures of the copies again.
pub(crate) fn wait_for_arrival(
    request: &Request<'_>,
    queued: &[(Stream, Position)],
) -> Result<bool> {
    request.wait_for(queued.into())?;
    let failed = failures_of(queued);
    if let Some((stream, record)) = failed.iter().find(|(_, record)| !record.inherited) {
        return Err(request.late_error(stream, record));
    }
    if failed.is_empty() {
        return Ok(true);
    }
    let mut state = request.storage.lock();
    state.reconcile(request.storage.memory_order());
    request.plan(&state, Location::HOST)?;
    Ok(false)
}

/// The first failure of the copies of one call, which are complete. All of them are one failure,
/// which no `synchronize` returns again. `array` is the array's name.
pub(crate) fn failure_of_copies(array: &str, queued: &Queued) -> Option<Error> {
    let (stream, record) = failures_of(queued).into_iter().next()?;
    if !record.inherited || record.kind != FailureKind::Contents {
        return Some(device::late_error(stream.device_ref(), &record).of_array(array));
    }
    Some(Error::Lost {
        array: String::from(array),
        operation: record.operation.clone(),
        site: record.site.into(),
        cause: record.cause.clone(),
    })
}

/// The failures of these copies, which no `synchronize` returns again.
fn failures_of(queued: &[(Stream, Position)]) -> SmallVec<[(&Stream, Arc<FailureRecord>); 1]> {
    let failures = queued.iter().filter_map(|(stream, position)| {
        let record = failure::at(stream.id(), *position)?;
        stream.core().mark_reported(*position);
        Some((stream, record))
    });
    failures.collect()
}
