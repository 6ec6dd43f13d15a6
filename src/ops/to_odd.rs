//! Numbers as `f32` on their way to types with fewer digits.

/// A number as an `f32` whose last bit is set if digits were dropped: it is rounded to odd.
/// Rounding that to the nearest of a type with fewer digits gives the nearest of the number itself,
/// which rounding to the nearest twice does not. `half.cu` computes the same.
pub(super) trait ToOdd {
    fn to_odd(self) -> f32;
}

impl ToOdd for f64 {
    #[inline]
    fn to_odd(self) -> f32 {
        let near = self as f32;
        let back = Self::from(near);
        if back == self || self.is_nan() {
            return near;
        }
        let is_beyond = back.abs() > self.abs();
        f32::from_bits((near.to_bits() - u32::from(is_beyond)) | 1)
    }
}

impl ToOdd for u64 {
    #[inline]
    fn to_odd(self) -> f32 {
        /// What an `f64`, which has 53 bits, drops of the largest numbers.
        const DROPPED: u64 = 0x7ff;
        if self >> 53 == 0 || self & DROPPED == 0 {
            return (self as f64).to_odd();
        }
        (((self | (DROPPED + 1)) & !DROPPED) as f64).to_odd()
    }
}

impl ToOdd for i64 {
    #[inline]
    fn to_odd(self) -> f32 {
        let magnitude = self.unsigned_abs().to_odd();
        if self < 0 { -magnitude } else { magnitude }
    }
}

/// Numbers of which an `f64` has all.
macro_rules! through_f64 {
    ($($number:ty),+) => {
        $(impl ToOdd for $number {
            #[inline]
            fn to_odd(self) -> f32 {
                f64::from(self).to_odd()
            }
        })+
    };
}

through_f64!(i32, u32);

/// Numbers of which an `f32` has all.
macro_rules! exact {
    ($($number:ty),+) => {
        $(impl ToOdd for $number {
            #[inline]
            fn to_odd(self) -> f32 {
                f32::from(self)
            }
        })+
    };
}

exact!(f32, u8);
