//! How one operation is run: the same in both modes, on a thread that is marked as running queued
//! work.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use smallvec::SmallVec;

use super::device::DeviceCore;
use super::lane::Lane;
use super::memory::{Located, Map};
use super::operation::{Operation, Queued, Upkeep};
use crate::backend::host_copy::{self, BoundedMemory};
use crate::backend::{
    Address, Arguments, ArrayArgument, CopyWork, Dependencies, FailureKind, FailureRecord,
    FillWork, Footprint, HostMemory, KernelCode, LaunchWork, Memory, Work, failure,
};

/// Runs an operation; what fails is recorded by the caller, who also drops the operation.
pub(super) fn execute(lane: &Lane, queued: &Queued) -> Result<(), FailureRecord> {
    match &queued.operation {
        Operation::Work(Work::Launch(work)) => {
            may_run(queued, &work.depends)?;
            launch(lane.device(), work).map_err(|cause| failed(&queued.operation, cause))
        }
        Operation::Work(Work::Copy(work)) => {
            may_run(queued, &work.depends)?;
            copy(lane.device(), lane.device(), work)
                .map_err(|cause| failed(&queued.operation, cause))
        }
        Operation::Between { copy: work, source } => {
            may_run(queued, &work.depends)?;
            copy(source, lane.device(), work).map_err(|cause| failed(&queued.operation, cause))
        }
        Operation::Work(Work::Fill(work)) => {
            may_run(queued, &work.depends)?;
            fill(lane.device(), work).map_err(|cause| failed(&queued.operation, cause))
        }
        Operation::Upkeep(upkeep) => {
            keep_up(lane, upkeep);
            Ok(())
        }
    }
}

/// Runs what never fails.
pub(super) fn keep_up(lane: &Lane, upkeep: &Upkeep) {
    match upkeep {
        Upkeep::Free(address) => lane.device().memory.retire(*address),
        Upkeep::Record(stamp) => stamp.iter().for_each(|stamp| stamp.set(lane.time_ns())),
        Upkeep::Wait(point) => {
            // A lane that cannot be waited for is one whose work was dropped: nothing is left to be
            // ordered behind.
            let _dropped = point.wait();
        }
    }
}

/// Drops an operation that has run. Its drop may run user code (a body's captures), and a panic
/// there is the operation's failure.
pub(super) fn discard(queued: Queued) -> Result<(), FailureRecord> {
    let (kind, site) = (queued.operation.failure_kind(), queued.operation.site());
    let Queued { operation, .. } = queued;
    catch_unwind(AssertUnwindSafe(|| drop(operation))).map_err(|payload| {
        let cause = format!("dropping it panicked: {}", panic_message(payload));
        FailureRecord {
            kind,
            operation: "work that had run".to_owned(),
            site,
            cause,
            inherited: false,
        }
    })
}

/// Work does not run where what it reads was to be written by work that failed, or where a test
/// asked for its failure.
fn may_run(queued: &Queued, depends: &Dependencies) -> Result<(), FailureRecord> {
    if failure::epoch() != 0 {
        for (queue, position) in depends {
            if let Some(root) = failure::at(*queue, *position) {
                let kind = root.kind.max(queued.operation.failure_kind());
                return Err(FailureRecord { kind, inherited: true, ..root.as_ref().clone() });
            }
        }
    }
    match queued.fault {
        Some(call) => Err(failed(
            &queued.operation,
            format!("a fault asked for by the emulation, at call {call}"),
        )),
        None => Ok(()),
    }
}

fn failed(operation: &Operation, cause: String) -> FailureRecord {
    let kind: FailureKind = operation.failure_kind();
    FailureRecord {
        kind,
        operation: operation.name(),
        site: operation.site(),
        cause,
        inherited: false,
    }
}

/// Copies all parts, or none if one end is not there. A part out of range ends the copy: its
/// destination has no meaning.
fn copy(source_device: &DeviceCore, device: &DeviceCore, work: &CopyWork) -> Result<(), String> {
    let source = End::of(source_device, &work.source)?;
    let destination = End::of(device, &work.destination)?;
    for part in &work.parts {
        // SAFETY: both ends are valid and initialised for their whole length while `source`,
        // `destination` and `work` hold them (`End::memory`); that nobody else writes the one or
        // touches the other is the order of work, which the layers above keep (`backend`,
        // contract).
        if !unsafe { host_copy::copy_box_within(source.memory(), destination.memory(), part) } {
            return Err(format!(
                "a part of it leaves its memory ({} and {} bytes)",
                source.memory().len_bytes,
                destination.memory().len_bytes
            ));
        }
    }
    Ok(())
}

