//! Freeing an array's device memory after its last uses, without waiting.

#[cfg(feature = "cuda")]
use crate::device::Device;
use crate::device::Stream;
use crate::storage::{ArrayState, DeviceCopy, StateGuard, Storage};
use crate::transfer::access::request::{Marks, add_conflicts};
use crate::transfer::copy::report::report_after;
#[cfg(feature = "cuda")]
use resident_backend::Address;
use resident_backend::sync;
use resident_core::Access;
use resident_core::layout::Selection;
#[cfg(feature = "cuda")]
use resident_core::ordering::Uses;
use resident_core::ordering::{Mark, UseEnd};

/// Frees all device copies of an array that is being dropped. Never waits and never fails: if a
/// backend refuses, the free is tried again later.
#[inline]
pub(crate) fn release(storage: &Storage) {
    let state = storage.lock();
    if !state.is_watched() {
        return free_copies(storage, state);
    }
    drop(state);
    report_after(|| {
        finish_watches(storage);
        free_copies(storage, storage.lock());
    });
}

#[inline]
fn free_copies(storage: &Storage, mut state: StateGuard<'_>) {
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
    // No lock is held here, because a copy may contain the last handle of its device, and an
    // owner's drop runs code of the program.
    drop((copies, of_owner));
    sync::run_deferred_drops();
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
#[cfg(feature = "cuda")]
pub(crate) fn take_memory(storage: &Storage, device: &Device) -> Option<Address> {
    let mut state = storage.lock();
    let location = state.find_location(device)?;
    let copy = state.device_copy_mut(location);
    copy.uses = Uses::default();
    let address = copy.address();
    copy.set_address(None);
    if address.is_some() {
        storage.count_memory_freed(device);
    }
    address
}

/// Frees the memory of a copy, if there is any, after the pending uses of the copy.
pub(super) fn free(storage: &Storage, state: &ArrayState, copy: &DeviceCopy) {
    if copy.address().is_some() {
        storage.count_memory_freed(&copy.device);
    }
    free_memory(state, copy);
}

fn free_memory(state: &ArrayState, copy: &DeviceCopy) {
    let Some(address) = copy.address() else { return };
    let mut marks = Marks::new();
    let is_pending = |mark: Mark| !state.is_retired(mark);
    add_conflicts(&copy.uses, None, Access::Overwrite, is_pending, &mut marks);
    let uses: Vec<(Stream, UseEnd)> = marks
        .iter()
        .filter_map(|mark| state.stream(mark.stream).map(|stream| (stream.clone(), mark.end)))
        .collect();
    copy.device.free_after(address, uses);
}
