//! Claims. While a thread queues copies of some elements to a location, it *claims* these elements
//! there: other threads that need them at that location wait for the claim instead of copying them
//! too. A thread that allocates memory for a copy claims this memory, and the threads that need
//! other elements there wait for it. The only wait with a claim held is that of an allocation, for
//! its turn, for queued frees, or for copies to the host that precede an eviction.

use super::ArrayState;
use crate::storage::{StateGuard, Storage};
use resident_backend::sync::EventCount;
use resident_backend::thread_pools;
use resident_core::coherence::Location;
use resident_core::layout::Selection;

/// Counts the claims that were released, of all arrays.
static RELEASED: EventCount = EventCount::new();

/// A claim of elements at a location, which is released when it drops, even while a panic unwinds.
#[must_use = "the elements are claimed while this lives"]
pub(crate) struct Claim<'a> {
    storage: &'a Storage,
    location: Location,
    selection: &'a Selection,
}

impl<'a> Claim<'a> {
    /// Claims the elements at `location`, and releases the lock.
    pub(crate) fn new(
        storage: &'a Storage,
        mut state: StateGuard<'_>,
        location: Location,
        selection: &'a Selection,
    ) -> Self {
        state.claim(location, selection);
        Self { storage, location, selection }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut state = self.storage.lock();
        state.unclaim(self.location, self.selection);
        self.storage.publish(&state);
        drop(state);
        RELEASED.announce();
    }
}

/// A claim of the memory at a location, which is released when it drops.
#[must_use = "the memory is claimed while this lives"]
pub(crate) struct MemoryClaim<'a> {
    storage: &'a Storage,
    location: Location,
}

impl<'a> MemoryClaim<'a> {
    /// Claims the memory, and releases the lock.
    pub(crate) fn new(storage: &'a Storage, mut state: StateGuard<'a>, location: Location) -> Self {
        state.claim_memory(location);
        Self { storage, location }
    }
}

impl Drop for MemoryClaim<'_> {
    fn drop(&mut self) {
        self.storage.lock().unclaim_memory(self.location);
        RELEASED.announce();
    }
}

/// Releases the lock, and waits until any claim is released.
pub(crate) fn wait_for_claim(state: StateGuard<'_>) {
    let seen = RELEASED.current();
    drop(state);
    thread_pools::wait_after(&RELEASED, seen);
}

impl ArrayState {
    pub(super) fn claims(&self) -> impl Iterator<Item = &(Location, Selection)> {
        self.cold.iter().flat_map(|cold| &cold.claims)
    }

    /// Whether a thread is copying elements to some location.
    pub(crate) fn has_claims(&self) -> bool {
        self.claims().next().is_some()
    }

    pub(crate) fn has_claim_at(&self, location: Location) -> bool {
        self.claims().any(|(claimed, _)| *claimed == location)
    }

    /// Whether a thread is copying any of these elements to that location.
    pub(crate) fn is_claimed(&self, location: Location, selection: &Selection) -> bool {
        self.claims().any(|(claimed, other)| *claimed == location && other.overlaps(selection))
    }

    fn claim(&mut self, location: Location, selection: &Selection) {
        self.note_use_begun();
        self.cold().claims.push((location, selection.clone()));
    }

    /// Whether a thread allocates memory at that location.
    pub(crate) fn is_memory_claimed(&self, location: Location) -> bool {
        self.cold.as_ref().is_some_and(|cold| cold.memory_claims.contains(location))
    }

    /// Until [`unclaim_memory`](Self::unclaim_memory), only the caller allocates memory there.
    fn claim_memory(&mut self, location: Location) {
        let claims = &mut self.cold().memory_claims;
        *claims = claims.with(location);
    }

    fn unclaim_memory(&mut self, location: Location) {
        let Some(cold) = &mut self.cold else { return };
        cold.memory_claims = cold.memory_claims.without(location);
        if cold.is_unused() {
            self.cold = None;
        }
    }

    fn unclaim(&mut self, location: Location, selection: &Selection) {
        let Some(cold) = &mut self.cold else { return };
        let is_this =
            |(claimed, other): &(Location, Selection)| *claimed == location && other == selection;
        if let Some(index) = cold.claims.iter().position(is_this) {
            cold.claims.swap_remove(index);
        }
        // No memory is kept for the next claim: copies are rare, and slow compared to an
        // allocation.
        if cold.claims.is_empty() {
            cold.claims = Vec::new();
            if cold.is_unused() {
                self.cold = None;
            }
        }
    }
}
