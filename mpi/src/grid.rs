//! The description of a global array that all processes share.

use crate::decomposition::{Blocks, Reach, balanced};
use crate::error::{Error, Result};
use crate::local::Decomposition;
use crate::world::Mpi;

impl Mpi {
    /// Begins to divide a global array of this shape among all processes. All processes are to
    /// describe the same grid.
    ///
    /// ```
    /// let mpi = resident_mpi::init()?;
    /// let plate = mpi.grid([100, 60]).halo(1).periodic([true, false]).build()?;
    /// if mpi.size() == 1 {
    ///     assert_eq!((plate.local_shape(), plate.offset()), ([100, 60], [0, 0]));
    /// }
    /// # Ok::<(), resident_mpi::Error>(())
    /// ```
    pub fn grid<const N: usize>(&self, shape: [usize; N]) -> GridBuilder<N> {
        GridBuilder {
            mpi: self.clone(),
            shape,
            processes: None,
            halos: [0; N],
            periodic: [false; N],
            reach: Reach::Faces,
        }
    }
}

/// How a global array is to be divided: what [`Mpi::grid`] begins and [`build`](Self::build) ends.
#[derive(Clone, Debug)]
#[must_use = "a grid exists once it is built: `.build()?`"]
pub struct GridBuilder<const N: usize> {
    mpi: Mpi,
    shape: [usize; N],
    processes: Option<[usize; N]>,
    halos: [usize; N],
    periodic: [bool; N],
    reach: Reach,
}

impl<const N: usize> GridBuilder<N> {
    /// The width of the halo in cells, on both sides of each axis; 0 unless it is set.
    pub fn halo(self, width: usize) -> Self {
        self.halos([width; N])
    }

    /// The width of the halo in cells, on both sides of each axis, for each axis.
    pub fn halos(self, halos: [usize; N]) -> Self {
        Self { halos, ..self }
    }

    /// Whether the first and the last cells of an axis are neighbours, for each axis; they are not
    /// unless it is set.
    pub fn periodic(self, periodic: [bool; N]) -> Self {
        Self { periodic, ..self }
    }

    /// The number of processes along each axis. Their product is [`Mpi::size`]. Unless they are
    /// set, they are chosen so that a process sends as few cells as possible.
    pub fn processes(self, processes: [usize; N]) -> Self {
        Self { processes: Some(processes), ..self }
    }

    /// Whether exchanges bring the corners of the halo too, which stencils with diagonals read:
    /// then a process has up to 3^N - 1 neighbours, else 2 N. Unless it is set, only faces are
    /// exchanged.
    pub fn corners(self, corners: bool) -> Self {
        Self { reach: if corners { Reach::Corners } else { Reach::Faces }, ..self }
    }

    /// Divides the array. No message is sent. Cells are divided evenly; if that cannot be, the
    /// first processes of an axis have one cell more.
    ///
    /// # Errors
    ///
    /// [`Argument`](Error::Argument), in all processes alike, if the product of
    /// [`processes`](Self::processes) is not the number of processes, or a halo is wider than the
    /// smallest part that a neighbour has.
    pub fn build(self) -> Result<Decomposition<N>> {
        let size = self.mpi.size();
        let Self { shape, halos, periodic, .. } = self;
        let processes = match self.processes {
            Some(processes) => processes,
            None => balanced(size, shape, halos, periodic).unwrap_or([1; N]),
        };
        if product(processes) != Some(size) {
            let text = format!(
                "the grid has {processes:?} processes along its axes, but the job has {size} \
                 processes; set numbers of which the product is {size} by `processes`, or start \
                 the job with another number"
            );
            return Err(Error::Argument { operation: "GridBuilder::build", text });
        }
        let blocks = Blocks::new(shape, processes, halos, periodic)?;
        Ok(Decomposition::new(self.mpi, blocks, self.reach))
    }
}

/// `None` if it is more than `usize` can count.
fn product<const N: usize>(numbers: [usize; N]) -> Option<usize> {
    numbers.into_iter().try_fold(1_usize, usize::checked_mul)
}
