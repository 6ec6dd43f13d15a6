//! Frees an array's host memory, while devices have its contents.

use crate::audit;
use crate::device::{Device, Stream};
use crate::error::{AtCall, Result};
use crate::storage::{ArrayState, Storage};
use crate::transfer::access::acquire::acquire_on;
use crate::transfer::access::request::{Marks, Queued, Regions, Request, ends_of};
use resident_backend::{Dependencies, sync};
use resident_core::Access;
use resident_core::coherence::{Content, Holders, Location};
use resident_core::layout::Selection;
use resident_core::ordering::UseEnd;

/// Frees the host memory, once no copy from it is pending. Contents that are valid only there are
/// first copied to a device. The caller borrows the array exclusively.
pub(crate) fn release_host(request: &Request<'_>) -> Result<()> {
    let storage = request.storage;
    if request.is_empty() {
        return Ok(());
    }
    // Then no finding is about this memory.
    audit::skip_use(storage);
    loop {
        let mut state = storage.lock();
        state.reconcile(storage.memory_order());
        if state.host.is_none() || state.is_host_mapped() {
            return Ok(());
        }
        if state.is_claimed(Location::HOST, &Selection::Whole) {
            request.wait_for_claim(state)?;
            continue;
        }
        let only_here = only_on_host(storage, &state);
        if !only_here.is_empty() {
            let home = home(&state);
            drop(state);
            let stream = stream_of(request, home)?;
            let only_here = Selection::Boxes(only_here);
            drop(acquire_on(&request.of(&only_here), &stream, &mut Dependencies::new())?);
            continue;
        }
        let pending = pending(request, &mut state);
        if pending.is_empty() {
            let host = state.take_host(storage.memory_order(), request.site);
            storage.published.set_host_base(std::ptr::null_mut());
            storage.publish(&state);
            drop(state);
            // No lock is held here, because an owner's drop runs code of the program.
            drop(host);
            sync::run_deferred_drops();
            return Ok(());
        }
        drop(state);
        request.wait_for(pending)?;
    }
}

/// The regions that are valid on the host and nowhere else.
fn only_on_host(storage: &Storage, state: &ArrayState) -> Regions {
    let is_only_here = |holders: Holders| {
        holders.contains(Location::HOST) && holders.without(Location::HOST).is_none()
    };
    state.regions_where(
        storage.memory_order(),
        &Selection::Whole,
        |content| matches!(content, Content::Stored(holders) if is_only_here(holders)),
    )
}

/// A device on which the array has memory already.
fn home(state: &ArrayState) -> Option<Device> {
    let has_memory = |location: Location| state.device_copy(location).has_memory();
    let mut homes = state.devices().filter(|(location, _)| has_memory(*location));
    homes.next().map(|(_, device)| device.clone())
}

fn stream_of(request: &Request<'_>, home: Option<Device>) -> Result<Stream> {
    let device = match home {
        Some(device) => device,
        None => Device::current().at(request.site)?,
    };
    Ok(device.current_stream())
}

/// The copies that read the host memory, and the work that writes the copies on devices: until it
/// is complete it may fail, and the host's contents are the newest then.
fn pending(request: &Request<'_>, state: &mut ArrayState) -> Queued {
    state.retire_host_uses(request.storage.memory_order(), &Selection::Whole);
    let devices: Vec<Location> = state.devices().map(|(location, _)| location).collect();
    let mut marks: Marks = request.conflicts(state, Location::HOST, Access::Overwrite);
    for location in devices {
        marks.extend(request.conflicts(state, location, Access::Read));
    }
    // No guard exists, but forgotten ones left their marks.
    marks.retain(|mark| mark.end != UseEnd::OPEN);
    ends_of(state, &marks)
}
