//! The types of two bytes: arithmetic and casts, and that they are moved bit by bit.

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
