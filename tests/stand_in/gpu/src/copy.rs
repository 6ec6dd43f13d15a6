//! Copies boxes between any two kinds of memory. A contiguous range of bytes is the simplest box.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use crate::code::{Code, Outcome};
use crate::context::Context;
use crate::host::{self, Block, HostRange, Locked};
use crate::machine::{self, Device, settings};
use crate::stream::Stream;
use crate::{call, work};
use resident_backend::{
    Address, Backend, CopyBox, CopyWork, Dependencies, EventTiming, FailureKind, Memory, Position,
    SourceDevice, Work,
};

/// One end of a copy: its start and the strides of its rows and slices.
#[derive(Clone, Copy, Debug)]
pub struct End {
    pub place: Place,
    pub row_stride_bytes: u64,
    pub slice_stride_bytes: u64,
}

/// The kind of memory at an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    Host(u64),
    /// Pageable host memory that a device accesses itself.
    Reached(u64),
    Device(u64),
}

/// The box: bytes of a row, rows, slices.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    pub width_bytes: u64,
    pub height: u64,
    pub depth: u64,
}

/// When the call that queues a copy returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Return {
    /// When the copy is complete.
    Done,
    /// As soon as the kind of host memory allows; see the documentation of the module `driver`.
    Early,
}

impl Place {
    /// Classifies any address, as with unified addressing.
    pub fn of(address: u64) -> Self {
        let is_known = machine::device_of_address(address)
            .is_some_and(|device| device.ledger().around(address).is_some());
        let is_host = !is_known
            && (host::around(address).is_some() || machine::device_of_address(address).is_none());
        if is_host { Self::Host(address) } else { Self::Device(address) }
    }

    /// As [`of`](Self::of), for a copy that accesses its memory in the order of the stream:
    /// pageable memory is not staged if devices reach it.
    pub fn in_stream_order(address: u64) -> Self {
        match Self::of(address) {
            Self::Host(address) if host::is_reached(address) => Self::Reached(address),
            known => known,
        }
    }

    /// Classifies an address that the caller declares as a device address. Host memory that devices
    /// access is also accepted.
    pub fn of_device(address: u64) -> Self {
        let is_known = machine::device_of_address(address)
            .is_some_and(|device| device.ledger().around(address).is_some());
        if !is_known && host::around(address).is_some() {
            Self::Host(address)
        } else if !is_known && host::is_reached(address) {
            Self::Reached(address)
        } else {
            Self::Device(address)
        }
    }

    /// Classifies an address that the caller declares as a host address. A device address is
    /// rejected, because reading it would crash the process.
    pub fn of_host(address: u64) -> Outcome<Self> {
        let is_device = machine::device_of_address(address)
            .is_some_and(|device| device.ledger().around(address).is_some());
        if address == 0 || is_device { Err(Code::INVALID_VALUE) } else { Ok(Self::Host(address)) }
    }

    fn offset(self, len_bytes: u64) -> Self {
        match self {
            Self::Host(address) => Self::Host(address.wrapping_add(len_bytes)),
            Self::Reached(address) => Self::Reached(address.wrapping_add(len_bytes)),
            Self::Device(address) => Self::Device(address.wrapping_add(len_bytes)),
        }
    }
}

impl End {
    /// A contiguous range of bytes.
    pub fn run(place: Place) -> Self {
        Self { place, row_stride_bytes: 0, slice_stride_bytes: 0 }
    }

    /// The element at (x bytes, y rows, z slices) of pitched memory.
    pub fn pitched(place: Place, pitch_bytes: u64, rows: u64, [x_bytes, y, z]: [u64; 3]) -> Self {
        let slice_stride_bytes = pitch_bytes.wrapping_mul(rows);
        let offset = z
            .wrapping_mul(slice_stride_bytes)
            .wrapping_add(y.wrapping_mul(pitch_bytes))
            .wrapping_add(x_bytes);
        Self { place: place.offset(offset), row_stride_bytes: pitch_bytes, slice_stride_bytes }
    }

    /// The number of bytes from the first to the last byte of the box.
    pub fn span_bytes(&self, extent: Extent) -> Option<u64> {
        let slices = extent.depth.checked_sub(1)?.checked_mul(self.slice_stride_bytes)?;
        let rows = extent.height.checked_sub(1)?.checked_mul(self.row_stride_bytes)?;
        slices.checked_add(rows)?.checked_add(extent.width_bytes)
    }
}

impl Extent {
    /// A contiguous range of bytes.
    pub fn run(len_bytes: u64) -> Self {
        Self { width_bytes: len_bytes, height: 1, depth: 1 }
    }

