//! Copies between a device and an array's own page-locked memory end at its seams, where another
//! locking of pages begins.

use smallvec::SmallVec;

use super::Request;
use crate::backend::CopyBox;
use crate::coherence::Region;
use crate::device::Device;
use crate::storage::HostBuffer;

type Parts = SmallVec<[CopyBox; 1]>;

impl Request<'_> {
    /// The parts of a copy of `regions` between a device and the host's own memory, which is at the
    /// same location in both.
    pub(super) fn parts_by_device(
        &self,
        regions: &[Region],
        host: &HostBuffer,
        device: &Device,
    ) -> Parts {
        let memory_order = self.storage.memory_order();
        let same = |region| memory_order.footprint(region).copy_to_same_offsets();
        let parts = regions.iter().map(same);
        let boundaries_bytes = host.boundaries_bytes(device.kind());
        if boundaries_bytes.is_empty() {
            return parts.collect();
        }
        parts.fold(Parts::new(), |mut pieces, part| {
            cut_at_all(part, boundaries_bytes, &mut pieces);
            pieces
        })
    }
}

/// Cuts a part, which is at the same location in both memories, wherever it goes over one of the
/// seams, which ascend.
fn cut_at_all(part: CopyBox, boundaries_bytes: &[u64], pieces: &mut Parts) {
    let mut uncut = Parts::from_iter([part]);
    for seam_bytes in boundaries_bytes {
        let mut cut = Parts::new();
        uncut.into_iter().for_each(|part| cut_at(part, *seam_bytes, &mut cut));
        uncut = cut;
    }
    pieces.extend(uncut);
}

/// One past the last byte of a part, which lies within memory.
fn end_bytes(part: &CopyBox) -> u64 {
    part.source_end_bytes().unwrap_or(u64::MAX)
}

fn cut_at(part: CopyBox, seam_bytes: u64, pieces: &mut Parts) {
    if seam_bytes <= part.source_offset_bytes || end_bytes(&part) <= seam_bytes {
        pieces.push(part);
        return;
    }
    let until_seam = seam_bytes - part.source_offset_bytes;
    let Some((&(count, stride, _), inner_axes)) = part.axes.split_first() else {
        pieces.push(part.section(0, until_seam));
        pieces.push(part.section(until_seam, part.run_bytes - until_seam));
        return;
    };
    // Along the slowest axis: slices that lie before the seam, those that it cuts (one, unless
    // slices are interlocked), those behind it.
    let slice =
        |nth: u64| CopyBox { axes: SmallVec::from_slice(inner_axes), ..part.section(nth, 1) };
    let slice_bytes = end_bytes(&slice(0)) - part.source_offset_bytes;
    let before = until_seam.checked_sub(slice_bytes).map_or(0, |room| room / stride + 1).min(count);
    let behind = until_seam.div_ceil(stride).min(count);
    pieces.extend((before > 0).then(|| part.section(0, before)));
    (before..behind).for_each(|nth| cut_at(slice(nth), seam_bytes, pieces));
    pieces.extend((behind < count).then(|| part.section(behind, count - behind)));
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use smallvec::SmallVec;

    use super::{Parts, cut_at_all, end_bytes};
    use crate::backend::CopyBox;

    /// All bytes of a part, by their offsets at both ends.
    fn bytes(part: &CopyBox) -> Vec<(u64, u64)> {
        let runs = part.axes.iter().fold(vec![0], |starts, (count, stride, _)| {
            starts
                .into_iter()
                .flat_map(|start| (0..*count).map(move |nth| start + nth * stride))
                .collect()
        });
        let run = |start: u64| {
            (start..start + part.run_bytes)
                .map(|at| (part.source_offset_bytes + at, part.destination_offset_bytes + at))
        };
        runs.into_iter().flat_map(run).collect()
    }

    fn part(offset: u64, run_bytes: u64, axes: &[(u64, u64)]) -> CopyBox {
        let axes = axes.iter().map(|(count, stride)| (*count, *stride, *stride)).collect();
        CopyBox { run_bytes, source_offset_bytes: offset, destination_offset_bytes: offset, axes }
    }

    fn cut(part: &CopyBox, boundaries_bytes: &[u64]) -> Parts {
        let mut pieces = SmallVec::new();
        cut_at_all(part.clone(), boundaries_bytes, &mut pieces);
        pieces
    }

    #[test]
    fn a_box_is_cut_into_few() {
        assert_eq!(
            cut(&part(10, 20, &[]), &[10, 14, 30]).as_slice(),
            [part(10, 4, &[]), part(14, 16, &[])]
        );
        // Rows of 4 bytes, 10 apart, from 0 on: the seam in a row, and between two.
        let rows = part(0, 4, &[(5, 10)]);
        assert_eq!(
            cut(&rows, &[22]).as_slice(),
            [part(0, 4, &[(2, 10)]), part(20, 2, &[]), part(22, 2, &[]), part(30, 4, &[(2, 10)])]
        );
        assert_eq!(cut(&rows, &[27]).as_slice(), [part(0, 4, &[(3, 10)]), part(30, 4, &[(2, 10)])]);
        assert_eq!(cut(&rows, &[44, 50]).as_slice(), [rows]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_crosses(
            offset in 0_u64..9,
            run_bytes in 1_u64..6,
            steps in vec((1_u64..5, 0_u64..4), 0..3),
            seams in vec(0_u64..200, 0..4),
        ) {
            // From the inside out, so that nothing overlaps.
            let mut reach = run_bytes;
            let mut axes: Vec<(u64, u64)> = steps.iter().map(|(count, gap)| {
                let stride = reach + gap;
                reach = stride * count;
                (*count, stride)
            }).collect();
            axes.reverse();
            let mut seams = seams;
            seams.sort_unstable();
            let whole = part(offset, run_bytes, &axes);
            let pieces = cut(&whole, &seams);
            let mut covered: Vec<(u64, u64)> = pieces.iter().flat_map(bytes).collect();
            covered.sort_unstable();
            let mut expected = bytes(&whole);
            expected.sort_unstable();
            prop_assert_eq!(covered, expected);
            for (piece, seam) in pieces.iter().flat_map(|piece| seams.iter().map(move |seam| (piece, *seam))) {
                prop_assert!(seam <= piece.source_offset_bytes || end_bytes(piece) <= seam, "{:?} crosses {}", piece, seam);
            }
        }
    }
}
