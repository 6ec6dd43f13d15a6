//! The types of two bytes: arithmetic and casts, and that they are moved bit by bit.

use std::fmt::Debug;

use half::{bf16, f16};
use resident::ops::{self, Arithmetic};
use resident::{Result, SmartArray};

use crate::devices;

/// All values of a type of two bytes.
fn all<T>(from_bits: fn(u16) -> T) -> Vec<T> {
    (0..=u16::MAX).map(from_bits).collect()
}

/// The same bits, or both NaN.
fn same(one: impl Into<f64> + Copy, other: impl Into<f64> + Copy) -> bool {
    let (one, other) = (one.into(), other.into());
    one.to_bits() == other.to_bits() || (one.is_nan() && other.is_nan())
}

/// Casts all values to `f32` and back, and floats between them and around the ends.
pub(crate) fn casts<T: Arithmetic + Into<f64>>(
    from_bits: fn(u16) -> T,
    nearest: fn(f32) -> T,
) -> Result<()> {
    let values = all(from_bits);
    let mut wide = SmartArray::<f32, _>::uninit(values.len());
    ops::cast(&SmartArray::from(values.clone()), &mut wide)?;
    let wide = wide.to_vec()?;
    assert!(values.iter().zip(&wide).all(|(value, wide)| same(*value, *wide)));
    let mut floats: Vec<f32> = wide.iter().flat_map(|x| [*x, x * 1.000_2, x * 0.999_7]).collect();
    floats.extend(wide.windows(2).map(|pair| pair[0] + (pair[1] - pair[0]) / 2.0));
    floats.extend([65_519.9, 65_520.0, 3e38, f32::MAX, f32::MIN_POSITIVE, 1e-45, -1e-8]);
    let mut narrow = SmartArray::<T, _>::uninit(floats.len());
    ops::cast(&SmartArray::from(floats.clone()), &mut narrow)?;
    for (float, narrow) in floats.iter().zip(narrow.to_vec()?) {
        assert!(same(narrow, nearest(*float)), "{float}");
    }
    let mut integers = SmartArray::<u8, _>::uninit(values.len());
    ops::cast(&SmartArray::from(values), &mut integers)?;
    assert!(wide.iter().zip(integers.to_vec()?).all(|(wide, byte)| *wide as u8 == byte));
    Ok(())
}

/// Sums and products of pairs are rounded once.
pub(crate) fn arithmetic<T: Arithmetic + Into<f64>>(
    from_bits: fn(u16) -> T,
    nearest: fn(f32) -> T,
) -> Result<()> {
    let a = all(from_bits);
    let b: Vec<T> = (0..=u16::MAX).map(|bits| from_bits(bits.wrapping_mul(40_503) ^ 77)).collect();
    let (ours_a, ours_b) = (SmartArray::from(a.clone()), SmartArray::from(b.clone()));
    let float = |value: T| value.into() as f32;
    let mut out = SmartArray::<T, _>::uninit(a.len());
    ops::add(&ours_a, &ours_b, &mut out)?;
    let check = |found: Vec<T>, expected: &dyn Fn(f32, f32) -> f32| {
        let pairs = a.iter().zip(&b).zip(found);
        for ((a, b), found) in pairs {
            let (a, b) = (float(*a), float(*b));
            assert!(same(found, nearest(expected(a, b))), "{a} and {b}");
        }
    };
    check(out.to_vec()?, &|a, b| a + b);
    ops::div(&ours_a, &ours_b, &mut out)?;
    check(out.to_vec()?, &|a, b| a / b);
    ops::copy(&ours_b, &mut out)?;
    ops::scaled_add(from_bits(0x4200), &ours_a, &mut out)?;
    let factor = float(from_bits(0x4200));
    check(out.to_vec()?, &|a, b| b + factor * a);
    Ok(())
}

#[test]
fn casts_are_to_the_nearest() -> Result<()> {
    for (_, _here) in devices() {
        casts(f16::from_bits, f16::from_f32)?;
        casts(bf16::from_bits, bf16::from_f32)?;
    }
    Ok(())
}