    /// The number of bytes, saturating.
    pub fn len_bytes(self) -> u64 {
        self.width_bytes.saturating_mul(self.height).saturating_mul(self.depth)
    }
}

/// Queues a copy on a stream of `context`, and waits for it if necessary.
pub fn submit(
    context: &Context,
    stream: &Stream,
    destination: End,
    source: End,
    extent: Extent,
    until: Return,
) -> Outcome {
    call::set_bytes(extent.len_bytes());
    if extent.len_bytes() == 0 {
        return Ok(());
    }
    if source.span_bytes(extent).is_none() || destination.span_bytes(extent).is_none() {
        return Err(Code::INVALID_VALUE);
    }
    let is_on_the_host = !matches!(destination.place, Place::Device(_));
    let source = Resolved::source(source, extent, is_on_the_host)?;
    let (destination, is_ordinary) = Resolved::destination(destination, extent)?;
    let part = part(&source.end, &destination.end, extent);
    // A copy within the host runs in stream order, like any other.
    let position = match (&source.memory, &destination.memory) {
        (Memory::Host(_), Memory::Host(_)) => {
            return copy_on_the_host(context, stream, &source, &destination, extent);
        }
        _ => queue_copy(context, stream, source, destination, part)?,
    };
    if until == Return::Done || is_ordinary {
        stream.wait_until(position)?;
        context.device.ledger().settle();
        context.check()?;
    }
    Ok(())
}

/// One end of a copy, its memory, and its device.
struct Resolved {
    memory: Memory,
    end: End,
    device: Option<Arc<Device>>,
}

impl Resolved {
    /// The source. Pageable host memory is staged immediately, unless its copies are late, or the
    /// copy is one within the host.
    fn source(end: End, extent: Extent, is_on_the_host: bool) -> Outcome<Self> {
        let is_late = is_on_the_host || !settings().stages_pageable;
        match end.place {
            Place::Device(address) => Ok(Self::on_device(end, address)),
            Place::Reached(address) => Ok(Self::on_host(end, pageable(end, extent, address))),
            Place::Host(address) => match locked(end, extent, address)? {
                Some(range) => Ok(Self::on_host(end, range)),
                None if is_late => Ok(Self::on_host(end, pageable(end, extent, address))),
                None => Self::staged(end, extent, address),
            },
        }
    }

    /// The destination, and whether it is pageable host memory whose copies are waited for.
    fn destination(end: End, extent: Extent) -> Outcome<(Self, bool)> {
        Ok(match end.place {
            Place::Device(address) => (Self::on_device(end, address), false),
            Place::Reached(address) => (Self::on_host(end, pageable(end, extent, address)), false),
            Place::Host(address) => match locked(end, extent, address)? {
                Some(range) => (Self::on_host(end, range), false),
                None => {
                    let range = pageable(end, extent, address);
                    (Self::on_host(end, range), settings().stages_pageable)
                }
            },
        })
    }

    fn on_device(end: End, address: u64) -> Self {
        Self {
            memory: Memory::Device(Address(address)),
            end,
            device: machine::device_of_address(address),
        }
    }

    fn on_host(end: End, range: HostRange) -> Self {
        Self { memory: Memory::Host(Arc::new(range)), end, device: None }
    }

    /// Packs the rows into driver memory.
    fn staged(end: End, extent: Extent, address: u64) -> Outcome<Self> {
        let len_bytes = usize::try_from(extent.len_bytes()).map_err(|_| Code::OUT_OF_MEMORY)?;
        let block = Arc::new(Block::zeroed(len_bytes)?);
        let packed = End {
            place: end.place,
            row_stride_bytes: extent.width_bytes,
            slice_stride_bytes: extent.width_bytes * extent.height,
        };
        copy_rows(block.start(), &packed, pointer(address), &end, extent);
        Ok(Self::on_host(packed, HostRange::of(block, len_bytes)))
    }
}

/// The pinned memory, or `None` if the memory is pageable. CUDA rejects a copy that spans two
/// registrations or is only partly registered.
fn locked(end: End, extent: Extent, address: u64) -> Outcome<Option<HostRange>> {
    let Some(len_bytes) = end.span_bytes(extent) else { return Ok(None) };
    let range: Option<Locked> =
        host::around(address).filter(|range| range.holds(address, len_bytes));
    match range {
        Some(range) => {
            Ok(Some(HostRange::new(pointer(address), len_bytes as usize, range.block())))
        }
        None if host::is_partly_locked(address, len_bytes) => Err(Code::INVALID_VALUE),
        None => Ok(None),
    }
}

