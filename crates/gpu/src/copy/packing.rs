//! Copies of short rows by way of a block of device memory. Over a link each row of a strided copy
//! is a transfer of its own. So the rows are copied on the device to or from a block that has them
//! one after another, and the block crosses the link by one contiguous copy.
//!
//! The block is allocated and freed in the order of the copy's stream. If the driver refuses a call
//! before the destination gets any bytes, the direct copy takes over, so that packing causes no
//! error.

use std::cell::Cell;

use super::cost::{Allowed, Costs, Way};
use super::memcpy::{self, StreamTarget};
use crate::driver::{CopyEnd, StreamHandle};
use crate::memory::allocator::DeviceMemory;
use resident_backend::{Address, BackendError, BackendErrorKind, CopyBox, Footprint};

/// Device memory for one copy, which is freed in the order of the stream.
#[derive(Debug)]
pub(crate) struct Block<'m> {
    memory: &'m DeviceMemory,
    stream: StreamHandle,
    address: Address,
    len_bytes: u64,
}

impl<'m> Block<'m> {
    /// A block for a copy from or to device memory. `None` if the device has no memory to spare, or
    /// for memory that the host accesses too, which may lie behind the link.
    fn allocate(
        memory: &'m DeviceMemory,
        device: CopyEnd,
        parts: &[CopyBox],
        stream: StreamHandle,
    ) -> Option<Self> {
        let CopyEnd::Device(address, None) = device else { return None };
        if memory.is_mapped(Address(address)) {
            return None;
        }
        let len_bytes = parts.iter().map(CopyBox::len_bytes).sum();
        let address = memory.allocate_temporary(len_bytes, stream)?;
        Some(Self { memory, stream, address, len_bytes })
    }

    fn end(&self) -> CopyEnd {
        CopyEnd::Device(self.address.0, None)
    }
}

impl Drop for Block<'_> {
    fn drop(&mut self) {
        // SAFETY: `allocate` allocated the block in the order of this stream, on which all its
        // copies are queued. The block is freed once.
        unsafe { self.memory.free_temporary(self.address, self.stream) };
    }
}

/// The way of a download to staging memory, which gets the parts one after another, and its block.
/// If there is no memory for a block, it is the fastest of the other ways. The context is current.
pub(crate) fn way_of_download<'m>(
    target: StreamTarget<'_>,
    memory: &'m DeviceMemory,
    source: CopyEnd,
    parts: &[CopyBox],
    allowed: Allowed,
) -> (Way, Option<Block<'m>>) {
    let fastest = |allowed| Costs::current().fastest(parts, target.pitch_bytes_max, allowed);
    let way = fastest(allowed);
    if way != Way::Packed {
        return (way, None);
    }
    let block = Block::allocate(memory, source, parts, target.stream);
    let way = if block.is_some() { way } else { fastest(Allowed { pack: false, ..allowed }) };
    (way, block)
}

/// The block of another copy, if that is packed: of an upload from staging memory, or of a copy
/// from or to pinned memory that has the parts one after another, from its first byte. The context
/// is current.
pub(crate) fn block<'m>(
    target: StreamTarget<'_>,
    memory: &'m DeviceMemory,
    source: CopyEnd,
    destination: CopyEnd,
    parts: &[CopyBox],
) -> Option<Block<'m>> {
    let (device, packed): (_, fn(&CopyBox, u64) -> CopyBox) = match (source, destination) {
        (CopyEnd::Host(..), CopyEnd::Device(..)) => {
            (destination, |part, start| part.destination().copy_from_packed(start))
        }
        (CopyEnd::Device(..), CopyEnd::Host(..)) => {
            (source, |part, start| part.source().copy_from_packed(start).reversed())
        }
        _ => return None,
    };
    if !are_packed(parts, packed) || !has_blocks_for(memory, device) {
        return None;
    }
    let allowed = Allowed { read_between: false, pack: true };
    let way = Costs::current().fastest(parts, target.pitch_bytes_max, allowed);
    (way == Way::Packed).then(|| Block::allocate(memory, device, parts, target.stream)).flatten()
}

/// Whether copies of this device memory may be packed: on devices that free in stream order, whose
/// frees do not wait.
pub(crate) fn has_blocks_for(memory: &DeviceMemory, device: CopyEnd) -> bool {
    matches!(device, CopyEnd::Device(_, None)) && memory.frees_in_order()
}

/// Whether parts with rows lie one after another at the host's end, from its first byte. `packed`
/// gives the part that lies there at an offset.
fn are_packed(parts: &[CopyBox], packed: fn(&CopyBox, u64) -> CopyBox) -> bool {
    let mut next = 0;
    let is_next = |part: &CopyBox| {
        let start = next;
        next += part.len_bytes();
        *part == packed(part, start)
    };
    parts.iter().any(|part| !part.axes.is_empty()) && parts.iter().all(is_next)
}

/// Queues the copy of all parts, as [`memcpy::queue`], by way of the block if there is one.
///
/// # Safety
///
/// As [`memcpy::queue`]. With a block, the parts lie one after another at the host's end, from its
/// first byte.
pub(crate) unsafe fn queue(
    target: StreamTarget<'_>,
    block: Option<Block<'_>>,
    source: CopyEnd,
    destination: CopyEnd,
    parts: &[CopyBox],
) -> Result<(), BackendError> {
    if let Some(block) = block {
        let queued_before = target.queued_bytes.get();
        // SAFETY: the caller's promise is passed on.
        let outcome = unsafe { queue_packed(target, &block, source, destination, parts) };
        let is_refused = |error: &BackendError| error.kind != BackendErrorKind::DeviceLost;
        if !outcome.as_ref().is_err_and(is_refused) || target.queued_bytes.get() > queued_before {
            return outcome;
        }
    }
    // SAFETY: as above. Copies that were queued before wrote nothing but the block.
    unsafe { memcpy::queue(target, source, destination, parts) }
}

/// Queues the copy by way of a block.
///
/// # Safety
///
/// As [`queue`].
unsafe fn queue_packed(
    target: StreamTarget<'_>,
    block: &Block<'_>,
    source: CopyEnd,
    destination: CopyEnd,
    parts: &[CopyBox],
) -> Result<(), BackendError> {
    let whole = [Footprint::run(0, block.len_bytes).copy_to_same_offsets()];
    // What is written to the block is not written to the destination.
    let in_block = Cell::new(0);
    let to_block = StreamTarget { queued_bytes: &in_block, ..target };
    let (first, second): (&[CopyBox], &[CopyBox]) = match source {
        CopyEnd::Device(..) => (parts, &whole),
        CopyEnd::Host(..) => (&whole, parts),
    };
    // SAFETY: at the other end the caller promises the validity of the parts, which are those of
    // the whole block where it lies one after another. The block has room for all, and its offsets
    // are those of the host's end. It is freed after both copies, in the order of their stream.
    unsafe { memcpy::queue(to_block, source, block.end(), first) }?;
    // SAFETY: as above. The stream runs this copy after the first, which wrote the whole block.
    unsafe { memcpy::queue(target, block.end(), destination, second) }
}
