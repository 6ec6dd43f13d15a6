//! Moving bytes of the host's own memory, box by box.

use super::{CopyBox, Footprint};

/// Copies a part from one memory to another.
///
/// # Safety
///
/// * `source` and `destination` are the starts of memory that holds every run of the part; the runs
///   do not overlap between the two.
/// * For the call nobody writes the source's runs, and nobody else touches the destination's.
pub(crate) unsafe fn copy_part(source: *const u8, destination: *mut u8, part: &CopyBox) {
    let start = (part.source_offset_bytes, part.destination_offset_bytes);
    each_run(&part.axes, start, &mut |(from, to)| {
        let (from, to) =
            (source.wrapping_add(from as usize), destination.wrapping_add(to as usize));
        // SAFETY: both runs lie within their memories and are free for this call, as the caller
        // promises.
        unsafe { std::ptr::copy_nonoverlapping(from, to, part.run_bytes as usize) };
    });
}

fn each_run(
    axes: &[(u64, u64, u64)],
    (source, destination): (u64, u64),
    visit: &mut impl FnMut((u64, u64)),
) {
    match axes {
        [] => visit((source, destination)),
        [(count, source_stride, destination_stride), inner @ ..] => {
            for turn in 0..*count {
                each_run(
                    inner,
                    (source + turn * source_stride, destination + turn * destination_stride),
                    visit,
                );
            }
        }
    }
}

/// Repeats a pattern over the runs of a footprint.
///
/// # Safety
///
/// `memory` is the start of memory that holds every run, and nobody else touches them for the call.
pub(crate) unsafe fn fill_footprint(memory: *mut u8, footprint: &Footprint, pattern: &[u8]) {
    let axes: smallvec::SmallVec<[(u64, u64, u64); 3]> =
        footprint.axes.iter().map(|(count, stride)| (*count, *stride, *stride)).collect();
    each_run(&axes, (footprint.offset_bytes, footprint.offset_bytes), &mut |(offset, _)| {
        for start in (0..footprint.run_bytes as usize).step_by(pattern.len().max(1)) {
            let place = memory.wrapping_add(offset as usize + start);
            // SAFETY: a run is a multiple of the pattern's length and lies within the memory, which
            // is the caller's to write for this call.
            unsafe { std::ptr::copy_nonoverlapping(pattern.as_ptr(), place, pattern.len()) };
        }
    });
}
