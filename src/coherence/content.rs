//! What is known of one element of an array, and how accesses change it.

use super::place::{Holders, Place, PlaceSet};

/// A constant that fills elements; the shell keeps the values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct ConstantId(pub(crate) u32);

/// An event that lost contents; the shell keeps the story.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct LossId(pub(crate) u32);

/// Why an element has no contents.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Undefined {
    /// It was never written.
    Never,
    /// It was written, and the only copy was lost.
    Lost(LossId),
}

/// What is known of one element. "Defined, but valid nowhere" has no form here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Content {
    /// No contents.
    Undefined(Undefined),
    /// A constant, which can be produced anywhere.
    Constant {
        /// Which constant.
        value: ConstantId,
        /// Where it already stands in memory.
        filled: PlaceSet,
    },
    /// Contents that stand in memory at one place at least.
    Stored(Holders),
}

/// What a caller is going to do with a region at a place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Access {
    /// Read it.
    Read,
    /// Read it and write all of it, or any part.
    ReadWrite,
    /// Write all of it without reading.
    Overwrite,
}

impl Access {
    /// The one access that two in a row amount to, of the same region at the same place: what is
    /// needed on entry, and the effect on exit. So the accesses of a chain of launches can be
    /// summed, and the chain acquired and marked as one.
    #[must_use]
    pub(crate) const fn followed_by(self, next: Self) -> Self {
        match (self, next) {
            (Self::Read, Self::Read) => Self::Read,
            (Self::Overwrite, _) => Self::Overwrite,
            (Self::Read | Self::ReadWrite, _) => Self::ReadWrite,
        }
    }
}

impl Content {
    /// True if the element can be read in the memory of `place` as it stands.
    #[must_use]
    pub(crate) const fn is_valid(&self, place: Place) -> bool {
        match self {
            Self::Undefined(_) => false,
            Self::Constant { filled, .. } => filled.contains(place),
            Self::Stored(holders) => holders.contains(place),
        }
    }

    /// True if the element has contents, wherever they are.
    #[must_use]
    pub(crate) const fn is_defined(&self) -> bool {
        !matches!(self, Self::Undefined(_))
    }

    /// True if the contents stand at `place` and can be had nowhere else.
    #[must_use]
    pub(crate) const fn is_only_at(&self, place: Place) -> bool {
        matches!(self, Self::Stored(holders) if holders.is_only(place))
    }

    /// After `access` at `place`, with the copies of its plan made.
    #[must_use]
    #[inline]
    pub(super) fn after(self, place: Place, access: Access) -> Self {
        match access {
            Access::Read => self.after_read(place),
            Access::ReadWrite | Access::Overwrite => Self::Stored(Holders::of(place)),
        }
    }

    /// After a copy to `place`: one more holder. Nothing can be copied of what is undefined.
    fn after_read(self, place: Place) -> Self {
        match self {
            Self::Undefined(_) => self,
            Self::Constant { value, filled } => {
                Self::Constant { value, filled: filled.with(place) }
            }
            Self::Stored(holders) => Self::Stored(holders.with(place)),
        }
    }

    /// After the copy at `place` is gone: lost if it was the only one.
    #[must_use]
    pub(super) fn after_withdrawal(self, place: Place, loss: LossId) -> Self {
        match self {
            Self::Undefined(_) => self,
            Self::Constant { value, filled } => {
                Self::Constant { value, filled: filled.without(place) }
            }
            Self::Stored(holders) => {
                holders.without(place).map_or(Self::Undefined(Undefined::Lost(loss)), Self::Stored)
            }
        }
    }
}
