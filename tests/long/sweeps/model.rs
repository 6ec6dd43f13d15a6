//! The expected contents of the scenario's arrays, and the rows that a late failure may have lost.

#![allow(dead_code, reason = "each test file uses some of it")]

use crate::steps::Step;
use support::prelude::*;

pub(crate) const ROWS: usize = 4;
pub(crate) const COLUMNS: usize = 3;
pub(crate) const ARRAYS: usize = 4;

/// An array (`.0`) and the index of a row in it (`.1`).
pub(crate) type Row = (usize, usize);

pub(crate) struct Model {
    pub(crate) values: [Array2<u32>; ARRAYS],
    unwritten: Vec<Row>,
    /// Rows that may be lost.
    tainted: Vec<Row>,
    /// Arrays of which a copy may fail. The arrays are not lost then, but results computed from
    /// that copy may be.
    doubtful: Vec<usize>,
}

#[allow(dead_code, reason = "not every test fails work late")]
impl Model {
    pub(crate) fn new() -> Self {
        let counting = |start: u32| {
            Array2::from_shape_fn((ROWS, COLUMNS), |(row, column)| {
                start + (row * COLUMNS + column) as u32
            })
        };
        let zeros = || Array2::zeros((ROWS, COLUMNS));
        Self {
            values: [counting(100), zeros(), zeros(), counting(400)],
            unwritten: (0..ROWS).map(|row| (1, row)).collect(),
            tainted: Vec::new(),
            doubtful: Vec::new(),
        }
    }

    /// A row's contents, if it has any.
    pub(crate) fn row(&self, row: Row) -> Option<Vec<u32>> {
        (!self.unwritten.contains(&row)).then(|| self.values[row.0].row(row.1).to_vec())
    }

    pub(crate) fn may_be_lost(&self, row: Row) -> bool {
        self.tainted.contains(&row)
    }

    /// Whether a step may find that rows that it reads are lost.
    pub(crate) fn may_lose(&self, step: &Step) -> bool {
        step.reads.iter().any(|row| self.tainted.contains(row) || self.doubtful.contains(&row.0))
    }

    /// Called if a step queued work that will fail: the rows that it writes may be lost, and copies
    /// of the rows that it reads may fail.
    pub(crate) fn doubt_late_calls(&mut self, step: &Step, has_late_call: bool) {
        if has_late_call {
            self.doubtful.extend(step.reads.iter().chain(step.writes).map(|row| row.0));
        }
    }

    /// Called when all failures are known: failed copies are repeated from now on.
    pub(crate) fn no_more_doubts(&mut self) {
        self.doubtful.clear();
    }

    /// Applies a step. Returns the values that the step should have read.
    pub(crate) fn apply(&mut self, step: &Step) -> Vec<u32> {
        (step.effect)(&mut self.values);
        let seen = (step.sees)(&self.values);
        let is_doubtful = step.writes.iter().any(|row| self.doubtful.contains(&row.0));
        let taints = self.may_lose(step) || is_doubtful;
        self.unwritten.retain(|row| !step.writes.contains(row));
        self.tainted.retain(|row| !step.writes.contains(row));
        if taints {
            self.tainted.extend(step.writes);
        }
        if step.settles {
            self.no_more_doubts();
        }
        seen
    }
}
