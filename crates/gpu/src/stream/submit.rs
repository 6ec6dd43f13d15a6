//! Checks work and queues it on a stream.

use std::cell::Cell;
use std::sync::Arc;

use smallvec::SmallVec;

use super::completion::inherited;
use super::gpu_stream::{GpuStream, StreamState};
use super::in_flight::{CompletionAction, OperationName};
use crate::capture_mode::Relaxed;
use crate::code::GpuKernel;
use crate::copy::cost::{Allowed, DownloadPlan};
use crate::copy::fill;
use crate::copy::from_staging::PendingUnpack;
use crate::copy::memcpy::StreamTarget;
use crate::copy::packing;
use crate::device::GpuDevice;
use crate::driver::{CopyEnd, invalid};
use crate::launch;
use crate::memory::pageable::PageableBlock;
use resident_backend::{
    BackendError, CopyBox, CopyWork, FailureKind, FailureRecord, FillWork, HostMemory, KernelCode,
    LaunchCall, LoadedKernel, Memory, Position, SourceDevice, failure,
};

/// Queues a launch; the context is current. The stream lock is held, so that positions follow the
/// stream's order.
#[inline]
pub(super) fn queue_launch(
    stream: &GpuStream,
    launch: &mut LaunchCall<'_>,
) -> Result<Position, BackendError> {
    let KernelCode::Loaded(loaded) = launch.code else {
        return Err(invalid("launch", "a host body does not run on a GPU".to_owned()));
    };
    let kernel = loaded.downcast_ref::<GpuKernel>();
    let Some(kernel) = kernel.filter(|kernel| kernel.is_of(stream.driver())) else {
        let detail = "the kernel was loaded by another kind of device".to_owned();
        return Err(invalid("launch", detail));
    };
    let mut state = stream.state();
    if !stream.is_independent(&state, launch.depends) {
        return queue_dependent(stream, &mut state, kernel, launch);
    }
    queue_kernel(stream, kernel, launch)?;
    let position = stream.next_position(&mut state);
    state.in_flight.record_kernel(position, kernel.name(), launch.site);
    Ok(position)
}

/// Queues a launch whose dependencies may have failed, or may still fail.
#[inline(never)]
fn queue_dependent(
    stream: &GpuStream,
    state: &mut StreamState,
    kernel: &GpuKernel,
    launch: &mut LaunchCall<'_>,
) -> Result<Position, BackendError> {
    let depends = match stream.pending_dependencies(state, launch.depends) {
        Ok(depends) => depends,
        Err(root) => return Ok(skip(stream, state, &root, FailureKind::Contents)),
    };
    queue_kernel(stream, kernel, launch)?;
    let position = if depends.is_empty() {
        stream.next_position(state)
    } else {
        let nothing = CompletionAction::Nothing;
        stream.enter_queued(state, depends, nothing, FailureKind::Contents)
    };
    state.in_flight.record_kernel(position, kernel.name(), launch.site);
    Ok(position)
}

#[inline]
fn queue_kernel(
    stream: &GpuStream,
    kernel: &GpuKernel,
    launch: &mut LaunchCall<'_>,
) -> Result<(), BackendError> {
    // SAFETY: `GpuStreamHandle::launch` made the context current, and kernels are loaded for each
    // device (`DeviceCode::on`). The modules that use the backend keep arguments alive and order
    // their uses (contract in `backend`): memory is freed after its last use.
    let outcome = unsafe { launch::queue(stream.driver(), stream.raw_stream(), kernel, launch) };
    stream.record_death_locked(outcome)
}

/// Assigns a position to work whose dependency failed. The work does not run, and fails for the
/// same reason.
pub(super) fn skip(
    stream: &GpuStream,
    state: &mut StreamState,
    root: &FailureRecord,
    loss: FailureKind,
) -> Position {
    let position = stream.next_position(state);
    failure::record(stream.id, position, inherited(root, loss));
    position
}

