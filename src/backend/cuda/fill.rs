//! Fills: the driver sets patterns of 1, 2 and 4 bytes by itself; others are laid once and doubled
//! by copies on the device.

use std::sync::Arc;

use cudarc::driver::sys;
use smallvec::SmallVec;

use super::call::check;
use super::copy::{self, End, Target};
use super::shape;
use crate::backend::{BackendError, CopyBox, Footprint, HostMemory};

/// Bytes of a pattern that are laid by a copy from the host.
const SEED_BYTES: usize = 4 << 10;

/// Repetitions of a pattern, kept until they are laid: the pages that they lie in may be locked for
/// somebody else's sake, and the copy is asynchronous then.
#[derive(Debug)]
struct Seed(std::ptr::NonNull<[u8]>);

// SAFETY: the value owns its bytes as the box did that it was made from.
unsafe impl Send for Seed {}
// SAFETY: as above; nobody writes them.
unsafe impl Sync for Seed {}

// SAFETY: the bytes are those of a box, initialised, which `drop` alone gives back.
unsafe impl HostMemory for Seed {
    fn base(&self) -> *mut u8 {
        self.0.as_ptr().cast()
    }

    fn len_bytes(&self) -> usize {
        self.0.len()
    }
}

impl Seed {
    fn new(bytes: Vec<u8>) -> Self {
        Self(Box::leak(bytes.into_boxed_slice()).into())
    }
}

