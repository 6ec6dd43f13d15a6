//! Boxes of cells of a process's array.

use std::array::from_fn;
use std::ops::Range;

/// A box of cells of a process's array: a range of indices along each axis. Indices count the halo,
/// so the first own cell has the widths of the halo as its index.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Cells<const N: usize> {
    ranges: [Range<usize>; N],
    halos: [usize; N],
}

impl<const N: usize> Cells<N> {
    pub(crate) fn new(ranges: [Range<usize>; N], halos: [usize; N]) -> Self {
        Self { ranges, halos }
    }

    /// The indices along each axis.
    #[must_use]
    pub fn ranges(&self) -> &[Range<usize>; N] {
        &self.ranges
    }

    /// The number of cells along each axis.
    #[must_use]
    pub fn shape(&self) -> [usize; N] {
        from_fn(|axis| self.ranges[axis].len())
    }

    /// The number of cells.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ranges.iter().map(Range::len).product()
    }

    /// Whether there is no cell.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// These cells, which are own ones, and those around them within the width of the halo: what a
    /// stencil reads that writes these.
    #[must_use]
    pub fn with_halo(&self) -> Self {
        let grown = |axis: usize| {
            let (range, halo) = (&self.ranges[axis], self.halos[axis]);
            range.start.saturating_sub(halo)..range.end.saturating_add(halo)
        };
        Self::new(from_fn(grown), self.halos)
    }
}
