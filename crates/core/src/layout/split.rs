//! Cuts boxes into parts of a bounded size, so that large copies can be queued in chunks.

use smallvec::SmallVec;

use super::{CopyBox, MemoryOrder};
use crate::coherence::Region;

/// Copies that are queued together.
type Copies = SmallVec<[CopyBox; 1]>;

/// Regions that are copied together.
type Regions = SmallVec<[Region; 1]>;

impl MemoryOrder {
    /// Cuts a region along its slowest axes. Returns its first part, which has at most `bytes_max`
    /// bytes, but at least one element.
    pub fn head(&self, mut region: Region, bytes_max: u64) -> Region {
        for axis in 0..region.axes() {
            let span = region.span(axis);
            let slice_bytes = self.region_bytes(&region) / span.len().max(1);
            let count = (bytes_max / slice_bytes.max(1)).clamp(1, span.len().max(1));
            region = region.with_span(axis, span.first(count));
            if slice_bytes <= bytes_max {
                break;
            }
        }
        region
    }

    /// Splits regions into lists of at most `bytes_max` bytes each, or of one element. Every
    /// element is in exactly one list.
    pub fn split_regions(&self, regions: &[Region], bytes_max: u64) -> SmallVec<[Regions; 1]> {
        let len_bytes = |region: &Region| self.region_bytes(region);
        if regions.iter().map(len_bytes).fold(0, u64::saturating_add) <= bytes_max {
            return SmallVec::from_iter([Regions::from_slice(regions)]);
        }
        let (mut lists, mut list, mut room_bytes) = (SmallVec::new(), Regions::new(), bytes_max);
        let mut rest: SmallVec<[Region; 8]> = regions.iter().rev().copied().collect();
        while let Some(region) = rest.pop() {
            let head = self.head(region, bytes_max);
            region.difference(&head, |part| rest.push(*part));
            if len_bytes(&head) > room_bytes && !list.is_empty() {
                lists.push(std::mem::take(&mut list));
                room_bytes = bytes_max;
            }
            room_bytes = room_bytes.saturating_sub(len_bytes(&head));
            list.push(head);
        }
        lists.push(list);
        lists
    }
}

impl CopyBox {
    /// The count of the slowest axis; for a copy without axes, its number of bytes.
    pub fn slowest_count(&self) -> u64 {
        self.axes.first().map_or(self.run_bytes, |axis| axis.0)
    }

    /// The part of a copy with `count` steps along the slowest axis, starting at step `start`; for
    /// a copy without axes, `count` bytes.
    pub fn section(&self, start: u64, count: u64) -> Self {
        let mut section = self.clone();
        let (source_step, destination_step) = match section.axes.first_mut() {
            Some(axis) => {
                axis.0 = count;
                (axis.1, axis.2)
            }
            None => {
                section.run_bytes = count;
                (1, 1)
            }
        };
        section.source_offset_bytes += start * source_step;
        section.destination_offset_bytes += start * destination_step;
        section
    }

    /// Calls `visit` with disjoint sections of at most `bytes_max` bytes each, in order.
    fn for_each_section(&self, bytes_max: u64, visit: &mut impl FnMut(Self)) {
        let steps = self.slowest_count();
        let step_bytes = self.len_bytes() / steps.max(1);
        if self.len_bytes() <= bytes_max {
            visit(self.clone());
        } else if step_bytes <= bytes_max {
            let count = bytes_max / step_bytes.max(1);
            (0..steps)
                .step_by(count as usize)
                .for_each(|start| visit(self.section(start, count.min(steps - start))));
        } else {
            for start in 0..steps {
                let mut step = self.section(start, 1);
                step.axes.remove(0);
                step.for_each_section(bytes_max, visit);
            }
        }
    }
}

