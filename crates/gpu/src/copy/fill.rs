//! Queues fills. The driver sets patterns of 1, 2 and 4 bytes; for a longer pattern, a few
//! repetitions (the seed) are copied to the device, and copies on the device then double the filled
//! part.

use std::sync::Arc;

use smallvec::SmallVec;

use super::memcpy::{self, StreamTarget};
use super::shape;
use crate::driver::{CopyEnd, Driver, Extents, StreamHandle};
use crate::memory::pageable::PageableBlock;
use resident_backend::{BackendError, CopyBox, Footprint, HostMemory};

/// The maximum length of a seed pattern, in bytes.
const SEED_BYTES: usize = 4 << 10;

/// A pattern that the driver can set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SettablePattern {
    One(u8),
    Two(u16),
    Four(u32),
}

/// Queues the fill of one footprint (a set of byte ranges) of the memory at `address`. The returned
/// memory must live until the fill completes, even on error.
///
/// # Safety
///
/// * The target's context is current, and the stream belongs to it.
/// * Every byte range of the footprint lies in the allocation, which lives until the fill
///   completes. Until then no other code accesses these ranges.
pub(crate) unsafe fn queue(
    target: StreamTarget<'_>,
    address: u64,
    footprint: &Footprint,
    pattern: &[u8],
) -> (Option<Arc<dyn HostMemory>>, Result<(), BackendError>) {
    if footprint.run_bytes == 0 || footprint.axes.iter().any(|(count, _)| *count == 0) {
        return (None, Ok(()));
    }
    let settable =
        SettablePattern::new(pattern).filter(|value| value.is_aligned(address, footprint));
    if let Some(value) = settable {
        // SAFETY: the caller's promise is passed on.
        return (None, unsafe { set(target, address, footprint, value) });
    }
    match PageableBlock::repeating(pattern, seed_count(pattern, footprint.run_bytes)) {
        Ok(seed) => {
            // The copy of the seed may be asynchronous if another library pinned its pages.
            let seed = Arc::new(seed);
            // SAFETY: as above; the caller keeps the seed alive.
            let outcome = unsafe { double(target, address, footprint, &seed) };
            (Some(seed), outcome)
        }
        Err(error) => (None, Err(error)),
    }
}

/// # Safety
///
/// As [`queue`].
unsafe fn set(
    target: StreamTarget<'_>,
    address: u64,
    footprint: &Footprint,
    value: SettablePattern,
) -> Result<(), BackendError> {
    let mut outcome = Ok(());
    shape::for_each(&footprint.copy_to_same_offsets(), target.pitch_bytes_max, &mut |shape| {
        // The driver has no call for volumes, so they are set plane by plane.
        for plane in 0..shape.extents.depth {
            let pitch = shape.extents.destination_pitch;
            let start = address + shape.destination + plane * pitch.plane_lines * pitch.line_bytes;
            if outcome.is_ok() {
                // SAFETY: a plane of the footprint, whose validity the caller guarantees; `queue`
                // checked the alignment.
                outcome = unsafe { set_plane(target, start, shape.extents, value) };
            }
        }
    });
    outcome
}

/// Sets one plane.
///
/// # Safety
///
/// As [`queue`], for the plane at `start`; its addresses are aligned to the value.
unsafe fn set_plane(
    target: StreamTarget<'_>,
    start: u64,
    extents: Extents,
    value: SettablePattern,
) -> Result<(), BackendError> {
    let driver = target.driver;
    let stream = target.stream;
    if extents.height == 1 {
        // SAFETY: the caller's promise is passed on.
        let outcome =
            unsafe { set_line(driver, stream, start, extents.width_bytes as usize, value) };
        return target.count(extents.width_bytes, outcome);
    }
    // SAFETY: as above.
    let outcome = unsafe { set_lines(driver, stream, start, extents, value) };
    if let Some(outcome) = outcome {
        return target.count(extents.width_bytes * extents.height, outcome);
    }
    // This driver has no call for planes of such values.
    (0..extents.height).try_for_each(|line| {
        let start = start + line * extents.destination_pitch.line_bytes;
        // SAFETY: as above.
        let outcome =
            unsafe { set_line(driver, stream, start, extents.width_bytes as usize, value) };
        target.count(extents.width_bytes, outcome)
    })
}

