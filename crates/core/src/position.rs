//! The number of an operation in its queue.

/// The number of an operation in its queue, counted from 1. Position 0 precedes the first operation
/// and always counts as completed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Position(pub u64);

impl Position {
    /// The position before the first operation, which always counts as completed.
    pub const START: Self = Self(0);
}
