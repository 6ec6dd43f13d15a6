//! Giving device memory back behind its last use, without waiting.

use super::Marks;
use crate::access::Access;
use crate::backend::Address;
#[cfg(feature = "cuda")]
use crate::device::Device;
use crate::device::Stream;
use crate::ordering::UseEnd;
#[cfg(feature = "cuda")]
use crate::ordering::Uses;
use crate::storage::{ArrayState, DeviceCopy, Storage};
use crate::sync;

/// Frees every device's copy of an array that nobody can use any more. Never waits and never fails:
/// what a backend refuses is done later.
#[inline]
pub(crate) fn release(storage: &Storage) {
    let mut state = storage.lock();
    if state.device_copies.is_empty() {
        return;
    }
    let device_copies = std::mem::take(&mut state.device_copies);
    for slot in &device_copies {
        if let Some(address) = slot.address {
            release_slot(&state, slot, address);
        }
    }
    drop(state);
    // A slot may hold the last handle of its device, and with it work that was queued there.
    drop(device_copies);
    sync::run_deferred_drops();
}

/// Takes a device's memory out of an array, for somebody else to free. Its last user on that device
/// is a stream behind which all others are ordered.
#[cfg(feature = "cuda")]
pub(crate) fn take_memory(storage: &Storage, device: &Device) -> Option<Address> {
    let mut state = storage.lock();
    let location = state.find_location(device)?;
    let slot = state.device_copy_mut(location);
    slot.uses = Uses::default();
    slot.address.take()
}

pub(super) fn release_slot(state: &ArrayState, slot: &DeviceCopy, address: Address) {
    let mut marks = Marks::new();
    slot.uses.visit_conflicts(None, Access::Overwrite, |mark| {
        if !marks.contains(&mark) && !state.is_retired(mark) {
            marks.push(mark);
        }
    });
    let uses: Vec<(Stream, UseEnd)> = marks
        .iter()
        .filter_map(|mark| state.stream(mark.stream).map(|stream| (stream.clone(), mark.end)))
        .collect();
    slot.device.free_behind(address, uses);
}
