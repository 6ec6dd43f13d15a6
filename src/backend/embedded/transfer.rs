//! Copying and filling boxes of bytes: the loops that touch memory, on raw pointers alone.
//!
//! Host memory and blocks are shared with whoever holds them, so no reference to their bytes is
//! made here.

use std::ptr;

use crate::backend::{CopyBox, Footprint};

/// A fill's pattern is doubled up to this length, then repeated.
const DOUBLING_BYTES_MAX: usize = 16 << 10;

/// A place and the bytes that may be touched from there on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) start: *mut u8,
    pub(super) len_bytes: u64,
}

/// Copies one part, or says `false` and touches nothing if it leaves one of the two spans. Spans
/// may overlap; a run is then copied as if through a buffer.
///
/// # Safety
///
/// * Both spans are valid for reads (`source`) and writes (`destination`) of their length, and
///   initialised, for the time of the call.
/// * Nobody else writes what is read, or touches what is written, meanwhile.
#[must_use]
pub(super) unsafe fn copy_part(source: Span, destination: Span, part: &CopyBox) -> bool {
    let fits =
        fits(part.source_end_bytes(), source) && fits(part.destination_end_bytes(), destination);
    if fits {
        part.for_each_run(&mut |source_offset, destination_offset, run_bytes| {
            let from = source.start.wrapping_add(source_offset as usize);
            let to = destination.start.wrapping_add(destination_offset as usize);
            // SAFETY: the run lies within both spans, whose ends were compared with the part's
            // (`fits`), and the caller promises that the spans are valid and undisturbed.
            unsafe { ptr::copy(from, to, run_bytes as usize) };
        });
    }
    fits
}

/// Repeats `pattern` over a footprint, or says `false` and touches nothing if it leaves the span.
/// Runs hold the pattern a whole number of times (`queue` refuses others), so merged runs have no
/// seam.
///
/// # Safety
///
/// As for [`copy_part`], for writes to `destination`.
#[must_use]
pub(super) unsafe fn fill_part(destination: Span, footprint: &Footprint, pattern: &[u8]) -> bool {
    let fits = fits(footprint.end_bytes(), destination);
    if fits && !pattern.is_empty() {
        footprint.for_each_run(&mut |offset, run_bytes| {
            let to = destination.start.wrapping_add(offset as usize);
            // SAFETY: the run lies within the span, whose end was compared with the footprint's
            // (`fits`); the rest is the caller's promise.
            unsafe { fill_run(to, run_bytes as usize, pattern) };
        });
    }
    fits
}

/// Repeats `pattern` over `len_bytes` bytes at `to`, by doubling what is there already while that
/// stays in the nearest cache.
///
/// # Safety
///
/// `to` is valid for writes of `len_bytes`, and nobody else touches them meanwhile.
unsafe fn fill_run(to: *mut u8, len_bytes: usize, pattern: &[u8]) {
    let mut done_bytes = pattern.len().min(len_bytes);
    let mut chunk_bytes = done_bytes;
    // SAFETY: at most `len_bytes` are written, and a pattern is memory of its own (`Bytes`), apart
    // from what may be written.
    unsafe { ptr::copy_nonoverlapping(pattern.as_ptr(), to, done_bytes) };
    while done_bytes < len_bytes {
        let next_bytes = chunk_bytes.min(len_bytes - done_bytes);
        // SAFETY: the first `chunk_bytes` are written, the next ones lie behind them, and their end
        // is at most `len_bytes`.
        unsafe { ptr::copy_nonoverlapping(to, to.wrapping_add(done_bytes), next_bytes) };
        done_bytes += next_bytes;
        if done_bytes <= DOUBLING_BYTES_MAX {
            chunk_bytes = done_bytes;
        }
    }
}

fn fits(end_bytes: Option<u64>, span: Span) -> bool {
    end_bytes.is_some_and(|end_bytes| end_bytes <= span.len_bytes)
}