/// Queues a fill, as [`queue_launch`] a launch.
pub(super) fn queue_fill(stream: &GpuStream, work: FillWork) -> Result<Position, BackendError> {
    let FillWork { address, parts, pattern, loss, depends, label } = work;
    if parts.iter().any(|part| pattern.is_empty() || part.run_bytes % pattern.len() as u64 != 0) {
        let detail = format!("a pattern of {} bytes does not fill its runs", pattern.len());
        return Err(invalid("fill", detail));
    }
    let mut state = stream.state();
    let depends = match stream.pending_dependencies(&state, &depends) {
        Ok(depends) => depends,
        Err(root) => return Ok(skip(stream, &mut state, &root, loss)),
    };
    let mut seeds: SmallVec<[Arc<dyn HostMemory>; 2]> = SmallVec::new();
    let queued_bytes = Cell::new(0);
    let target = target(stream, &queued_bytes);
    for part in &parts {
        // SAFETY: the context is current. The memory lives until a free that is queued after this
        // work, and the modules that use the backend order other uses of it (contract in
        // `backend`). The seed patterns are kept until the fill completes, or on error until
        // `drained_on_error` has waited for the stream.
        let (seed, outcome) = unsafe { fill::queue(target, address.0, part, &pattern) };
        seeds.extend(seed);
        stream.record_death_locked(drained_on_error(stream, &queued_bytes, outcome))?;
    }
    let action = release_of(seeds);
    let position = stream.enter_queued(&mut state, depends, action, loss);
    state.in_flight.record_name(position, OperationName::of_label(&label));
    Ok(position)
}

/// Queues a copy, as [`queue_launch`] a launch.
pub(super) fn queue_copy(stream: &GpuStream, work: CopyWork) -> Result<Position, BackendError> {
    let name = OperationName::of_label(&work.label);
    let loss = work.loss;
    if let Some(overrun) = work.host_overrun() {
        return Err(invalid("copy", overrun));
    }
    let mut state = stream.state();
    let depends = match stream.pending_dependencies(&state, &work.depends) {
        Ok(depends) => depends,
        Err(root) => return Ok(skip(stream, &mut state, &root, loss)),
    };
    let action = stream.record_death_locked(queue_parts(stream, &state, work))?;
    let position = stream.enter_queued(&mut state, depends, action, loss);
    state.in_flight.record_name(position, name);
    Ok(position)
}

/// Queues the parts of a copy. Returns the completion action.
fn queue_parts(
    stream: &GpuStream,
    state: &StreamState,
    work: CopyWork,
) -> Result<CompletionAction, BackendError> {
    let CopyWork { source, destination, source_device, parts, may_read_between, .. } = work;
    let from = source_end(stream, &source, source_device.as_deref())?;
    // While an earlier download must still be unpacked, a pinned destination is unpacked too:
    // otherwise the earlier unpack could overwrite later writes of the device.
    if let Memory::Host(host) = &destination
        && (!host.is_pinned_for(stream.kind()) || state.in_flight.writes_host_memory())
    {
        let pack = packing::has_blocks_for(stream.device.memory(), from);
        let allowed = Allowed { read_between: may_read_between, pack };
        return queue_staged_download(stream, from, host, &parts, allowed);
    }
    let to = end(stream, &destination);
    let queued_bytes = Cell::new(0);
    let target = target(stream, &queued_bytes);
    let block = packing::block(target, stream.device.memory(), from, to, &parts);
    // SAFETY: the context is current. `queue_copy` checked that the parts lie within the host
    // memory, which `CompletionAction::Release` keeps until the copy completes. Device memory lives
    // until a free that is queued after this work. The modules that use the backend order other
    // uses (contract in `backend`).
    let outcome = unsafe { packing::queue(target, block, from, to, &parts) };
    drained_on_error(stream, &queued_bytes, outcome)?;
    Ok(release_of([source, destination].into_iter().filter_map(host_memory).collect()))
}

