//! One use of some bytes.

use std::num::NonZeroU32;

use crate::Position;

/// The number by which an array identifies a stream that uses it.
///
/// Never 0, so that [`Uses`](super::Uses) stores what it contains in the place of a key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct StreamKey(NonZeroU32);

impl StreamKey {
    /// No stream.
    pub const NONE: Self = Self(NonZeroU32::MAX);

    /// The key of the stream at this index of the array's table. [`NONE`](Self::NONE) for an index
    /// that 32 bits cannot store; no array is used by so many streams.
    #[inline]
    pub const fn at(index: usize) -> Self {
        if index >= u32::MAX as usize {
            return Self::NONE;
        }
        match NonZeroU32::new(index as u32 + 1) {
            Some(key) => Self(key),
            None => Self::NONE,
        }
    }

    /// The stream's index in the array's table.
    #[inline]
    pub const fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// When a use is complete: when its stream reaches a position, or, for an open use, at some time
/// after its guard drops.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct UseEnd(u64);

impl UseEnd {
    /// The use of a guard that still exists. To wait for it, an event must be recorded at the time
    /// of the wait. Later than every position.
    pub const OPEN: Self = Self(u64::MAX);

    /// The end of queued work: complete when the stream reaches `position`.
    #[inline]
    pub const fn at(position: Position) -> Self {
        Self(position.0)
    }

    /// The position, unless the use is open.
    #[inline]
    pub fn position(self) -> Option<Position> {
        (self != Self::OPEN).then_some(Position(self.0))
    }
}

/// One use of some bytes on a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    pub stream: StreamKey,
    pub end: UseEnd,
    /// The operation of the stream whose failure damages the bytes; `START` for none.
    pub(super) written_by: Position,
}

impl Mark {
    pub(super) const NONE: Self = Self::lossless(StreamKey::NONE, UseEnd::at(Position::START));

    /// A queued operation that writes contents: if it fails, they are damaged.
    #[inline]
    pub const fn write(stream: StreamKey, position: Position) -> Self {
        Self { stream, end: UseEnd::at(position), written_by: position }
    }

    /// A use that loses no contents if it fails: a read, or an allocation.
    #[inline]
    pub const fn lossless(stream: StreamKey, end: UseEnd) -> Self {
        Self { stream, end, written_by: Position::START }
    }

    /// A use by foreign work, which code outside this library queues. If this library's operation
    /// at `written_by` fails, the bytes are damaged.
    #[inline]
    pub fn foreign(stream: StreamKey, end: UseEnd, written_by: Position) -> Self {
        Self { stream, end: end.max(UseEnd::at(written_by)), written_by }
    }

    /// The operation of the mark's stream that damages the bytes if it fails.
    #[inline]
    pub fn written_by(&self) -> Option<Position> {
        (self.written_by != Position::START).then_some(self.written_by)
    }

    #[inline]
    pub(super) fn is_none(&self) -> bool {
        self.stream == StreamKey::NONE
    }
}