/// How a type of two bytes divides its bits.
#[derive(Clone, Copy)]
pub(crate) struct Format {
    /// The digits of a normal number, with the first, which is not stored.
    digits: u32,
    /// The exponent of the smallest normal number.
    exponent_min: i32,
    infinity: u16,
}

pub(crate) const F16: Format = Format { digits: 11, exponent_min: -14, infinity: 0x7c00 };
pub(crate) const BF16: Format = Format { digits: 8, exponent_min: -126, infinity: 0x7f80 };

impl Format {
    /// The bits of the value that is nearest to `whole * 2^exponent`, the even one of two, computed
    /// with integers.
    pub(crate) fn nearest(self, is_negative: bool, whole: u64, exponent: i32) -> u16 {
        let sign = u16::from(is_negative) << 15;
        if whole == 0 {
            return sign;
        }
        let leading = exponent + whole.ilog2() as i32;
        // What the last digit stands for is a power of 2.
        let last = leading.max(self.exponent_min) - (self.digits as i32 - 1);
        let dropped = last - exponent;
        let rounded = match u32::try_from(dropped) {
            Err(_) => whole << -dropped,
            // All digits stand for less than a half of the last one.
            Ok(dropped) if dropped > 64 => 0,
            Ok(dropped) => {
                let (whole, unit) = (u128::from(whole), 1_u128 << dropped);
                let (kept, rest) = (whole / unit, whole % unit);
                let is_up = 2 * rest > unit || (2 * rest == unit && kept % 2 == 1);
                (kept + u128::from(is_up)) as u64
            }
        };
        let above = u64::from(leading.max(self.exponent_min).abs_diff(self.exponent_min));
        let bits = (above << (self.digits - 1)) + rounded;
        sign | u16::try_from(bits).map_or(self.infinity, |bits| bits.min(self.infinity))
    }

    pub(crate) fn nearest_to_float(self, x: f64) -> u16 {
        let (bits, is_negative) = (x.to_bits(), x.is_sign_negative());
        let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
        match exponent {
            0x7ff => u16::from(is_negative) << 15 | self.infinity,
            0 => self.nearest(is_negative, fraction, -1074),
            _ => self.nearest(is_negative, fraction | 1 << 52, exponent - 1075),
        }
    }

    /// The value of finite bits, and of those of infinity what would follow the largest.
    fn value(self, bits: u16) -> f64 {
        let stored = u32::from(bits) >> (self.digits - 1);
        let fraction = f64::from(u32::from(bits) & ((1 << (self.digits - 1)) - 1));
        let first = f64::from(u32::from(stored > 0) << (self.digits - 1));
        let last = stored.max(1) as i32 - 1 + self.exponent_min - (self.digits as i32 - 1);
        (first + fraction) * 2_f64.powi(last)
    }

    /// Each value, the middle to the next, the neighbours of both, and what is beyond.
    pub(crate) fn floats(self) -> Vec<f64> {
        let middle = |bits: u16| f64::midpoint(self.value(bits), self.value(bits + 1));
        let marks = (0..self.infinity).flat_map(|bits| [self.value(bits), middle(bits)]);
        let ends = [f64::MIN_POSITIVE, 1e-46, 1e-40, 1e38, 3.4028235e38, 3.402_823_6e38, 1e308];
        let ends = ends.into_iter().chain([f64::INFINITY]);
        let near = |x: f64| [x, x.next_up(), x.next_down()];
        let positive = marks.chain(ends).flat_map(near).filter(|x| !x.is_nan());
        positive.flat_map(|x| [x, -x]).collect()
    }
}

/// Casts to a type of two bytes; NaN is every bit pattern above infinity.
fn check_casts<N: Arithmetic + Debug, T: Arithmetic>(
    numbers: &[N],
    to_bits: fn(T) -> u16,
    nearest: impl Fn(N) -> u16,
) -> Result<()> {
    let mut out = SmartArray::<T, _>::uninit(numbers.len());
    ops::cast(&SmartArray::from(numbers.to_vec()), &mut out)?;
    for (number, found) in numbers.iter().zip(out.to_vec()?) {
        let (found, expected) = (to_bits(found), nearest(*number));
        assert_eq!(found, expected, "{number:?}: {found:#x}, {expected:#x}");
    }
    Ok(())
}

