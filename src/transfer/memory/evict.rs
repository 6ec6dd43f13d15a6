//! Frees an array's copy on a device: on request, or because the device is full (`room` decides
//! when).

use std::ops::ControlFlow;

use super::release;
use crate::audit::{self, Cause, MemoryChange, MemoryNotice};
use crate::device::Device;
use crate::error::Result;
use crate::storage::{ArrayState, StateGuard, Storage};
use crate::transfer::access::request::{Queued, Regions, Request, ends_of, users_of_other_kinds};
use crate::transfer::copy::job::{CopyJob, Pipeline, Purpose, ReadFrom, prepare_downloads};
use crate::transfer::copy::missing::acquire_host;
use crate::transfer::copy::report::{record_memory, run_deferred};
use resident_backend::Maker;
use resident_backend::call_site::CallSite;
use resident_backend::sync;
use resident_core::Access;
use resident_core::coherence::{Content, Location};
use resident_core::layout::Selection;
use resident_core::ordering::UseEnd;

/// Frees the array's memory on a device, after its uses. Contents that are valid only there are
/// first copied to the host. The caller borrows the array exclusively.
pub(crate) fn release_on(request: &Request<'_>, device: &Device) -> Result<()> {
    if give_up(request, device)? {
        audit::note_memory(MemoryNotice::Free, request.storage, device, request.site);
    }
    run_deferred();
    Ok(())
}

/// As [`release_on`]. Returns whether there was memory.
fn give_up(request: &Request<'_>, device: &Device) -> Result<bool> {
    let storage = request.storage;
    if request.is_empty() {
        return Ok(false);
    }
    loop {
        let mut state = storage.lock();
        state.reconcile(storage.memory_order());
        let Some(location) = state.find_location(device) else { return Ok(false) };
        if location == state.host_location() {
            // The device accesses the host memory, which stays.
            return Ok(false);
        }
        let only_there = regions_not_on_host(storage, &state, location);
        if !only_there.is_empty() {
            drop(state);
            acquire_host(&request.of(&Selection::Boxes(only_there)))?;
            continue;
        }
        // Copies of these elements to the host may still fail. No guard makes any.
        let whole = request.of(&Selection::Whole);
        let mut marks = whole.conflicts(&state, state.host_location(), Access::Overwrite);
        marks.retain(|mark| mark.end != UseEnd::OPEN);
        if marks.is_empty() {
            let has_memory = state.device_copy(location).address().is_some();
            remove_copy(storage, &mut state, location, request.site);
            return Ok(has_memory);
        }
        state.retire_host_uses(storage.memory_order(), &Selection::Whole);
        let pending = ends_of(&state, &marks);
        drop(state);
        request.wait_for(pending)?;
    }
}

/// Makes room in an array that has copies on as many devices as it can: gives up one on a device
/// that the program has dropped, whose contents then are on the host. `false` if there is none.
pub(in crate::transfer) fn give_up_copy(request: &Request<'_>) -> Result<bool> {
    let storage = request.storage;
    let found = dropped_device(storage).or_else(|| {
        // Queued work keeps its device open.
        wait_for_devices(request);
        dropped_device(storage)
    });
    let Some(device) = found else { return Ok(false) };
    if give_up(&request.of(&Selection::Whole).reading(), &device)? {
        record_memory(storage, &device, MemoryChange::Eviction, request.site);
    }
    Ok(true)
}

/// Waits for the work of the devices that have copies. A failure there is no failure of this call.
fn wait_for_devices(request: &Request<'_>) {
    let devices: Vec<Device> =
        request.storage.lock().devices().map(|(_, device)| device.clone()).collect();
    for device in devices {
        let _over = device.wait_for_all(request.site);
    }
    sync::run_deferred_drops();
}

/// A device that the program has dropped, and whose copy nothing uses: one without contents that
/// the host lacks, if there is one.
fn dropped_device(storage: &Storage) -> Option<Device> {
    let mut state = storage.lock();
    state.reconcile(storage.memory_order());
    let dropped: Vec<Location> = state
        .devices()
        .filter(|(location, device)| *location != state.host_location() && device.is_abandoned())
        .map(|(location, _)| location)
        .collect();
    let unused: Vec<Location> =
        dropped.into_iter().filter(|location| !state.is_in_use(*location)).collect();
    let is_needed =
        |location: &Location| !regions_not_on_host(storage, &state, *location).is_empty();
    let location = unused.into_iter().min_by_key(is_needed)?;
    Some(state.device_copy(location).device.clone())
}

/// What became of an array's copy on a device that is full.
pub(super) enum Eviction {
    /// There is no copy that could be evicted, now or later.
    Nothing,
    Freed {
        len_bytes: u64,
    },
    /// The copy is in use, or its contents could not be copied to the host.
    Kept {
        len_bytes: u64,
        /// The number of uses of the array that have begun.
        uses: u64,
    },
    /// Contents are on their way to the host. If that fails, the copy is needed.
    Arriving(Queued),
}

/// Frees an array's copy on a device if nothing uses it. What only the device has is copied to the
/// host before, behind the work that wrote it; nothing waits for that copy. If it fails, these
/// contents are lost. The copies of explicit arrays stay.
///
/// The caller has no borrow of the array, so the state is looked at anew, under its lock, for each
/// part that is copied.
pub(super) fn evict(storage: &Storage, device: &Device, site: CallSite) -> Eviction {
    let whole = Selection::Whole;
    let request = &Request::new(storage, &whole, Access::Read, Cause::Evict, "eviction", site);
    let mut write_back = WriteBack::default();
    let outcome = loop {
        match write_back.next(request, device) {
            ControlFlow::Continue(()) => {}
            ControlFlow::Break(outcome) => break outcome,
        }
    };
    // What is recorded here is reported once the caller has its memory.
    write_back.copies.close(request);
    if let Eviction::Freed { .. } = outcome {
        record_memory(storage, device, MemoryChange::Eviction, site);
    }
    outcome
}

