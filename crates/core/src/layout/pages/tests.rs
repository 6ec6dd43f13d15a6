//! Checks pages and regions of bytes against models that look at each byte.

use std::collections::BTreeSet;
use std::ops::Range;
use std::slice;

use proptest::prelude::*;

use super::{Footprint, MemoryOrder, PAGES_MAX, PageTable, Span};

#[test]
fn pages_are_whole_units_and_at_most_65536() {
    let cases = [
        // Length, unit; length of a page, number of pages.
        (1, 4096, 4096, 1),
        (4096, 4096, 4096, 1),
        (4097, 4096, 4096, 2),
        (PAGES_MAX * 4096, 4096, 4096, 65_536),
        (PAGES_MAX * 4096 + 1, 4096, 8192, 32_769),
        (640 << 30, 2 << 20, 10 << 20, 65_536),
        (0, 4096, 4096, 0),
    ];
    for (len_bytes, unit_bytes, page_bytes, page_count) in cases {
        let table = PageTable::new(len_bytes, unit_bytes);
        assert_eq!((table.page_bytes(), table.page_count()), (page_bytes, page_count));
        assert_eq!(table.bytes_of(&(0..page_count)), 0..len_bytes);
    }
}

/// A tile whose rows are longer than a page has only the pages that its rows touch.
#[test]
fn a_tile_has_the_pages_of_its_rows() {
    let (order, _) = MemoryOrder::of(&[64, 64], &[64, 1], 4).expect("contiguous");
    let table = PageTable::new(order.len_bytes(), 64);
    let tile = |rows, columns| {
        let region = order.whole().with_span(0, rows).with_span(1, columns);
        table.pages_of([order.footprint(&region)].into_iter()).to_vec()
    };
    let rows = |pages: [usize; 2], count: usize| -> Vec<Range<usize>> {
        (0..count).map(|row| row * 4 + pages[0]..row * 4 + pages[1]).collect()
    };
    assert_eq!(tile(Span::new(0, 3, 1), Span::new(0, 16, 1)), rows([0, 1], 3));
    assert_eq!(tile(Span::new(0, 3, 1), Span::new(20, 40, 1)), rows([1, 3], 3));
    assert_eq!(tile(Span::new(2, 5, 1), Span::full(64)), rows([8, 20], 1));
}

/// An axis of a million runs inside a few pages takes a step for all of them.
#[test]
fn short_strides_are_taken_as_one_extent() {
    let (order, _) = MemoryOrder::of(&[1 << 40, 2], &[2, 1], 1).expect("contiguous");
    let table = PageTable::new(order.len_bytes(), 4096);
    let column = order.whole().with_span(1, Span::single(1));
    let runs = table.pages_of([order.footprint(&column)].into_iter());
    assert_eq!((runs.len(), runs[0].clone()), (1, 0..table.page_count()));
}

#[test]
fn bytes_beyond_the_memory_have_no_page() {
    let table = PageTable::new(100, 10);
    let pages = |footprint| -> Vec<usize> {
        table.pages_of([footprint].into_iter()).into_iter().flatten().collect()
    };
    assert_eq!(pages(Footprint::run(85, u64::MAX)), [8, 9]);
    assert_eq!(pages(Footprint::run(100, 1)), []);
    assert_eq!(pages(Footprint::empty()), []);
    let axes = [(2, u64::MAX / 2)].into_iter().collect();
    assert_eq!(pages(Footprint { offset_bytes: 5, run_bytes: 1, axes }), [0]);
}

/// Footprints as those of boxes (nested), and, with `gap` below 0, others (interleaved).
fn footprint(least_gap: i64) -> impl Strategy<Value = Footprint> {
    let axes = prop::collection::vec((1_u64..6, least_gap..40), 0..4);
    (0_u64..60, 1_u64..20, axes).prop_map(|(offset_bytes, run_bytes, gaps)| {
        let (mut extent, mut axes) = (run_bytes, Vec::new());
        for (count, gap) in gaps {
            let stride = extent.saturating_add_signed(gap).max(1);
            axes.push((count, stride));
            extent += (count - 1) * stride;
        }
        axes.sort_by_key(|axis| std::cmp::Reverse(axis.1));
        Footprint { offset_bytes, run_bytes, axes: axes.into_iter().collect() }
    })
}

