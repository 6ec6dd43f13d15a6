//! Elements, and what kernels make of them.

use std::fmt::Debug;

use resident::Element;

/// An element that numbers can be put into.
pub(super) trait Value: Element + PartialEq + Debug {
    /// As much of the number as there is room for.
    fn of(number: u32) -> Self;

    fn number(self) -> u32;

    /// What `mix` makes of it.
    fn mixed(self, number: u32) -> Self {
        Self::of(self.number().wrapping_mul(31).wrapping_add(number))
    }
}

impl Value for u32 {
    fn of(number: u32) -> Self {
        number
    }

    fn number(self) -> u32 {
        self
    }
}

impl Value for [u8; 3] {
    fn of(number: u32) -> Self {
        let [low, middle, high, _] = number.to_le_bytes();
        [low, middle, high]
    }

    fn number(self) -> u32 {
        u32::from_le_bytes([self[0], self[1], self[2], 0])
    }
}

/// What `combine` makes of three elements.
pub(super) fn combined<T: Value>(x: T, y: T, z: T) -> T {
    T::of(
        x.number()
            .wrapping_mul(3)
            .wrapping_add(y.number().wrapping_mul(5))
            .wrapping_add(z.number().wrapping_mul(7)),
    )
}

/// Consecutive elements.
pub(super) fn counting<T: Value>(from: u32) -> impl Iterator<Item = T> {
    (from..).map(T::of)
}
