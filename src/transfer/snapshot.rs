//! Copies of contents to memory of their own, which change no residency.

use std::sync::Arc;

use smallvec::SmallVec;

use super::assign::End;
use super::window::announce;
use super::{Queued, Request, acquire_host, run_deferred};
use crate::access::Access;
use crate::audit::{Cause, Direction};
use crate::backend::{Address, Bytes, CopyWork, FailureKind, HostMemory, Memory, Work, host_copy};
use crate::call_site::CallSite;
use crate::coherence::{ConstantId, Content, Holders, Location, Region, Source};
use crate::device::Stream;
use crate::error::Result;
use crate::layout::{CopyBox, Selection, split_copies};
use crate::storage::HostBuffer;

/// Memory that is being filled, and the work that fills it.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) buffer: Arc<HostBuffer>,
    pub(crate) queued: Queued,
}

/// Copies a part to `buffer`, where it lies packed, its axes in order and all running upwards in
/// memory. Device copies are queued on `stream` if it is of the device that holds the part, else on
/// that device's own.
pub(crate) fn snapshot(
    end: End<'_>,
    stream: Option<&Stream>,
    buffer: HostBuffer,
    operation: &str,
    site: CallSite,
) -> Result<Snapshot> {
    let memory_order = end.storage.memory_order();
    let mut snapshot = Snapshot { buffer: Arc::new(buffer), queued: Queued::new() };
    if memory_order.is_empty() {
        return Ok(snapshot);
    }
    let selection = memory_order.select(&end.view);
    let request = Request {
        storage: end.storage,
        selection: &selection,
        cause: Cause::Explicit,
        operation,
        site,
    };
    // What one device gives is one planned copy, however many parts it lies in.
    let mut taken: SmallVec<[(Location, Regions, Parts); 1]> = SmallVec::new();
    for (source, region) in sources(&request)? {
        for part in end.view.boxes_of(memory_order, &region) {
            let element_bytes = memory_order.element_bytes() as u64;
            let parts = end.view.copies_to_packed(&part, element_bytes);
            let selected = Selection::Boxes(SmallVec::from_iter([region]));
            let request = Request { selection: &selected, ..request };
            match source {
                Source::Constant(value) => snapshot.take_constant(&request, value, &parts),
                Source::Location(Location::HOST) => snapshot.take_host(&request, &parts)?,
                Source::Location(location) => take_with_others(&mut taken, location, region, parts),
            }
        }
    }
    let outcome = taken.into_iter().try_for_each(|(location, regions, parts)| {
        snapshot.take_device(&request, stream, location, &regions, parts)
    });
    run_deferred();
    outcome.map(|()| snapshot)
}

type Regions = SmallVec<[Region; 1]>;
type Parts = SmallVec<[CopyBox; 1]>;

fn take_with_others(
    taken: &mut SmallVec<[(Location, Regions, Parts); 1]>,
    location: Location,
    region: Region,
    parts: Parts,
) {
    match taken.iter_mut().find(|(known, ..)| *known == location) {
        Some((_, regions, known)) => {
            // A region that fits no box of the view comes once for each of the boxes that make it
            // up.
            if regions.last() != Some(&region) {
                regions.push(region);
            }
            known.extend(parts);
        }
        None => taken.push((location, SmallVec::from_iter([region]), parts)),
    }
}

