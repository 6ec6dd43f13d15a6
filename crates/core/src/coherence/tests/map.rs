//! Compares maps with one value per cell.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::{Region, RegionMap, Span};
use super::cells::{Cell, any_region, any_shape, cells};

/// A map, and the same values cell by cell.
struct Pair {
    map: RegionMap<u32>,
    naive: BTreeMap<Cell, u32>,
}

impl Pair {
    fn new(shape: &[u64]) -> Self {
        let naive = cells(&Region::whole(shape)).into_iter().map(|cell| (cell, 0)).collect();
        Self { map: RegionMap::new(shape, 0), naive }
    }

    fn update(&mut self, region: &Region, next: impl Fn(u32) -> u32) {
        self.map.update(region, |value| next(*value));
        self.update_naive(region, next);
    }

    fn update_naive(&mut self, region: &Region, next: impl Fn(u32) -> u32) {
        for cell in cells(region) {
            self.naive.entry(cell).and_modify(|value| *value = next(*value));
        }
    }

    fn expect_parts(&self, region: &Region, parts: &BTreeMap<Cell, u32>) {
        let wanted: BTreeMap<Cell, u32> = cells(region)
            .into_iter()
            .filter_map(|cell| Some((cell.clone(), *self.naive.get(&cell)?)))
            .collect();
        assert_eq!(*parts, wanted);
    }

    fn check(&self, region: &Region) {
        let mut parts = BTreeMap::new();
        self.map.visit(region, |part, value| {
            for cell in cells(part) {
                assert_eq!(parts.insert(cell, *value), None);
            }
        });
        self.expect_parts(region, &parts);
        for value in 0..6 {
            let present = parts.values().any(|other| *other == value);
            assert_eq!(self.map.any(region, |_, other| *other == value), present);
            assert_eq!(self.map.any_value(region, |other| *other == value), present);
        }
    }

    /// Replaces the value of a copy's region, where all of it has one value, and that is even.
    fn check_common(&self, region: &Region, value: u32) {
        let mut copy = Self { map: self.map.clone(), naive: self.naive.clone() };
        let values = cells(region).into_iter().filter_map(|cell| self.naive.get(&cell).copied());
        let values: BTreeSet<u32> = values.collect();
        let common = values.first().filter(|common| values.len() == 1 && *common % 2 == 0);
        let replaced = copy.map.update_common(region, |old| old.is_multiple_of(2).then_some(value));
        assert_eq!(replaced, common.copied());
        if replaced.is_some() {
            copy.update_naive(region, |_| value);
        }
        copy.check_all();
    }

    fn check_all(&self) {
        self.map.assert_sound();
        self.check(&Region::whole(self.map.shape()));
        let first = self.naive.values().next();
        assert_eq!(
            self.map.uniform().is_some(),
            self.naive.values().all(|value| Some(value) == first)
        );
    }
}

/// A region, a value, and whether the value replaces the old values.
type Step = (Region, u32, bool);

fn any_steps(shape: &[u64], count: usize) -> impl Strategy<Value = Vec<Step>> + use<> {
    prop::collection::vec((any_region(shape), 0_u32..4, any::<bool>()), 1..count)
}

fn run(shape: &[u64], steps: &[Step]) {
    let mut pair = Pair::new(shape);
    for (region, value, replaces) in steps {
        pair.update(region, |old| if *replaces { *value } else { (old + value) % 5 });
        pair.check_all();
        pair.check(&steps[0].0);
        pair.check_common(region, value + 1);
        pair.check_common(&steps[0].0, 3);
    }
}

