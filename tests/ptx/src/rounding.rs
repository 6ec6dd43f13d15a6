//! Numbers with a fraction: rounding to a format, in each direction.
//!
//! A value that is not exact is kept as a double whose last bit is set (rounded to odd), so that
//! the rounding to a narrower format is as if it were the only one.

use crate::words::{Rounding, Type};

/// The nearest double to an exact value, and the exact value less this.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Approximation {
    pub(crate) nearest: f64,
    pub(crate) error: f64,
}

impl Approximation {
    pub(crate) fn exact(value: f64) -> Self {
        Self { nearest: value, error: 0.0 }
    }

    pub(crate) fn sum(a: f64, b: f64) -> Self {
        let sum = a + b;
        let of_b = sum - a;
        let error = (a - (sum - of_b)) + (b - of_b);
        Self { nearest: sum, error: if error.is_finite() { error } else { 0.0 } }
    }

    pub(crate) fn product(a: f64, b: f64) -> Self {
        let product = a * b;
        Self::with_rest(product, a.mul_add(b, -product))
    }

    pub(crate) fn quotient(a: f64, b: f64) -> Self {
        let quotient = a / b;
        let rest = (-quotient).mul_add(b, a);
        Self::with_rest(quotient, if b < 0.0 { -rest } else { rest })
    }

    pub(crate) fn root(a: f64) -> Self {
        let root = a.sqrt();
        Self::with_rest(root, (-root).mul_add(root, a))
    }

    /// `a * b + c` of doubles, by Boldo and Muller's algorithm.
    pub(crate) fn fused(a: f64, b: f64, c: f64) -> Self {
        let nearest = a.mul_add(b, c);
        let product = Self::product(a, b);
        let low = Self::sum(c, product.error);
        let high = Self::sum(product.nearest, low.nearest);
        let middle = (high.nearest - nearest) + high.error;
        Self::with_rest(nearest, middle + low.error)
    }

    /// A result whose error has the sign of `rest`.
    fn with_rest(nearest: f64, rest: f64) -> Self {
        Self { nearest, error: if rest.is_finite() { rest } else { 0.0 } }
    }

    /// Rounded to odd.
    pub(crate) fn odd(self) -> f64 {
        let Self { nearest, error } = self;
        let bits = nearest.to_bits();
        if error == 0.0 || !nearest.is_finite() || bits & 1 == 1 {
            nearest
        } else if (error > 0.0) == (nearest > 0.0) {
            f64::from_bits(bits + 1)
        } else {
            f64::from_bits(bits - 1)
        }
    }

    /// As a double, rounded in a direction.
    pub(crate) fn rounded(self, rounding: Rounding) -> f64 {
        let Self { nearest, error } = self;
        match rounding {
            Rounding::Up if error > 0.0 => nearest.next_up(),
            Rounding::Down if error < 0.0 => nearest.next_down(),
            Rounding::Zero if error < 0.0 && nearest > 0.0 => nearest.next_down(),
            Rounding::Zero if error > 0.0 && nearest < 0.0 => nearest.next_up(),
            _ => nearest,
        }
    }
}

/// A format with less bits than a double.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Format {
    exponent_bits: u32,
    fraction_bits: u32,
    nan: u64,
}

const F16: Format = Format { exponent_bits: 5, fraction_bits: 10, nan: 0x7fff };
const BF16: Format = Format { exponent_bits: 8, fraction_bits: 7, nan: 0x7fff };
const F32: Format = Format { exponent_bits: 8, fraction_bits: 23, nan: 0x7fff_ffff };

/// The bits of the only NaN that instructions make of doubles.
pub(crate) const NAN_F64: u64 = 0x7ff8_0000_0000_0000;

impl Format {
    pub(crate) fn of(ty: Type) -> Option<Self> {
        match ty {
            Type::F16 | Type::F16x2 => Some(F16),
            Type::Bf16 | Type::Bf16x2 => Some(BF16),
            Type::F32 => Some(F32),
            _ => None,
        }
    }

    /// The value of bits, which is exact.
    pub(crate) fn value(self, bits: u64) -> f64 {
        let fraction = bits & ((1 << self.fraction_bits) - 1);
        let exponent = bits >> self.fraction_bits & self.exponent_max();
        let lowest = self.lowest_exponent();
        let size = match exponent {
            0 => fraction as f64 * power_of_two(lowest),
            _ if exponent == self.exponent_max() && fraction == 0 => f64::INFINITY,
            _ if exponent == self.exponent_max() => f64::NAN,
            _ => {
                let whole = fraction | 1 << self.fraction_bits;
                whole as f64 * power_of_two(lowest + exponent as i32 - 1)
            }
        };
        let is_negative = bits >> (self.exponent_bits + self.fraction_bits) & 1 == 1;
        if is_negative { -size } else { size }
    }