/// Memory that the caller keeps until the copy is over.
fn pageable(end: End, extent: Extent, address: u64) -> HostRange {
    HostRange::new(pointer(address), end.span_bytes(extent).unwrap_or(0) as usize, None)
}

fn pointer(address: u64) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(address as usize)
}

fn part(source: &End, destination: &End, extent: Extent) -> CopyBox {
    let mut axes: SmallVec<[(u64, u64, u64); 3]> = SmallVec::new();
    if extent.depth > 1 {
        axes.push((extent.depth, source.slice_stride_bytes, destination.slice_stride_bytes));
    }
    if extent.height > 1 {
        axes.push((extent.height, source.row_stride_bytes, destination.row_stride_bytes));
    }
    CopyBox {
        run_bytes: extent.width_bytes,
        source_offset_bytes: 0,
        destination_offset_bytes: 0,
        axes,
    }
}

/// Queues the copy on the stream. If the stream belongs to another device than the destination, the
/// copy runs on a stream of the destination's device. Events make it wait for the stream, and the
/// stream wait for it.
fn queue_copy(
    context: &Context,
    stream: &Stream,
    source: Resolved,
    destination: Resolved,
    part: CopyBox,
) -> Outcome<Position> {
    let here = &context.device;
    let device =
        destination.device.as_ref().filter(|device| device.ordinal != here.ordinal).cloned();
    let there = device.as_ref().unwrap_or(here);
    let source_device = source.device.as_ref().filter(|source| source.ordinal != there.ordinal);
    let source_device =
        source_device.map(|device| Arc::clone(&device.engine) as Arc<dyn SourceDevice>);
    let text = describe(&source.memory, &destination.memory, source_device.is_some());
    let make = |depends: Dependencies| {
        Work::Copy(Box::new(CopyWork {
            source: source.memory,
            destination: destination.memory,
            source_device,
            may_read_between: false,
            parts: smallvec![part],
            loss: FailureKind::Contents,
            depends: work::with_late_failure(depends),
            label: work::label(text),
        }))
    };
    match &device {
        None => stream.submit(context, make),
        Some(device) => submit_elsewhere(context, stream, device, make),
    }
}

fn submit_elsewhere(
    context: &Context,
    stream: &Stream,
    device: &Device,
    make: impl FnOnce(Dependencies) -> Work,
) -> Outcome<Position> {
    let failed = |error| work::code_of_error(&error);
    let raw = device.engine.default_stream().map_err(failed)?;
    let before = stream.ordered(context, |raw| raw.record(EventTiming::Disabled))?;
    raw.wait(before.as_ref()).map_err(failed)?;
    let position = raw.submit(make(stream.depends())).map_err(failed)?;
    let after = raw.record(EventTiming::Disabled).map_err(failed)?;
    context.watch(raw.id());
    stream.wait_for(context, after.as_ref(), Some(position))?;
    Ok(stream.raw.tail())
}

fn describe(source: &Memory, destination: &Memory, is_between: bool) -> &'static str {
    match (source, destination) {
        (Memory::Host(_), _) => "copy to the device",
        (_, Memory::Host(_)) => "copy to the host",
        _ if is_between => "copy between devices",
        _ => "copy within the device",
    }
}

fn copy_on_the_host(
    context: &Context,
    stream: &Stream,
    source: &Resolved,
    destination: &Resolved,
    extent: Extent,
) -> Outcome {
    stream.synchronize(context)?;
    let (Memory::Host(from), Memory::Host(to)) = (&source.memory, &destination.memory) else {
        return Err(Code::INVALID_VALUE);
    };
    copy_rows(to.base(), &destination.end, from.base(), &source.end, extent);
    Ok(())
}

/// Copies row by row within host memory.
fn copy_rows(to: *mut u8, to_end: &End, from: *mut u8, from_end: &End, extent: Extent) {
    for slice in 0..extent.depth {
        for row in 0..extent.height {
            let offset =
                |end: &End| (slice * end.slice_stride_bytes + row * end.row_stride_bytes) as usize;
            let (to, from) = (to.wrapping_add(offset(to_end)), from.wrapping_add(offset(from_end)));
            // SAFETY: the caller of the driver function guarantees that the described box lies in
            // initialised host memory (`HostRange`). Driver memory was allocated for the packed
            // rows (`staged`).
            unsafe { std::ptr::copy(from, to, extent.width_bytes as usize) };
        }
    }
}
