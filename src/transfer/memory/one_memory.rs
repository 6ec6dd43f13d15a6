//! One memory: a device that reaches the host's ordinary memory (`reaches_host_memory`) uses that
//! of an array in its place. From then on the array is as one in mapped memory: the host's location
//! is the device's, and only the order of uses remains.

use crate::error::Result;
use crate::storage::{ArrayState, Storage};
use crate::transfer::access::request::Request;
use resident_backend::HostMemory;
use resident_core::coherence::Location;

impl Request<'_> {
    /// Makes the array's host memory the copy of the device at `location`, if the device may use it
    /// in its place. Returns `false`, and does nothing, if claims must end first: threads that copy
    /// elements know of the host's location.
    pub(in crate::transfer) fn share_host_if_reached(
        &self,
        state: &mut ArrayState,
        location: Location,
    ) -> Result<bool> {
        let reaches = state.device_copy(location).device.properties().reaches_host_memory;
        if !reaches || !state.may_share_host(location) {
            return Ok(true);
        }
        let is_free = !state.has_claims() && !state.is_memory_claimed(location);
        if is_free {
            self.share_host(state, location)?;
        }
        Ok(is_free)
    }

    /// Allocates the host memory first if there is none. Does nothing if it is aligned too little.
    fn share_host(&self, state: &mut ArrayState, location: Location) -> Result<()> {
        self.allocate_host(state)?;
        let Some(host) = state.host.clone().filter(|host| host.may_be_shared()) else {
            return Ok(());
        };
        // The device may write it from now on.
        host.take_new();
        let device = state.device_copy(location).device.clone();
        let shared = device.backend().share(host);
        let address = shared.map_err(|error| self.call_error(&device, "sharing", &error))?;
        self.storage.share_host(state, location, address);
        Ok(())
    }
}

/// Takes the host memory from the device that uses it in its place. The caller owns the array, and
/// no work uses its memory any more.
pub(crate) fn unshare_host(storage: &Storage) {
    let (shared, host) = {
        let mut state = storage.lock();
        (storage.unshare_host(&mut state), state.host.clone())
    };
    if let (Some((device, address)), Some(host)) = (shared, host)
        && !device.backend().unshare(address)
    {
        host.mark_leaked();
    }
}
