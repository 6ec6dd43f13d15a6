//! Pinning an array's host memory.

use super::request::Request;
use crate::backend::HostMemory;
use crate::device::Device;
use crate::error::Result;

/// Pins the host memory for devices of this device's kind, for as long as the memory belongs to the
/// array. Allocates the memory if there is none. Does nothing if the memory is already pinned for
/// that kind.
pub(crate) fn page_lock(request: &Request<'_>, device: &Device) -> Result<()> {
    if request.is_empty() {
        return Ok(());
    }
    let host = {
        let mut state = request.storage.lock();
        request.allocate_host(&mut state)?;
        state.host.clone()
    };
    let Some(host) = host else { return Ok(()) };
    let register = || device.backend().pin_host_memory(host.base(), host.len_bytes());
    let pinned = host.register(device.kind(), register, || request.storage.lock());
    pinned.map_err(|refusal| request.refused(device, "page-locking", &refusal))
}
