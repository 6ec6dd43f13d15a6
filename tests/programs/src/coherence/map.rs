//! A map of regions, compared with a value for each cell.

use arbitrary::Arbitrary;

use super::space::{Box, Mask, Space};
use resident_core::coherence::{Region, RegionMap};

/// A change to the values in a box.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub(super) enum Change {
    Set(u8),
    Add(u8),
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
            Change::Add(value) => (old + value % 4) % 5,
        };
        self.map.update(&region, |old| next(*old));
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

    /// Checks that a region's parts are disjoint, cover it, and have their cells' values.
    fn check_parts(&self, space: &Space, region: &Region, mask: &Mask) {
        let (mut parts, mut values) = (Vec::new(), Vec::new());
        self.map.visit(region, |part, value| {
            parts.push(*part);
            values.push(*value);
        });
        assert_eq!(space.disjoint(&parts), *mask);
        for (part, stored) in parts.iter().zip(values) {
            let cells = self.values.iter().zip(space.mask(part)).filter(|(_, inside)| *inside);
            cells.for_each(|(value, _)| assert_eq!(stored, *value));
        }
    }
}
