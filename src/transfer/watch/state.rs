//! The states of a watched array, and their memory.

use std::sync::Arc;

use crate::storage::HostBuffer;
use resident_backend::HostMemory;
use resident_backend::sync::Mutex;

/// The buffers that are kept for later states. With those of the newest state and of the copy in
/// flight, each state that a reader has left finds one.
const SPARES_MAX: usize = 2;

/// Memory for later states.
pub(super) type Spares = Mutex<Vec<Arc<HostBuffer>>>;

/// A complete state. Its memory is reused once no handle refers to it.
pub(crate) struct WatchedState {
    pub(crate) change: u64,
    pub(super) buffer: Option<Arc<HostBuffer>>,
    pub(super) spares: Arc<Spares>,
}

impl WatchedState {
    /// The start of the elements, in the array's memory order.
    pub(crate) fn base(&self) -> *mut u8 {
        self.buffer.as_ref().map_or(std::ptr::null_mut(), |buffer| buffer.base())
    }
}

impl Drop for WatchedState {
    fn drop(&mut self) {
        self.buffer.take().into_iter().for_each(|buffer| give_back(&self.spares, buffer));
    }
}

/// Keeps memory for a later state, if there is little of it.
pub(super) fn give_back(spares: &Spares, buffer: Arc<HostBuffer>) {
    let mut spares = spares.lock();
    if spares.len() < SPARES_MAX {
        spares.push(buffer);
        return;
    }
    // The memory is freed without the lock.
    drop(spares);
}