proptest! {
    #[test]
    fn any_updates_agree_with_cells(
        (shape, steps) in any_shape()
            .prop_flat_map(|shape| (Just(shape.clone()), any_steps(&shape, 20))),
    ) {
        run(&shape, &steps);
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn hundreds_of_boxes_keep_the_tree_sound(
        cells in prop::collection::vec((0_u64..28, 0_u64..28, 1_u64..4, 0_u32..5), 600..900),
        region in any_region(&[28, 28]),
    ) {
        let mut pair = Pair::new(&[28, 28]);
        let mut most = 0;
        for (at, (row, column, breadth, value)) in cells.into_iter().enumerate() {
            let part = Region::new(&[Span::single(row), Span::new(column, column + breadth, 1)]);
            pair.update(&part, |_| value);
            most = most.max(pair.map.value_count());
            if at % 32 == 0 {
                pair.check_all();
            }
        }
        prop_assert!(most > 100 && pair.map.is_indexed());
        pair.check(&region);
        for row in 0..28 {
            pair.update(&Region::new(&[Span::single(row), Span::full(28)]), |_| 3);
            pair.map.assert_sound();
        }
        prop_assert_eq!(pair.map.uniform(), Some(&3));
    }
}

fn single(cell: &[u64]) -> Region {
    Region::new(&cell.iter().map(|index| Span::single(*index)).collect::<Vec<_>>())
}

#[test]
fn elements_written_in_order_stay_few_boxes_and_end_as_one_value() {
    for shape in [vec![200], vec![20, 15], vec![6, 7, 8]] {
        let mut map = RegionMap::new(&shape, 0);
        let mut most = 0;
        for cell in cells(&Region::whole(&shape)) {
            map.update(&single(&cell), |_| 1);
            most = most.max(map.value_count());
        }
        assert_eq!(map.uniform(), Some(&1));
        assert!(most <= 1 + shape.len(), "{most} values in {shape:?}");
    }
}

#[test]
fn elements_written_in_any_order_end_as_one_value() {
    for shape in [vec![331], vec![17, 19]] {
        let all = cells(&Region::whole(&shape));
        let mut map = RegionMap::new(&shape, 0);
        for at in 0..all.len() {
            assert_eq!(map.uniform().is_some(), at == 0);
            map.update(&single(&all[at * 101 % all.len()]), |_| 1);
            map.assert_sound();
        }
        assert_eq!(map.uniform(), Some(&1));
    }
}

#[test]
fn every_few_elements_written_in_order_are_one_box() {
    for (shape, step) in [(vec![300], 2), (vec![300], 8), (vec![24, 40], 2), (vec![9, 8, 11], 5)] {
        let last = shape.len() - 1;
        let stripes = Region::whole(&shape).with_span(last, Span::new(0, shape[last], step));
        for reversed in [false, true] {
            let mut map = RegionMap::new(&shape, 0);
            let mut cells = cells(&stripes);
            if reversed {
                cells.reverse();
            }
            let mut most = 0;
            for cell in &cells {
                map.update(&single(cell), |_| 1);
                most = most.max(map.value_count());
            }
            assert_eq!(map.value_count(), 2, "{shape:?} {step} {reversed}");
            assert!(most <= 3 + shape.len(), "{most} values in {shape:?}");
            map.assert_sound();
        }
    }
}

#[test]
fn elements_with_large_gaps_stay_boxes_of_their_own() {
    let mut map = RegionMap::new(&[1000], 0);
    for at in 0..100 {
        map.update(&single(&[9 * at]), |_| 1);
    }
    assert_eq!(map.value_count(), 101);
    map.assert_sound();
}

#[test]
fn strided_phases_end_as_one_value() {
    let mut map = RegionMap::new(&[100, 100], 0);
    for phase in 0..3 {
        map.update(&Region::new(&[Span::full(100), Span::new(phase, 100, 3)]), |_| 1);
    }
    assert_eq!(map.uniform(), Some(&1));
}

/// A map with so many boxes of different values that it has an R-tree. All boxes lie after the
/// first 1000 elements.
fn indexed() -> RegionMap<u32> {
    let mut map = RegionMap::new(&[2000], 0);
    for at in 0..20 {
        map.update(&Region::new(&[Span::single(1000 + 2 * at)]), |_| 100 + at as u32);
    }
    assert!(map.is_indexed());
    map
}

#[test]
fn neighbours_merge_in_either_order_with_a_tree_too() {
    let adjacent = [Span::new(10, 20, 1), Span::new(20, 30, 1)];
    let strided = [Span::new(10, 20, 3), Span::new(22, 30, 3)];
    let phases = [Span::new(10, 30, 4), Span::new(12, 30, 4)];
    for pair in [adjacent, strided, phases] {
        for (first, second) in [(0, 1), (1, 0)] {
            let mut map = indexed();
            map.update(&Region::new(&[pair[first]]), |_| 1);
            map.update(&Region::new(&[pair[second]]), |_| 1);
            assert_eq!(map.value_count(), 1 + 20 + 1, "{pair:?}");
            map.assert_sound();
            // Neither is one of the boxes that were changed last.
            let mut map = indexed();
            map.update(&Region::new(&[pair[first]]), |_| 1);
            for at in [1500, 1600] {
                map.update(&Region::new(&[Span::single(at)]), |_| at as u32);
            }
            map.update(&Region::new(&[pair[second]]), |_| 1);
            assert_eq!(map.value_count(), 1 + 20 + 2 + 1, "{pair:?}");
            map.assert_sound();
        }
    }
}

#[test]
fn a_tree_finds_boxes_up_to_the_end_of_an_axis() {
    let mut map = RegionMap::new(&[u64::MAX, 3], 0);
    let part = |row: u64, column| Region::new(&[Span::single(row), Span::single(column)]);
    let rows: Vec<u64> = (0..126)
        .map(|at| if at % 2 == 0 { 1 << (at / 2) } else { u64::MAX - (2 << (at / 2)) })
        .collect();
    for (at, row) in rows.iter().enumerate() {
        map.update(&part(*row, at as u64 % 3), |_| 1 + at as u32);
        map.assert_sound();
    }
    for (at, row) in rows.iter().enumerate() {
        assert!(map.any(&part(*row, at as u64 % 3), |region, value| region.len() == 1
            && *value == 1 + at as u32));
        assert!(!map.any_value(&part(*row, (at as u64 + 1) % 3), |value| *value != 0));
    }
    for (at, row) in rows.iter().enumerate() {
        map.update(&part(*row, at as u64 % 3), |_| 0);
        map.assert_sound();
    }
    assert_eq!(map.uniform(), Some(&0));
}

#[test]
fn any_stops_at_the_first_match() {
    let mut map = indexed();
    map.update(&Region::new(&[Span::new(10, 20, 1)]), |_| 1);
    let mut asked = 0;
    assert!(map.any(&Region::whole(&[2000]), |_, _| {
        asked += 1;
        true
    }));
    assert_eq!(asked, 1);
}

#[test]
fn a_box_put_back_to_the_background_vanishes() {
    let interior = Region::new(&[Span::new(1, 1023, 1); 3]);
    let mut map = RegionMap::new(&[1024; 3], 0);
    for _ in 0..3 {
        map.update(&interior, |_| 1);
        assert_eq!(map.value_count(), 2);
        assert!(map.heap_bytes() <= 512, "{}", map.heap_bytes());
        map.update(&interior, |_| 0);
        assert_eq!(map.uniform(), Some(&0));
    }
    map.update(&Region::whole(&[1024; 3]), |_| 2);
    assert_eq!(map.uniform(), Some(&2));
}

#[test]
fn an_interior_and_its_faces_stay_seven_values() {
    let mut map = RegionMap::new(&[64; 3], 0);
    let interior = Region::new(&[Span::new(1, 63, 1); 3]);
    let mut faces = Vec::new();
    Region::whole(&[64; 3]).difference(&interior, |face| faces.push(*face));
    for round in 1..20 {
        map.update(&interior, |_| round);
        for (at, face) in faces.iter().enumerate() {
            map.update(face, |_| round + 100 * (at as u32 + 1));
        }
        assert_eq!(map.value_count(), 7);
        map.assert_sound();
    }
}

#[test]
fn a_checkerboard_becomes_uniform_when_overwritten() {
    let mut map = RegionMap::new(&[64, 64], 0);
    for cell in cells(&Region::whole(&[64, 64])).iter().filter(|cell| (cell[0] + cell[1]) % 2 == 0)
    {
        map.update(&single(cell), |_| 1);
    }
    assert_eq!(map.value_count(), 64 + 1);
    map.assert_sound();
    map.update(&Region::new(&[Span::new(1, 63, 1), Span::full(64)]), |_| 2);
    map.assert_sound();
    assert_eq!(map.value_count(), 4);
    map.update(&Region::whole(&[64, 64]), |_| 3);
    assert_eq!(map.uniform(), Some(&3));
}

#[test]
fn spaces_without_axes_or_elements_are_uniform() {
    let mut point = RegionMap::new(&[], 0);
    point.update(&Region::new(&[]), |value| value + 1);
    assert_eq!((point.uniform(), point.elements()), (Some(&1), 1));
    let mut empty = RegionMap::new(&[3, 0], 0);
    empty.update(&Region::whole(&[3, 0]), |_| 1);
    assert!(!empty.any(&Region::whole(&[3, 3]), |_, _| true));
    assert_eq!((empty.uniform(), empty.elements()), (Some(&0), 0));
}

#[test]
fn spaces_of_more_than_64_bits_of_elements_are_right() {
    let shape = [u64::MAX - 1; 3];
    let mut map = RegionMap::new(&shape, 0);
    let half = Region::whole(&shape).with_span(0, Span::full(1 << 63));
    let rest = Region::whole(&shape).with_span(0, Span::new(1 << 63, u64::MAX - 1, 1));
    map.update(&half, |_| 1);
    assert!(map.any_value(&Region::whole(&shape), |value| *value == 0));
    map.update(&rest, |_| 2);
    assert!(!map.any(&half, |_, value| *value != 1) && !map.any(&rest, |_, value| *value != 2));
}