/// Sets one line.
///
/// # Safety
///
/// As [`set_plane`], for `width` bytes from `start`.
unsafe fn set_line(
    driver: &Driver,
    stream: StreamHandle,
    start: u64,
    width: usize,
    value: SettablePattern,
) -> Result<(), BackendError> {
    use SettablePattern::{Four, One, Two};
    match value {
        One(value) => {
            let set = &driver.set_8;
            // SAFETY: these bytes lie in the allocation, as the caller promises.
            set.check(unsafe { (set.function)(start, value, width, stream) })
        }
        Two(value) => {
            let set = &driver.set_16;
            // SAFETY: as above.
            set.check(unsafe { (set.function)(start, value, width / 2, stream) })
        }
        Four(value) => {
            let set = &driver.set_32;
            // SAFETY: as above.
            set.check(unsafe { (set.function)(start, value, width / 4, stream) })
        }
    }
}

/// Sets all lines of a plane in one call; `None` if the driver has no such call.
///
/// # Safety
///
/// As [`set_plane`], for a plane that starts at `start`.
unsafe fn set_lines(
    driver: &Driver,
    stream: StreamHandle,
    start: u64,
    extents: Extents,
    value: SettablePattern,
) -> Option<Result<(), BackendError>> {
    use SettablePattern::{Four, One, Two};
    let width = extents.width_bytes as usize;
    let height = extents.height as usize;
    let pitch = extents.destination_pitch.line_bytes as usize;
    match (value, &driver.set_plane_of_hip) {
        (One(value), Some(set)) => {
            // SAFETY: these bytes lie in the allocation, as the caller promises.
            let outcome =
                unsafe { (set.function)(start, pitch, value.into(), width, height, stream) };
            Some(set.check(outcome))
        }
        (One(value), None) => driver.set_plane_8.as_ref().map(|set| {
            // SAFETY: as above.
            set.check(unsafe { (set.function)(start, pitch, value, width, height, stream) })
        }),
        (Two(value), _) => driver.set_plane_16.as_ref().map(|set| {
            // SAFETY: as above.
            set.check(unsafe { (set.function)(start, pitch, value, width / 2, height, stream) })
        }),
        (Four(value), _) => driver.set_plane_32.as_ref().map(|set| {
            // SAFETY: as above.
            set.check(unsafe { (set.function)(start, pitch, value, width / 4, height, stream) })
        }),
    }
}

impl SettablePattern {
    /// The shortest pattern that gives the same bytes when repeated, if the driver can set a
    /// pattern of this length.
    pub(super) fn new(pattern: &[u8]) -> Option<Self> {
        let repeats = |len: usize| {
            pattern.len().is_multiple_of(len)
                && pattern.chunks(len).all(|chunk| chunk == &pattern[..len])
        };
        if repeats(1) {
            Some(Self::One(pattern[0]))
        } else if repeats(2) {
            pattern[..2].try_into().ok().map(|bytes| Self::Two(u16::from_ne_bytes(bytes)))
        } else if repeats(4) {
            pattern[..4].try_into().ok().map(|bytes| Self::Four(u32::from_ne_bytes(bytes)))
        } else {
            None
        }
    }

    /// Whether all runs are aligned to the value. A pattern may have more bytes than its element's
    /// alignment.
    pub(super) fn is_aligned(self, address: u64, footprint: &Footprint) -> bool {
        let len = match self {
            Self::One(_) => 1,
            Self::Two(_) => 2,
            Self::Four(_) => 4,
        };
        (address + footprint.offset_bytes).is_multiple_of(len)
            && footprint.axes.iter().all(|(_, stride)| stride.is_multiple_of(len))
    }
}

/// Copies the seed to the start of the first run (byte range). Then copies the filled bytes
/// repeatedly, first along the run and then along each axis, until the footprint is filled.
///
/// # Safety
///
/// As [`queue`]; the seed is no longer than a run, and lives until the fill completes.
unsafe fn double(
    target: StreamTarget<'_>,
    address: u64,
    footprint: &Footprint,
    seed: &PageableBlock,
) -> Result<(), BackendError> {
    let device = CopyEnd::Device(address, None);
    let seed_copy = CopyBox {
        run_bytes: seed.len_bytes() as u64,
        source_offset_bytes: 0,
        destination_offset_bytes: footprint.offset_bytes,
        axes: SmallVec::new(),
    };
    // SAFETY: the seed is no longer than a run, and lives until the fill completes.
    unsafe { memcpy::queue(target, CopyEnd::Host(seed.base(), false), device, &[seed_copy])? };
    for part in doublings(footprint, seed.len_bytes() as u64) {
        // SAFETY: each part copies runs of the footprint to other runs of it, whose validity the
        // caller guarantees; stream order runs the parts one after another.
        unsafe { memcpy::queue(target, device, device, &[part])? };
    }
    Ok(())
}