    /// The bits of a value, rounded.
    pub(crate) fn bits(self, value: f64, rounding: Rounding) -> u64 {
        let sign = u64::from(value.is_sign_negative());
        let sign = sign << (self.exponent_bits + self.fraction_bits);
        let infinite = self.exponent_max() << self.fraction_bits;
        if value.is_nan() {
            return self.nan;
        }
        if value.is_infinite() {
            return sign | infinite;
        }
        let (whole, exponent) = parts(value);
        let precision = self.fraction_bits as i32 + 1;
        let lowest = self.lowest_exponent();
        let dropped = (64 - whole.leading_zeros() as i32 - precision).max(lowest - exponent);
        let (kept, exponent) = (round(whole, dropped, sign != 0, rounding), exponent + dropped);
        let above = (exponent - lowest) as u64;
        // If the whole number became one bit longer, that is the next exponent.
        let bits = if kept >> self.fraction_bits == 0 {
            kept
        } else {
            kept + (above << self.fraction_bits)
        };
        let is_away = match rounding {
            Rounding::Nearest => true,
            Rounding::Zero => false,
            Rounding::Down => sign != 0,
            Rounding::Up => sign == 0,
        };
        let largest = if is_away { infinite } else { infinite - 1 };
        sign | bits.min(largest)
    }

    fn exponent_max(self) -> u64 {
        (1 << self.exponent_bits) - 1
    }

    /// The exponent of the last bit of the smallest numbers.
    fn lowest_exponent(self) -> i32 {
        2 - (1 << (self.exponent_bits - 1)) - self.fraction_bits as i32
    }
}

/// A finite size as a whole number, and a power of two.
fn parts(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    let (fraction, exponent) = (bits & ((1 << 52) - 1), (bits >> 52 & 0x7ff) as i32);
    if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) }
}

/// A whole number without its last bits, or with zeros behind it if their number is negative.
fn round(whole: u64, dropped: i32, is_negative: bool, rounding: Rounding) -> u64 {
    if dropped <= 0 {
        return whole << -dropped;
    }
    let (kept, rest, half) = match dropped {
        1..=63 => (whole >> dropped, whole & ((1 << dropped) - 1), 1_u64 << (dropped - 1)),
        _ => (0, whole.min(1), 2),
    };
    let is_more = match rounding {
        Rounding::Nearest => rest > half || (rest == half && kept & 1 == 1),
        Rounding::Zero => false,
        Rounding::Down => is_negative && rest > 0,
        Rounding::Up => !is_negative && rest > 0,
    };
    kept + u64::from(is_more)
}

fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::{Approximation, BF16, F16, F32};
    use crate::words::Rounding::{Down, Nearest, Up, Zero};

    #[test]
    fn all_numbers_of_two_bytes_come_back() {
        for bits in 0..=u64::from(u16::MAX) {
            for format in [F16, BF16] {
                let value = format.value(bits);
                let expected = if value.is_nan() { format.nan } else { bits };
                assert_eq!(format.bits(value, Nearest), expected, "{bits:#x}");
            }
        }
    }

    #[test]
    fn floats_are_rounded_as_the_machine_does() {
        let mut bits = 1_u64;
        for _ in 0..100_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let value = f64::from_bits(bits ^ (bits >> 7 & 0x3000_0000_0000_0000));
            if value.is_nan() {
                continue;
            }
            let float = value as f32;
            assert_eq!(F32.bits(value, Nearest), u64::from(float.to_bits()), "{value:e}");
            let below = f32::from_bits(F32.bits(value, Down) as u32);
            let above = f32::from_bits(F32.bits(value, Up) as u32);
            let inner = f32::from_bits(F32.bits(value, Zero) as u32);
            assert!(f64::from(below) <= value && value <= f64::from(above), "{value:e}");
            assert!(float == below || float == above, "{value:e}");
            assert!(f64::from(inner).abs() <= value.abs(), "{value:e}");
            assert!(inner == below || inner == above);
        }
    }

    #[test]
    fn halves_round_to_even_and_beyond_the_largest() {
        for (value, expected) in [
            (1.0 + 1.0 / 2048.0, 0x3c00),
            (1.0 + 3.0 / 2048.0, 0x3c02),
            (65519.0, 0x7bff),
            (65520.0, 0x7c00),
            (-1e300, 0xfc00),
            (2f64.powi(-25), 0),
            (2f64.powi(-25) * 1.001, 1),
            (-0.0, 0x8000),
        ] {
            assert_eq!(F16.bits(value, Nearest), expected, "{value:e}");
        }
        assert_eq!(F16.bits(1e300, Zero), 0x7bff);
        assert_eq!(F16.bits(1e-300, Up), 1);
        assert_eq!(F16.bits(-1e-300, Down), 0x8001);
    }

    #[test]
    fn sums_products_quotients_and_roots_are_rounded_in_each_direction() {
        let third = Approximation::quotient(1.0, 3.0);
        assert_eq!(third.rounded(Up), third.rounded(Down).next_up());
        assert_eq!(third.rounded(Zero), third.rounded(Down));
        let negative = Approximation::quotient(1.0, -3.0);
        assert_eq!(negative.rounded(Zero), negative.rounded(Up));
        assert_eq!(Approximation::quotient(1.0, 4.0).rounded(Up), 0.25);
        let tiny = Approximation::sum(1.0, 1e-30);
        assert_eq!((tiny.rounded(Up), tiny.rounded(Down)), (1f64.next_up(), 1.0));
        let root = Approximation::root(2.0);
        assert_eq!(root.rounded(Up), root.rounded(Down).next_up());
        let product = Approximation::product(0.1, 0.1);
        assert_eq!(product.rounded(Up), product.rounded(Down).next_up());
        let fused = Approximation::fused(1.0, 1.0, 1e-30);
        assert_eq!((fused.rounded(Up), fused.rounded(Zero)), (1f64.next_up(), 1.0));
        assert_eq!(Approximation::sum(1.0, 1e-30).odd(), 1f64.next_up());
    }
}
