//! Uploads of small whole arrays for a launch, without a plan.

use super::report::{Moved, all_stale_since, count};
use crate::audit::{self, Direction};
use crate::device::Stream;
use crate::error::Result;
use crate::storage::{ArrayState, StateGuard, UseKind};
use crate::transfer::access::request::{CopyPlace, Request};
use resident_backend::{HostMemory, StagedBytes};
use resident_core::Access;
use resident_core::coherence::Location;
use resident_core::ordering::Mark;

/// Larger arrays take the ordinary way.
const LEN_BYTES_MAX: u64 = 64 << 10;

/// Uploads the whole array of the request, if it is small and newest only on the host, and if the
/// copy on the stream's device needs neither memory nor a wait. Returns the lock on its state;
/// `None` if the array takes the ordinary way.
///
/// No claim is needed: the state is examined again under the lock under which the copy is queued.
/// If another thread has uploaded the array meanwhile, only the staged bytes are dropped.
pub(in crate::transfer) fn upload_small<'a>(
    request: &Request<'a>,
    stream: &Stream,
) -> Result<Option<StateGuard<'a>>> {
    let storage = request.storage;
    let len_bytes = storage.memory_order().len_bytes();
    // The threads of the embedded device copy the host's memory itself.
    let is_on_host = stream.device_ref().body_kind().is_on_host();
    if is_on_host || len_bytes == 0 || len_bytes > LEN_BYTES_MAX {
        return Ok(None);
    }
    let is_ready = ready_to_upload(&storage.lock(), stream).is_some();
    if !is_ready || audit::may_be_denied(request.cause) {
        return Ok(None);
    }
    let backend = stream.device_ref().backend();
    let Some(staged) = backend.allocate_staging(stream.raw(), len_bytes) else {
        return Ok(None);
    };
    let from = storage.host_base();
    // SAFETY: the host memory has `len_bytes` initialised bytes, since the whole array is valid
    // there. No queued work uses it, and later work never writes valid elements. The caller's
    // borrow, which outlives the call, excludes writes by the host, and that the memory is freed.
    // The staging memory is as long, and nothing else has it.
    unsafe { std::ptr::copy_nonoverlapping(from, staged.base(), len_bytes as usize) };
    let state = storage.lock();
    match ready_to_upload(&state, stream) {
        Some(copy) => queue(request, state, stream, copy, staged).map(Some),
        None => Ok(None),
    }
}

/// The copy on a stream's device, if the whole array is newest only on the host, in pageable memory
/// that no queued work uses, and if only that stream uses the copy.
fn ready_to_upload(state: &ArrayState, stream: &Stream) -> Option<CopyPlace> {
    let device = stream.device_ref();
    let location = state.find_location(device)?;
    let copy = state.device_copy(location);
    let (address, uses, key) = (copy.address()?, copy.uses.uniform()?, state.find_key(stream)?);
    let is_newest_on_host =
        state.coherence.uniform().is_some_and(|content| content.is_only_at(Location::HOST));
    let is_ready = is_newest_on_host
        && state.host.is_some()
        && state.is_host_idle()
        && !state.is_host_pinned_for(device.kind())
        && !state.has_new_failures()
        && !state.has_claim_at(location)
        && uses.conflicts_only_with(Access::Overwrite, key);
    is_ready.then_some(CopyPlace { location, address })
}

fn queue<'a>(
    request: &Request<'_>,
    mut state: StateGuard<'a>,
    stream: &Stream,
    CopyPlace { location, address }: CopyPlace,
    staged: StagedBytes,
) -> Result<StateGuard<'a>> {
    state.forget_padding();
    let label = request.storage.label("upload of", request.site);
    let begun = stream.begin_timing();
    let submitted = stream.raw().write(staged, address, &label);
    let position = submitted.map_err(|error| request.copy_error(stream, &error))?;
    stream.end_timing(begun, position);
    let since = all_stale_since(&state, location, request.storage.memory_order());
    let mark = Mark::write(state.assign_key(stream), position);
    let memory_order = request.storage.memory_order();
    state.number_use(location);
    state.record_use(location, memory_order.extents(), None, Access::Overwrite, mark);
    state.coherence.apply_to_all(location, Access::Read);
    request.storage.publish(&state);
    let moved = Moved::at(position, Direction::ToDevice, memory_order.len_bytes());
    count(request, &mut state, moved, stream.device_ref(), stream, since);
    if state.takes_expected_wait(stream, UseKind::Write) {
        stream.ensure_event_at_tail();
    }
    Ok(state)
}
