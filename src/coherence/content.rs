//! What is known of one element of an array, and how accesses change it.

use super::location::{Holders, Location, LocationSet};
use crate::access::Access;

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
        filled: LocationSet,
    },
    /// Contents that stand in memory at one location at least.
    Stored(Holders),
}

impl Content {
    /// True if the element can be read in the memory of `location` as it stands.
    #[must_use]
    pub(crate) const fn is_valid(&self, location: Location) -> bool {
        match self {
            Self::Undefined(_) => false,
            Self::Constant { filled, .. } => filled.contains(location),
            Self::Stored(holders) => holders.contains(location),
        }
    }

    /// True if the element has contents, wherever they are.
    #[must_use]
    pub(crate) const fn is_defined(&self) -> bool {
        !matches!(self, Self::Undefined(_))
    }

    /// True if the contents stand at `location` and can be had nowhere else.
    #[must_use]
    pub(crate) const fn is_only_at(&self, location: Location) -> bool {
        matches!(self, Self::Stored(holders) if holders.is_only(location))
    }

    /// After `access` at `location`, with the copies of its plan made.
    #[must_use]
    #[inline]
    pub(super) fn after(self, location: Location, access: Access) -> Self {
        match access {
            Access::Read => self.after_read(location),
            Access::ReadWrite | Access::Overwrite => Self::Stored(Holders::of(location)),
        }
    }

    /// After a copy to `location`: one more holder. Nothing can be copied of what is undefined.
    fn after_read(self, location: Location) -> Self {
        match self {
            Self::Undefined(_) => self,
            Self::Constant { value, filled } => {
                Self::Constant { value, filled: filled.with(location) }
            }
            Self::Stored(holders) => Self::Stored(holders.with(location)),
        }
    }

    /// After the copy at `location` is gone: lost if it was the only one.
    #[must_use]
    pub(super) fn after_withdrawal(self, location: Location, loss: LossId) -> Self {
        match self {
            Self::Undefined(_) => self,
            Self::Constant { value, filled } => {
                Self::Constant { value, filled: filled.without(location) }
            }
            Self::Stored(holders) => holders
                .without(location)
                .map_or(Self::Undefined(Undefined::Lost(loss)), Self::Stored),
        }
    }
}
