//! Work as it reaches a stream: checked, queued, entered.

use std::sync::Arc;

use cudarc::driver::sys;
use smallvec::SmallVec;

use super::call::invalid;
use super::code::CudaKernel;
use super::copy::{self, End, Target};
use super::device::CudaDevice;
use super::flight::{After, Descent, Flight, Landing, Name, descent};
use super::pinned::Plain;
use super::stream::{Line, QueueCore};
use super::{fill, launch, shape};
use crate::backend::{
    BackendError, BackendErrorKind, CopyBox, CopyWork, DeviceKind, FailureKind, FailureRecord,
    FillWork, HostMemory, KernelCode, LaunchWork, Memory, Position, SourceDevice, Work, failure,
};

/// Queues work; the context is current. The stream's lock is held while it is queued, so that
/// positions are those of the stream's own order.
pub(super) fn queue(core: &QueueCore, work: Work) -> Result<Position, BackendError> {
    match work {
        Work::Launch(work) => queue_launch(core, work),
        Work::Copy(work) => queue_copy(core, *work),
        Work::Fill(work) => queue_fill(core, *work),
    }
}

fn target(core: &QueueCore) -> Target {
    let device = core.device();
    Target {
        stream: core.raw_stream(),
        context: device.context().cudarc().cu_ctx(),
        pitch_max: device.pitch_max_bytes(),
    }
}

fn queue_launch(core: &QueueCore, work: LaunchWork) -> Result<Position, BackendError> {
    let LaunchWork { code, grid, mut arguments, depends, site } = work;
    let KernelCode::Loaded(loaded) = &code else {
        return Err(invalid("cuLaunchKernel", "a host body does not run on a GPU".to_owned()));
    };
    let Some(kernel) = loaded.downcast_ref::<CudaKernel>() else {
        return Err(invalid(
            "cuLaunchKernel",
            "the kernel was loaded by another kind of device".to_owned(),
        ));
    };
    let name = Name { is_kernel: true, text: Arc::clone(loaded.name()), site: Some(site) };
    let mut line = core.line();
    let depends = match core.pending(&line, depends) {
        Ok(depends) => depends,
        Err(root) => return Ok(skip(core, &mut line, &root, FailureKind::Contents)),
    };
    // SAFETY: `submit` made the context current; a `CudaKernel` of another device is refused by the
    // driver, whose handle it is not. Arguments, lifetimes and order are kept by the layers above
    // (`backend`, contract): memory is freed behind its last use.
    core.note_locked(unsafe { launch::queue(core.raw_stream(), kernel, grid, &mut arguments) })?;
    let position = core.draw(&mut line);
    line.ledger.name(position, name);
    line.push(Flight { position, depends, after: After::Nothing, loss: FailureKind::Contents });
    core.mark_the_way(&mut line);
    Ok(position)
}

/// Work whose dependency failed does not run, and fails for the same reason.
fn skip(core: &QueueCore, line: &mut Line, root: &FailureRecord, loss: FailureKind) -> Position {
    let position = core.draw(line);
    let record = FailureRecord { kind: root.kind.max(loss), inherited: true, ..root.clone() };
    failure::record(core.id(), position, Arc::new(record));
    position
}

fn queue_fill(core: &QueueCore, work: FillWork) -> Result<Position, BackendError> {
    let FillWork { address, parts, pattern, loss, depends, label } = work;
    if parts.iter().any(|part| pattern.is_empty() || part.run_bytes % pattern.len() as u64 != 0) {
        return Err(invalid(
            "fill",
            format!("a pattern of {} bytes does not fill its runs", pattern.len()),
        ));
    }
    let mut line = core.line();
    let depends = match core.pending(&line, depends) {
        Ok(depends) => depends,
        Err(root) => return Ok(skip(core, &mut line, &root, loss)),
    };
    let mut seeds: SmallVec<[Arc<dyn HostMemory>; 2]> = SmallVec::new();
    for part in &parts {
        // SAFETY: the context is current; the memory lives until a free behind this work, and is
        // not touched meanwhile: the order of work, which the layers above keep (`backend`,
        // contract). The seeds are kept until it is over, and until the stream is through where it
        // is refused (`settled`).
        let (seed, outcome) = unsafe { fill::queue(target(core), address.0, part, &pattern) };
        seeds.extend(seed);
        core.note_locked(settled(core, outcome))?;
    }
    let position = core.draw(&mut line);
    line.ledger.name(position, Name::of_label(&label));
    let after = if seeds.is_empty() { After::Nothing } else { After::LetGo { held: seeds } };
    line.push(Flight { position, depends, after, loss });
    core.mark_the_way(&mut line);
    Ok(position)
}