/// Casts from `f64` to a type of two bytes.
fn casts_of_doubles<T: Arithmetic>(to_bits: fn(T) -> u16, format: Format) -> Result<()> {
    check_casts(&format.floats(), to_bits, |x| format.nearest_to_float(x))?;
    let mut nan = SmartArray::<T, _>::uninit(1);
    ops::cast(&SmartArray::from([f64::NAN]), &mut nan)?;
    let bits = to_bits(nan.get(0)?);
    assert!(bits & 0x7fff > format.infinity, "{bits:#x}");
    Ok(())
}

/// Whole numbers around the middles between values of `bf16`, and all of few bits.
pub(crate) fn integers() -> Vec<u64> {
    let middles = (9..64_u32).flat_map(|bits| {
        let step = 1_u64 << (bits - 9);
        (256..512).map(move |middle| middle * step)
    });
    let near = |x: u64| [-2, -1, 0, 1, 2].map(|by| x.saturating_add_signed(by));
    (0..512).chain(middles.flat_map(near)).chain([u64::MAX - 1, u64::MAX]).collect()
}

#[test]
fn casts_of_doubles_are_rounded_once() -> Result<()> {
    assert_eq!(F16.nearest_to_float(65_519.999_99), 0x7bff);
    assert_eq!(F16.nearest_to_float(1.0 + 2_f64.powi(-11) + 2_f64.powi(-40)), 0x3c01);
    for (_, _here) in devices() {
        casts_of_doubles(f16::to_bits, F16)?;
        casts_of_doubles(bf16::to_bits, BF16)?;
    }
    Ok(())
}

/// `f16` ends where `f32` begins to drop digits of integers.
#[test]
fn casts_of_integers_are_rounded_once() -> Result<()> {
    let (all, nearest) = (integers(), |x: u64| BF16.nearest(false, x, 0));
    let signed: Vec<i64> = all.iter().flat_map(|x| [*x as i64, x.wrapping_neg() as i64]).collect();
    let short: Vec<i32> = signed.iter().filter_map(|x| i32::try_from(*x).ok()).collect();
    let of_signed = |x: i64| BF16.nearest(x < 0, x.unsigned_abs(), 0);
    for (_, _here) in devices() {
        check_casts(&all, bf16::to_bits, nearest)?;
        check_casts(&signed, bf16::to_bits, of_signed)?;
        check_casts(&short, bf16::to_bits, |x| of_signed(i64::from(x)))?;
        check_casts(&all, f16::to_bits, |x: u64| F16.nearest(false, x, 0))?;
    }
    Ok(())
}

#[test]
fn results_are_rounded_once() -> Result<()> {
    for (_, _here) in devices() {
        arithmetic(f16::from_bits, f16::from_f32)?;
        arithmetic(bf16::from_bits, bf16::from_f32)?;
    }
    Ok(())
}

#[test]
fn copies_and_gathers_keep_every_bit() -> Result<()> {
    for (_, _here) in devices() {
        let values = SmartArray::from(all(f16::from_bits));
        let mut copy = SmartArray::<f16, _>::uninit(1 << 16);
        ops::copy(&values, &mut copy)?;
        let bits = |array: &SmartArray<f16, _>| -> Result<Vec<u16>> {
            Ok(array.to_vec()?.into_iter().map(f16::to_bits).collect())
        };
        assert!(bits(&copy)?.into_iter().eq(0..=u16::MAX));
        let backwards = SmartArray::from((0..1_u64 << 16).rev().collect::<Vec<_>>());
        ops::gather(&values, &backwards, &mut copy)?;
        assert!(bits(&copy)?.into_iter().eq((0..=u16::MAX).rev()));
    }
    Ok(())
}