/// The copies to the host that precede an eviction.
#[derive(Default)]
struct WriteBack {
    copies: Pipeline,
    /// The number of uses of the array that had begun at the first look.
    uses: Option<u64>,
    /// Whether staging memory for the next copy was prepared, with no lock held.
    is_prepared: bool,
}

impl WriteBack {
    /// Looks at the array, and queues the next copy, or frees the memory.
    fn next(&mut self, request: &Request<'_>, device: &Device) -> ControlFlow<Eviction> {
        let (storage, order) = (request.storage, request.storage.memory_order());
        let mut state = storage.lock();
        let Some(location) = evictable(&state, device) else {
            return ControlFlow::Break(Eviction::Nothing);
        };
        state.reconcile(order);
        state.retire_host_uses(order, &Selection::Whole);
        let uses = state.uses_begun();
        let kept = Eviction::Kept { len_bytes: order.len_bytes(), uses };
        let first_uses = *self.uses.get_or_insert(uses);
        if state.is_in_use(location) || uses != first_uses || self.copies.has_failed() {
            return ControlFlow::Break(kept);
        }
        if self.copies.is_empty() {
            let arriving = request.conflicts(&state, state.host_location(), Access::Read);
            if !arriving.is_empty() {
                return ControlFlow::Break(Eviction::Arriving(ends_of(&state, &arriving)));
            }
        }
        let only_there = regions_not_on_host(storage, &state, location);
        if only_there.is_empty() {
            remove_copy(storage, &mut state, location, request.site);
            return ControlFlow::Break(Eviction::Freed { len_bytes: order.len_bytes() });
        }
        match self.copy(request, state, location, only_there) {
            Ok(true) => ControlFlow::Continue(()),
            // The copy was refused, or another device still uses the host memory.
            Ok(false) | Err(_) => ControlFlow::Break(kept),
        }
    }

    /// Queues a copy to the host of the first of these regions.
    fn copy(
        &mut self,
        request: &Request<'_>,
        mut state: StateGuard<'_>,
        location: Location,
        only_there: Regions,
    ) -> Result<bool> {
        let device = state.device_copy(location).device.clone();
        request.allocate_writable_host(&mut state)?;
        if !users_of_other_kinds(&state, &device, &only_there).is_empty() {
            return Ok(false);
        }
        let regions = first_operation(request, &state, &device, only_there);
        if !std::mem::replace(&mut self.is_prepared, true) {
            drop(state);
            prepare_downloads(&device, request.staged_bytes(&device, &regions).into_iter());
            return Ok(true);
        }
        self.is_prepared = false;
        self.copies.inquiry();
        let stream = &device.stream_for_frees().unwrap_or_else(|| device.stream());
        // The copy fails if it finds elements that a launch left out. Then the others must stay.
        let waits = device.properties().knows_left_out;
        let purpose = if waits { Purpose::AwaitedWriteBack } else { Purpose::WriteBack };
        let (from, to) = (ReadFrom::Copy(location), state.host_location());
        let (maker, regions) = (Maker::Stream, &regions);
        let job = CopyJob { request, stream, from, to, regions, maker, purpose };
        if !job.run(state, &mut self.copies)? {
            return Ok(false);
        }
        if waits {
            self.copies.wait(request)?;
        }
        Ok(true)
    }
}

/// The first of these regions, as many as one operation should copy to the host.
fn first_operation(
    request: &Request<'_>,
    state: &ArrayState,
    device: &Device,
    regions: Regions,
) -> Regions {
    if state.is_host_pinned_for(device.kind()) {
        return regions;
    }
    let bytes_max = device.properties().chunk_bytes_max;
    let chunks = request.storage.memory_order().split_regions(&regions, bytes_max);
    chunks.into_iter().next().unwrap_or(regions)
}

/// The location of an array's copy on a device, if the copy may be evicted once nothing uses it.
fn evictable(state: &ArrayState, device: &Device) -> Option<Location> {
    let location = state.find_location(device)?;
    let may_go = location != state.host_location()
        && !state.is_explicit()
        && state.device_copy(location).address().is_some();
    may_go.then_some(location)
}

/// The order in which a full device evicts copies: first that which was used least recently; of
/// those that were used at the same time, first what the host has too.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) last_use: u64,
    is_newest: bool,
}

/// The rank of an array's copy on a device; `None` if there is none that could be evicted.
pub(super) fn rank(storage: &Storage, device: &Device) -> Option<Rank> {
    let state = storage.lock();
    let location = evictable(&state, device)?;
    let is_newest = !regions_not_on_host(storage, &state, location).is_empty();
    Some(Rank { last_use: state.device_copy(location).last_use, is_newest })
}

/// The regions that are valid at a device's location and not on the host.
fn regions_not_on_host(storage: &Storage, state: &ArrayState, location: Location) -> Regions {
    let host = state.host_location();
    state.regions_where(storage.memory_order(), &Selection::Whole, |content| match content {
        Content::Stored(holders) => holders.contains(location) && !holders.contains(host),
        _ => false,
    })
}

fn remove_copy(storage: &Storage, state: &mut ArrayState, location: Location, site: CallSite) {
    release::free(storage, state, state.device_copy(location));
    state.remove_copy(storage.memory_order(), location, site);
    storage.published.forget_readers();
    // The next reads find what was copied to the host by slow paths, which record them.
    storage.published.set_host_ready(false);
}
