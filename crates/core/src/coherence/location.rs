//! Locations that can hold an array's contents, and sets of them.

use std::num::NonZeroU64;

/// An array has up to 64 slots, each for one copy of its contents. This is one of them. Slot 0 is
/// the host's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Location(u8);

impl Location {
    /// The host's memory.
    pub const HOST: Self = Self(0);

    /// The number of slots.
    pub const COUNT: usize = 64;

    /// The location in slot `index`, if there is such a slot.
    #[must_use]
    #[inline]
    pub const fn slot(index: usize) -> Option<Self> {
        if index < Self::COUNT { Some(Self(index as u8)) } else { None }
    }

    /// The number of the slot.
    #[must_use]
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The bit of this location in a set.
    const fn bit(self) -> u64 {
        1 << self.0
    }
}

/// A set of locations.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct LocationSet(u64);

impl LocationSet {
    /// All locations.
    pub const ALL: Self = Self(u64::MAX);

    /// No location.
    #[must_use]
    #[inline]
    pub const fn empty() -> Self {
        Self(0)
    }

    /// One location.
    #[must_use]
    #[inline]
    pub const fn of(location: Location) -> Self {
        Self(location.bit())
    }

    /// Whether `location` is in the set.
    #[must_use]
    #[inline]
    pub const fn contains(self, location: Location) -> bool {
        self.0 & location.bit() != 0
    }

    /// The set with `location`.
    #[must_use]
    #[inline]
    pub const fn with(self, location: Location) -> Self {
        Self(self.0 | location.bit())
    }

    /// The set without `location`.
    #[must_use]
    #[inline]
    pub const fn without(self, location: Location) -> Self {
        Self(self.0 & !location.bit())
    }

    /// The locations in both sets.
    #[must_use]
    #[inline]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The locations in either set.
    #[must_use]
    #[inline]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The number of locations.
    #[must_use]
    #[inline]
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether there is no location.
    #[must_use]
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The locations in the order of their slots.
    pub fn iter(self) -> impl Iterator<Item = Location> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let location = Location(rest.trailing_zeros() as u8);
            let found = rest != 0;
            rest &= rest.wrapping_sub(1);
            found.then_some(location)
        })
    }
}

/// The locations where an element is valid; never empty.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Holders(NonZeroU64);

impl Holders {
    /// One holder.
    #[must_use]
    #[inline]
    pub const fn of(location: Location) -> Self {
        // The bit of a location is never zero, so the second case never occurs.
        Self(match NonZeroU64::new(location.bit()) {
            Some(bits) => bits,
            None => NonZeroU64::MIN,
        })
    }

    /// These locations as holders; `None` if there are no locations.
    #[must_use]
    #[inline]
    pub fn from_locations(locations: LocationSet) -> Option<Self> {
        NonZeroU64::new(locations.0).map(Self)
    }

    /// The holders as a set of locations.
    #[must_use]
    #[inline]
    pub const fn locations(self) -> LocationSet {
        LocationSet(self.0.get())
    }

    /// Whether `location` is a holder.
    #[must_use]
    #[inline]
    pub const fn contains(self, location: Location) -> bool {
        self.locations().contains(location)
    }

    /// Whether `location` is the only holder.
    #[must_use]
    #[inline]
    pub const fn is_only(self, location: Location) -> bool {
        self.0.get() == location.bit()
    }

    /// The holders with `location`.
    #[must_use]
    #[inline]
    pub fn with(self, location: Location) -> Self {
        Self(self.0 | location.bit())
    }

    /// The holders without `location`; `None` if it was the only one.
    #[must_use]
    #[inline]
    pub fn without(self, location: Location) -> Option<Self> {
        Self::from_locations(self.locations().without(location))
    }

    /// The number of holders, at least one.
    #[must_use]
    #[inline]
    pub const fn count(self) -> usize {
        self.locations().len()
    }

    /// The holder in the lowest slot.
    #[must_use]
    #[inline]
    pub const fn first(self) -> Location {
        Location(self.0.trailing_zeros() as u8)
    }

    /// The holder with the lowest cost; of equal ones, the one in the lowest slot.
    #[must_use]
    pub fn cheapest(self, cost: impl Fn(Location) -> u32) -> Location {
        if self.count() == 1 {
            return self.first();
        }
        self.locations().iter().min_by_key(|location| cost(*location)).unwrap_or(self.first())
    }
}
