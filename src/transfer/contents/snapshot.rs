//! Snapshots: copies of contents to separate memory. No copy of the array changes.

use std::sync::Arc;

use smallvec::SmallVec;

use super::copy_out::{CallerWaits, CopyOut, DeviceParts, Newest, len_bytes};
use super::newest::stream_where_newest;
use crate::audit::{self, Discarded};
use crate::device::Stream;
use crate::error::{Error, Result};
use crate::storage::HostBuffer;
use crate::transfer::access::acquire::acquire_on;
use crate::transfer::access::request::{Queued, Request, StoredView};
use crate::transfer::copy::job::prepare_downloads;
use crate::transfer::copy::missing::acquire_host;
use crate::transfer::copy::plan::operation_bytes_max;
use crate::transfer::copy::report::run_deferred;
use resident_backend::call_site::CallSite;
use resident_backend::failure::Inquiry;
use resident_backend::{CopyBox, Dependencies, host_copy};
use resident_core::Access;
use resident_core::coherence::{Content, Location, Region, Source};
use resident_core::layout::{Selection, Strided};

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

/// A call that copies contents out of an array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SnapshotCall<'c> {
    /// Copies from a device run on this stream if it is a stream of that device.
    pub(crate) stream: Option<&'c Stream>,
    pub(crate) waits: CallerWaits,
    /// The call's name in messages.
    pub(crate) operation: &'c str,
    pub(crate) site: CallSite,
}

/// Copies a part to `buffer`. `to` is a view of the buffer's memory, of the same shape as the part.
pub(crate) fn snapshot(
    part: StoredView<'_>,
    to: Strided<'_>,
    buffer: HostBuffer,
    call: SnapshotCall<'_>,
) -> Result<Snapshot> {
    let (buffer, inquiry) = (Arc::new(buffer), Inquiry::begin());
    let mut copies = CopyOut::new(buffer.clone(), call.waits, "snapshot of");
    // On an error the memory is dropped, whatever was written to it.
    snapshot_to(part, &mut copies, to, call).map_err(Error::with_contents_unchanged)?;
    let CopyOut { queued, copied_bytes, .. } = copies;
    let may_be_unread = call.waits == CallerWaits::Later;
    let device = queued.first().filter(|_| may_be_unread).map(|(stream, _)| stream.device_ref());
    let unread =
        device.and_then(|device| audit::discardable(part.storage, device, copied_bytes, call.site));
    Ok(Snapshot { buffer, queued, inquiry, unread: Unread(unread) })
}

/// Copies a part to the memory of `copies`. `to` is a view of that memory, of the same shape as the
/// part.
pub(super) fn snapshot_to(
    part: StoredView<'_>,
    copies: &mut CopyOut,
    to: Strided<'_>,
    call: SnapshotCall<'_>,
) -> Result<()> {
    if part.storage.memory_order().is_empty() {
        return Ok(());
    }
    if !part.has_fields() {
        return snapshot_from_one_place(part, copies, to, call);
    }
    part.with_units(to, part.is_divided(), |part, to| snapshot_units(part, copies, to, call))
}

/// As [`snapshot_to`], after all elements were made valid where most of the contents are newest:
/// the parts that have contents in one place may end within elements of the view.
fn snapshot_from_one_place(
    part: StoredView<'_>,
    out: &mut CopyOut,
    to: Strided<'_>,
    SnapshotCall { stream, operation, site, .. }: SnapshotCall<'_>,
) -> Result<()> {
    let selection = part.selection();
    let request = part.request(&selection, Access::Read, operation, site).ahead_of_use();
    if request.is_empty() {
        return Ok(());
    }
    let copies = part.view.copies_of_all_to(&to, u64::from(part.element_bytes));
    let Some(stream) = stream_where_newest(&part, stream) else {
        return out.copy_from_host(&request, &copies);
    };
    let acquired = acquire_on(&request, &stream, &mut Dependencies::new())?;
    let operations = SmallVec::from_iter([copies]);
    let parts = DeviceParts { location: acquired.location, regions: request.regions(), operations };
    let outcome = out.copy_from_device(&request, Some(&stream), parts);
    run_deferred();
    outcome
}

