//! The address spaces of all embedded devices: all of them use this process's memory, so an import
//! on one looks for overlaps with the memory of each.

use std::sync::{Arc, Weak};

use super::address_space::AddressSpaceState;
use crate::errors::{CODE_UNKNOWN_ADDRESS, driver_error};
use resident_backend::imports::{AddressRange, counted_bytes};
use resident_backend::sync::BackendLock;
use resident_backend::{Address, BackendError};

type SharedState = BackendLock<AddressSpaceState>;

/// Held while an import is checked and entered, so that of two imports of the same memory one sees
/// the other.
static SPACES: BackendLock<Vec<Weak<SharedState>>> = BackendLock::new(Vec::new());

/// Adds an address space to those in which imports look.
pub(super) fn list(state: &Arc<SharedState>) {
    let mut spaces = SPACES.lock();
    spaces.retain(|space| space.strong_count() > 0);
    spaces.push(Arc::downgrade(state));
}

/// Calls `enter` with the bytes that the import counts, unless an array uses the memory.
pub(super) fn import(
    memory: AddressRange,
    enter: impl FnOnce(u64) -> Address,
) -> Result<Address, BackendError> {
    // The last handle of a space must not drop under the lock: this list outlives the lock.
    let alive: Vec<Arc<SharedState>>;
    let spaces = SPACES.lock();
    alive = spaces.iter().filter_map(Weak::upgrade).collect();
    let mut counted = u64::MAX;
    for space in &alive {
        let counted_there = counted_bytes(memory, space.lock().ranges_in_use())
            .map_err(|detail| driver_error(CODE_UNKNOWN_ADDRESS, "take_over", detail))?;
        counted = counted.min(counted_there);
    }
    Ok(enter(counted))
}
