//! What reduces the chunks of rows, and how long they are. Both depend on shapes and strides alone,
//! so that results are the same in each run, on any number of threads.

use smallvec::SmallVec;

use super::{row_count, row_len};
use crate::array::Axes;

/// The elements of a chunk that a block serves.
pub(in crate::ops) const BLOCK_CHUNK: usize = 8192;

/// The elements of a chunk that a thread serves.
const THREAD_CHUNK: usize = 256;

/// From this many rows on, each may have one thread.
const ROWS_MAX: usize = 1 << 14;

/// Shorter rows are not worth a block.
const SHORT_ROW: usize = 64;

/// What reduces a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Reducer {
    /// A thread: for short rows, and for those that lie side by side in memory, so that
    /// neighbouring threads read neighbouring elements.
    Thread,
    /// A block, whose threads read neighbouring elements.
    Block,
}

impl Reducer {
    pub(in crate::ops) fn of(axes: &Axes) -> Self {
        let is_short = row_len(axes) <= SHORT_ROW;
        let are_side_by_side = row_count(axes) >= 32 && are_side_by_side(axes);
        if is_short || are_side_by_side { Self::Thread } else { Self::Block }
    }

    /// The length of the chunks, of which the last of a row may be shorter.
    pub(in crate::ops) fn chunk(self) -> usize {
        match self {
            Self::Thread => THREAD_CHUNK,
            Self::Block => BLOCK_CHUNK,
        }
    }

    /// The shape of memory for the results of chunks. Rows that lie side by side get results that
    /// do.
    pub(in crate::ops) fn in_memory(
        self,
        mut shape_of_chunks: SmallVec<[usize; 6]>,
    ) -> SmallVec<[usize; 6]> {
        if self == Self::Thread {
            shape_of_chunks.rotate_right(1);
        }
        shape_of_chunks
    }

    /// From the shape of memory to that of the results.
    pub(in crate::ops) fn put_chunks_last(self, axes: &mut Axes) {
        if self == Self::Thread {
            axes.move_to_end(0);
        }
    }
}

/// The length of the chunks of threads that keep their error small in rows of any length, or have
/// none: where there are many rows, each has one thread.
pub(in crate::ops) fn chunk_of_thread(axes: &Axes) -> usize {
    if row_count(axes) >= ROWS_MAX { row_len(axes) } else { THREAD_CHUNK }
}

/// Whether another axis than that of the rows is the fastest in memory.
fn are_side_by_side(axes: &Axes) -> bool {
    let Some((along, others)) = axes.strides().split_last() else { return false };
    let beside = others.iter().map(|stride| stride.unsigned_abs()).min();
    beside.is_some_and(|beside| beside < along.unsigned_abs())
}

/// Moves the longest axis behind the others, if rows are short: all elements are reduced, so that
/// each axis may be that of the rows.
pub(in crate::ops) fn put_long_axis_last(all: &mut [&mut Axes]) {
    let shape = all[0].shape();
    let longest = (0..shape.len()).max_by_key(|axis| shape[*axis]);
    if let Some(axis) = longest.filter(|_| row_len(all[0]) < SHORT_ROW) {
        all.iter_mut().for_each(|axes| axes.move_to_end(axis));
    }
}
