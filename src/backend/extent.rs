//! Arithmetic on footprints: where they end, and what runs they are made of. Pure; numbers too
//! large for 64 bits are "out of range".

#![forbid(unsafe_code)]

use smallvec::SmallVec;

use super::{CopyBox, CopyWork, Footprint, Memory};

/// One past the last byte of boxes at `offset_bytes`; 0 if there is no byte; nothing if that is
/// above 64 bits.
pub(crate) fn end_bytes(
    offset_bytes: u64,
    run_bytes: u64,
    axes: impl Iterator<Item = (u64, u64)>,
) -> Option<u64> {
    let mut end = offset_bytes.checked_add(run_bytes)?;
    let mut empty = run_bytes == 0;
    for (count, stride) in axes {
        match count.checked_sub(1) {
            Some(steps) => end = end.checked_add(steps.checked_mul(stride)?)?,
            None => empty = true,
        }
    }
    Some(if empty { 0 } else { end })
}

/// One past the last byte of a footprint, as in [`end_bytes`].
pub(crate) fn footprint_end_bytes(footprint: &Footprint) -> Option<u64> {
    end_bytes(footprint.offset_bytes, footprint.run_bytes, footprint.axes.iter().copied())
}

/// One past the last byte that a part reads at its source.
pub(crate) fn source_end_bytes(part: &CopyBox) -> Option<u64> {
    end_bytes(
        part.source_offset_bytes,
        part.run_bytes,
        part.axes.iter().map(|axis| (axis.0, axis.1)),
    )
}

/// One past the last byte that a part writes at its destination.
pub(crate) fn destination_end_bytes(part: &CopyBox) -> Option<u64> {
    end_bytes(
        part.destination_offset_bytes,
        part.run_bytes,
        part.axes.iter().map(|axis| (axis.0, axis.2)),
    )
}

/// What of a copy would leave the host memory at one of its ends, in words. Device memory has
/// bounds of its backend's own.
pub(crate) fn host_overrun(copy: &CopyWork) -> Option<String> {
    let over = |memory: &Memory, end_bytes: fn(&CopyBox) -> Option<u64>| {
        let Memory::Host(host) = memory else { return None };
        let len_bytes = host.len_bytes() as u64;
        let end =
            copy.parts.iter().map(end_bytes).find(|end| end.is_none_or(|end| end > len_bytes))?;
        Some(format!("a part ends at byte {end:?} of host memory that has {len_bytes}"))
    };
    over(&copy.source, source_end_bytes).or_else(|| over(&copy.destination, destination_end_bytes))
}

/// The bytes that a part reads at its source.
pub(crate) fn source_footprint(part: &CopyBox) -> Footprint {
    let axes = part.axes.iter().map(|axis| (axis.0, axis.1)).collect();
    Footprint { offset_bytes: part.source_offset_bytes, run_bytes: part.run_bytes, axes }
}

/// The bytes that a part writes at its destination.
pub(crate) fn destination_footprint(part: &CopyBox) -> Footprint {
    let axes = part.axes.iter().map(|axis| (axis.0, axis.2)).collect();
    Footprint { offset_bytes: part.destination_offset_bytes, run_bytes: part.run_bytes, axes }
}

/// Bytes that a part moves, saturating.
pub(crate) fn part_bytes(part: &CopyBox) -> u64 {
    part.axes.iter().fold(part.run_bytes, |bytes, axis| bytes.saturating_mul(axis.0))
}

/// Turns of a part's slowest axis; of one without axes its bytes.
pub(crate) fn turns(part: &CopyBox) -> u64 {
    part.axes.first().map_or(part.run_bytes, |axis| axis.0)
}

/// `len` of those, from `start` on.
pub(crate) fn section(part: &CopyBox, start: u64, len: u64) -> CopyBox {
    let mut section = part.clone();
    let (source_step, destination_step) = match section.axes.first_mut() {
        Some(axis) => {
            axis.0 = len;
            (axis.1, axis.2)
        }
        None => {
            section.run_bytes = len;
            (1, 1)
        }
    };
    section.source_offset_bytes += start * source_step;
    section.destination_offset_bytes += start * destination_step;
    section
}

/// Parts as lists of at most so many bytes each, in their order; none of it is left out, and
/// nothing comes twice.
pub(crate) fn lists(
    parts: SmallVec<[CopyBox; 1]>,
    bytes_max: u64,
) -> SmallVec<[SmallVec<[CopyBox; 1]>; 1]> {
    if parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part_bytes(part))) <= bytes_max {
        return SmallVec::from_iter([parts]);
    }
    let (mut lists, mut list, mut room) = (SmallVec::new(), SmallVec::new(), bytes_max.max(1));
    for part in &parts {
        each_within(part, bytes_max.max(1), &mut |section| {
            let len_bytes = part_bytes(&section);
            if len_bytes > room {
                lists.push(std::mem::take(&mut list));
                room = bytes_max.max(1);
            }
            room -= len_bytes;
            list.push(section);
        });
    }
    lists.push(list);
    lists
}

