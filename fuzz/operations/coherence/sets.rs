//! Sets and maps of boxes beside plain sets of cells.

use arbitrary::Arbitrary;

use super::space::{Box, Mask, Space, combined};
use crate::coherence::{Region, RegionMap, RegionSet};

/// How two sets become one, the first.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) enum Combination {
    Union,
    Intersection,
    Difference,
}

/// Two sets, and their cells.
#[derive(Default)]
pub(super) struct Sets {
    pairs: [(RegionSet, Mask); 2],
}

impl Sets {
    fn pair(&mut self, space: &Space, second: bool) -> &mut (RegionSet, Mask) {
        let pair = &mut self.pairs[usize::from(second)];
        pair.1.resize(space.len(), false);
        pair
    }

    pub(super) fn insert(&mut self, space: &Space, second: bool, part: &Box) {
        let Some((region, mask)) = inside(space, part) else { return };
        let (set, cells) = self.pair(space, second);
        set.insert(&region);
        *cells = combined(cells, &mask, |had, new| had || new);
        check(space, set, cells, &region, &mask);
    }

    pub(super) fn remove(&mut self, space: &Space, second: bool, part: &Box) {
        let Some((region, mask)) = inside(space, part) else { return };
        let (set, cells) = self.pair(space, second);
        set.remove(&region);
        *cells = combined(cells, &mask, |had, gone| had && !gone);
        check(space, set, cells, &region, &mask);
    }

    pub(super) fn combine(&mut self, space: &Space, how: Combination, part: &Box) {
        let Some((region, mask)) = inside(space, part) else { return };
        self.pair(space, false);
        self.pair(space, true);
        let [(one, cells), (other, other_cells)] = &self.pairs;
        let (set, cells) = match how {
            Combination::Union => {
                (one.union(other), combined(cells, other_cells, |one, other| one || other))
            }
            Combination::Intersection => {
                (one.intersection(other), combined(cells, other_cells, |one, other| one && other))
            }
            Combination::Difference => {
                (one.difference(other), combined(cells, other_cells, |one, other| one && !other))
            }
        };
        check(space, &set, &cells, &region, &mask);
        assert_eq!(set.is_same(other), cells == *other_cells);
        self.pairs[0] = (set, cells);
    }
}

/// A box as far as it lies in the space: sets know no extents.
fn inside(space: &Space, part: &Box) -> Option<(Region, Mask)> {
    let (region, _) = space.resolve(part);
    let region = region.intersection(&space.whole())?;
    let mask = space.disjoint(&[region]);
    Some((region, mask))
}

/// The set has the cells, and says so whatever it is asked.
fn check(space: &Space, set: &RegionSet, cells: &Mask, region: &Region, mask: &Mask) {
    let regions: Vec<Region> = set.iter().collect();
    let count = cells.iter().filter(|inside| **inside).count() as u64;
    assert_eq!(space.disjoint(&regions), *cells);
    assert_eq!((set.len(), set.is_empty(), set.count()), (count, count == 0, regions.len()));
    assert!(
        space.cells().iter().zip(cells).all(|(cell, inside)| set.contains_point(cell) == *inside)
    );
    let (mut held, mut missing) = (Vec::new(), Vec::new());
    set.visit(region, |part| held.push(*part));
    set.visit_missing(region, |part| missing.push(*part));
    let (held_cells, missing_cells) = (
        combined(cells, mask, |set, asked| set && asked),
        combined(cells, mask, |set, asked| !set && asked),
    );
    assert_eq!(space.disjoint(&held), held_cells);
    assert_eq!(space.disjoint(&missing), missing_cells);
    assert_eq!(set.contains(region), !missing_cells.contains(&true));
    assert_eq!(set.intersects(region), held_cells.contains(&true));
}

/// A change to the values in a box.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) enum Change {
    Set(u8),
    Add(u8),
    /// By a function that is told the part, too.
    AddByPart(u8),
}

/// A map, and a value for each cell.
pub(super) struct Table {
    map: RegionMap<u8>,
    values: Vec<u8>,
}

impl Table {
    pub(super) fn new(space: &Space) -> Self {
        Self { map: RegionMap::new(&space.shape, 0), values: vec![0; space.len()] }
    }

    pub(super) fn change(&mut self, space: &Space, part: &Box, change: Change) {
        let (region, mask) = space.resolve(part);
        let next = |old: u8| match change {
            Change::Set(value) => value % 4,
            Change::Add(value) | Change::AddByPart(value) => (old + value % 4) % 5,
        };
        if let Change::AddByPart(_) = change {
            let mut parts = Vec::new();
            self.map.update(&region, |part, old| {
                parts.push(*part);
                next(*old)
            });
            assert_eq!(space.disjoint(&parts), mask);
        } else {
            self.map.update_values(&region, |old| next(*old));
        }
        self.values
            .iter_mut()
            .zip(&mask)
            .filter(|(_, inside)| **inside)
            .for_each(|(value, _)| *value = next(*value));
        self.check(space, &region, &mask);
    }

    fn check(&self, space: &Space, region: &Region, mask: &Mask) {
        self.check_parts(space, &space.whole(), &vec![true; space.len()]);
        self.check_parts(space, region, mask);
        let is_uniform = self.values.windows(2).all(|pair| pair[0] == pair[1]);
        assert!(self.values.is_empty() || is_uniform == self.map.uniform().is_some());
        for wanted in 0..5 {
            let present =
                self.values.iter().zip(mask).any(|(value, inside)| *inside && *value == wanted);
            assert_eq!(self.map.any(region, |_, value| *value == wanted), present);
            assert_eq!(self.map.any_value(region, |value| *value == wanted), present);
        }
    }

    /// The parts of a region are disjoint, cover it, and have the values of their cells.
    fn check_parts(&self, space: &Space, region: &Region, mask: &Mask) {
        let (mut parts, mut values) = (Vec::new(), Vec::new());
        self.map.visit(region, |part, value| {
            parts.push(*part);
            values.push(*value);
        });
        assert_eq!(space.disjoint(&parts), *mask);
        for (part, told) in parts.iter().zip(values) {
            let cells = self.values.iter().zip(space.mask(part)).filter(|(_, inside)| *inside);
            cells.for_each(|(value, _)| assert_eq!(told, *value));
        }
    }
}
