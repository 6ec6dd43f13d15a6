//! Compares boxes with sets of cells.

use proptest::prelude::*;

use super::super::{Region, Span};
use super::cells::{cell_set, cells, disjoint_cells, regions_in_shape};

proptest! {
    #[test]
    fn set_operations_agree_with_cells((shape, regions) in regions_in_shape(2)) {
        let (a, b) = (regions[0], regions[1]);
        let (cells_a, cells_b) = (cell_set(&a), cell_set(&b));
        prop_assert_eq!(a.len(), cells_a.len() as u64);
        prop_assert_eq!(a.is_empty(), cells_a.is_empty());
        for cell in cells(&Region::whole(&shape)) {
            prop_assert_eq!(a.contains_point(&cell), cells_a.contains(&cell));
        }

        let common = a.intersection(&b);
        prop_assert_eq!(common.is_some(), !cells_a.is_disjoint(&cells_b));
        if let Some(common) = common {
            prop_assert_eq!(cell_set(&common), &cells_a & &cells_b);
        }

        let mut pieces = Vec::new();
        a.difference(&b, |piece| pieces.push(*piece));
        prop_assert!(pieces.iter().all(|piece| !piece.is_empty()));
        prop_assert_eq!(disjoint_cells(&pieces), &cells_a - &cells_b);

        if let Some(merged) = a.merged(&b) {
            prop_assert_eq!(cell_set(&merged), &cells_a | &cells_b);
        }
        let clipped = a.clipped(&shape);
        let inside = a.intersection(&Region::whole(&shape)).unwrap_or(clipped);
        prop_assert_eq!(cell_set(&clipped), cell_set(&inside));
    }

    #[test]
    fn a_region_cut_in_two_merges_again(
        (shape, regions) in regions_in_shape(1),
        axis in 0_usize..6,
        at in 1_u64..6,
    ) {
        let region = regions[0];
        let axis = axis % shape.len();
        let span = region.span(axis);
        prop_assume!(at < span.len() && !region.is_empty());
        let cut = span.start() + at * span.step();
        let first = region.with_span(axis, Span::new(span.start(), cut, span.step()));
        let second = region.with_span(axis, Span::new(cut, span.end(), span.step()));
        prop_assert_eq!(first.merged(&second), Some(region));
        prop_assert_eq!(second.merged(&first), Some(region));
        let phases = [0, 1].map(|phase| {
            let start = span.start() + phase * span.step();
            region.with_span(axis, Span::new(start, span.end(), 2 * span.step()))
        });
        if span.len() > 2 {
            prop_assert_eq!(phases[0].merged(&phases[1]), Some(region));
        }
    }
}

#[test]
fn a_region_without_axes_is_one_element() {
    let point = Region::new(&[]);
    assert_eq!((point.len(), point.is_empty(), point.axes()), (1, false, 0));
    assert_eq!(point.intersection(&point), Some(point));
    assert!(point.contains_point(&[]));
    let mut pieces = Vec::new();
    point.difference(&point, |piece| pieces.push(*piece));
    assert_eq!(pieces, []);
}

#[test]
fn a_difference_with_the_interior_is_six_slabs() {
    let whole = Region::whole(&[1024; 3]);
    let mut pieces = Vec::new();
    whole.difference(&Region::new(&[Span::new(1, 1023, 1); 3]), |piece| pieces.push(*piece));
    assert_eq!(pieces.len(), 6);
    assert_eq!(pieces.iter().map(Region::len).sum::<u64>(), 1024_u64.pow(3) - 1022_u64.pow(3));
    assert_eq!(pieces[0], Region::new(&[Span::single(0), Span::full(1024), Span::full(1024)]));
}
