//! Taking an array's copy off a device: because it was asked for, or to make room for another.

use std::any::Any;
use std::sync::Arc;

use smallvec::SmallVec;

use super::release::release_slot;
use super::{Request, acquire_host};
use crate::access::Access;
use crate::audit::registry;
use crate::call_site::CallSite;
use crate::coherence::{Content, Location, Region};
use crate::device::Device;
use crate::error::Result;
use crate::layout::Selection;
use crate::storage::{ArrayState, Storage};

/// Gives the array's memory on a device back, behind its uses. What is newest there alone comes to
/// the host first. The caller has the array for itself.
pub(crate) fn release_on(request: &Request<'_>, device: &Device) -> Result<()> {
    let storage = request.storage;
    if request.is_empty() {
        return Ok(());
    }
    loop {
        let alone = {
            let mut state = storage.lock();
            state.reconcile(storage.memory_order());
            let Some(location) = state.find_location(device) else { return Ok(()) };
            let alone = newest_alone(storage, &state, location);
            if alone.is_empty() && state.is_host_idle() {
                remove_copy(storage, &mut state, location, request.site);
                return Ok(());
            }
            if alone.is_empty() { Selection::Whole } else { Selection::Boxes(alone) }
        };
        bring_and_wait(&Request { selection: &alone, ..*request }, &alone)?;
    }
}

/// Brings down what is newest on the device alone; or, where nothing is, waits for what is on its
/// way to the host already: it may still fail.
fn bring_and_wait(request: &Request<'_>, alone: &Selection) -> Result<()> {
    match alone {
        Selection::Boxes(_) => acquire_host(request, Access::Read),
        Selection::Whole => {
            let storage = request.storage;
            let pending = {
                let mut state = storage.lock();
                let marks = request.marks_before(&state, Location::HOST, Access::Overwrite, None);
                state.retire_host_uses(storage.memory_order(), alone);
                super::device_side::queued(&state, &marks)
            };
            request.wait_for_host(pending)
        }
    }
}

/// For a request: frees copies of other arrays on a device that the host has as well, until
/// `len_bytes` are freed or there are no more. Says whether there were any. Nothing moves. Arrays
/// in the midst of a use stay, and such as were handed out to foreign work.
pub(super) fn make_room(device: &Device, len_bytes: u64, request: &Request<'_>) -> bool {
    let mut freed_bytes = 0;
    for array in registry::arrays() {
        let array: Arc<dyn Any + Send + Sync> = array.as_any();
        let Some(storage) = array
            .downcast_ref::<Storage>()
            .filter(|storage| !std::ptr::eq(*storage, request.storage))
        else {
            continue;
        };
        freed_bytes += evict(storage, device, request.site).unwrap_or(0);
        if freed_bytes >= len_bytes {
            break;
        }
    }
    freed_bytes > 0
}

/// Takes an array's copy off a device if nobody would miss it; returns its bytes.
fn evict(storage: &Storage, device: &Device, site: CallSite) -> Option<u64> {
    let mut state = storage.lock();
    state.reconcile(storage.memory_order());
    let location = state.find_location(device)?;
    let would_be_missed = state.is_in_use(location)
        || !state.is_host_idle()
        || !newest_alone(storage, &state, location).is_empty();
    if would_be_missed || state.device_copy(location).address.is_none() {
        return None;
    }
    remove_copy(storage, &mut state, location, site);
    Some(storage.memory_order().len_bytes())
}

/// What stands at a location, and not on the host.
fn newest_alone(
    storage: &Storage,
    state: &ArrayState,
    location: Location,
) -> SmallVec<[Region; 1]> {
    let mut alone = SmallVec::new();
    state.coherence.visit_contents(
        &storage.memory_order().whole(),
        |region, content| match content {
            Content::Stored(holders)
                if holders.contains(location) && !holders.contains(Location::HOST) =>
            {
                alone.push(*region)
            }
            _ => {}
        },
    );
    alone
}

fn remove_copy(storage: &Storage, state: &mut ArrayState, location: Location, site: CallSite) {
    if let Some(address) = state.device_copy(location).address {
        release_slot(state, state.device_copy(location), address);
    }
    state.remove_copy(storage.memory_order(), location, site);
    storage.forget_readers();
    storage.publish(state);
}
