//! Elements, records of them, and the effect of the kernels on them.

use std::fmt::{self, Debug, Formatter};

use resident::Element;
use resident::bytemuck::{Pod, Zeroable};

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

const LARGE_WORDS: usize = 1024;

/// An element as large as a page of memory.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Zeroable)]
#[bytemuck(crate = "resident::bytemuck")]
pub(super) struct Large([u32; LARGE_WORDS]);

// SAFETY: an array of numbers has no padding.
unsafe impl Pod for Large {}

impl Value for Large {
    /// Words that differ, but for 0, which new arrays have.
    fn of(number: u32) -> Self {
        let mut words = [number; LARGE_WORDS];
        for (word, odd) in words.iter_mut().zip((1..).step_by(2)) {
            *word = word.wrapping_mul(odd);
        }
        Self(words)
    }

    fn number(self) -> u32 {
        self.0[0]
    }
}

/// The number, and whether the element is made of it.
impl Debug for Large {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let number = self.0[0];
        if *self == Self::of(number) { write!(f, "{number}") } else { write!(f, "{number} torn") }
    }
}

/// A record of two elements.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Debug, Zeroable)]
#[bytemuck(crate = "resident::bytemuck")]
pub(super) struct Pair<T> {
    pub(super) one: T,
    pub(super) two: T,
}

/// The number of fields of a record.
pub(super) const FIELDS: usize = 2;

// SAFETY: two fields of one type have no padding between or behind them.
unsafe impl<T: Pod> Pod for Pair<T> {}

impl<T: Value> Pair<T> {
    /// The record at a position of an array that counts from a number.
    pub(super) fn counted(from: u32, position: u32) -> Self {
        let first = from.wrapping_add(FIELDS as u32 * position);
        Self { one: T::of(first), two: T::of(first.wrapping_add(1)) }
    }

    pub(super) fn fields(self) -> [T; FIELDS] {
        [self.one, self.two]
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
