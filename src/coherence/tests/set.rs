//! Sets of boxes against sets of cells.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::{Region, RegionSet, Span};
use super::cells::{Cell, cell_set, cells, disjoint_cells, regions_in_shape};

fn set_cells(set: &RegionSet) -> BTreeSet<Cell> {
    let regions: Vec<Region> = set.iter().collect();
    assert_eq!(regions.len(), set.count());
    disjoint_cells(&regions)
}

/// A set made of the first regions, without the last third.
fn build(regions: &[Region]) -> (RegionSet, BTreeSet<Cell>) {
    let (mut set, mut cells) = (RegionSet::new(), BTreeSet::new());
    for (at, region) in regions.iter().enumerate() {
        if at % 3 == 2 {
            set.remove(region);
            cells = &cells - &cell_set(region);
        } else {
            set.insert(region);
            cells = &cells | &cell_set(region);
        }
    }
    (set, cells)
}

proptest! {
    #[test]
    fn algebra_is_that_of_sets((shape, regions) in regions_in_shape(9)) {
        let (a, cells_a) = build(&regions[..4]);
        let (b, cells_b) = build(&regions[4..8]);
        for (set, wanted) in [
            (&a, cells_a.clone()),
            (&a.union(&b), &cells_a | &cells_b),
            (&a.intersection(&b), &cells_a & &cells_b),
            (&a.difference(&b), &cells_a - &cells_b),
        ] {
            prop_assert_eq!(set_cells(set), wanted.clone());
            prop_assert_eq!(set.len(), wanted.len() as u64);
            prop_assert_eq!(set.is_empty(), wanted.is_empty());
            prop_assert!(cells(&Region::whole(&shape)).iter().all(|cell| set.contains_point(cell) == wanted.contains(cell)));
            let region = regions[8];
            let inside = cell_set(&region);
            prop_assert_eq!(set.contains(&region), inside.is_subset(&wanted));
            prop_assert_eq!(set.intersects(&region), !inside.is_disjoint(&wanted));
            let (mut held, mut missing) = (Vec::new(), Vec::new());
            set.visit(&region, |part| held.push(*part));
            set.visit_missing(&region, |part| missing.push(*part));
            prop_assert_eq!(disjoint_cells(&held), &inside & &wanted);
            prop_assert_eq!(disjoint_cells(&missing), &inside - &wanted);
        }
        prop_assert!(a.union(&b).is_same(&b.union(&a)));
        prop_assert_eq!(a.is_same(&b), cells_a == cells_b);
    }
}

#[test]
fn neighbours_merge() {
    let mut set = RegionSet::new();
    for index in 0..1000 {
        set.insert(&Region::new(&[Span::single(index)]));
    }
    assert_eq!((set.count(), set.len()), (1, 1000));
    set.remove(&Region::new(&[Span::new(0, 1000, 2)]));
    assert_eq!((set.count(), set.len()), (1, 500));
}

#[test]
fn the_point_without_axes_is_in_or_out() {
    let point = Region::new(&[]);
    let mut set = RegionSet::from(point);
    assert!(
        set.contains(&point) && set.contains_point(&[]) && set.intersects(&point) && set.len() == 1
    );
    set.remove(&point);
    assert!(set.is_empty() && !set.contains(&point) && set.is_same(&RegionSet::new()));
}
