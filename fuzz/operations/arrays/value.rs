//! Elements, and the effect of the kernels on them.

use std::fmt::Debug;

use resident::Element;

/// An element type that can store numbers.
pub(super) trait Value: Element + PartialEq + Debug {
    /// An element made of the number's low bytes.
    fn of(number: u32) -> Self;

    fn number(self) -> u32;

    /// The result of `mix` for the element.
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

/// The result of `combine` for three elements.
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
