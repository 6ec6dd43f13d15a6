//! What a wait waits for, for the error if it takes too long.

use std::time::Duration;

use crate::error::{Error, Side};

/// What a wait waits for, for its error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Awaited {
    /// The public function.
    pub(crate) operation: &'static str,
    /// The process; `None` if it is any of them.
    pub(crate) rank: Option<usize>,
    pub(crate) axis: Option<usize>,
    pub(crate) side: Option<Side>,
}

impl Awaited {
    /// All processes.
    pub(crate) fn all(operation: &'static str) -> Self {
        Self { operation, rank: None, axis: None, side: None }
    }

    /// One process.
    pub(crate) fn from(operation: &'static str, rank: usize) -> Self {
        Self { operation, rank: Some(rank), axis: None, side: None }
    }

    /// The error of a wait that took so long.
    pub(crate) fn timed_out(&self, after: Duration) -> Error {
        self.timed_out_for(self.rank.into_iter().collect(), after)
    }

    /// The error of a wait for these processes, or for unknown ones if there are none.
    pub(crate) fn timed_out_for(&self, missing: Vec<usize>, after: Duration) -> Error {
        let Self { operation, axis, side, .. } = *self;
        let rank = if let [rank] = *missing { Some(rank) } else { None };
        Error::TimedOut { operation, rank, missing, axis, side, after }
    }

    /// One process, for a face.
    pub(crate) fn face(operation: &'static str, rank: usize, axis: usize, side: Side) -> Self {
        Self { operation, rank: Some(rank), axis: Some(axis), side: Some(side) }
    }
}
