//! Copies of contents to memory that no array owns: snapshots, `copy_to_host`, and the states of
//! watches. No copy of the array changes.

use std::sync::Arc;

use smallvec::SmallVec;

use super::report::{Moved, count, stale_since};
use super::request::{Queued, Regions, Request};
use crate::audit::Direction;
use crate::device::{self, Stream};
use crate::error::{Error, Result};
use crate::storage::ArrayState;
use resident_backend::{
    Address, Bytes, CopyBox, CopyWork, FailureKind, HostMemory, Memory, Work, failure, host_copy,
};
use resident_core::coherence::{Content, Holders, Location, Region, Source, Undefined};
use resident_core::layout::{MemoryOrder, split_copies};

pub(super) type Copies = SmallVec<[CopyBox; 1]>;

/// The newest contents of a request.
#[derive(Default)]
pub(super) struct Newest {
    /// Each part with contents, and the location from which it is read.
    pub(super) parts: Vec<(Source, Region)>,
    /// Why some elements have no contents: because they were lost, if any were.
    pub(super) undefined: Option<Undefined>,
}

impl Newest {
    /// Reads from devices where possible: from the device of the part before, if it has the next
    /// part too. `host` is the location that counts as the host.
    pub(super) fn on_devices(request: &Request<'_>, state: &ArrayState, host: Location) -> Self {
        let (mut newest, mut device) = (Self::default(), None);
        request.selection.for_each(request.storage.memory_order(), |region| {
            state.coherence.visit_contents(region, |part, content| match content {
                Content::Undefined(why) => newest.add_undefined(why),
                Content::Constant { value, .. } => {
                    newest.parts.push((Source::Constant(value), *part));
                }
                Content::Stored(holders) => {
                    device = device_first(holders, device, host);
                    let location = device.unwrap_or(Location::HOST);
                    newest.parts.push((Source::Location(location), *part));
                }
            });
        });
        newest
    }

    fn add_undefined(&mut self, why: Undefined) {
        if !matches!(self.undefined, Some(Undefined::Lost(_))) {
            self.undefined = Some(why);
        }
    }
}

/// `known`, or else any device, if the contents are valid there. A device that accesses the host
/// memory counts as the host: its driver copies within the host at once.
fn device_first(holders: Holders, known: Option<Location>, host: Location) -> Option<Location> {
    let is_device = |location: &Location| *location != host;
    known
        .filter(|known| holders.contains(*known))
        .or_else(|| holders.locations().iter().find(is_device))
}

/// The same parts, those of constants [unbroken](MemoryOrder::unbroken).
pub(super) fn unbroken(
    memory_order: &MemoryOrder,
    parts: Vec<(Source, Region)>,
) -> Vec<(Source, Region)> {
    let mut unbroken = Vec::with_capacity(parts.len());
    for (source, region) in parts {
        match source {
            Source::Location(_) => unbroken.push((source, region)),
            Source::Constant(_) => {
                let parts = memory_order.unbroken(&region).into_iter();
                unbroken.extend(parts.map(|part| (source, part)));
            }
        }
    }
    unbroken
}

/// The parts that are copied from one device.
pub(super) struct DeviceParts {
    pub(super) location: Location,
    pub(super) regions: Regions,
    pub(super) copies: Copies,
}

impl DeviceParts {
    /// Adds a part to those of the same device. If a region consists of several boxes of a view, it
    /// is added once for each box.
    pub(super) fn add(
        all: &mut SmallVec<[Self; 1]>,
        location: Location,
        region: Region,
        copies: Copies,
    ) {
        match all.iter_mut().find(|known| known.location == location) {
            Some(known) => {
                if known.regions.last() != Some(&region) {
                    known.regions.push(region);
                }
                known.copies.extend(copies);
            }
            None => all.push(Self { location, regions: Regions::from_iter([region]), copies }),
        }
    }

    /// One operation should copy at most this number of bytes.
    pub(super) fn split(self, bytes_max: u64) -> SplitParts {
        let Self { location, regions, copies } = self;
        SplitParts { location, regions, operations: split_copies(copies, bytes_max) }
    }
}

/// The parts that are copied from one device, in several operations: while the next part is
/// downloaded, the waiting thread unpacks the one before.
pub(super) struct SplitParts {
    pub(super) location: Location,
    pub(super) regions: Regions,
    pub(super) operations: SmallVec<[Copies; 1]>,
}

/// When the caller of a copy waits for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// At once, so that no event is recorded behind the last operation.
    Now,
    /// Perhaps later.
    Later,
}

/// The copies of one call. What was queued stays known if a later copy is refused.
pub(super) struct CopyOut {
    pub(super) memory: Arc<dyn HostMemory>,
    wait: Wait,
    /// What the work is called in messages: `snapshot of`.
    label: &'static str,
    pub(super) queued: Queued,
    /// The bytes that are copied from devices.
    pub(super) copied_bytes: u64,
}

impl CopyOut {
    pub(super) fn new(memory: Arc<dyn HostMemory>, wait: Wait, label: &'static str) -> Self {
        Self { memory, wait, label, queued: Queued::new(), copied_bytes: 0 }
    }

    /// Ends the call, and drops its handle of the memory.
    pub(super) fn into_queued(self) -> Queued {
        self.queued
    }

    /// Fills the destinations of these copies with a constant.
    pub(super) fn fill(&self, constant: &Bytes, copies: &[CopyBox]) {
        for copy in copies {
            // SAFETY: the copies of `Strided` and of `Footprint` stay within the memory, and
            // nothing else writes these bytes of it, because the parts of a call are disjoint.
            unsafe { host_copy::fill(self.memory.base(), &copy.destination(), constant) };
        }
    }

    /// Queues copies from a device, behind the work that wrote the parts.
    pub(super) fn queue(
        &mut self,
        request: &Request<'_>,
        state: &mut ArrayState,
        stream: &Stream,
        SplitParts { location, regions, operations }: SplitParts,
    ) -> Result<()> {
        let depends = request.wait_for_writers(state, stream, location, &regions)?;
        let (mut left, before) = (operations.len(), self.queued.len());
        for parts in operations {
            left -= 1;
            let work = Work::Copy(Box::new(CopyWork {
                may_read_between: false,
                loss: FailureKind::Copy,
                source: Memory::Device(state.device_copy(location).address().unwrap_or(Address(0))),
                destination: Memory::Host(Arc::clone(&self.memory)),
                source_device: None,
                parts,
                depends: depends.clone(),
                label: request.storage.label(self.label, request.site),
            }));
            let position = request.submit_read(state, stream, location, &regions, work)?;
            if left > 0 || self.wait == Wait::Later {
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

/// The first failure of the copies of one call, which are complete. All of them are one failure,
/// which no `synchronize` returns again. `array` is the array's name.
pub(crate) fn failure_of_copies(array: &str, queued: &Queued) -> Option<Error> {
    let mut first = None;
    for (stream, position) in queued {
        if let Some(record) = failure::at(stream.id(), *position) {
            stream.core().mark_reported(*position);
            first.get_or_insert((stream, record));
        }
    }
    let (stream, record) = first?;
    if !record.inherited || record.kind != FailureKind::Contents {
        return Some(device::late_error(stream.device_ref(), &record));
    }
    Some(Error::Lost {
        array: String::from(array),
        operation: record.operation.clone(),
        site: record.site.into(),
        cause: record.cause.clone(),
    })
}
