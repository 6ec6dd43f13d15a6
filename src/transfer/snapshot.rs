//! Snapshots: copies of contents to separate memory. No copy of the array changes.

use std::sync::Arc;

use smallvec::SmallVec;

use super::acquire::acquire_host;
use super::download::prepare_downloads;
use super::report::{Moved, count, run_deferred, stale_since};
use super::request::{Queued, Regions, Request, StoredView};
use crate::audit::{self, Cause, Direction, Discarded};
use crate::device::Stream;
use crate::error::Result;
use crate::storage::HostBuffer;
use resident_backend::call_site::CallSite;
use resident_backend::failure::Inquiry;
use resident_backend::{
    Address, CopyBox, CopyWork, FailureKind, HostMemory, Memory, Work, host_copy,
};
use resident_core::Access;
use resident_core::coherence::{ConstantId, Content, Holders, Location, Region, Source};
use resident_core::layout::{Selection, Strided, split_copies};

/// Memory that queued work fills.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) buffer: Arc<HostBuffer>,
    pub(crate) queued: Queued,
    /// Keeps the records of failures of the queued work.
    pub(crate) inquiry: Inquiry,
    pub(crate) unread: Unread,
}

/// Tells captures when it drops that a snapshot was never taken.
#[derive(Debug, Default)]
pub(crate) struct Unread(Option<Box<Discarded>>);

impl Unread {
    /// The snapshot was taken, or there will be none.
    pub(crate) fn end(&mut self) {
        self.0 = None;
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        if let Some(discarded) = &self.0
            && !std::thread::panicking()
        {
            audit::record_discard(discarded);
        }
    }
}

type Copies = SmallVec<[CopyBox; 1]>;

/// The parts that are copied from one device.
struct DeviceParts {
    location: Location,
    regions: Regions,
    copies: Copies,
}

/// Where the copied elements go.
pub(super) struct Destination<'v> {
    pub(super) memory: Arc<dyn HostMemory>,
    /// A view of the memory, of the same shape as the part; `None` for row-major order without
    /// gaps, with all axes ascending.
    pub(super) view: Option<Strided<'v>>,
    /// Whether the caller waits at once. Then no event is recorded behind the last copy.
    pub(super) is_awaited: bool,
}

/// Copies a part to `buffer`, in row-major order without gaps. Copies from a device run on `stream`
/// if it is a stream of that device. `is_awaited` says that the caller waits at once.
pub(crate) fn snapshot(
    part: StoredView<'_>,
    (stream, is_awaited): (Option<&Stream>, bool),
    buffer: HostBuffer,
    operation: &str,
    site: CallSite,
) -> Result<Snapshot> {
    let (buffer, inquiry) = (Arc::new(buffer), Inquiry::begin());
    let mut queued = Queued::new();
    let destination = Destination { memory: buffer.clone(), view: None, is_awaited };
    let bytes = snapshot_to(part, stream, &destination, &mut queued, operation, site)?;
    let device = queued.first().map(|(stream, _)| stream.device_ref());
    let unread = device.and_then(|device| audit::discardable(part.storage, device, bytes, site));
    Ok(Snapshot { buffer, queued, inquiry, unread: Unread(unread) })
}

/// Copies a part to a destination, and adds the work that it queued to `queued`. Returns the bytes
/// that it copies from devices.
pub(super) fn snapshot_to(
    part: StoredView<'_>,
    stream: Option<&Stream>,
    destination: &Destination<'_>,
    queued: &mut Queued,
    operation: &str,
    site: CallSite,
) -> Result<u64> {
    if part.storage.memory_order().is_empty() {
        return Ok(0);
    }
    let to = destination.view.unwrap_or(part.view);
    if !part.is_divided() {
        return snapshot_units(part, to, stream, destination, queued, operation, site);
    }
    let (view, to) = (part.view.in_bytes(part.element_bytes), to.in_bytes(part.element_bytes));
    let part = part.bytes(&view);
    snapshot_units(part, to.strided(), stream, destination, queued, operation, site)
}

