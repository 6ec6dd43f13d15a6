//! The number of an operation in its stream.

/// The number of an operation in its stream, counted from 1. Position 0 precedes the first
/// operation and always counts as completed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Position(pub u64);

impl Position {
    /// The position before the first operation, which always counts as completed.
    pub const START: Self = Self(0);
}