fn bytes_of(footprint: &Footprint) -> BTreeSet<u64> {
    let mut bytes = BTreeSet::new();
    footprint.for_each_run(&mut |offset, len| bytes.extend(offset..offset + len));
    bytes
}

proptest! {
    #[test]
    fn pages_are_those_of_the_bytes(
        footprints in prop::collection::vec(footprint(0), 0..4),
        behind_bytes in 1_u64..100,
        unit_bytes in 1_u64..70,
    ) {
        let len_bytes = footprints.iter().filter_map(Footprint::end_bytes).max().unwrap_or(0);
        let table = PageTable::new(len_bytes + behind_bytes, unit_bytes);
        let page_bytes = table.page_bytes();
        let bytes = footprints.iter().flat_map(bytes_of);
        let expected: BTreeSet<usize> = bytes.map(|byte| (byte / page_bytes) as usize).collect();
        let runs = table.pages_of(footprints.iter().cloned());
        prop_assert_eq!(runs.iter().cloned().flatten().collect::<BTreeSet<_>>(), expected);
        prop_assert!(runs.windows(2).all(|pair| pair[0].end < pair[1].start), "{:?}", runs);
    }

    /// No page is left out; and the steps are bounded by the pages.
    #[test]
    fn interleaved_axes_leave_out_no_page(
        footprint in footprint(-60),
        page_bytes in 1_u64..70,
    ) {
        let bytes = bytes_of(&footprint);
        let end = footprint.end_bytes().expect("short");
        let table = PageTable::new(end, page_bytes);
        let runs = table.pages_of([footprint.clone()].into_iter());
        let pages: BTreeSet<usize> = runs.iter().cloned().flatten().collect();
        prop_assert!(bytes.iter().all(|byte| pages.contains(&((byte / page_bytes) as usize))));
        let mut steps = 0;
        footprint.for_each_extent(page_bytes, &mut |_| steps += 1);
        prop_assert!(steps <= 2 * pages.len(), "{} steps for {:?}", steps, runs);
    }

    /// Against a table that keeps the number of each page and counts anew.
    #[test]
    fn a_table_keeps_what_was_said_last(
        len_bytes in 1_u64..200,
        steps in prop::collection::vec((0_u8..3, 0_usize..20, 0_usize..20, 0_u64..9), 0..40),
    ) {
        let mut table = PageTable::new(len_bytes, 10);
        let mut model = vec![None; table.page_count()];
        for (step, first, count, number) in steps {
            let first = first.min(model.len());
            let pages = first..(first + count).min(model.len());
            match step {
                0 => {
                    table.commit(pages.clone(), number);
                    model[pages].fill(Some(number));
                }
                1 => {
                    table.decommit(pages.clone());
                    model[pages].fill(None);
                }
                _ => {
                    table.use_pages(slice::from_ref(&pages), number);
                    let used = model[pages].iter_mut().flatten();
                    used.for_each(|last| *last = number.max(*last));
                }
            }
            check(&table, &model, len_bytes)?;
        }
    }
}

