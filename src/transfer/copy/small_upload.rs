//! Uploads of small whole arrays for a launch, without a plan.

use super::report::{Moved, all_stale_since, count};
use crate::audit::{self, Direction};
use crate::device::Stream;
use crate::error::Result;
use crate::storage::{CopyPlace, StateGuard, UseKind};
use crate::transfer::access::request::Request;
use resident_backend::StagedBytes;
use resident_core::Access;
use resident_core::ordering::Mark;

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
    if len_bytes == 0 || !stream.queue().may_stage(len_bytes) {
        return Ok(None);
    }
    let is_ready = storage.lock().ready_to_upload(stream).is_some();
    if !is_ready || audit::may_be_denied(request.cause) {
        return Ok(None);
    }
    // SAFETY: the host memory has `len_bytes` initialised bytes, since the whole array is valid
    // there. No queued work uses it, and later work never writes valid elements. The caller's
    // borrow, which outlives the call, excludes writes by the host, and that the memory is freed.
    let staged = unsafe { stream.queue().stage(storage.host_base(), len_bytes as usize) };
    let Some(staged) = staged else { return Ok(None) };
    let state = storage.lock();
    match state.ready_to_upload(stream) {
        Some(copy) => queue(request, state, stream, copy, staged).map(Some),
        None => Ok(None),
    }
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
    let submitted = stream.queue().upload(staged, address, &label);
    let position = submitted.map_err(|error| request.copy_error(stream, &error))?;
    stream.end_timing(begun, position);
    let since = all_stale_since(&state, location, request.storage.memory_order());
    let mark = Mark::write(state.assign_key(stream), position);
    let memory_order = request.storage.memory_order();
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
