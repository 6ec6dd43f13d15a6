//! Copies between a device's copy of an array and memory of the caller, which no array owns. They
//! are made for explicit device arrays, whose contents are on one device only.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use super::copy_out::{CallerWaits, CopyOut, wait_for_arrival};
use super::snapshot::{SnapshotCall, snapshot_to};
use crate::audit::Direction;
use crate::device::{Device, Stream};
use crate::error::Result;
use crate::storage::StaleOrigin;
use crate::transfer::access::acquire::acquire_on;
use crate::transfer::access::acquired::Acquired;
use crate::transfer::access::mark::mark;
use crate::transfer::access::request::{Regions, Request, StoredView};
use crate::transfer::copy::changed_bytes::lent_hash;
use crate::transfer::copy::job::{Boxes, queue, start};
use crate::transfer::copy::plan::operation_bytes_max;
use crate::transfer::copy::report::{Moved, count, report_after};
use resident_backend::call_site::CallSite;
use resident_backend::fork::ForkMark;
use resident_backend::unwinding::abort_on_unwind;
use resident_backend::{
    Address, CopyBox, CopyWork, Copying, Dependencies, DeviceKind, FailureKind, HostMemory, Maker,
    Memory, Position, failure, host_copy, scope,
};
use resident_core::Access;
use resident_core::coherence::{Location, Region};
use resident_core::layout::{Selection, Strided};
use resident_core::ordering::UseEnd;

/// Initialised memory that the caller lends for `'a`, and a view of it.
#[derive(Debug)]
pub(crate) struct LentView<'a> {
    base: *mut u8,
    len_bytes: usize,
    view: Strided<'a>,
    lent: PhantomData<&'a mut [u8]>,
}

/// Memory that someone lends for the time of a call. Queued work may have handles of it until the
/// work is complete, so the call ends only when it has the only handle.
#[derive(Debug)]
struct LentMemory {
    base: *mut u8,
    len_bytes: usize,
    /// The kind of device for which the memory is pinned.
    pinned_for: Option<DeviceKind>,
    /// Whether the device died during work with this memory, so that its backend keeps a handle
    /// forever.
    is_leaked: AtomicBool,
}

impl LentMemory {
    /// The memory of a view of an upload, if its elements have so many bytes: then it has no gaps.
    fn unbroken(&self, len_bytes: u64) -> Option<&[u8]> {
        // SAFETY: `LentView::new` requires initialised memory of this length, lent for longer than
        // the call that has this value. Uploads only read it.
        let bytes = || unsafe { std::slice::from_raw_parts(self.base, self.len_bytes) };
        (len_bytes > 0 && self.len_bytes as u64 == len_bytes).then(bytes)
    }
}

// SAFETY: the value is a range of memory whose accesses the users of `LentView` order.
unsafe impl Send for LentMemory {}
// SAFETY: as for `Send`.
unsafe impl Sync for LentMemory {}

// SAFETY: `LentView::new` requires initialised memory of this length, lent for longer than the call
// that queues the work; `Lease` does not return before the work has dropped its handles.
unsafe impl HostMemory for LentMemory {
    fn base(&self) -> *mut u8 {
        self.base
    }

    fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    fn mark_leaked(&self) {
        self.is_leaked.store(true, Ordering::Release);
    }

    fn is_pinned_for(&self, kind: DeviceKind) -> bool {
        self.pinned_for == Some(kind)
    }
}

impl<'a> LentView<'a> {
    /// # Safety
    ///
    /// The `len_bytes` bytes from `base` on are initialised and contain the elements of `view`,
    /// whose offset counts from `base`. For `'a` nothing else writes them; if they are to be
    /// written, nothing else accesses them.
    pub(crate) unsafe fn new(base: *mut u8, len_bytes: usize, view: Strided<'a>) -> Self {
        Self { base, len_bytes, view, lent: PhantomData }
    }

    /// `device` is the one that copies.
    fn lease(&self, device: &Device, site: CallSite) -> Lease {
        let is_pinned = device.backend().is_pinned(self.base, self.len_bytes);
        let memory = LentMemory {
            base: self.base,
            len_bytes: self.len_bytes,
            pinned_for: is_pinned.then(|| device.kind()),
            is_leaked: AtomicBool::new(false),
        };
        Lease { memory: Arc::new(memory), queued: None, site, process: ForkMark::new() }
    }
}

/// Lent memory that queued work may use. Its drop waits until no work does.
struct Lease {
    memory: Arc<LentMemory>,
    queued: Option<(Stream, Position)>,
    /// The call that lends it.
    site: CallSite,
    /// Of the process that lends it: a forked child has a copy of the memory, which no work uses.
    process: ForkMark,
}