fn check(table: &PageTable, model: &[Option<u64>], len_bytes: u64) -> Result<(), TestCaseError> {
    let page_bytes = |page: usize| (len_bytes - page as u64 * 10).min(10);
    let committed = || (0..model.len()).filter(|page| model[*page].is_some());
    prop_assert_eq!(table.committed_bytes(), committed().map(page_bytes).sum::<u64>());
    prop_assert_eq!(table.is_full(), model.iter().all(Option::is_some));
    let mut seen = vec![None; model.len()];
    let (half, end) = (model.len() / 2, model.len());
    for (run, number) in table.runs(half..end) {
        prop_assert!(run.start >= half && run.end <= end, "{:?} is beyond the pages", run);
        prop_assert!(model[run].iter().all(|last| *last == Some(number)));
    }
    for (run, number) in table.runs(0..end) {
        let before = run.start.checked_sub(1).and_then(|page| seen[page]);
        prop_assert!(!run.is_empty() && before != Some(number), "{:?} continues a run", run);
        seen[run].fill(Some(number));
    }
    prop_assert_eq!(&seen, model);
    let all = [0..model.len() / 2, model.len() / 2..model.len()];
    let uncommitted: Vec<usize> = table.uncommitted(&all).into_iter().flatten().collect();
    let without = (0..model.len()).filter(|page| model[*page].is_none());
    prop_assert_eq!(uncommitted, without.collect::<Vec<_>>());
    Ok(())
}

#[test]
fn rows_of_a_box_are_one_box() {
    let (order, _) = MemoryOrder::of(&[4, 5, 8], &[40, 8, 1], 4).expect("contiguous");
    let of = |span: [Range<u64>; 3]| {
        let [planes, rows, columns] = span.map(|it| Span::new(it.start, it.end, 1));
        order.whole().with_span(0, planes).with_span(1, rows).with_span(2, columns)
    };
    for region in [of([0..4, 0..5, 2..5]), of([1..3, 2..5, 0..7]), of([1..2, 0..5, 0..8])] {
        let table = PageTable::new(order.len_bytes(), 4);
        let runs = table.pages_of([order.footprint(&region)].into_iter());
        let found = order.regions_of_runs(runs.iter().map(|run| table.bytes_of(run)));
        assert_eq!(found.to_vec(), [region]);
    }
    // Both ranges have bytes of the second element.
    let found = order.regions_of_runs([3..5, 6..9]);
    assert_eq!(found.to_vec(), [of([0..1, 0..1, 0..3])]);
}

/// All ranges of arrays of some shapes.
#[test]
fn regions_of_bytes_are_the_elements_of_any_of_them() {
    let shapes: [&[usize]; 6] = [&[], &[7], &[3, 5], &[2, 3, 4], &[2, 1, 3, 2], &[2, 2, 2, 2, 3]];
    for (shape, is_divided) in shapes.iter().flat_map(|shape| [(shape, false), (shape, true)]) {
        let mut strides: Vec<isize> = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis] as isize;
        }
        let (order, _) = MemoryOrder::of(shape, &strides, 3).expect("contiguous");
        let order = if is_divided { order.divided() } else { order };
        for start in 0..order.len_bytes() + 2 {
            for end in start..order.len_bytes() + 4 {
                check_regions(&order, start..end);
            }
        }
    }
}

fn check_regions(order: &MemoryOrder, range: Range<u64>) {
    let regions = order.regions_of_bytes(range.clone());
    assert!(regions.len() <= (2 * order.element_extents().len()).max(1), "{range:?}: {regions:?}");
    let mut bytes = Vec::new();
    for region in &regions {
        order.footprint(region).for_each_run(&mut |offset, len| bytes.extend(offset..offset + len));
    }
    let end = if range.is_empty() { range.start } else { range.end };
    let elements = (0..order.elements()).filter(|element| *element * 3 < end);
    let elements = elements.filter(|element| *element * 3 + 3 > range.start && end > range.start);
    let expected: Vec<u64> = elements.flat_map(|element| element * 3..element * 3 + 3).collect();
    assert_eq!(bytes, expected, "{range:?} of {order:?}");
}

/// As the axes of a copy to a view with exchanged axes.
#[test]
fn axes_in_another_order_have_the_same_pages() {
    let pages = |axes: &[(u64, u64)]| {
        let footprint = Footprint { axes: axes.into(), ..Footprint::run(8, 4) };
        PageTable::new(1000, 10).pages_of(std::iter::once(footprint))
    };
    assert_eq!(pages(&[(3, 100), (2, 4)]).as_slice(), [0..2, 10..12, 20..22]);
    assert_eq!(pages(&[(2, 4), (3, 100)]), pages(&[(3, 100), (2, 4)]));
}