/// Splits copies into lists of at most `bytes_max` bytes each, in order. Every byte is in exactly
/// one list.
pub fn split_copies(copies: Copies, bytes_max: u64) -> SmallVec<[Copies; 1]> {
    let len_bytes = |sum: u64, copy: &CopyBox| sum.saturating_add(copy.len_bytes());
    if copies.iter().fold(0, len_bytes) <= bytes_max {
        return SmallVec::from_iter([copies]);
    }
    let bytes_max = bytes_max.max(1);
    let (mut lists, mut list, mut room_bytes) = (SmallVec::new(), SmallVec::new(), bytes_max);
    for copy in &copies {
        copy.for_each_section(bytes_max, &mut |section| {
            let len_bytes = section.len_bytes();
            if len_bytes > room_bytes {
                lists.push(std::mem::take(&mut list));
                room_bytes = bytes_max;
            }
            room_bytes -= len_bytes;
            list.push(section);
        });
    }
    lists.push(list);
    lists
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use smallvec::SmallVec;

    use super::{CopyBox, MemoryOrder, Region, Regions, split_copies};
    use crate::coherence::Span;

    /// Copies whose runs do not overlap, neither in the source nor in the destination.
    fn copy() -> impl Strategy<Value = CopyBox> {
        (1_u64..6, prop::collection::vec((1_u64..5, 0_u64..3, 0_u64..3), 0..4)).prop_map(
            |(run_bytes, gaps)| {
                let (mut source, mut destination, mut axes) =
                    (run_bytes, run_bytes, SmallVec::new());
                for (count, source_gap, destination_gap) in gaps {
                    let strides = (source + source_gap, destination + destination_gap);
                    axes.insert(0, (count, strides.0, strides.1));
                    (source, destination) = (strides.0 * count, strides.1 * count);
                }
                CopyBox { run_bytes, source_offset_bytes: 3, destination_offset_bytes: 9, axes }
            },
        )
    }

    fn bytes_of(copies: &[CopyBox]) -> Vec<(u64, u64)> {
        let mut bytes = Vec::new();
        for copy in copies {
            copy.for_each_run(&mut |from, to, len| {
                bytes.extend((0..len).map(|byte| (from + byte, to + byte)));
            });
        }
        bytes.sort_unstable();
        bytes
    }

    proptest! {
        #[test]
        fn lists_hold_every_byte_once_and_none_is_too_long(
            copies in prop::collection::vec(copy(), 1..4),
            bytes_max in 0_u64..40,
        ) {
            let copies: SmallVec<[CopyBox; 1]> = copies.into();
            let lists = split_copies(copies.clone(), bytes_max);
            for list in &lists {
                let len_bytes = list.iter().map(CopyBox::len_bytes).sum::<u64>();
                prop_assert!(len_bytes > 0 && len_bytes <= bytes_max.max(1), "{}", len_bytes);
            }
            let all: Vec<CopyBox> = lists.into_iter().flatten().collect();
            prop_assert_eq!(bytes_of(&all), bytes_of(&copies));
        }
    }

    fn memory_order() -> MemoryOrder {
        MemoryOrder::of(&[10, 20, 30], &[600, 30, 1], 4).expect("contiguous").0
    }

    #[test]
    fn a_head_is_as_large_as_it_may_be_and_has_an_element() {
        let order = memory_order();
        let bytes = |bytes_max| order.region_bytes(&order.head(order.whole(), bytes_max));
        assert_eq!(bytes(24_000), 24_000);
        assert_eq!(bytes(23_999), 9 * 2400);
        assert_eq!(bytes(2399), 19 * 120);
        assert_eq!(bytes(119), 29 * 4);
        assert_eq!(bytes(1), 4);
    }

    #[test]
    fn taking_heads_again_and_again_takes_all_of_a_box_once() {
        let mut left = vec![memory_order().whole()];
        let mut seen = 0;
        while let Some(region) = left.pop() {
            let first = memory_order().head(region, 1000);
            seen += first.len();
            region.difference(&first, |rest| left.push(*rest));
        }
        assert_eq!(seen, 6000);
    }

    #[test]
    fn regions_are_split_into_lists_that_hold_each_element_once() {
        let order = memory_order();
        let row = |row| order.whole().with_span(0, Span::single(row));
        let regions = [row(0), row(2), row(5)];
        let all: Vec<_> = order.split_regions(&regions, u64::MAX).into_iter().collect();
        assert_eq!(all, [Regions::from_slice(&regions)]);
        for bytes_max in [5000, 2400, 1000, 4] {
            let lists = order.split_regions(&regions, bytes_max);
            let len_bytes = |list: &Regions| list.iter().map(|part| order.region_bytes(part)).sum();
            assert!(lists.iter().map(len_bytes).all(|bytes: u64| bytes > 0 && bytes <= bytes_max));
            let parts: Vec<Region> = lists.into_iter().flatten().collect();
            assert_eq!(parts.iter().map(Region::len).sum::<u64>(), 3 * 600);
            let is_apart = |(number, part): (usize, &Region)| {
                parts[number + 1..].iter().all(|other| part.intersection(other).is_none())
            };
            assert!(parts.iter().enumerate().all(is_apart));
        }
    }
}
