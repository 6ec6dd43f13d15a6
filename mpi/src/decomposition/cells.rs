//! Boxes of cells of a process's array.

use std::array::from_fn;
use std::ops::Range;

/// A box of cells of a process's array: a range of indices along each axis. Indices count the halo,
/// so the first own cell has the widths of the halo as its index.
///
/// ```
/// use resident::{SmartArray, ndarray::Ix1};
///
/// let mpi = resident_mpi::init()?;
/// let ring = mpi.grid([100 * mpi.size()]).halo(2).periodic([true]).build()?;
/// let core = ring.core();
/// assert_eq!((core.ranges(), core.with_halo().ranges()), (&[4..100], &[2..102]));
/// let a: SmartArray<f32, Ix1> = ring.zeros()?;
/// assert_eq!(core.of(&a).shape(), [96]);
/// # Ok::<(), resident_mpi::Error>(())
/// ```
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
