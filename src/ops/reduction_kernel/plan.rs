//! What decides over the kernels of a reduction, and over its bodies in Rust.

use crate::ops::elementwise_kernel::source::Form;
use crate::ops::rows::reducer::Reducer;

/// The partial results of a chunk that a block has, which are then joined in pairs.
pub(super) const LANES: usize = 256;

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
