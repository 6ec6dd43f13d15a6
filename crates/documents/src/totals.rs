//! Totals: of copies and of waits.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// Copies of one direction: how many, and how many bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Flow {
    /// The number of planned copies: one per array, source, destination and request, regardless of
    /// the number of parts and driver calls.
    pub count: u64,
    /// The exact number of bytes.
    pub bytes: u64,
}

impl Flow {
    /// One copy of so many bytes.
    #[doc(hidden)]
    #[inline]
    #[must_use]
    pub const fn of(bytes: u64) -> Self {
        Self { count: 1, bytes }
    }
}

impl AddAssign for Flow {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.bytes += other.bytes;
    }
}

impl Add for Flow {
    type Output = Self;

    #[inline]
    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

/// The difference of each number; 0 if the number of `other` is larger.
impl Sub for Flow {
    type Output = Self;

    #[inline]
    fn sub(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_sub(other.count),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

/// `4_000 bytes in 1 copy`.
impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let copies = if self.count == 1 { "copy" } else { "copies" };
        write!(f, "{} bytes in {} {copies}", grouped(self.bytes), grouped(self.count))
    }
}

/// Waits of threads for devices: how many, and how long they took together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Waits {
    /// The number of waits.
    pub count: u64,
    /// Their time.
    pub nanoseconds: u64,
}

/// The decimal digits in groups of three: `12_345_678`.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push('_');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::{Flow, grouped};

    #[test]
    fn flows_add_up_and_are_never_less_than_nothing() {
        let (one, other) = (Flow { count: 2, bytes: 30 }, Flow { count: 5, bytes: 700 });
        assert_eq!(one + other, Flow { count: 7, bytes: 730 });
        assert_eq!(other - one, Flow { count: 3, bytes: 670 });
        assert_eq!(one - other, Flow::default());
        let mut sum = one;
        sum += Flow::of(4);
        assert_eq!(sum, Flow { count: 3, bytes: 34 });
        assert_eq!(Flow::of(4000).to_string(), "4_000 bytes in 1 copy");
        assert_eq!(one.to_string(), "30 bytes in 2 copies");
        let many = Flow { count: 61_538, bytes: 40_000_000 };
        assert_eq!(many.to_string(), "40_000_000 bytes in 61_538 copies");
    }

    #[test]
    fn digits_come_in_threes() {
        assert_eq!(
            ["0", "999", "1_000", "12_345_678"],
            [0, 999, 1000, 12_345_678].map(grouped).each_ref().map(String::as_str)
        );
    }
}