/// Queues a download to pageable memory: the device packs it into a pinned staging block, and the
/// completion action unpacks it. If no staging block is available, the driver packs it into a
/// pageable block before it returns.
fn queue_staged_download(
    stream: &GpuStream,
    from: CopyEnd,
    host: &Arc<dyn HostMemory>,
    parts: &[CopyBox],
    allowed: Allowed,
) -> Result<CompletionAction, BackendError> {
    let to_staging = Cell::new(0);
    let target = target(stream, &to_staging);
    let memory = stream.device.memory();
    let (way, block) = packing::way_of_download(target, memory, from, parts, allowed);
    let plan = DownloadPlan::of_way(way, parts);
    if plan.len_bytes == 0 {
        return Ok(CompletionAction::Nothing);
    }
    let staged: Arc<dyn HostMemory> = match stream.device.staging().take(plan.len_bytes) {
        Some(pinned) => Arc::new(pinned),
        None => Arc::new(PageableBlock::zeroed(plan.len_bytes, "download")?),
    };
    let to = host_end(stream, &*staged);
    // SAFETY: as in `queue_parts`. The plan's parts lie within `len_bytes` bytes of staging memory,
    // one after another, which the completion action keeps.
    let outcome = unsafe { packing::queue(target, block, from, to, &plan.to_staging) };
    // The destination is as it was, whatever is in staging memory.
    drained_on_error(stream, &Cell::new(0), outcome)?;
    let destination = Arc::clone(host);
    let parts = plan.from_staging;
    Ok(CompletionAction::Unpack(PendingUnpack { staged, destination, parts }))
}

/// If one of several driver calls fails, waits for the stream. Then the earlier calls have ended,
/// and the error says how many bytes they have written.
fn drained_on_error(
    stream: &GpuStream,
    queued_bytes: &Cell<u64>,
    outcome: Result<(), BackendError>,
) -> Result<(), BackendError> {
    outcome.map_err(|error| {
        let _relaxed = Relaxed::enter(stream.driver());
        let wait = stream.driver().stream_synchronize.function;
        // SAFETY: the stream lives. If waiting fails, the context is dead and executes nothing.
        let _dead = unsafe { wait(stream.raw_stream()) };
        error.after_writing(queued_bytes.get())
    })
}

fn target<'o>(stream: &GpuStream, queued_bytes: &'o Cell<u64>) -> StreamTarget<'o> {
    StreamTarget {
        queued_bytes,
        driver: stream.driver(),
        stream: stream.raw_stream(),
        place: stream.device.context().place(),
        pitch_bytes_max: stream.device.pitch_bytes_max(),
    }
}

fn source_end(
    stream: &GpuStream,
    source: &Memory,
    device: Option<&dyn SourceDevice>,
) -> Result<CopyEnd, BackendError> {
    let (Memory::Device(address), Some(device)) = (source, device) else {
        return Ok(end(stream, source));
    };
    let peer = device.downcast_ref::<GpuDevice>().map(GpuDevice::core);
    let Some(peer) = peer.filter(|peer| peer.context().kind() == stream.kind()) else {
        let detail = format!("a GPU cannot access memory of {device:?}");
        return Err(invalid("copy", detail));
    };
    Ok(CopyEnd::Device(address.0, stream.device.place_of_peer(peer)))
}

fn end(stream: &GpuStream, memory: &Memory) -> CopyEnd {
    match memory {
        Memory::Host(host) => host_end(stream, &**host),
        Memory::Device(address) => CopyEnd::Device(address.0, None),
    }
}

fn host_end(stream: &GpuStream, host: &dyn HostMemory) -> CopyEnd {
    CopyEnd::Host(host.base(), host.is_pinned_for(stream.kind()))
}

fn host_memory(memory: Memory) -> Option<Arc<dyn HostMemory>> {
    match memory {
        Memory::Host(host) => Some(host),
        Memory::Device(_) => None,
    }
}

fn release_of(memory: SmallVec<[Arc<dyn HostMemory>; 2]>) -> CompletionAction {
    if memory.is_empty() { CompletionAction::Nothing } else { CompletionAction::Release { memory } }
}
