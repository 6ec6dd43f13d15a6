//! The state of one element of an array, and how accesses change it.

use super::location::{Holders, Location, LocationSet};
use crate::Access;

/// A constant that elements were filled with. The caller stores the values.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConstantId(pub u32);

/// A failure by which contents were lost. The caller stores its description.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LossId(pub u32);

/// Why an element has no contents.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Undefined {
    /// The element was never written.
    Never,
    /// The element was written, and its only copy was lost.
    Lost(LossId),
}

/// The state of one element. The type cannot express "defined, but valid nowhere".
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Content {
    /// No contents.
    Undefined(Undefined),
    /// A constant, with which every location can fill its own memory.
    Constant {
        /// Which constant.
        value: ConstantId,
        /// The locations whose memory is already filled with the constant.
        filled: LocationSet,
    },
    /// Contents in the memory of at least one location.
    Stored(Holders),
}

impl Content {
    /// Whether the element can be read from the memory of `location` without a copy.
    #[must_use]
    #[inline]
    pub const fn is_valid(&self, location: Location) -> bool {
        match self {
            Self::Undefined(_) => false,
            Self::Constant { filled, .. } => filled.contains(location),
            Self::Stored(holders) => holders.contains(location),
        }
    }

    /// Whether `location` is the only source of the contents.
    #[must_use]
    #[inline]
    pub const fn is_only_at(&self, location: Location) -> bool {
        matches!(self, Self::Stored(holders) if holders.is_only(location))
    }

    /// The content after `access` at `location`, once the copies of its plan are queued.
    #[must_use]
    #[inline]
    pub(super) fn after(self, location: Location, access: Access) -> Self {
        match access {
            Access::Read => self.after_read(location),
            Access::ReadWrite | Access::Overwrite => Self::Stored(Holders::of(location)),
        }
    }

    /// The content after a copy to `location`, which adds a holder. Undefined elements are not
    /// copied.
    fn after_read(self, location: Location) -> Self {
        match self {
            Self::Undefined(_) => self,
            Self::Constant { value, filled } => {
                Self::Constant { value, filled: filled.with(location) }
            }
            Self::Stored(holders) => Self::Stored(holders.with(location)),
        }
    }

    /// The content after the memory of one location has become that of another, which had none.
    #[must_use]
    pub(super) fn after_move(self, from: Location, to: Location) -> Self {
        let moved = |locations: LocationSet| {
            if locations.contains(from) { locations.without(from).with(to) } else { locations }
        };
        match self {
            Self::Undefined(_) => self,
            Self::Constant { value, filled } => Self::Constant { value, filled: moved(filled) },
            Self::Stored(holders) => {
                Holders::from_locations(moved(holders.locations())).map_or(self, Self::Stored)
            }
        }
    }

    /// The content after the copy at `location` became unusable: lost if it was the only copy.
    #[must_use]
    pub(super) fn after_invalidation(self, location: Location, loss: LossId) -> Self {
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
