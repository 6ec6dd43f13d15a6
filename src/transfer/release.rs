//! Giving device memory back behind its last use, without waiting.

use super::Marks;
use crate::backend::Address;
use crate::device::Stream;
use crate::order::{At, Touch};
use crate::storage::{Slot, State, Storage};
use crate::sync;

/// Frees every device's copy of an array that nobody can use any more. Never waits and never fails: what a backend refuses is done later.
#[inline]
pub(crate) fn release(storage: &Storage) {
    let mut state = storage.lock();
    if state.slots.is_empty() {
        return;
    }
    let slots = std::mem::take(&mut state.slots);
    for slot in &slots {
        if let Some(address) = slot.address {
            release_slot(&state, slot, address);
        }
    }
    drop(state);
    // A slot may hold the last handle of its device, and with it work that was queued there.
    drop(slots);
    sync::drop_let_go();
}

pub(super) fn release_slot(state: &State, slot: &Slot, address: Address) {
    let mut marks = Marks::new();
    slot.uses.before(None, Touch::Write, |mark| {
        if !marks.contains(&mark) && !state.is_over(mark) {
            marks.push(mark);
        }
    });
    let uses: Vec<(Stream, At)> =
        marks.iter().filter_map(|mark| state.stream(mark.stream).map(|stream| (stream.clone(), mark.at))).collect();
    slot.device.free_behind(address, uses);
}
