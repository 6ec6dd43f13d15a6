//! Copies and fills through raw pointers: other threads may use the same memory, so no reference to
//! its bytes is created.

use std::ptr;

use crate::{CopyBox, Footprint};

/// A fill copies the bytes that it has written, and so doubles them, until there are this many.
/// Then it repeats this chunk, which stays in the L1 cache.
const DOUBLING_BYTES_MAX: usize = 16 << 10;

/// The start of a range of memory, and the number of bytes in it that may be accessed.
#[derive(Clone, Copy, Debug)]
pub struct BoundedMemory {
    pub start: *mut u8,
    pub len_bytes: u64,
}

impl BoundedMemory {
    fn holds(self, end_bytes: Option<u64>) -> bool {
        end_bytes.is_some_and(|end_bytes| end_bytes <= self.len_bytes)
    }
}

/// Copies one box. Source and destination may overlap; each run (range of bytes) is copied as if
/// through a buffer.
///
/// # Safety
///
/// * `source` and `destination` are the starts of two ranges of memory in which every run of the
///   box lies, valid for reads and writes. The source's runs are initialised.
/// * During the call no other thread writes the source's runs or accesses the destination's.
pub unsafe fn copy_box(source: *const u8, destination: *mut u8, copy_box: &CopyBox) {
    copy_box.for_each_run(&mut |source_offset, destination_offset, run_bytes| {
        let from = source.wrapping_add(source_offset as usize);
        let to = destination.wrapping_add(destination_offset as usize);
        // SAFETY: the caller promises that both runs lie within their memory and that no other
        // thread interferes.
        unsafe { copy_run(from, to, run_bytes as usize) };
    });
}

/// Copies `len_bytes` bytes as if through a buffer. Elements are copied inline: a call for each
/// takes longer than the copy.
///
/// # Safety
///
/// As for [`ptr::copy`].
#[inline]
unsafe fn copy_run(from: *const u8, to: *mut u8, len_bytes: usize) {
    match len_bytes {
        // SAFETY: the caller promises that both runs are valid; they have this length.
        1 => unsafe { copy_bytes::<1>(from, to) },
        // SAFETY: the caller promises that both runs are valid; they have this length.
        2 => unsafe { copy_bytes::<2>(from, to) },
        // SAFETY: the caller promises that both runs are valid; they have this length.
        4 => unsafe { copy_bytes::<4>(from, to) },
        // SAFETY: the caller promises that both runs are valid; they have this length.
        8 => unsafe { copy_bytes::<8>(from, to) },
        // SAFETY: the caller promises that both runs are valid; they have this length.
        16 => unsafe { copy_bytes::<16>(from, to) },
        // SAFETY: as above.
        _ => unsafe { ptr::copy(from, to, len_bytes) },
    }
}

/// Copies `LEN` bytes as if through a buffer.
///
/// # Safety
///
/// As for [`ptr::copy`].
#[inline]
unsafe fn copy_bytes<const LEN: usize>(from: *const u8, to: *mut u8) {
    // SAFETY: the caller promises that both runs are valid; an array of bytes has no alignment.
    unsafe { ptr::copy(from.cast::<[u8; LEN]>(), to.cast::<[u8; LEN]>(), 1) };
}

/// A function that copies a box: [`copy_box`], or one that also needs the memories to be apart.
pub type CopyFunction = unsafe fn(*const u8, *mut u8, &CopyBox);

/// As `copy`, but checks the bounds first: returns `false` and accesses nothing if the box exceeds
/// one of the memories.
///
/// # Safety
///
/// * Both memories are valid for their length, and the source is initialised.
/// * During the call no other thread writes the source's runs or accesses the destination's.
/// * If `copy` needs more than [`copy_box`] does, that holds too.
#[must_use]
pub unsafe fn copy_box_within(
    copy: CopyFunction,
    source: BoundedMemory,
    destination: BoundedMemory,
    part: &CopyBox,
) -> bool {
    let fits =
        source.holds(part.source_end_bytes()) && destination.holds(part.destination_end_bytes());
    if fits {
        // SAFETY: the box lies within source and destination, as checked above. The caller promises
        // the other conditions.
        unsafe { copy(source.start, destination.start, part) };
    }
    fits
}

/// Repeats `pattern` over the runs of a footprint.
///
/// # Safety
///
/// `memory` is the start of memory in which every run lies, valid for writes. During the call no
/// other thread accesses the runs. The length of each run is a multiple of the pattern's length; if
/// the pattern is empty, so are the runs.
pub unsafe fn fill(memory: *mut u8, footprint: &Footprint, pattern: &[u8]) {
    if footprint.axes.is_empty() {
        let run = memory.wrapping_add(footprint.offset_bytes as usize);
        // SAFETY: as below: this is the only run.
        return unsafe { fill_run(run, footprint.run_bytes as usize, pattern) };
    }
    footprint.for_each_run(&mut |offset, run_bytes| {
        let run = memory.wrapping_add(offset as usize);
        // SAFETY: the caller promises that the run lies within the memory and that no other thread
        // accesses it.
        unsafe { fill_run(run, run_bytes as usize, pattern) };
    });
}

/// As [`fill`], but checks the bounds first: returns `false` and writes nothing if the footprint
/// exceeds the memory.
///
/// # Safety
///
/// The memory is valid for writes of its length. During the call no other thread accesses the runs.
#[must_use]
pub unsafe fn fill_within(memory: BoundedMemory, footprint: &Footprint, pattern: &[u8]) -> bool {
    let fits = memory.holds(footprint.end_bytes());
    if fits {
        // SAFETY: the footprint lies within the memory, as checked above. The caller promises the
        // other conditions.
        unsafe { fill(memory.start, footprint, pattern) };
    }
    fits
}

/// Repeats `pattern` over the `len_bytes` bytes that start at `run`. Writes nothing if the pattern
/// is empty.
///
/// # Safety
///
/// `run` is valid for writes of `len_bytes`, and no other thread accesses these bytes meanwhile.
unsafe fn fill_run(run: *mut u8, len_bytes: usize, pattern: &[u8]) {
    match pattern {
        [] => return,
        // SAFETY: the caller promises that the run can be written.
        [byte] => return unsafe { run.write_bytes(*byte, len_bytes) },
        _ => {}
    }
    let mut done_bytes = pattern.len().min(len_bytes);
    let mut chunk_bytes = done_bytes;
    // SAFETY: at most `len_bytes` are written. The pattern does not overlap the run: it is a shared
    // slice, and only this thread may access the run.
    unsafe { ptr::copy_nonoverlapping(pattern.as_ptr(), run, done_bytes) };
    while done_bytes < len_bytes {
        let next_bytes = chunk_bytes.min(len_bytes - done_bytes);
        // SAFETY: the first `chunk_bytes` of the run are written, `done_bytes` is at least that
        // large, and `done_bytes + next_bytes` is at most `len_bytes`.
        unsafe { ptr::copy_nonoverlapping(run, run.wrapping_add(done_bytes), next_bytes) };
        done_bytes += next_bytes;
        if done_bytes <= DOUBLING_BYTES_MAX {
            chunk_bytes = done_bytes;
        }
    }
}