/// The number of repetitions of the pattern in a seed.
fn seed_count(pattern: &[u8], run_bytes: u64) -> usize {
    let count_max = (SEED_BYTES / pattern.len()).max(1);
    let in_run = usize::try_from(run_bytes / pattern.len() as u64);
    in_run.map_or(count_max, |count| count.min(count_max))
}

/// The copies that spread `seed_bytes` bytes at the start of the first run over the footprint. Each
/// copies at most the bytes that are filled already.
pub(super) fn doublings(footprint: &Footprint, seed_bytes: u64) -> Vec<CopyBox> {
    let start = footprint.offset_bytes;
    let run = |run_bytes: u64, to: u64, axes| CopyBox {
        run_bytes,
        source_offset_bytes: start,
        destination_offset_bytes: start + to,
        axes,
    };
    let mut parts = Vec::new();
    let mut filled = seed_bytes;
    while filled < footprint.run_bytes {
        let next = filled.min(footprint.run_bytes - filled);
        parts.push(run(next, filled, SmallVec::new()));
        filled += next;
    }
    for (axis, (count, stride)) in footprint.axes.iter().enumerate().rev() {
        let inner =
            footprint.axes[axis + 1..].iter().map(|(count, stride)| (*count, *stride, *stride));
        let mut filled = 1;
        while filled < *count {
            let next = filled.min(count - filled);
            let axes = std::iter::once((next, *stride, *stride)).chain(inner.clone()).collect();
            parts.push(run(footprint.run_bytes, filled * stride, axes));
            filled += next;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use smallvec::SmallVec;

    use super::{SettablePattern, doublings, seed_count};
    use resident_backend::{CopyBox, Footprint};
    use resident_core::layout::for_each_start;

    fn run(memory: &mut [u8], part: &CopyBox) {
        let from = part.source_offset_bytes;
        let to = part.destination_offset_bytes;
        for_each_start(&part.axes, from, to, &mut |from, to| {
            assert!(from + part.run_bytes <= to, "a copy does not overlap itself");
            memory.copy_within(from as usize..(from + part.run_bytes) as usize, to as usize);
        });
    }

    #[test]
    fn the_shortest_repeating_pattern_is_set() {
        assert_eq!(SettablePattern::new(&[0; 8]), Some(SettablePattern::One(0)));
        assert_eq!(
            SettablePattern::new(&[1, 2, 1, 2]),
            Some(SettablePattern::Two(u16::from_ne_bytes([1, 2])))
        );
        assert_eq!(
            SettablePattern::new(&1.0_f32.to_ne_bytes()),
            Some(SettablePattern::Four(1.0_f32.to_bits()))
        );
        assert_eq!(SettablePattern::new(&1.0_f64.to_ne_bytes()), None);
        assert_eq!(SettablePattern::new(&[1, 2, 3]), None);
        assert_eq!(SettablePattern::new(&[7; 3]), Some(SettablePattern::One(7)));
    }

    #[test]
    fn a_value_is_set_only_at_aligned_addresses() {
        let footprint = |offset_bytes, stride| Footprint {
            offset_bytes,
            run_bytes: 4,
            axes: SmallVec::from_slice(&[(2, stride)]),
        };
        assert!(SettablePattern::Four(1).is_aligned(256, &footprint(4, 8)));
        assert!(
            !SettablePattern::Four(1).is_aligned(256, &footprint(2, 8))
                && !SettablePattern::Two(1).is_aligned(256, &footprint(4, 5))
        );
    }

    #[test]
    fn doubling_fills_every_run_and_nothing_else() {
        let pattern: Vec<u8> = (1..=12).collect();
        let axes = [(3_u64, 700_u64), (5, 130), (2, 61)];
        for run_bytes in [12, 24, 60] {
            let footprint =
                Footprint { offset_bytes: 9, run_bytes, axes: SmallVec::from_slice(&axes) };
            let mut memory = vec![0_u8; 3000];
            let seed = pattern.repeat(seed_count(&pattern, 24.min(run_bytes)));
            memory[9..9 + seed.len()].copy_from_slice(&seed);
            doublings(&footprint, seed.len() as u64).iter().for_each(|part| run(&mut memory, part));
            let mut expected = vec![0_u8; 3000];
            for (a, b, c) in
                (0..3).flat_map(|a| (0..5).flat_map(move |b| (0..2).map(move |c| (a, b, c))))
            {
                let start = 9 + a * 700 + b * 130 + c * 61;
                expected[start..start + run_bytes as usize]
                    .copy_from_slice(&pattern.repeat(run_bytes as usize / 12));
            }
            assert_eq!(memory, expected);
        }
    }
}