fn queue_copy(core: &QueueCore, work: CopyWork) -> Result<Position, BackendError> {
    let name = Name::of_label(&work.label);
    let loss = work.loss;
    if let Some(overrun) = work.host_overrun() {
        return Err(invalid("copy", overrun));
    }
    let mut line = core.line();
    let depends = match core.pending(&line, work.depends.clone()) {
        Ok(depends) => depends,
        Err(root) => return Ok(skip(core, &mut line, &root, loss)),
    };
    let after = core.note_locked(queue_parts(core, &line, work))?;
    let position = core.draw(&mut line);
    line.ledger.name(position, name);
    line.push(Flight { position, depends, after, loss });
    core.mark_the_way(&mut line);
    Ok(position)
}

/// Queues the copies themselves, and says what is to be done behind them.
fn queue_parts(core: &QueueCore, line: &Line, work: CopyWork) -> Result<After, BackendError> {
    let CopyWork { source, destination, source_device, parts, may_read_between, .. } = work;
    let from = source_end(core, &source, source_device.as_deref())?;
    // What the host has yet to write must not come behind what the device writes later: then this
    // is put in its place by the host as well.
    if let Memory::Host(host) = &destination
        && (!host.is_pinned_for(DeviceKind::Cuda) || line.ledger.writes_host_memory())
    {
        return bring_down(core, from, host, &parts, may_read_between);
    }
    let to = end(&destination);
    // SAFETY: the context is current. Host memory was checked to hold the parts and is kept until
    // the copy is over (`After::LetGo`); device memory lives until a free behind this work. Who
    // touches what meanwhile is the order of work, which the layers above keep (`backend`,
    // contract).
    settled(core, unsafe { copy::queue(target(core), from, to, &parts) })?;
    let held: SmallVec<[Arc<dyn HostMemory>; 2]> =
        [source, destination].into_iter().filter_map(host_of).collect();
    Ok(if held.is_empty() { After::Nothing } else { After::LetGo { held } })
}

/// A refusal in the midst of several calls means that nothing counts as queued: what was, is waited
/// for, so that it touches nothing any more.
fn settled(core: &QueueCore, outcome: Result<(), BackendError>) -> Result<(), BackendError> {
    outcome.inspect_err(|_| {
        // SAFETY: the stream lives. A stream that cannot be waited for is one of a dead context,
        // which runs nothing.
        let _dead = unsafe { sys::cuStreamSynchronize(core.raw_stream()) };
    })
}

/// A download to ordinary memory: packed into page-locked memory by the device, put in its place by
/// whoever waits. Where there is no room for that it is packed into ordinary memory, by the driver,
/// which returns when it is done.
fn bring_down(
    core: &QueueCore,
    from: End,
    host: &Arc<dyn HostMemory>,
    parts: &SmallVec<[CopyBox; 1]>,
    may_read_between: bool,
) -> Result<After, BackendError> {
    let target = target(core);
    let mut calls = 0;
    parts.iter().for_each(|part| shape::each(part, target.pitch_max, &mut |_| calls += 1));
    let Descent { into, out_of, len_bytes } = descent(parts, calls, may_read_between);
    if calls == 0 {
        return Ok(After::Nothing);
    }
    let packed: Arc<dyn HostMemory> = match core.device().pinned().take(len_bytes) {
        Some(pinned) => Arc::new(pinned),
        None => Arc::new(Plain::zeroed(len_bytes).ok_or_else(|| no_room(len_bytes))?),
    };
    // SAFETY: as in `queue_parts`: the packed parts lie within the `len_bytes` of the packed
    // memory, which the flight keeps.
    settled(core, unsafe { copy::queue(target, from, host_end(&*packed), &into) })?;
    Ok(After::Unpack(Landing { packed, destination: Arc::clone(host), parts: out_of }))
}

#[cold]
fn no_room(len_bytes: u64) -> BackendError {
    let kind = BackendErrorKind::OutOfMemory { requested: len_bytes, free: 0 };
    BackendError {
        kind,
        call: "download",
        detail: "the host has no memory to pack it into".to_owned(),
    }
}

fn source_end(
    core: &QueueCore,
    source: &Memory,
    device: Option<&dyn SourceDevice>,
) -> Result<End, BackendError> {
    let (Memory::Device(address), Some(device)) = (source, device) else { return Ok(end(source)) };
    let Some(peer) = device.downcast_ref::<CudaDevice>() else {
        return Err(invalid("copy", format!("{device:?} cannot be reached from a GPU")));
    };
    Ok(End::Device(address.0, core.device().context_of_peer(peer.core())))
}

fn end(memory: &Memory) -> End {
    match memory {
        Memory::Host(host) => host_end(&**host),
        Memory::Device(address) => End::Device(address.0, None),
    }
}

fn host_end(host: &dyn HostMemory) -> End {
    End::Host(host.base(), host.is_pinned_for(DeviceKind::Cuda))
}

fn host_of(memory: Memory) -> Option<Arc<dyn HostMemory>> {
    match memory {
        Memory::Host(host) => Some(host),
        Memory::Device(_) => None,
    }
}
