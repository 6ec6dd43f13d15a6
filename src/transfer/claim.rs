//! Claims. While a thread queues copies of some elements to a location, it *claims* these elements
//! there: other threads that need them at that location wait for the claim instead of copying them
//! too. A thread that allocates memory for a copy claims this memory, and the threads that need
//! other elements there wait for it. The only wait with a claim held is that of an allocation, for
//! its turn or for queued frees.

use super::request::Request;
use crate::error::Result;
use crate::storage::{StateGuard, Storage};
use resident_backend::scope;
use resident_backend::sync::EventCount;
use resident_core::coherence::Location;

/// Counts the claims that were released, of all arrays.
static RELEASED: EventCount = EventCount::new();

/// A claim, which is released when it drops, even while a panic unwinds.
struct Claim<'a> {
    request: Request<'a>,
    location: Location,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let storage = self.request.storage;
        let mut state = storage.lock();
        state.unclaim(self.location, self.request.selection);
        storage.publish(&state);
        drop(state);
        RELEASED.announce();
    }
}

/// A claim of the memory at a location, which is released when it drops.
#[must_use = "the memory is claimed while this lives"]
pub(super) struct MemoryClaim<'a> {
    storage: &'a Storage,
    location: Location,
}

impl<'a> MemoryClaim<'a> {
    pub(super) fn new(storage: &'a Storage, mut state: StateGuard<'a>, location: Location) -> Self {
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

impl Request<'_> {
    /// Claims the elements at `location`, then releases the lock and runs `queue_copies`. The claim
    /// ends when `queue_copies` returns.
    pub(super) fn with_claim<T>(
        &self,
        mut state: StateGuard<'_>,
        location: Location,
        queue_copies: impl FnOnce() -> T,
    ) -> T {
        state.claim(location, self.selection);
        drop(state);
        let _claim = Claim { request: *self, location };
        queue_copies()
    }

    /// Releases the lock, and waits until any claim is released. Returns an error inside a kernel
    /// body, where no call may wait.
    pub(super) fn wait_for_claim(&self, state: StateGuard<'_>) -> Result<()> {
        if scope::is_in_body() {
            let other = "another thread that is moving the same elements, or allocating their \
                         memory";
            return Err(self.inside_kernel(other));
        }
        let seen = RELEASED.current();
        drop(state);
        RELEASED.wait_after(seen);
        Ok(())
    }
}
