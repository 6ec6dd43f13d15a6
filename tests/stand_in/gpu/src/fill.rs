//! Fills rows of device memory with a pattern.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use crate::code::{Code, Outcome};
use crate::context::Context;
use crate::host::{self, Block, HostRange, Locked};
use crate::machine;
use crate::stream::Stream;
use crate::{call, work};
use resident_backend::{
    Address, Bytes, CopyBox, CopyWork, FailureKind, FillWork, Footprint, HostMemory, Memory, Work,
};

/// The rows of a fill. Those that are not contiguous are `pitch_bytes` apart.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// The patterns of a row.
    pub count: u64,
    pub height: u64,
    pub pitch_bytes: u64,
}

impl Rows {
    /// One row.
    pub fn one(count: usize) -> Self {
        Self { count: count as u64, height: 1, pitch_bytes: 0 }
    }

    /// Rows as the functions of C count them.
    pub fn new(count: usize, height: usize, pitch_bytes: usize) -> Self {
        Self { count: count as u64, height: height as u64, pitch_bytes: pitch_bytes as u64 }
    }
}

/// Queues a fill of rows with a pattern.
pub fn submit(
    context: &Context,
    stream: &Stream,
    address: u64,
    pattern: &[u8],
    rows: Rows,
) -> Outcome {
    let Rows { count, height, pitch_bytes } = rows;
    let element_bytes = pattern.len() as u64;
    let width_bytes = count.checked_mul(element_bytes).ok_or(Code::INVALID_VALUE)?;
    call::set_bytes(width_bytes.saturating_mul(height));
    if width_bytes == 0 || height == 0 {
        return Ok(());
    }
    let is_pitched = height > 1;
    let is_too_wide = is_pitched
        && (pitch_bytes < width_bytes || pitch_bytes > machine::settings().max_pitch_bytes);
    if !address.is_multiple_of(element_bytes)
        || is_pitched && !pitch_bytes.is_multiple_of(element_bytes)
        || is_too_wide
    {
        return Err(Code::INVALID_VALUE);
    }
    if context.device.ledger().around(address).is_none() && host::is_accessible(address) {
        let rows = if is_pitched { rows } else { Rows { pitch_bytes: width_bytes, ..rows } };
        let range = host::around(address);
        return submit_mapped(context, stream, address, pattern, rows, range.as_ref());
    }
    let axes: SmallVec<[(u64, u64); 3]> =
        if is_pitched { smallvec![(height, pitch_bytes)] } else { SmallVec::new() };
    let footprint = Footprint { offset_bytes: 0, run_bytes: width_bytes, axes };
    let fill = |depends| {
        Work::Fill(Box::new(FillWork {
            address: Address(address),
            parts: smallvec![footprint],
            pattern: Bytes::from_slice(pattern),
            loss: FailureKind::Contents,
            depends: work::with_late_failure(depends),
            label: work::label("fill"),
        }))
    };
    stream.submit(context, fill).map(drop)
}

/// Queues a fill of host memory, mapped (a range) or reached: a copy of one row of patterns to each
/// row.
fn submit_mapped(
    context: &Context,
    stream: &Stream,
    address: u64,
    pattern: &[u8],
    Rows { count, height, pitch_bytes }: Rows,
    range: Option<&Locked>,
) -> Outcome {
    let width_bytes = count * pattern.len() as u64;
    let span_bytes = (height - 1) * pitch_bytes + width_bytes;
    if range.is_some_and(|range| !range.holds(address, span_bytes)) {
        return Err(Code::INVALID_VALUE);
    }
    let row = Arc::new(Block::zeroed(width_bytes as usize)?);
    for (index, byte) in pattern.iter().cycle().take(width_bytes as usize).enumerate() {
        // SAFETY: the index is below the block's length, and no other code has the block yet.
        unsafe { row.start().wrapping_add(index).write(*byte) };
    }
    let start = std::ptr::with_exposed_provenance_mut(address as usize);
    let source: Arc<dyn HostMemory> = Arc::new(HostRange::of(row, width_bytes as usize));
    let target: Arc<dyn HostMemory> =
        Arc::new(HostRange::new(start, span_bytes as usize, range.and_then(Locked::block)));
    let part = CopyBox {
        run_bytes: width_bytes,
        source_offset_bytes: 0,
        destination_offset_bytes: 0,
        axes: smallvec![(height, 0, pitch_bytes)],
    };
    let copy = |depends| {
        Work::Copy(Box::new(CopyWork {
            source: Memory::Host(source),
            destination: Memory::Host(target),
            source_device: None,
            may_read_between: false,
            parts: smallvec![part],
            loss: FailureKind::Contents,
            depends: work::with_late_failure(depends),
            label: work::label("fill"),
        }))
    };
    stream.submit(context, copy).map(drop)
}