impl Lease {
    /// Whether the device that copies accesses the memory itself.
    fn is_pinned(&self) -> bool {
        self.memory.pinned_for.is_some()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let is_leaked = || self.memory.is_leaked.load(Ordering::Acquire);
        abort_on_unwind("a copy from or to borrowed memory", || {
            while Arc::strong_count(&self.memory) > 1 && !is_leaked() && self.process.is_own() {
                // A refused wait says nothing about the work: only its handle does.
                if let Some((stream, position)) = &self.queued {
                    let _error = stream.wait_until(*position, self.site);
                }
                std::thread::yield_now();
            }
        });
        // The work's accesses happened before its handles were dropped, and so before this.
        fence(Ordering::Acquire);
    }
}

/// Overwrites a part on `stream`'s device with the elements of `from`, which has the same shape.
/// Returns when `from` has been read.
pub(crate) fn copy_from_host(
    to: StoredView<'_>,
    from: &LentView<'_>,
    stream: &Stream,
    site: CallSite,
) -> Result<()> {
    let selection = to.selection();
    let request = to.request(&selection, Access::Overwrite, "copy_from_host", site);
    if request.is_empty() {
        return Ok(());
    }
    to.with_units(from.view, to.is_divided(), |to, view| {
        let from = LentView { view, ..*from };
        report_after(|| upload_all(&request, to.view, &from, stream))
    })
}

/// As [`copy_from_host`], for a request that is not empty. Calls no user code.
fn upload_all(
    request: &Request<'_>,
    to: Strided<'_>,
    from: &LentView<'_>,
    stream: &Stream,
) -> Result<()> {
    let acquired = acquire_on(request, stream, &mut Dependencies::new())?;
    let lease = from.lease(stream.device_ref(), request.site);
    let bytes_max = operation_bytes_max(&*lease.memory, stream.device_ref());
    let chunks = request.storage.memory_order().split_regions(&request.regions(), bytes_max);
    let (from, written) = (from.view, Regions::new());
    let Acquired { location, address, .. } = acquired;
    let mut upload = Upload { request, stream, to, from, location, address, lease, written };
    let outcome = chunks.into_iter().try_for_each(|regions| upload.queue(regions));
    upload.close(acquired, outcome)
}

/// The chunks of one upload. Each depends on the one before, so that the last one fails if any
/// does.
struct Upload<'r> {
    request: &'r Request<'r>,
    stream: &'r Stream,
    to: Strided<'r>,
    from: Strided<'r>,
    location: Location,
    address: Address,
    lease: Lease,
    /// What the queued chunks write.
    written: Regions,
}

impl Upload<'_> {
    /// Queues the copies of one chunk.
    fn queue(&mut self, regions: Regions) -> Result<()> {
        let parts = parts_of(self.request, &regions, self.to, self.from);
        let regions = Selection::Boxes(regions);
        self.queue_parts(&self.request.of(&regions), parts)?;
        if let Selection::Boxes(regions) = regions {
            self.written.extend(regions);
        }
        Ok(())
    }

    /// Queues copies to the elements of `request`.
    fn queue_parts(&mut self, request: &Request<'_>, parts: Boxes) -> Result<()> {
        let (stream, location) = (self.stream, self.location);
        let copy_error = |error| request.write_error(stream, location, "copying", &error);
        let source = self.lease.memory.clone() as Arc<dyn HostMemory>;
        let direct = || self.work(source, parts.clone());
        // The device accesses pinned memory itself: the call returns once it has (`Lease`).
        let maker = if self.lease.is_pinned() { Maker::CallerOrStream } else { Maker::Caller };
        let copying = start(stream, maker, direct).map_err(copy_error)?;
        if !matches!(copying, Copying::Declined) {
            self.lease.queued = Some((stream.clone(), copying.position()));
            copying.run();
            return Ok(());
        }
        let (staging, staged) = self.pack(parts)?;
        let position = queue(stream, self.work(staging, staged)).map_err(copy_error)?;
        self.lease.queued = Some((stream.clone(), position));
        Ok(())
    }

    /// Packs parts of the lent memory into staging memory. Returns the copies from there.
    fn pack(&self, parts: Boxes) -> Result<(Arc<dyn HostMemory>, Boxes)> {
        let len_bytes = parts.iter().map(CopyBox::len_bytes).sum();
        let staging = self.request.staging(self.stream, len_bytes)?;
        let (mut packed_bytes, mut staged) = (0, Boxes::new());
        for part in parts {
            let packing = part.source().copy_from_packed(packed_bytes).reversed();
            // SAFETY: the lent memory contains the elements of the view from which the copies were
            // made, and nothing writes them meanwhile (`LentView::new`). The staging memory has
            // `len_bytes` bytes, and this call alone has it.
            unsafe { host_copy::copy_box(self.lease.memory.base, staging.base(), &packing) };
            staged.push(part.destination().copy_from_packed(packed_bytes));
            packed_bytes += part.len_bytes();
        }
        Ok((staging, staged))
    }

    fn work(&self, source: Arc<dyn HostMemory>, parts: Boxes) -> Box<CopyWork> {
        let before = self.lease.queued.as_ref().map(|(stream, position)| (stream.id(), *position));
        let (source, destination) = (Memory::Host(source), Memory::Device(self.address));
        let copy = self.request.copy_work("copy to", source, destination, parts);
        let depends = before.into_iter().collect();
        Box::new(CopyWork { loss: FailureKind::Contents, depends, ..copy })
    }

    /// Marks what the queued chunks write, and waits until the memory was read. Returns the outcome
    /// of queueing them; an error says how many bytes are written all the same.
    fn close(self, acquired: Acquired<'_>, outcome: Result<()>) -> Result<()> {
        let Self { request, stream, lease, written, .. } = self;
        let written_bytes = request.bytes_of(&written);
        if let Some((_, position)) = &lease.queued {
            let part = Selection::Boxes(written);
            let request = request.of(if outcome.is_ok() { request.selection } else { &part });
            mark(&request, stream, acquired, UseEnd::at(*position));
            let bytes = request.selection.len_bytes(request.storage.memory_order());
            let lent_hash = lent_hash(|| lease.memory.unbroken(bytes));
            let moved = Moved { lent_hash, ..Moved::at(*position, Direction::ToDevice, bytes) };
            let (state, since) = (&mut request.storage.lock(), StaleOrigin::Unreported);
            count(&request, state, moved, stream.device_ref(), stream, since);
        }
        drop(lease);
        outcome.map_err(|error| error.after_writing(written_bytes))
    }
}

