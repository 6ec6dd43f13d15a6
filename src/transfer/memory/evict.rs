//! Frees an array's copy on a device: on request, or because the device is full (`room` decides
//! when).

use super::release;
use crate::audit::MemoryChange;
use crate::device::Device;
use crate::error::Result;
use crate::storage::{ArrayState, Storage};
use crate::transfer::access::request::{Regions, Request, ends_of};
use crate::transfer::copy::missing::acquire_host;
use crate::transfer::copy::report::record_memory;
use resident_backend::call_site::CallSite;
use resident_backend::sync;
use resident_core::Access;
use resident_core::coherence::{Content, Location};
use resident_core::layout::Selection;
use resident_core::ordering::UseEnd;

/// Frees the array's memory on a device, after its uses. Contents that are valid only there are
/// first copied to the host. The caller borrows the array exclusively.
pub(crate) fn release_on(request: &Request<'_>, device: &Device) -> Result<()> {
    let storage = request.storage;
    if request.is_empty() {
        return Ok(());
    }
    loop {
        let mut state = storage.lock();
        state.reconcile(storage.memory_order());
        let Some(location) = state.find_location(device) else { return Ok(()) };
        if location == state.host_location() {
            // The device accesses the host memory, which stays.
            return Ok(());
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
            remove_copy(storage, &mut state, location, request.site);
            return Ok(());
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
    release_on(&request.of(&Selection::Whole).reading(), &device)?;
    record_memory(storage, &device, MemoryChange::Eviction, request.site);
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
    /// The copy is in use, or has contents that the host does not have.
    Kept {
        len_bytes: u64,
        /// The number of uses of the array that have begun.
        uses: u64,
    },
}

/// Frees an array's copy on a device if it is idle and also valid on the host. Copies no contents.
/// The copies of explicit arrays stay.
pub(super) fn evict(storage: &Storage, device: &Device, site: CallSite) -> Eviction {
    let mut state = storage.lock();
    let Some(location) = state.find_location(device) else { return Eviction::Nothing };
    let can_be_evicted = location != state.host_location()
        && !state.is_explicit()
        && state.device_copy(location).address().is_some();
    if !can_be_evicted {
        return Eviction::Nothing;
    }
    state.reconcile(storage.memory_order());
    state.retire_host_uses(storage.memory_order(), &Selection::Whole);
    let len_bytes = storage.memory_order().len_bytes();
    let is_needed = state.is_in_use(location)
        || !state.is_host_idle()
        || !regions_not_on_host(storage, &state, location).is_empty();
    if is_needed {
        return Eviction::Kept { len_bytes, uses: state.uses_begun() };
    }
    remove_copy(storage, &mut state, location, site);
    drop(state);
    record_memory(storage, device, MemoryChange::Eviction, site);
    Eviction::Freed { len_bytes }
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
    storage.publish(state);
}
