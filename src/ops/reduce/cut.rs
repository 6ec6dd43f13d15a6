//! How the rows of an operand are cut into chunks, and who reduces a chunk.

use crate::array::Axes;
use crate::ops::call::{self, Call};
use crate::ops::rows::{chunk_len, grid_of_blocks, row_count, row_len};
use resident_backend::grid::Grid;

/// The elements of a chunk that a block reduces.
pub(in crate::ops) const BLOCK_CHUNK: usize = 8192;

/// The elements of a chunk that a thread reduces, where there are too few rows for a thread each.
const THREAD_CHUNK: usize = 256;

/// From this many rows on, each has one thread.
const ROWS_MAX: usize = 1 << 14;

/// A row that is shorter than this is not worth a block, if another axis is longer.
pub(super) const SHORT_ROW: usize = 64;

/// What reduces a chunk on a GPU.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reducer {
    /// A thread: for rows that lie side by side in memory, so that neighbouring threads read
    /// neighbouring elements.
    Thread,
    Block,
}

/// The length of the chunks, of which the last of a row may be shorter.
#[derive(Clone, Copy)]
pub(super) struct Cut {
    pub(super) chunk: usize,
    pub(super) reducer: Reducer,
}

impl Cut {
    /// The chunks depend on shape and strides alone.
    pub(super) fn of(call: &Call<'_>, axes: &Axes) -> Self {
        let (in_parallel, reducer) = if row_count(axes) < 32 || !are_side_by_side(axes) {
            (BLOCK_CHUNK, Reducer::Block)
        } else if row_count(axes) >= ROWS_MAX {
            (row_len(axes), Reducer::Thread)
        } else {
            (THREAD_CHUNK, Reducer::Thread)
        };
        Self { chunk: chunk_len(call, axes, in_parallel), reducer }
    }

    pub(super) fn grid(self, chunks: usize) -> Grid {
        match self.reducer {
            Reducer::Thread => call::cover(chunks),
            Reducer::Block => grid_of_blocks(chunks),
        }
    }
}

/// Whether another axis than that of the rows is the fastest in memory.
fn are_side_by_side(axes: &Axes) -> bool {
    let Some((along, others)) = axes.strides().split_last() else { return false };
    let beside = others.iter().map(|stride| stride.unsigned_abs()).min();
    beside.is_some_and(|beside| beside < along.unsigned_abs())
}