fn fill(device: &DeviceCore, work: &FillWork) -> Result<(), String> {
    let destination = End::Device(locate(device, work.address)?);
    for part in &work.parts {
        // SAFETY: as for a copy's destination, above.
        if !unsafe { host_copy::fill_within(destination.memory(), part, &work.pattern) } {
            return Err(format!(
                "a part of it leaves its memory ({} bytes)",
                destination.memory().len_bytes
            ));
        }
    }
    Ok(())
}

/// One end of a copy, held while it runs.
enum End<'a> {
    Device(Located),
    Host(&'a dyn HostMemory),
}

impl<'a> End<'a> {
    fn of(device: &DeviceCore, memory: &'a Memory) -> Result<Self, String> {
        match memory {
            Memory::Host(host) => Ok(End::Host(host.as_ref())),
            Memory::Device(address) => locate(device, *address).map(End::Device),
        }
    }

    /// Valid and initialised while `self` lives: blocks always are (`block`), host memory by the
    /// promise of `HostMemory`.
    fn memory(&self) -> BoundedMemory {
        match self {
            End::Device(located) => {
                BoundedMemory { start: located.pointer(), len_bytes: located.room_bytes() }
            }
            End::Host(host) => {
                BoundedMemory { start: host.base(), len_bytes: host.len_bytes() as u64 }
            }
        }
    }
}

fn locate(device: &DeviceCore, address: Address) -> Result<Located, String> {
    device.memory.locate(address).ok_or_else(|| gone(address))
}

fn gone(address: Address) -> String {
    format!(
        "there is no memory at device address {:#x}: it was freed, or belongs to another device",
        address.0
    )
}

/// Blocks and pointers of one launch. As many as the arguments have inline.
type Resolved = (SmallVec<[Option<Located>; 6]>, SmallVec<[*mut u8; 6]>);

/// Runs a body on the memory that its arguments name.
fn launch(device: &DeviceCore, work: &LaunchWork) -> Result<(), String> {
    let KernelCode::Host(body) = &work.code else {
        return Err("device code does not run on the embedded device".to_owned());
    };
    let (blocks, pointers) = resolve(device, &work.arguments)?;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: each pointer is that of element 0, 0, ... of a block which `blocks` holds, and
        // each footprint lies in it (`resolve`); blocks are always initialised (`block`). That
        // nobody else writes or touches these bytes is the order of work, which the layers above
        // keep.
        unsafe { body.run(work.grid, &work.arguments.words, &pointers) }
    }));
    drop(blocks);
    outcome.map_err(panic_message)
}

fn resolve(device: &DeviceCore, arguments: &Arguments) -> Result<Resolved, String> {
    let map = device.memory.map();
    let mut resolved = Resolved::default();
    for array in &arguments.arrays {
        let (located, pointer) = resolve_array(&map, array, &arguments.footprint(array))?;
        resolved.0.push(located);
        resolved.1.push(pointer);
    }
    Ok(resolved)
}

/// Bounds-checks one array. One without a byte needs no memory: it gets an aligned pointer that
/// nothing may be read through.
fn resolve_array(
    map: &Map<'_>,
    array: &ArrayArgument,
    footprint: &Footprint,
) -> Result<(Option<Located>, *mut u8), String> {
    let end_bytes = footprint.end_bytes();
    let Some(located) = map.locate(array.address) else {
        let dangling = std::ptr::without_provenance_mut(super::block::ALIGNMENT_BYTES);
        return if end_bytes == Some(0) { Ok((None, dangling)) } else { Err(gone(array.address)) };
    };
    let room_bytes = located.room_bytes();
    if array.origin_bytes > room_bytes || end_bytes.is_none_or(|end_bytes| end_bytes > room_bytes) {
        return Err(format!(
            "an array argument leaves its memory of {room_bytes} bytes: {footprint:?}"
        ));
    }
    let pointer = located.pointer().wrapping_add(array.origin_bytes as usize);
    Ok((Some(located), pointer))
}

/// The message of a panic, as `panic!` made it. A payload whose own drop panics is let go unfreed.
pub(super) fn panic_message(payload: Box<dyn Any + Send>) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(again);
    }
    text.unwrap_or_else(|| "a panic without a message".to_owned())
}
