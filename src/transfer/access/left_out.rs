//! Elements that a launch left out of its output, where something is to read them that does not
//! keep account of contents: a body in Rust, another device, other code. Only devices that check
//! kernels know of such elements, and only once the launch is over. There the host waits, so that
//! the call is refused before anything is queued. Copies to the host find out when they run, as
//! their callers do who wait for them.

use super::request::{AwaitedGuards, Request};
use crate::device::Device;
use crate::error::Result;
use resident_backend::{Footprint, scope};
use resident_core::Access;
use resident_core::coherence::Content;
use smallvec::SmallVec;

impl Request<'_> {
    /// Returns an error if a launch on the device left out an element that this request reads
    /// there. Inside a kernel body, where no call may wait, it does not look. The caller holds no
    /// lock.
    #[inline]
    pub(crate) fn expect_written(&self, device: &Device) -> Result<()> {
        if device.properties().knows_left_out { self.find_left_out(device) } else { Ok(()) }
    }

    /// As [`expect_written`](Self::expect_written), on all devices but one, which is to get what
    /// only the others have.
    pub(in crate::transfer) fn expect_written_elsewhere(&self, device: &Device) -> Result<()> {
        let others: SmallVec<[Device; 2]> = {
            let state = self.storage.lock();
            let others = state.devices().map(|(_, other)| other);
            let others = others.filter(|other| other.properties().knows_left_out);
            others.filter(|other| *other != device).cloned().collect()
        };
        others.iter().try_for_each(|other| self.find_left_out(other))
    }

    #[cold]
    fn find_left_out(&self, device: &Device) -> Result<()> {
        if self.access == Access::Overwrite || self.is_empty() || scope::is_in_body() {
            return Ok(());
        }
        let memory_order = self.storage.memory_order();
        let writers = {
            let state = self.storage.lock();
            let Some(location) = state.find_location(device) else { return Ok(()) };
            let marks = self.conflicts(&state, location, Access::Read);
            AwaitedGuards::default().ends_of(&state, &marks)
        };
        self.wait_for(writers)?;
        let (address, parts) = {
            let mut state = self.storage.lock();
            state.reconcile(memory_order);
            let Some(location) = state.find_location(device) else { return Ok(()) };
            if location == state.host_location() {
                return Ok(());
            }
            let Some(address) = state.device_copy(location).base() else { return Ok(()) };
            let is_there = |content: Content| content.is_valid(location);
            let regions = state.regions_where(memory_order, self.selection, is_there);
            let parts: SmallVec<[Footprint; 1]> =
                regions.iter().map(|region| memory_order.footprint(region)).collect();
            (address, parts)
        };
        let left_out = device.backend().left_out(address, &parts);
        left_out.map_or(Ok(()), |left_out| Err(self.left_out_error(&left_out)))
    }
}