/// The copies of regions from `from` to `to`, a view of the array that the request is for.
pub(super) fn parts_of(
    request: &Request<'_>,
    regions: &[Region],
    to: Strided<'_>,
    from: Strided<'_>,
) -> Boxes {
    let memory_order = request.storage.memory_order();
    let unit_bytes = memory_order.unit_bytes();
    let boxes = regions.iter().flat_map(|region| to.boxes_of(unit_bytes, memory_order, region));
    boxes.flat_map(|part| to.copies_from(&from, &part, u64::from(unit_bytes))).collect()
}

/// Copies a part to `to`, which has the same shape. Copies from a device run on `stream` if it is a
/// stream of that device. Returns when the elements have arrived.
pub(crate) fn copy_to_host(
    from: StoredView<'_>,
    to: &LentView<'_>,
    stream: &Stream,
    site: CallSite,
) -> Result<()> {
    let operation = "copy_to_host_into";
    let selection = from.selection();
    let request = from.request(&selection, Access::Read, operation, site);
    if scope::is_in_body() {
        return Err(request.inside_kernel("a copy to the host"));
    }
    report_after(|| {
        while !download(&request, from, to, stream)? {}
        Ok(())
    })
}

/// As [`copy_to_host`]. Returns `false` if the contents are to be copied again, from elsewhere.
/// Calls no user code: an unwind would leave the memory before it is known what to wait for.
fn download(
    request: &Request<'_>,
    from: StoredView<'_>,
    to: &LentView<'_>,
    stream: &Stream,
) -> Result<bool> {
    let Request { operation, site, .. } = *request;
    let _inquiry = failure::Inquiry::begin();
    let mut lease = to.lease(stream.device_ref(), site);
    let call = SnapshotCall { stream: Some(stream), waits: CallerWaits::AtOnce, operation, site };
    let mut copies = CopyOut::new(lease.memory.clone(), call.waits, "snapshot of");
    let outcome = abort_on_unwind("a copy to borrowed memory", || {
        snapshot_to(from, &mut copies, to.view, call)
    });
    let (host_bytes, queued_bytes) = (copies.host_bytes, std::mem::take(&mut copies.queued_bytes));
    let queued = copies.into_queued();
    lease.queued = queued.last().cloned();
    let outcome = outcome.and_then(|()| wait_for_arrival(request, &queued));
    outcome.map_err(|error| {
        // The queued copies are complete after this.
        drop(lease);
        let has_failed =
            |(stream, position): &(Stream, Position)| failure::at(stream.id(), *position).is_some();
        let arrived = queued.iter().zip(queued_bytes).filter(|(queued, _)| !has_failed(queued));
        error.after_writing(host_bytes + arrived.map(|(_, bytes)| bytes).sum::<u64>())
    })
}
