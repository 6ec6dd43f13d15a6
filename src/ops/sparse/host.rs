//! Bodies in Rust of products of sparse matrices, by all cores if they have many entries.

use ndarray::{ArrayView1, ArrayView2, ArrayViewD, ArrayViewMut1, ArrayViewMut2, Axis};

use crate::ops::arithmetic::{Index, Number};
use crate::ops::indexed::first_beyond_in;
use crate::ops::parallel::{PARALLEL_LEN_MIN, TASK_LEN, each_piece};

/// A matrix in compressed rows, whose indices were checked.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a, I, T> {
    starts: ArrayView1<'a, I>,
    columns: ArrayView1<'a, I>,
    values: ArrayView1<'a, T>,
}

/// What is wrong with a matrix of `width` columns, as the kernel says it: `u64::MAX` if nothing is.
pub(super) fn first_bad<I: Index>(
    width: u64,
    starts: ArrayView1<'_, I>,
    columns: ArrayView1<'_, I>,
) -> u64 {
    let bad_column = match columns.as_slice() {
        Some(columns) => first_beyond_in(width, columns),
        None => columns.iter().position(|column| column.to_u64() >= width),
    };
    if let Some(place) = bad_column {
        return place as u64;
    }
    let entries = columns.len() as u64;
    let (mut before, last) = (0, starts.len() - 1);
    for (number, start) in starts.iter().enumerate() {
        let start = start.to_u64();
        let is_end = (number == 0 && start != 0) || (number == last && start != entries);
        if is_end || start < before || start > entries {
            return number as u64 | 1 << 63;
        }
        before = start;
    }
    u64::MAX
}

/// A view of one axis.
pub(super) fn line<T>(view: ArrayViewD<'_, T>) -> ArrayView1<'_, T> {
    let Ok(line) = view.into_dimensionality() else { unreachable!("one axis") };
    line
}

impl<'a, I: Index, T: Number> Rows<'a, I, T> {
    pub(super) fn of(
        starts: ArrayViewD<'a, I>,
        columns: ArrayViewD<'a, I>,
        values: ArrayViewD<'a, T>,
    ) -> Self {
        Self { starts: line(starts), columns: line(columns), values: line(values) }
    }
}

impl<I: Index, T: Number> Rows<'_, I, T> {
    /// The columns and values of a row.
    fn entries(&self, row: usize) -> impl Iterator<Item = (usize, T)> {
        let range = self.starts[row].to_u64() as usize..self.starts[row + 1].to_u64() as usize;
        range.map(|entry| (self.columns[entry].to_u64() as usize, self.values[entry]))
    }

    /// The rows of a task, if several threads are to work.
    fn rows_of_task(&self) -> Option<usize> {
        let rows = (self.starts.len() - 1).max(1);
        let tasks = self.columns.len() / TASK_LEN;
        (self.columns.len() >= PARALLEL_LEN_MIN).then(|| rows.div_ceil(tasks.max(1)))
    }

    /// `y = A x`.
    pub(super) fn matvec(&self, x: ArrayView1<'_, T>, mut y: ArrayViewMut1<'_, T>) {
        let run = |(first, mut y): (usize, ArrayViewMut1<'_, T>)| {
            for (row, y) in y.iter_mut().enumerate() {
                let terms = self.entries(first + row);
                *y = terms.fold(T::ZERO, |sum, (column, value)| sum.plus(value.times(x[column])));
            }
        };
        match self.rows_of_task() {
            None => run((0, y)),
            Some(rows) => {
                let pieces = y.axis_chunks_iter_mut(Axis(0), rows).enumerate();
                each_piece(pieces.map(|(task, y)| (task * rows, y)).collect(), run);
            }
        }
    }

    /// `C = A B`.
    pub(super) fn matmul(&self, b: ArrayView2<'_, T>, mut c: ArrayViewMut2<'_, T>) {
        let run = |(first, mut c): (usize, ArrayViewMut2<'_, T>)| {
            for (row, mut c) in c.rows_mut().into_iter().enumerate() {
                c.fill(T::ZERO);
                for (column, value) in self.entries(first + row) {
                    c.zip_mut_with(&b.row(column), |c, b| *c = c.plus(value.times(*b)));
                }
            }
        };
        match self.rows_of_task() {
            None => run((0, c)),
            Some(rows) => {
                let pieces = c.axis_chunks_iter_mut(Axis(0), rows).enumerate();
                each_piece(pieces.map(|(task, c)| (task * rows, c)).collect(), run);
            }
        }
    }
}
