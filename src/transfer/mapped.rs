//! Mapped memory: one memory that the host and a device access. It is the device's copy of an
//! array; the host waits for the device's uses of it, and nothing is copied.

use super::acquire::acquire_on;
use super::request::{Marks, Request, ends_of};
use crate::access::Access;
use crate::backend::{Dependencies, PinnedOptions};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::ordering::UseEnd;
use crate::storage::ArrayState;

/// How often a host access tries to fill elements that have a constant value.
const FILLS_MAX: u32 = 3;

/// Allocates mapped memory, all zeros, as the copy of a new array on a device. It stays until the
/// array drops.
pub(crate) fn allocate_mapped(
    request: &Request<'_>,
    device: &Device,
    options: PinnedOptions,
) -> Result<()> {
    if request.is_empty() {
        return Ok(());
    }
    let location = request.storage.lock().assign_location(device);
    let location = location.ok_or_else(|| request.no_location(device))?;
    let len_bytes = request.len_bytes();
    let address =
        request.retrying(device, || device.backend().allocate_mapped(len_bytes, options))?;
    let mut state = request.storage.lock();
    state.device_copy_mut(location).address = Some(address);
    // This pin is never removed, because the host has pointers to the memory.
    state.pin();
    request.record_write(&mut state, location, Access::Overwrite);
    Ok(())
}

/// Waits until the host may access the elements in mapped memory of `device`, and returns its
/// start. The caller's borrow excludes conflicting accesses afterwards.
pub(crate) fn acquire_mapped(
    request: &Request<'_>,
    device: &Device,
    access: Access,
) -> Result<*mut u8> {
    let (mut waited, mut fills) = (Marks::new(), 0);
    loop {
        let mut state = request.storage.lock();
        state.close_dropped_reads();
        state.reconcile(request.storage.memory_order());
        let (marks, is_valid) = uses_to_end(request, &state, device, access, &waited);
        if !marks.is_empty() {
            let pending = ends_of(&state, &marks);
            drop(state);
            request.wait_for(pending)?;
            waited.extend(marks.into_iter().filter(|mark| mark.end == UseEnd::OPEN));
        } else if is_valid {
            return start(request, &mut state, device, access);
        } else if fills == FILLS_MAX {
            return Err(unfilled(request, device));
        } else {
            drop(state);
            fills += 1;
            drop(acquire_on(request, &device.stream(), Access::Read, &mut Dependencies::new())?);
        }
    }
}

/// The uses that must end first, and whether the elements have contents. Open uses for which the
/// host has `waited` are those of guards that are over: work that other code queued for them was
/// queued before the wait.
fn uses_to_end(
    request: &Request<'_>,
    state: &ArrayState,
    device: &Device,
    access: Access,
    waited: &Marks,
) -> (Marks, bool) {
    let Some(location) = state.find_location(device) else { return (Marks::new(), true) };
    let mut marks = request.conflicts(state, location, access);
    marks.retain(|mark| mark.end != UseEnd::OPEN || !waited.contains(mark));
    (marks, access == Access::Overwrite || request.is_valid(state, location))
}

/// The memory's start. Records a write, after which the elements are no constant any more, and have
/// contents if they had none.
fn start(
    request: &Request<'_>,
    state: &mut ArrayState,
    device: &Device,
    access: Access,
) -> Result<*mut u8> {
    let found = state.find_location(device).and_then(|location| {
        let address = state.device_copy(location).address?;
        Some((location, device.backend().mapped_pointer(address)?))
    });
    let Some((location, start)) = found else { return Err(unfilled(request, device)) };
    if access.writes() {
        request.record_write(state, location, access);
    }
    Ok(start)
}

fn unfilled(request: &Request<'_>, device: &Device) -> Error {
    Error::Backend {
        call: request.site.into(),
        device: device.name(),
        operation: format!("{} of {}", request.operation, request.storage.named()),
        cause: String::from(
            "the device could not fill the elements with their constant value; the call can be \
             repeated, and `host_overwrite` needs no contents",
        ),
    }
}