/// Sections of a part of at most so many bytes each.
fn each_within(part: &CopyBox, bytes_max: u64, visit: &mut impl FnMut(CopyBox)) {
    let whole = turns(part);
    let turn_bytes = part_bytes(part) / whole.max(1);
    if part_bytes(part) <= bytes_max {
        visit(part.clone());
    } else if turn_bytes <= bytes_max {
        let step = bytes_max / turn_bytes.max(1);
        (0..whole)
            .step_by(step as usize)
            .for_each(|start| visit(section(part, start, step.min(whole - start))));
    } else {
        for start in 0..whole {
            let mut turn = section(part, start, 1);
            turn.axes.remove(0);
            each_within(&turn, bytes_max, visit);
        }
    }
}

/// Bytes of a footprint, saturating.
pub(crate) fn footprint_bytes(footprint: &Footprint) -> u64 {
    footprint.axes.iter().fold(footprint.run_bytes, |bytes, axis| bytes.saturating_mul(axis.0))
}

/// Calls `visit` with source offset, destination offset and length of each run of a part, longest
/// runs first merged. The part's ends were found to be in range, so no sum here overflows.
pub(crate) fn for_each_run(part: &CopyBox, visit: &mut impl FnMut(u64, u64, u64)) {
    let mut run_bytes = part.run_bytes;
    let mut axes = part.axes.as_slice();
    while let Some((&(count, source_stride, destination_stride), outer)) = axes.split_last() {
        if count != 1 && (source_stride, destination_stride) != (run_bytes, run_bytes) {
            break;
        }
        run_bytes *= count;
        axes = outer;
    }
    walk(axes, part.source_offset_bytes, part.destination_offset_bytes, run_bytes, visit);
}

fn walk(
    axes: &[(u64, u64, u64)],
    source: u64,
    destination: u64,
    run_bytes: u64,
    visit: &mut impl FnMut(u64, u64, u64),
) {
    match axes {
        _ if run_bytes == 0 => {}
        [] => visit(source, destination, run_bytes),
        [(count, source_stride, destination_stride)] => {
            for index in 0..*count {
                visit(
                    source + index * source_stride,
                    destination + index * destination_stride,
                    run_bytes,
                );
            }
        }
        [(count, source_stride, destination_stride), inner @ ..] => {
            for index in 0..*count {
                walk(
                    inner,
                    source + index * source_stride,
                    destination + index * destination_stride,
                    run_bytes,
                    visit,
                );
            }
        }
    }
}

/// A footprint as a part that copies onto itself, so that runs are walked by one piece of code.
pub(crate) fn as_part(footprint: &Footprint) -> CopyBox {
    let axes: SmallVec<[(u64, u64, u64); 3]> =
        footprint.axes.iter().map(|&(count, stride)| (count, stride, stride)).collect();
    let offset_bytes = footprint.offset_bytes;
    CopyBox {
        run_bytes: footprint.run_bytes,
        source_offset_bytes: offset_bytes,
        destination_offset_bytes: offset_bytes,
        axes,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use smallvec::SmallVec;

    use super::{CopyBox, for_each_run, lists, part_bytes};

    /// Boxes whose bytes are apart, at both ends.
    fn part() -> impl Strategy<Value = CopyBox> {
        (1_u64..6, prop::collection::vec((1_u64..5, 0_u64..3, 0_u64..3), 0..4)).prop_map(
            |(run_bytes, axes)| {
                let (mut source, mut destination, mut part_axes) =
                    (run_bytes, run_bytes, SmallVec::new());
                for (count, source_gap, destination_gap) in axes {
                    let strides = (source + source_gap, destination + destination_gap);
                    part_axes.insert(0, (count, strides.0, strides.1));
                    (source, destination) = (strides.0 * count, strides.1 * count);
                }
                CopyBox {
                    run_bytes,
                    source_offset_bytes: 3,
                    destination_offset_bytes: 9,
                    axes: part_axes,
                }
            },
        )
    }

    fn bytes_of(parts: &[CopyBox]) -> Vec<(u64, u64)> {
        let mut bytes = Vec::new();
        for part in parts {
            for_each_run(part, &mut |from, to, len| {
                bytes.extend((0..len).map(|byte| (from + byte, to + byte)))
            });
        }
        bytes.sort_unstable();
        bytes
    }

    proptest! {
        #[test]
        fn lists_hold_every_byte_once_and_none_is_too_long(parts in prop::collection::vec(part(), 1..4), bytes_max in 0_u64..40) {
            let parts: SmallVec<[CopyBox; 1]> = parts.into();
            let lists = lists(parts.clone(), bytes_max);
            let lens = lists.iter().map(|list| list.iter().map(part_bytes).sum::<u64>());
            prop_assert!(lens.clone().all(|len| len <= bytes_max.max(1)) && lens.clone().all(|len| len > 0), "{:?}", lens.collect::<Vec<_>>());
            prop_assert_eq!(bytes_of(&lists.into_iter().flatten().collect::<Vec<_>>()), bytes_of(&parts));
        }
    }
}
