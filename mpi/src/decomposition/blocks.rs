//! The blocks of a global array: one for each process, in row-major order of their coordinates.

use std::array::from_fn;
use std::ops::Range;

use super::parts::part;
use crate::error::{Error, Result, Side};

/// How a global array is divided. All processes have the same value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Blocks<const N: usize> {
    /// The cells of the global array along each axis.
    shape: [usize; N],
    /// The processes along each axis.
    processes: [usize; N],
    /// The cells of a neighbour that a process has beside its own, on each side of each axis.
    halos: [usize; N],
    /// Whether the first and the last cell of an axis are neighbours.
    periodic: [bool; N],
}

impl<const N: usize> Blocks<N> {
    pub(crate) fn new(
        shape: [usize; N],
        processes: [usize; N],
        halos: [usize; N],
        periodic: [bool; N],
    ) -> Result<Self> {
        let blocks = Self { shape, processes, halos, periodic };
        (0..N).try_for_each(|axis| blocks.check(axis))?;
        Ok(blocks)
    }

    /// Checks that the axis has processes, and that a halo needs the cells of one neighbour only.
    fn check(&self, axis: usize) -> Result<()> {
        let (cells, processes, halo) = (self.shape[axis], self.processes[axis], self.halos[axis]);
        if processes == 0 {
            return Err(argument(format!(
                "axis {axis} has 0 processes; `processes` takes at least 1 for each axis"
            )));
        }
        if self.has_neighbours(axis) && cells / processes < halo {
            return Err(argument(format!(
                "the halo of axis {axis} is {halo} cells wide, but the smallest part of its \
                 {cells} cells on {processes} processes has {}; choose a narrower `halo`, or \
                 fewer processes for this axis by `processes`",
                cells / processes
            )));
        }
        if halo.checked_mul(2).and_then(|halos| halos.checked_add(cells)).is_none() {
            return Err(argument(format!(
                "the {cells} cells of axis {axis} and halos of {halo} on both sides are more than \
                 `usize` can count; choose a narrower `halo`"
            )));
        }
        Ok(())
    }

    /// Whether processes have neighbours along this axis, be it themselves.
    fn has_neighbours(&self, axis: usize) -> bool {
        self.processes[axis] > 1 || self.periodic[axis]
    }

    pub(crate) fn shape(&self) -> [usize; N] {
        self.shape
    }

    pub(crate) fn processes(&self) -> [usize; N] {
        self.processes
    }

    pub(crate) fn halos(&self) -> [usize; N] {
        self.halos
    }

    pub(crate) fn periodic(&self) -> [bool; N] {
        self.periodic
    }

    /// Where a process is among the processes of each axis.
    pub(crate) fn coordinates(&self, rank: usize) -> [usize; N] {
        let mut rest = rank;
        let mut coordinates = [0; N];
        for (coordinate, processes) in coordinates.iter_mut().zip(self.processes).rev() {
            *coordinate = rest % processes;
            rest /= processes;
        }
        coordinates
    }

    pub(crate) fn rank(&self, coordinates: [usize; N]) -> usize {
        self.processes.iter().zip(coordinates).fold(0, |rank, (count, at)| rank * count + at)
    }

    /// The global indices of a process's own cells.
    pub(crate) fn cells(&self, rank: usize) -> [Range<usize>; N] {
        let at = self.coordinates(rank);
        from_fn(|axis| part(self.shape[axis], self.processes[axis], at[axis]))
    }

    /// The global index of a process's first own cell.
    pub(crate) fn offset(&self, rank: usize) -> [usize; N] {
        self.cells(rank).map(|cells| cells.start)
    }

    /// The number of a process's own cells along each axis.
    pub(crate) fn local_shape(&self, rank: usize) -> [usize; N] {
        self.cells(rank).map(|cells| cells.len())
    }

    /// The shape of a process's array: its own cells and the halo around them.
    pub(crate) fn shape_with_halo(&self, rank: usize) -> [usize; N] {
        let own = self.local_shape(rank);
        from_fn(|axis| own[axis] + 2 * self.halos[axis])
    }

    /// The global index of a cell of a process's array. `None` for halo cells outside the domain.
    pub(crate) fn global_index(&self, rank: usize, local: [usize; N]) -> Option<[usize; N]> {
        let mut global = self.offset(rank);
        for axis in 0..N {
            // Neither overflows: halos are checked not to, and a periodic axis has as many cells.
            let (cells, halo) = (self.shape[axis], self.halos[axis]);
            let shifted = global[axis] + local[axis];
            global[axis] = match shifted.checked_sub(halo) {
                Some(index) if index < cells => index,
                Some(index) if self.periodic[axis] => index - cells,
                None if self.periodic[axis] => shifted + cells - halo,
                _ => return None,
            };
        }
        Some(global)
    }

    /// The process on one side of an axis.
    pub(crate) fn neighbour(&self, rank: usize, axis: usize, side: Side) -> Option<usize> {
        let mut direction = [0; N];
        *direction.get_mut(axis)? = match side {
            Side::Low => -1,
            Side::High => 1,
        };
        self.towards(rank, direction)
    }

    /// The process that is one step away in a direction: -1, 0 or 1 along each axis.
    pub(crate) fn towards(&self, rank: usize, direction: [i8; N]) -> Option<usize> {
        let mut at = self.coordinates(rank);
        for axis in 0..N {
            let last = self.processes[axis] - 1;
            at[axis] = match direction[axis] {
                0 => at[axis],
                1 if at[axis] < last => at[axis] + 1,
                -1 if at[axis] > 0 => at[axis] - 1,
                _ if !self.periodic[axis] => return None,
                1 => 0,
                _ => last,
            };
        }
        Some(self.rank(at))
    }
}

/// What the builder of a grid returns for these numbers.
fn argument(text: String) -> Error {
    Error::Argument { operation: "GridBuilder::build", text }
}
