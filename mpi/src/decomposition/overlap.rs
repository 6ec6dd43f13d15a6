//! Which own cells a stencil can write before the halo has arrived, and which only after.

use std::array::from_fn;
use std::ops::Range;

use super::{Blocks, Cells};
use crate::error::Side;

impl<const N: usize> Blocks<N> {
    /// The own cells of a process.
    pub(crate) fn own(&self, rank: usize) -> Cells<N> {
        let (own, halos) = (self.local_shape(rank), self.halos());
        Cells::new(from_fn(|axis| halos[axis]..halos[axis] + own[axis]), halos)
    }

    /// The own cells that are farther than the halo's width from each side with a neighbour.
    pub(crate) fn core(&self, rank: usize) -> Cells<N> {
        Cells::new(from_fn(|axis| self.core_of(rank, axis)), self.halos())
    }

    fn core_of(&self, rank: usize, axis: usize) -> Range<usize> {
        let (own, halo) = (self.local_shape(rank)[axis], self.halos()[axis]);
        let near = |side| {
            let width = if self.neighbour(rank, axis, side).is_some() { halo } else { 0 };
            width.min(own)
        };
        let start = halo + near(Side::Low);
        start..(halo + own - near(Side::High)).max(start)
    }

    /// The other own cells, in boxes that have no cell in common: two for each axis at most.
    pub(crate) fn rims(&self, rank: usize) -> Vec<Cells<N>> {
        let (own, core) = (self.own(rank), self.core(rank));
        let side = |axis: usize, along: Range<usize>| {
            let ranges = from_fn(|other| match other {
                _ if other == axis => along.clone(),
                _ if other < axis => core.ranges()[other].clone(),
                _ => own.ranges()[other].clone(),
            });
            Cells::new(ranges, self.halos())
        };
        let sides = (0..N).flat_map(|axis| {
            let (own, core) = (&own.ranges()[axis], &core.ranges()[axis]);
            [side(axis, own.start..core.start), side(axis, core.end..own.end)]
        });
        sides.filter(|cells| !cells.is_empty()).collect()
    }
}
