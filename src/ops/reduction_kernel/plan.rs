//! How rows are cut into chunks, and what serves a chunk. Both depend on shapes and strides alone,
//! so that results are the same in each run, on any number of threads.

use crate::array::Axes;
use crate::ops::elementwise_kernel::source::Form;
use crate::ops::rows::{row_count, row_len};

/// The partial results of a chunk that a block has, which are then joined in pairs.
pub(super) const LANES: usize = 256;

/// The elements of a chunk that a block serves.
const BLOCK_CHUNK: usize = 8192;

/// The elements of a chunk that a thread serves.
const THREAD_CHUNK: usize = 256;

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

/// What decides over the kernel besides the texts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Key {
    pub(super) form: Form,
    pub(super) reducer: Reducer,
    /// Whether all rows are reduced to one result.
    pub(super) is_whole: bool,
}

/// What a body in Rust does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan<R> {
    pub(super) chunk: usize,
    pub(super) reducer: Reducer,
    pub(super) is_whole: bool,
    pub(super) initial: R,
}

impl Reducer {
    pub(super) fn of(axes: &Axes) -> Self {
        let is_short = row_len(axes) <= SHORT_ROW;
        let are_side_by_side = row_count(axes) >= 32 && are_side_by_side(axes);
        if is_short || are_side_by_side { Self::Thread } else { Self::Block }
    }

    pub(super) fn chunk(self) -> usize {
        match self {
            Self::Thread => THREAD_CHUNK,
            Self::Block => BLOCK_CHUNK,
        }
    }
}

/// Whether another axis than that of the rows is the fastest in memory.
fn are_side_by_side(axes: &Axes) -> bool {
    let Some((along, others)) = axes.strides().split_last() else { return false };
    let beside = others.iter().map(|stride| stride.unsigned_abs()).min();
    beside.is_some_and(|beside| beside < along.unsigned_abs())
}

/// Moves the longest axis behind the others, if rows are short.
pub(super) fn long_axis(axes: &Axes) -> Option<usize> {
    let shape = axes.shape();
    let longest = (0..shape.len()).max_by_key(|axis| shape[*axis]);
    longest.filter(|_| row_len(axes) < SHORT_ROW)
}
