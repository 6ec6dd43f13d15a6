//! Eviction: frees an array's copy on a device, on request or for lack of memory.

use super::missing::acquire_host;
use super::release;
use super::report::record_memory;
use super::request::{Regions, Request, ends_of};
use crate::audit::MemoryChange;
use crate::device::Device;
use crate::error::Result;
use crate::storage::{self, ArrayState, Storage};
use resident_backend::call_site::CallSite;
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
            acquire_host(&request.of(&Selection::Boxes(only_there)), Access::Read)?;
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

/// Frees copies of other arrays on a device that are also valid on the host, until `len_bytes` are
/// freed or there are no more such copies. Returns whether any copy was freed. Copies no contents.
/// Copies that are in use, or for which a guard exists, are kept.
pub(super) fn make_room(device: &Device, len_bytes: u64, request: &Request<'_>) -> bool {
    let mut freed_bytes = 0;
    for array in storage::live_arrays() {
        if std::ptr::eq(&*array, request.storage) {
            continue;
        }
        freed_bytes += evict(&array, device, request.site).unwrap_or(0);
        if freed_bytes >= len_bytes {
            break;
        }
    }
    freed_bytes > 0
}

/// Frees an array's copy on a device if it is idle and also valid on the host. Returns its bytes.
fn evict(storage: &Storage, device: &Device, site: CallSite) -> Option<u64> {
    let mut state = storage.lock();
    state.reconcile(storage.memory_order());
    let location = state.find_location(device)?;
    let is_needed = location == state.host_location()
        || state.is_in_use(location)
        || !state.is_host_idle()
        || !regions_not_on_host(storage, &state, location).is_empty();
    if is_needed || state.device_copy(location).address().is_none() {
        return None;
    }
    remove_copy(storage, &mut state, location, site);
    drop(state);
    record_memory(storage, device, MemoryChange::Eviction, site);
    Some(storage.memory_order().len_bytes())
}

/// The regions that are valid at a device's location and not on the host.
fn regions_not_on_host(storage: &Storage, state: &ArrayState, location: Location) -> Regions {
    let (mut regions, host) = (Regions::new(), state.host_location());
    state.coherence.visit_contents(&storage.memory_order().whole(), |region, content| {
        if let Content::Stored(holders) = content
            && holders.contains(location)
            && !holders.contains(host)
        {
            regions.push(*region);
        }
    });
    regions
}

fn remove_copy(storage: &Storage, state: &mut ArrayState, location: Location, site: CallSite) {
    release::free(state, state.device_copy(location));
    state.remove_copy(storage.memory_order(), location, site);
    storage.forget_readers();
    storage.publish(state);
}
