//! Fills rows of device memory with a pattern.

use smallvec::{SmallVec, smallvec};

use super::code::{Code, Outcome};
use super::context::Context;
use super::copy::{Extent, Return};
use super::machine;
use super::stream::Stream;
use super::{call, work};
use crate::backend::{Address, Bytes, FailureKind, FillWork, Footprint, Work};

/// Queues a fill of `height` rows with `count` patterns each. Rows that are not contiguous are
/// `pitch_bytes` apart.
pub(super) fn submit(
    context: &Context,
    stream: &Stream,
    address: u64,
    pattern: &[u8],
    (count, height, pitch_bytes): (u64, u64, u64),
    until: Return,
) -> Outcome {
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
    let axes: SmallVec<[(u64, u64); 3]> =
        if is_pitched { smallvec![(height, pitch_bytes)] } else { SmallVec::new() };
    let footprint = Footprint { offset_bytes: 0, run_bytes: width_bytes, axes };
    let position = stream.submit(context, |depends| {
        Work::Fill(Box::new(FillWork {
            address: Address(address),
            parts: smallvec![footprint],
            pattern: Bytes::from_slice(pattern),
            loss: FailureKind::Contents,
            depends: work::with_late_failure(depends),
            label: work::label("fill"),
        }))
    })?;
    if until == Return::Done {
        stream.wait_until(position)?;
        context.check()?;
    }
    Ok(())
}

/// A contiguous fill, as arguments of `submit`.
pub(super) fn run(count: usize) -> (u64, u64, u64) {
    let Extent { width_bytes, height, .. } = Extent::run(count as u64);
    (width_bytes, height, 0)
}
