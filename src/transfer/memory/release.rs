//! Freeing an array's device memory after its last uses, without waiting.

use std::sync::Arc;

use crate::audit;
#[cfg(feature = "cuda")]
use crate::audit::MemoryNotice;
#[cfg(feature = "cuda")]
use crate::device::Device;
use crate::device::Stream;
use crate::storage::{ArrayState, DeviceCopy, StateGuard, Storage};
use crate::transfer::access::request::{Marks, add_conflicts};
use crate::transfer::copy::report::report_after;
#[cfg(feature = "cuda")]
use resident_backend::{Address, call_site::CallSite};
use resident_backend::{PageRange, Position, sync};
use resident_core::Access;
use resident_core::coherence::Region;
use resident_core::layout::Selection;
#[cfg(feature = "cuda")]
use resident_core::ordering::Uses;
use resident_core::ordering::{Mark, UseEnd};

/// Ends an array that is being dropped: takes it out of the registry, and frees all its device
/// copies. Never waits and never fails: if a backend refuses, the free is tried again later.
#[inline]
pub(crate) fn release(storage: &Storage) {
    // The registry has it.
    let name = audit::has_subscribers().then(|| storage.name());
    storage.unregister();
    let state = storage.lock();
    if !state.is_watched() {
        return free_copies(storage, state, name);
    }
    drop(state);
    report_after(|| {
        finish_watches(storage);
        free_copies(storage, storage.lock(), name);
    });
}

#[inline]
fn free_copies(storage: &Storage, mut state: StateGuard<'_>, name: Option<Arc<str>>) {
    let of_owner = state.take_memory_of_owner();
    if state.device_copies.is_empty() && of_owner.is_none() {
        return;
    }
    // Mapped memory is the host's, which counts it.
    let mapped = state.host_location().index().checked_sub(1);
    let copies = state.take_device_copies();
    for (index, copy) in copies.iter().enumerate() {
        if Some(index) == mapped {
            free_memory(&state, copy);
        } else {
            free(storage, &state, copy);
        }
    }
    drop(state);
    if let Some(name) = name {
        let freed = copies.iter().enumerate().filter(|(index, _)| Some(*index) != mapped);
        report_dropped(storage, &name, freed.map(|(_, copy)| copy));
    }
    // No lock is held here, because a copy may contain the last handle of its device, and an
    // owner's drop runs code of the program.
    drop((copies, of_owner));
    sync::run_deferred_drops();
}

/// Reports which memory the drop of an array has given back.
#[cold]
fn report_dropped<'a>(
    storage: &Storage,
    name: &Arc<str>,
    freed: impl Iterator<Item = &'a DeviceCopy>,
) {
    for copy in freed.filter(|copy| copy.has_memory()) {
        let bytes = copy.memory_bytes(storage.memory_order());
        audit::report_dropped(name, bytes, &copy.device);
    }
}

/// Ends the watches of an array that is about to lose its memory. No guard of it exists.
#[cold]
pub(crate) fn finish_watches(storage: &Storage) {
    let (watchers, changes) = {
        let mut state = storage.lock();
        state.end_host_writes(&Selection::Whole);
        (state.watchers(), state.changes())
    };
    for watcher in watchers {
        watcher.finish(changes);
    }
    storage.lock().forget_watchers();
}

/// Removes the memory on `device` from an array. The caller frees the memory, after its last uses.
/// Then it reports to subscribers.
#[cfg(feature = "cuda")]
pub(crate) fn take_memory(storage: &Storage, device: &Device, site: CallSite) -> Option<Address> {
    let mut state = storage.lock();
    let location = state.find_location(device)?;
    let copy = state.device_copy_mut(location);
    copy.uses = Uses::default();
    let address = copy.address();
    state.set_reservation(location, None);
    if address.is_some() {
        let bytes = storage.memory_order().len_bytes();
        storage.count_memory_freed(device, bytes);
        audit::note_memory(MemoryNotice::Free, storage, device, bytes, site);
    }
    address
}

/// Frees the memory of a copy, if there is any, after the pending uses of the copy.
pub(super) fn free(storage: &Storage, state: &ArrayState, copy: &DeviceCopy) {
    if copy.has_memory() {
        let bytes = copy.memory_bytes(storage.memory_order());
        storage.count_memory_freed(&copy.device, bytes);
    }
    free_memory(state, copy);
}

fn free_memory(state: &ArrayState, copy: &DeviceCopy) {
    let Some(address) = copy.base() else { return };
    copy.device.free_after(address, pending_uses(state, copy, [None]));
}

/// The pending uses of these regions of a copy (`None` for the whole array).
fn pending_uses<'r>(
    state: &ArrayState,
    copy: &DeviceCopy,
    regions: impl IntoIterator<Item = Option<&'r Region>>,
) -> Vec<(Stream, UseEnd)> {
    let mut marks = Marks::new();
    let is_pending = |mark: Mark| !state.is_retired(mark);
    for region in regions {
        add_conflicts(&copy.uses, region, Access::Overwrite, is_pending, &mut marks);
    }
    let stream = |mark: &Mark| state.stream(mark.stream).map(|it| (it.clone(), mark.end));
    marks.iter().filter_map(stream).collect()
}

/// Frees the memory of runs of pages of a copy, which have these elements, after the pending uses
/// of these, as [`Device::decommit_after`](crate::Device::decommit_after) does.
pub(super) fn free_pages(
    state: &ArrayState,
    copy: &DeviceCopy,
    runs: &[PageRange],
    regions: &[Region],
) -> Option<(Stream, Position, usize)> {
    let uses = pending_uses(state, copy, regions.iter().map(Some));
    copy.device.decommit_after(runs, &uses)
}