/// Where each part is taken from: the host if it is valid there and nothing is on its way, else the
/// nearest holder.
fn sources(request: &Request<'_>) -> Result<Vec<(Source, Region)>> {
    let memory_order = request.storage.memory_order();
    let mut state = request.storage.lock();
    state.reconcile(memory_order);
    let host_is_still = request.marks_before(&state, Location::HOST, Access::Read, None).is_empty();
    let mut sources = Vec::new();
    if host_is_still {
        request.selection.for_each(memory_order, |region| {
            state.coherence.visit_contents(region, |part, content| {
                if content.is_valid(Location::HOST) {
                    sources.push((Source::Location(Location::HOST), *part));
                }
            });
        });
        sources.extend(
            request
                .plan(&state, Location::HOST, Access::Read)?
                .into_iter()
                .map(|piece| (piece.source, piece.region)),
        );
        return Ok(sources);
    }
    // Something is on its way to the host: what a device holds is taken from there, so as not to
    // wait.
    let mut is_defined = true;
    request.selection.for_each(memory_order, |region| {
        state.coherence.visit_contents(region, |part, content| match content {
            Content::Undefined(_) => is_defined = false,
            Content::Constant { value, .. } => sources.push((Source::Constant(value), *part)),
            Content::Stored(holders) => {
                sources.push((Source::Location(device_first(holders)), *part))
            }
        });
    });
    if !is_defined {
        request.plan(&state, Location::HOST, Access::Read)?;
    }
    Ok(sources)
}

/// A device if one holds the contents, else the host.
fn device_first(holders: Holders) -> Location {
    holders
        .locations()
        .iter()
        .find(|location| *location != Location::HOST)
        .unwrap_or(Location::HOST)
}

impl Snapshot {
    fn take_constant(&self, request: &Request<'_>, value: ConstantId, parts: &[CopyBox]) {
        let pattern: Bytes = request
            .storage
            .lock()
            .constant_value(value, request.storage.memory_order().element_bytes());
        for part in parts {
            // SAFETY: the part lies within the buffer by construction of `copies_to_packed`, and
            // these bytes of it are written by nobody else: the parts of a snapshot are disjoint.
            unsafe { host_copy::fill(self.buffer.base(), &part.destination(), &pattern) };
        }
    }

    fn take_host(&self, request: &Request<'_>, parts: &[CopyBox]) -> Result<()> {
        acquire_host(request, Access::Read)?;
        for part in parts {
            // SAFETY: the part lies within the host memory and within the buffer by construction of
            // `packed`; it is valid on the host and the caller's borrow keeps writers out; nobody
            // else writes these bytes of the buffer.
            unsafe { host_copy::copy_box(request.storage.host_base(), self.buffer.base(), part) };
        }
        Ok(())
    }

    fn take_device(
        &mut self,
        request: &Request<'_>,
        stream: Option<&Stream>,
        location: Location,
        regions: &Regions,
        parts: Parts,
    ) -> Result<()> {
        let device = request.storage.lock().device_copy(location).device.clone();
        let lists = split_copies(parts, device.backend().chunk_bytes_max());
        announce(&device, lists.iter().map(|parts| parts.iter().map(CopyBox::len_bytes).sum()));
        let mut state = request.storage.lock();
        if !state.holds(location, regions) {
            // It gave way to others, or failed to arrive: what another location has comes by way of
            // the host.
            request.plan(&state, Location::HOST, Access::Read)?;
            drop(state);
            let selected = Selection::Boxes(regions.clone());
            return self.take_host(&Request { selection: &selected, ..*request }, &lists.concat());
        }
        let stream = request.download_stream(&state, location, regions, stream);
        let depends = request.wait_for_writers(&state, &stream, location, regions)?;
        // In pieces: whoever waits puts one in its place while the next comes down.
        for parts in lists {
            let work = CopyWork {
                may_read_between: false,
                loss: FailureKind::Copy,
                source: Memory::Device(state.device_copy(location).address.unwrap_or(Address(0))),
                destination: Memory::Host(Arc::clone(&self.buffer) as Arc<dyn HostMemory>),
                source_device: None,
                parts,
                depends: depends.clone(),
                label: request.storage.label("snapshot of", request.site),
            };
            let position = request.submit_read(
                &mut state,
                &stream,
                location,
                regions,
                Work::Copy(Box::new(work)),
            )?;
            stream.record_in_time();
            self.queued.push((stream.clone(), position));
        }
        let bytes =
            regions.iter().map(|region| request.storage.memory_order().region_bytes(region)).sum();
        let since = request.since(&state, Location::HOST, regions);
        request.count(&mut state, Direction::ToHost, bytes, stream.device_ref(), &stream, since);
        Ok(())
    }
}