/// As [`snapshot_to`], for a view in units of the memory order.
fn snapshot_units(
    part: StoredView<'_>,
    to: Strided<'_>,
    stream: Option<&Stream>,
    destination: &Destination<'_>,
    queued: &mut Queued,
    operation: &str,
    site: CallSite,
) -> Result<u64> {
    let StoredView { storage, view, element_bytes } = part;
    let memory_order = storage.memory_order();
    let split = view.split_with(&to, element_bytes, memory_order);
    let (view, to) = split.as_ref().map_or((view, to), |(view, to)| (view.strided(), to.strided()));
    let selection = StoredView { view, ..part }.selection();
    let request =
        Request::new(storage, &selection, Cause::Explicit, operation, site).ahead_of_use();
    let is_awaited = destination.is_awaited;
    let mut copying = Copying { memory: &destination.memory, is_awaited, queued, copied_bytes: 0 };
    let unit_bytes = u64::from(element_bytes);
    // All parts from one device are one copy.
    let mut device_parts: SmallVec<[DeviceParts; 1]> = SmallVec::new();
    for (source, region) in unbroken_sources(&request)? {
        for part in view.boxes_of(element_bytes, memory_order, &region) {
            let copies = match destination.view {
                Some(_) => view.copies_to(&to, &part, unit_bytes).2,
                None => view.copies_to_packed(&part, unit_bytes),
            };
            let selected = Selection::Boxes(SmallVec::from_iter([region]));
            match source {
                Source::Constant(value) => copying.fill(&request, value, &region, &copies),
                Source::Location(Location::HOST) => {
                    copying.copy_from_host(&request.of(&selected), &copies)?;
                }
                Source::Location(location) => add(&mut device_parts, location, region, copies),
            }
        }
    }
    let outcome = device_parts
        .into_iter()
        .try_for_each(|parts| copying.copy_from_device(&request, stream, parts));
    run_deferred();
    outcome.map(|()| copying.copied_bytes)
}

fn add(
    device_parts: &mut SmallVec<[DeviceParts; 1]>,
    location: Location,
    region: Region,
    copies: Copies,
) {
    match device_parts.iter_mut().find(|known| known.location == location) {
        Some(known) => {
            // If a region consists of several boxes of the view, there is one entry for each box.
            if known.regions.last() != Some(&region) {
                known.regions.push(region);
            }
            known.copies.extend(copies);
        }
        None => {
            let regions = Regions::from_iter([region]);
            device_parts.push(DeviceParts { location, regions, copies });
        }
    }
}

/// The source of each part. Parts of constants are [unbroken](MemoryOrder::unbroken).
fn unbroken_sources(request: &Request<'_>) -> Result<Vec<(Source, Region)>> {
    let memory_order = request.storage.memory_order();
    let mut unbroken = Vec::new();
    for (source, region) in sources(request)? {
        match source {
            Source::Location(_) => unbroken.push((source, region)),
            Source::Constant(_) => {
                let parts = memory_order.unbroken(&region).into_iter();
                unbroken.extend(parts.map(|part| (source, part)));
            }
        }
    }
    Ok(unbroken)
}

/// The source of each part: `Location::HOST`, which stands for a copy by the host, if the part is
/// valid there and no use of that memory is pending; else the cheapest holder.
fn sources(request: &Request<'_>) -> Result<Vec<(Source, Region)>> {
    let memory_order = request.storage.memory_order();
    let mut state = request.storage.lock();
    state.reconcile(memory_order);
    let host = state.host_location();
    let is_host_idle = request.conflicts(&state, host, Access::Read).is_empty();
    let mut sources = Vec::new();
    if is_host_idle {
        request.selection.for_each_region(memory_order, |region| {
            state.coherence.visit_contents(region, |part, content| {
                if content.is_valid(host) {
                    sources.push((Source::Location(Location::HOST), *part));
                }
            });
        });
        let copies = request.plan(&state, host)?;
        sources.extend(copies.into_iter().map(|copy| (copy.source, copy.region)));
        return Ok(sources);
    }
    // A copy to the host is pending: where possible, devices are the sources, so that the call does
    // not wait for that copy.
    let mut is_defined = true;
    request.selection.for_each_region(memory_order, |region| {
        state.coherence.visit_contents(region, |part, content| match content {
            Content::Undefined(_) => is_defined = false,
            Content::Constant { value, .. } => sources.push((Source::Constant(value), *part)),
            Content::Stored(holders) => {
                sources.push((Source::Location(device_first(holders, host)), *part));
            }
        });
    });
    if !is_defined {
        request.plan(&state, Location::HOST)?;
    }
    Ok(sources)
}

