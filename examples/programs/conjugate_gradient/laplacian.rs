//! The five-point Laplacian of a square with zeros on the walls, as a sparse matrix stored row by
//! row.

use resident::ndarray::{Array1, Ix1};
use resident::{Error, Result, SmartArray, Stream};

/// A sparse matrix. Row `i` has the entries `starts[i]..starts[i + 1]` of `values` and `columns`.
pub(crate) struct Laplacian {
    pub(crate) values: SmartArray<f64, Ix1>,
    pub(crate) columns: SmartArray<u32, Ix1>,
    pub(crate) starts: SmartArray<u32, Ix1>,
}

impl Laplacian {
    pub(crate) fn of_square(side: usize) -> Self {
        let (mut values, mut columns, mut starts) = (Vec::new(), Vec::new(), vec![0]);
        for (row, column) in (0..side).flat_map(|row| (0..side).map(move |column| (row, column))) {
            let at = |row: usize, column: usize| {
                (row < side && column < side).then(|| (row * side + column) as u32)
            };
            let around = [
                at(row.wrapping_sub(1), column),
                at(row, column.wrapping_sub(1)),
                at(row, column + 1),
                at(row + 1, column),
            ];
            columns.extend(at(row, column).into_iter().chain(around.into_iter().flatten()));
            values.push(4.0);
            values.resize(columns.len(), -1.0);
            starts.push(columns.len() as u32);
        }
        Self {
            values: SmartArray::from(values).named("values"),
            columns: SmartArray::from(columns).named("columns"),
            starts: SmartArray::from(starts).named("starts"),
        }
    }

    /// The matrix times a vector, computed on the host.
    pub(crate) fn times(&self, vector: &Array1<f64>) -> Result<Array1<f64>> {
        let (values, columns, starts) =
            (self.values.host()?, self.columns.host()?, self.starts.host()?);
        let entry = |index: u32| values[index as usize] * vector[columns[index as usize] as usize];
        Ok(starts.windows(2).into_iter().map(|ends| (ends[0]..ends[1]).map(entry).sum()).collect())
    }

    pub(crate) fn prefetch(&self, stream: &Stream) -> Result<(), Error> {
        self.values.prefetch(stream)?;
        self.columns.prefetch(stream)?;
        self.starts.prefetch(stream)
    }
}