/// As [`snapshot_to`], for views in units of the memory order.
fn snapshot_units(
    part: StoredView<'_>,
    out: &mut CopyOut,
    to: Strided<'_>,
    SnapshotCall { stream, operation, site, .. }: SnapshotCall<'_>,
) -> Result<()> {
    let StoredView { storage, view, element_bytes } = part;
    let memory_order = storage.memory_order();
    let selection = part.selection();
    let request = part.request(&selection, Access::Read, operation, site).ahead_of_use();
    let unit_bytes = u64::from(element_bytes);
    // All parts from one device are one copy.
    let mut device_parts: SmallVec<[DeviceParts; 1]> = SmallVec::new();
    for (source, region) in sources(&request)? {
        for part in view.boxes_of(element_bytes, memory_order, &region) {
            let copies = view.copies_to(&to, &part, unit_bytes).2;
            let selected = Selection::Boxes(SmallVec::from_iter([region]));
            match source {
                Source::Constant(value) => {
                    let constant = storage.lock().constant_value(value, memory_order, &region);
                    out.fill(&constant, &copies);
                }
                Source::Location(Location::HOST) => {
                    out.copy_from_host(&request.of(&selected), &copies)?;
                }
                Source::Location(location) => {
                    DeviceParts::add(&mut device_parts, location, region, copies);
                }
            }
        }
    }
    let mut parts = device_parts.into_iter();
    let outcome = parts.try_for_each(|parts| out.copy_from_device(&request, stream, parts));
    run_deferred();
    outcome
}

/// The source of each part: the host, if the part is valid there and no use of that memory is
/// pending; else a device, so that the call does not wait for a copy to the host.
fn sources(request: &Request<'_>) -> Result<Vec<(Source, Region)>> {
    let mut state = request.storage.lock();
    state.reconcile(request.storage.memory_order());
    let host = state.host_location();
    let is_host_idle = request.conflicts(&state, host, Access::Read).is_empty();
    let reads_host = |content: Content| is_host_idle && content.is_valid(host);
    let newest = Newest::find(request, &state, host, reads_host);
    if newest.undefined.is_some() {
        // The plan names the reason.
        request.plan(&state, host)?;
    }
    Ok(newest.parts)
}

impl CopyOut {
    fn copy_from_host(&mut self, request: &Request<'_>, copies: &[CopyBox]) -> Result<()> {
        acquire_host(request)?;
        self.host_bytes += len_bytes(copies);
        for copy in copies {
            // SAFETY: the copies of `Strided` stay within the host memory and the destination. The
            // part is valid on the host and the caller's borrow excludes writers. Nothing else
            // writes these bytes of the destination.
            unsafe { host_copy::copy_box(request.storage.host_base(), self.memory.base(), copy) };
        }
        Ok(())
    }

    /// Copies parts that a device has. If it does not have them any more, the host copies them.
    pub(super) fn copy_from_device(
        &mut self,
        request: &Request<'_>,
        stream: Option<&Stream>,
        parts: DeviceParts,
    ) -> Result<()> {
        let device = request.storage.lock().device_copy(parts.location).device.clone();
        let parts = parts.split(operation_bytes_max(&*self.memory, &device));
        if !self.memory.is_pinned_for(device.kind()) {
            prepare_downloads(&device, parts.operations.iter().map(|copies| len_bytes(copies)));
        }
        let mut state = request.storage.lock();
        if !state.holds(parts.location, &parts.regions) {
            // The copy was evicted, or the work that wrote it failed. The contents are copied to
            // the host, from any other holder, and read there.
            request.plan(&state, state.host_location())?;
            drop(state);
            let selected = Selection::Boxes(parts.regions);
            return self.copy_from_host(&request.of(&selected), &parts.operations.concat());
        }
        let stream = request.download_stream(&state, parts.location, &parts.regions, stream);
        self.queue(request, &mut state, &stream, parts)
    }
}