/// A device where the contents are valid, other than one that accesses the host memory: its driver
/// copies within the host at once. The host if there is none.
fn device_first(holders: Holders, host: Location) -> Location {
    let is_device = |location: &Location| *location != host;
    holders.locations().iter().find(is_device).unwrap_or(Location::HOST)
}

/// The copies of one call.
struct Copying<'c> {
    memory: &'c Arc<dyn HostMemory>,
    is_awaited: bool,
    queued: &'c mut Queued,
    copied_bytes: u64,
}

impl Copying<'_> {
    fn fill(&self, request: &Request<'_>, value: ConstantId, region: &Region, copies: &[CopyBox]) {
        let storage = request.storage;
        let pattern = storage.lock().constant_value(value, storage.memory_order(), region);
        for copy in copies {
            // SAFETY: the copies of `Strided` stay within the memory, and nothing else writes these
            // bytes of it, because the parts of a snapshot are disjoint.
            unsafe { host_copy::fill(self.memory.base(), &copy.destination(), &pattern) };
        }
    }

    fn copy_from_host(&self, request: &Request<'_>, copies: &[CopyBox]) -> Result<()> {
        acquire_host(request, Access::Read)?;
        for copy in copies {
            // SAFETY: the copies of `Strided` stay within the host memory and the destination. The
            // part is valid on the host and the caller's borrow excludes writers. Nothing else
            // writes these bytes of the destination.
            unsafe { host_copy::copy_box(request.storage.host_base(), self.memory.base(), copy) };
        }
        Ok(())
    }

    fn copy_from_device(
        &mut self,
        request: &Request<'_>,
        stream: Option<&Stream>,
        DeviceParts { location, regions, copies }: DeviceParts,
    ) -> Result<()> {
        let device = request.storage.lock().device_copy(location).device.clone();
        let is_pinned = self.memory.is_pinned_for(device.kind());
        let chunk_bytes_max = if is_pinned { u64::MAX } else { device.backend().chunk_bytes_max() };
        let chunks = split_copies(copies, chunk_bytes_max);
        let len_bytes = |chunk: &Copies| chunk.iter().map(CopyBox::len_bytes).sum();
        if !is_pinned {
            prepare_downloads(&device, chunks.iter().map(len_bytes));
        }
        let mut state = request.storage.lock();
        if !state.holds(location, &regions) {
            // The copy was evicted, or the work that wrote it failed. The contents are copied to
            // the host, from any other holder, and read there.
            request.plan(&state, state.host_location())?;
            drop(state);
            let selected = Selection::Boxes(regions);
            return self.copy_from_host(&request.of(&selected), &chunks.concat());
        }
        let stream = request.download_stream(&state, location, &regions, stream);
        let depends = request.wait_for_writers(&mut state, &stream, location, &regions)?;
        // The copy is made in chunks: the waiting thread unpacks one chunk while the next is
        // downloaded.
        let (mut left, before) = (chunks.len(), self.queued.len());
        for parts in chunks {
            left -= 1;
            let work = Work::Copy(Box::new(CopyWork {
                may_read_between: false,
                loss: FailureKind::Copy,
                source: Memory::Device(state.device_copy(location).address().unwrap_or(Address(0))),
                destination: Memory::Host(Arc::clone(self.memory)),
                source_device: None,
                parts,
                depends: depends.clone(),
                label: request.storage.label("snapshot of", request.site),
            }));
            let position = request.submit_read(&mut state, &stream, location, &regions, work)?;
            if left > 0 || !self.is_awaited {
                stream.ensure_event_at_tail();
            }
            self.queued.push((stream.clone(), position));
        }
        let since = stale_since(&state, Location::HOST, &regions);
        let own = &self.queued[before..];
        let copied = Moved::of(own, Direction::ToHost, request.bytes_of(&regions));
        self.copied_bytes += copied.bytes;
        count(request, &mut state, copied, stream.device_ref(), &stream, since);
        Ok(())
    }
}
