//! Claims. While a thread queues copies of some elements to a location, it *claims* these elements
//! there: other threads that need them at that location wait for the claim instead of copying them
//! too. No claim is held while waiting for a device.

use super::request::Request;
use crate::error::Result;
use crate::storage::StateGuard;
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
            return Err(self.inside_kernel("another thread that is moving the same elements"));
        }
        let seen = RELEASED.current();
        drop(state);
        RELEASED.wait_after(seen);
        Ok(())
    }
}
