//! Regions as sets of cells, and random regions.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::{Region, Span};

/// One index per axis.
pub(super) type Cell = Vec<u64>;

/// The indices of a span, one by one.
pub(super) fn indices(span: &Span) -> Vec<u64> {
    (0..span.len()).map(|at| span.start() + at * span.step()).collect()
}

/// The cells of a region, axis by axis.
pub(super) fn cells(region: &Region) -> Vec<Cell> {
    region.spans().iter().fold(vec![Cell::new()], |cells, span| {
        let extended = |cell: &Cell| {
            let cell = cell.clone();
            indices(span).into_iter().map(move |index| [cell.clone(), vec![index]].concat())
        };
        cells.iter().flat_map(extended).collect()
    })
}

/// The cells of several regions, which must be disjoint.
pub(super) fn disjoint_cells<'a>(regions: impl IntoIterator<Item = &'a Region>) -> BTreeSet<Cell> {
    let mut all = BTreeSet::new();
    for cell in regions.into_iter().flat_map(cells) {
        assert!(all.insert(cell.clone()), "{cell:?} is in two regions");
    }
    all
}

/// The cells of one region.
pub(super) fn cell_set(region: &Region) -> BTreeSet<Cell> {
    disjoint_cells([region])
}

/// Spans on an axis of this extent; some reach a little beyond it, and some are empty.
pub(super) fn any_span(extent: u64) -> impl Strategy<Value = Span> {
    let step = prop_oneof![4 => Just(1), 4 => 1_u64..=5];
    (0..=extent, 0..=extent + 1, step).prop_map(|(a, b, step)| Span::new(a.min(b), a.max(b), step))
}

/// Regions in a space of this shape.
pub(super) fn any_region(shape: &[u64]) -> impl Strategy<Value = Region> + use<> {
    let spans: Vec<_> = shape.iter().map(|extent| any_span(*extent).boxed()).collect();
    spans.prop_map(|spans| Region::new(&spans))
}

/// Small spaces: one to three axes, and one of six.
pub(super) fn any_shape() -> impl Strategy<Value = Vec<u64>> {
    prop_oneof![
        4 => prop::collection::vec(20_u64..=30, 1..=1),
        4 => prop::collection::vec(4_u64..=8, 2..=2),
        3 => prop::collection::vec(2_u64..=5, 3..=3),
        1 => Just(vec![2, 3, 2, 1, 3, 2]),
    ]
}

/// A space and `count` regions in it.
pub(super) fn regions_in_shape(count: usize) -> impl Strategy<Value = (Vec<u64>, Vec<Region>)> {
    any_shape().prop_flat_map(move |shape| {
        let regions = prop::collection::vec(any_region(&shape), count);
        (Just(shape), regions)
    })
}
