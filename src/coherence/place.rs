//! Places that can hold an array's contents, and sets of them.

use std::num::NonZeroU64;

/// A slot within one array, 0 to 63: where a copy of its contents may be. Slot 0 is the host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Place(u8);

impl Place {
    /// The host's memory.
    pub(crate) const HOST: Self = Self(0);

    /// The number of slots.
    pub(crate) const COUNT: usize = 64;

    /// The place in slot `index`, if there is such a slot.
    #[must_use]
    pub(crate) const fn slot(index: usize) -> Option<Self> {
        if index < Self::COUNT { Some(Self(index as u8)) } else { None }
    }

    /// The number of the slot.
    #[must_use]
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    /// The bit of this place in a set.
    const fn bit(self) -> u64 {
        1 << self.0
    }
}

/// A set of places.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct PlaceSet(u64);

impl PlaceSet {
    /// No place.
    #[must_use]
    pub(crate) const fn empty() -> Self {
        Self(0)
    }

    /// One place.
    #[must_use]
    pub(crate) const fn of(place: Place) -> Self {
        Self(place.bit())
    }

    /// True if `place` is in the set.
    #[must_use]
    pub(crate) const fn contains(self, place: Place) -> bool {
        self.0 & place.bit() != 0
    }

    /// The set with `place`.
    #[must_use]
    pub(crate) const fn with(self, place: Place) -> Self {
        Self(self.0 | place.bit())
    }

    /// The set without `place`.
    #[must_use]
    pub(crate) const fn without(self, place: Place) -> Self {
        Self(self.0 & !place.bit())
    }

    /// The number of places.
    #[must_use]
    pub(crate) const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// True if there is no place.
    #[must_use]
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The places in the order of their slots.
    pub(crate) fn iter(self) -> impl Iterator<Item = Place> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let place = Place(rest.trailing_zeros() as u8);
            let found = rest != 0;
            rest &= rest.wrapping_sub(1);
            found.then_some(place)
        })
    }
}

/// The places where an element is valid: a set of places that is never empty.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Holders(NonZeroU64);

impl Holders {
    /// One holder.
    #[must_use]
    pub(crate) const fn of(place: Place) -> Self {
        // The bit of a place is never zero; MIN, which is slot 0, only stands for a case that does
        // not arise.
        Self(match NonZeroU64::new(place.bit()) {
            Some(bits) => bits,
            None => NonZeroU64::MIN,
        })
    }

    /// These places as holders, unless there is none.
    #[must_use]
    pub(crate) fn from_places(places: PlaceSet) -> Option<Self> {
        NonZeroU64::new(places.0).map(Self)
    }

    /// The holders as a set of places.
    #[must_use]
    pub(crate) const fn places(self) -> PlaceSet {
        PlaceSet(self.0.get())
    }

    /// True if `place` is a holder.
    #[must_use]
    pub(crate) const fn contains(self, place: Place) -> bool {
        self.places().contains(place)
    }

    /// True if `place` is a holder and no other is.
    #[must_use]
    pub(crate) const fn is_only(self, place: Place) -> bool {
        self.0.get() == place.bit()
    }

    /// The holders with `place`.
    #[must_use]
    pub(crate) fn with(self, place: Place) -> Self {
        Self(self.0 | place.bit())
    }

    /// The holders without `place`, unless it was the only one.
    #[must_use]
    pub(crate) fn without(self, place: Place) -> Option<Self> {
        Self::from_places(self.places().without(place))
    }

    /// The number of holders, at least one.
    #[must_use]
    pub(crate) const fn count(self) -> usize {
        self.places().len()
    }

    /// The holder in the lowest slot.
    #[must_use]
    pub(crate) const fn first(self) -> Place {
        Place(self.0.trailing_zeros() as u8)
    }

    /// The holder of the least cost; of equal ones that in the lowest slot.
    #[must_use]
    pub(crate) fn nearest(self, cost: impl Fn(Place) -> u32) -> Place {
        if self.count() == 1 {
            return self.first();
        }
        self.places().iter().min_by_key(|place| cost(*place)).unwrap_or(self.first())
    }
}
