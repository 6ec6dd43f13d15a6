//! Page-locking the host's copy of an array.

use super::Request;
use crate::backend::HostMemory;
use crate::device::Device;
use crate::error::Result;

/// Locks the pages of the host's copy for devices of this one's kind, until the memory leaves the
/// library's hands. Makes the copy if there is none; does nothing if they are locked for that kind
/// already.
pub(crate) fn page_lock(request: &Request<'_>, device: &Device) -> Result<()> {
    if request.is_empty() {
        return Ok(());
    }
    let host = {
        let mut state = request.storage.lock();
        super::host_side::allocate(request, &mut state)?;
        state.host.clone()
    };
    let Some(host) = host.filter(|host| !host.is_pinned_for(device.kind())) else { return Ok(()) };
    let lock = || device.backend().pin_host_memory(host.base(), host.len_bytes());
    let locked = host.lock_pages(device.kind(), lock, || request.storage.lock());
    locked.map_err(|refusal| request.refused(device, "page-locking", &refusal))
}