impl Drop for Seed {
    fn drop(&mut self) {
        // SAFETY: `new` took the pointer from a box, and nothing else frees it.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// A pattern that the driver knows to set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Value {
    One(u8),
    Two(u16),
    Four(u32),
}

/// Queues the fill of one footprint of the memory at `address`. What is returned has to live until
/// it is over.
///
/// # Safety
///
/// * The target's context is current and the stream is of it.
/// * The memory holds every run of the footprint until the fill is over, and until then nobody else
///   touches them.
pub(super) unsafe fn queue(
    target: Target,
    address: u64,
    footprint: &Footprint,
    pattern: &[u8],
) -> (Option<Arc<dyn HostMemory>>, Result<(), BackendError>) {
    if footprint.run_bytes == 0 || footprint.axes.iter().any(|(count, _)| *count == 0) {
        return (None, Ok(()));
    }
    let value = settable(pattern).filter(|value| is_aligned(*value, address, footprint));
    match value {
        // SAFETY: the caller's promise is handed on.
        Some(value) => (None, unsafe { set(target, address, footprint, value) }),
        None => {
            let seed = Arc::new(Seed::new(seed(pattern, footprint.run_bytes)));
            // SAFETY: as above; the caller keeps the seed.
            let outcome = unsafe { double(target, address, footprint, &seed) };
            (Some(seed), outcome)
        }
    }
}

/// # Safety
///
/// As [`queue`].
unsafe fn set(
    target: Target,
    address: u64,
    footprint: &Footprint,
    value: Value,
) -> Result<(), BackendError> {
    let mut outcome = Ok(());
    let axes = footprint.axes.iter().map(|(count, stride)| (*count, *stride, *stride)).collect();
    let (run_bytes, offset) = (footprint.run_bytes, footprint.offset_bytes);
    let part =
        CopyBox { run_bytes, source_offset_bytes: offset, destination_offset_bytes: offset, axes };
    // Volumes are set plane by plane: the driver has no call for them.
    shape::each(&part, target.pitch_max, &mut |shape| {
        for plane in 0..shape.depth {
            let at = address
                + shape.destination
                + plane * shape.destination_pitch.plane_lines * shape.destination_pitch.line_bytes;
            if outcome.is_ok() {
                // SAFETY: a plane of a shape of the footprint, for which the caller vouches;
                // `is_aligned` was asked.
                outcome = unsafe {
                    set_plane(
                        target.stream,
                        at,
                        shape.destination_pitch.line_bytes,
                        shape.width_bytes,
                        shape.height,
                        value,
                    )
                };
            }
        }
    });
    outcome
}

/// # Safety
///
/// As [`queue`], for `height` lines of `width_bytes`; addresses are aligned to the value.
unsafe fn set_plane(
    stream: sys::CUstream,
    at: u64,
    pitch: u64,
    width_bytes: u64,
    height: u64,
    value: Value,
) -> Result<(), BackendError> {
    let (pitch, width, height) = (pitch as usize, width_bytes as usize, height as usize);
    match (value, height) {
        // SAFETY: the memory holds these bytes, as the caller promises, here and below.
        (Value::One(value), 1) => {
            check(unsafe { sys::cuMemsetD8Async(at, value, width, stream) }, "cuMemsetD8Async")
        }
        // SAFETY: as above.
        (Value::Two(value), 1) => check(
            unsafe { sys::cuMemsetD16Async(at, value, width / 2, stream) },
            "cuMemsetD16Async",
        ),
        // SAFETY: as above.
        (Value::Four(value), 1) => check(
            unsafe { sys::cuMemsetD32Async(at, value, width / 4, stream) },
            "cuMemsetD32Async",
        ),
        // SAFETY: as above.
        (Value::One(value), _) => check(
            unsafe { sys::cuMemsetD2D8Async(at, pitch, value, width, height, stream) },
            "cuMemsetD2D8Async",
        ),
        (Value::Two(value), _) => {
            // SAFETY: as above.
            check(
                unsafe { sys::cuMemsetD2D16Async(at, pitch, value, width / 2, height, stream) },
                "cuMemsetD2D16Async",
            )
        }
        (Value::Four(value), _) => {
            // SAFETY: as above.
            check(
                unsafe { sys::cuMemsetD2D32Async(at, pitch, value, width / 4, height, stream) },
                "cuMemsetD2D32Async",
            )
        }
    }
}

/// The shortest pattern that repeats to the same bytes, if the driver can set it.
fn settable(pattern: &[u8]) -> Option<Value> {
    let repeats = |len: usize| {
        pattern.len().is_multiple_of(len)
            && pattern.chunks(len).all(|chunk| chunk == &pattern[..len])
    };
    if repeats(1) {
        Some(Value::One(pattern[0]))
    } else if repeats(2) {
        pattern[..2].try_into().ok().map(|bytes| Value::Two(u16::from_ne_bytes(bytes)))
    } else if repeats(4) {
        pattern[..4].try_into().ok().map(|bytes| Value::Four(u32::from_ne_bytes(bytes)))
    } else {
        None
    }
}

/// Elements that are aligned to less than they are long may lie anywhere.
fn is_aligned(value: Value, address: u64, footprint: &Footprint) -> bool {
    let len = match value {
        Value::One(_) => 1,
        Value::Two(_) => 2,
        Value::Four(_) => 4,
    };
    (address + footprint.offset_bytes).is_multiple_of(len)
        && footprint.axes.iter().all(|(_, stride)| stride.is_multiple_of(len))
}

/// Lays the pattern at the start of the first run, and copies what is there behind itself: along
/// the run, then along each axis.
///
/// # Safety
///
/// As [`queue`]; the seed is no longer than a run, and lives until it is laid.
unsafe fn double(
    target: Target,
    address: u64,
    footprint: &Footprint,
    seed: &Seed,
) -> Result<(), BackendError> {
    let laid = CopyBox {
        run_bytes: seed.len_bytes() as u64,
        source_offset_bytes: 0,
        destination_offset_bytes: footprint.offset_bytes,
        axes: SmallVec::new(),
    };
    // SAFETY: the seed is no longer than a run, and lives until it is laid.
    unsafe {
        copy::queue(target, End::Host(seed.base(), false), End::Device(address, None), &[laid])?
    };
    for part in doublings(footprint, seed.len_bytes() as u64) {
        // SAFETY: parts copy runs of the footprint to other runs of it, as the caller may; stream
        // order keeps one behind the other.
        unsafe {
            copy::queue(target, End::Device(address, None), End::Device(address, None), &[part])?
        };
    }
    Ok(())
}

/// As many repetitions of the pattern as are laid at once.
fn seed(pattern: &[u8], run_bytes: u64) -> Vec<u8> {
    let most = (SEED_BYTES / pattern.len()).max(1);
    let times =
        usize::try_from(run_bytes / pattern.len() as u64).map_or(most, |times| times.min(most));
    pattern.repeat(times)
}

/// The copies that spread `laid_bytes` at the start of the first run over the whole footprint, each
/// of at most as much as is there.
fn doublings(footprint: &Footprint, laid_bytes: u64) -> Vec<CopyBox> {
    let start = footprint.offset_bytes;
    let mut parts = Vec::new();
    let mut filled = laid_bytes;
    while filled < footprint.run_bytes {
        let run_bytes = filled.min(footprint.run_bytes - filled);
        parts.push(CopyBox {
            run_bytes,
            source_offset_bytes: start,
            destination_offset_bytes: start + filled,
            axes: SmallVec::new(),
        });
        filled += run_bytes;
    }
    for (axis, (count, stride)) in footprint.axes.iter().enumerate().rev() {
        let inner =
            footprint.axes[axis + 1..].iter().map(|(count, stride)| (*count, *stride, *stride));
        let mut filled = 1;
        while filled < *count {
            let next = filled.min(count - filled);
            let axes = std::iter::once((next, *stride, *stride)).chain(inner.clone()).collect();
            let destination_offset_bytes = start + filled * stride;
            parts.push(CopyBox {
                run_bytes: footprint.run_bytes,
                source_offset_bytes: start,
                destination_offset_bytes,
                axes,
            });
            filled += next;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use smallvec::SmallVec;

    use super::{Value, doublings, is_aligned, seed, settable};
    use crate::backend::{CopyBox, Footprint};

    fn run(memory: &mut [u8], part: &CopyBox) {
        let mut starts = vec![(part.source_offset_bytes, part.destination_offset_bytes)];
        for (count, from, to) in &part.axes {
            starts = starts
                .iter()
                .flat_map(|(a, b)| (0..*count).map(move |turn| (a + turn * from, b + turn * to)))
                .collect();
        }
        for (from, to) in starts {
            assert!(from + part.run_bytes <= to, "a copy does not overlap itself");
            memory.copy_within(from as usize..(from + part.run_bytes) as usize, to as usize);
        }
    }

    #[test]
    fn short_patterns_are_set_and_long_ones_that_repeat_are_short() {
        assert_eq!(settable(&[0; 8]), Some(Value::One(0)));
        assert_eq!(settable(&[1, 2, 1, 2]), Some(Value::Two(u16::from_ne_bytes([1, 2]))));
        assert_eq!(settable(&1.0_f32.to_ne_bytes()), Some(Value::Four(1.0_f32.to_bits())));
        assert_eq!(settable(&1.0_f64.to_ne_bytes()), None);
        assert_eq!(settable(&[1, 2, 3]), None);
        assert_eq!(settable(&[7; 3]), Some(Value::One(7)));
    }

    #[test]
    fn unaligned_elements_are_not_set_in_words() {
        let footprint = |offset_bytes, stride| Footprint {
            offset_bytes,
            run_bytes: 4,
            axes: SmallVec::from_slice(&[(2, stride)]),
        };
        assert!(is_aligned(Value::Four(1), 256, &footprint(4, 8)));
        assert!(
            !is_aligned(Value::Four(1), 256, &footprint(2, 8))
                && !is_aligned(Value::Two(1), 256, &footprint(4, 5))
        );
    }

    #[test]
    fn doubling_reaches_every_run_and_nothing_else() {
        let pattern: Vec<u8> = (1..=12).collect();
        let axes = [(3_u64, 700_u64), (5, 130), (2, 61)];
        for run_bytes in [12, 24, 60] {
            let footprint =
                Footprint { offset_bytes: 9, run_bytes, axes: SmallVec::from_slice(&axes) };
            let mut memory = vec![0_u8; 3000];
            let seed = seed(&pattern, 24.min(run_bytes));
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
