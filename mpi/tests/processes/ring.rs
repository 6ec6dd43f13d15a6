//! A ring of twelve cells.

use resident::SmartArray;
use resident::ndarray::Ix1;
use resident_mpi::{Decomposition, Mpi};

/// A ring of which each cell holds its index, halo included.
pub(crate) fn ring(mpi: &Mpi) -> (Decomposition<1>, SmartArray<f64, Ix1>) {
    let ring = mpi.grid([12]).halo(1).periodic([true]).build().unwrap();
    let array = ring.array(|[i]| i as f64).unwrap();
    (ring, array)
}

/// The cells before and after the own ones.
pub(crate) fn halos(array: &SmartArray<f64, Ix1>) -> [f64; 2] {
    let cells = array.host().unwrap();
    [cells[0], cells[cells.len() - 1]]
}
