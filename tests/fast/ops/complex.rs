//! Complex numbers: arithmetic, sums, products, masks and moves give what `num_complex` and ndarray
//! give, on every device the same bits.

use std::fmt::Debug;

use ndarray::{Array1, Array2, Axis, LinalgScalar, ShapeBuilder, s};
use num_complex::Complex;
use resident::ops::{self, Right, Scalar};
use resident::{Device, Entered, Result, SmartArray};

use crate::elementwise::{arithmetic, rust_only};
use crate::part::{Random, Sample};
use crate::{PARALLEL_LEN_MIN, devices, rust};

type C32 = Complex<f32>;
type C64 = Complex<f64>;

/// What the tests need of both types.
trait Number: Sample + Scalar<Real = Self> + Right<Self> + LinalgScalar {
    const EPSILON: f64;
    fn of(z: C64) -> Self;
    fn wide(self) -> C64;
    /// The bits of both parts.
    fn bits(self) -> [u64; 2];
}

macro_rules! numbers {
    ($($part:ident),+) => {
        $(impl Number for Complex<$part> {
            const EPSILON: f64 = $part::EPSILON as f64;
            fn of(z: C64) -> Self {
                Self::new(z.re as $part, z.im as $part)
            }
            fn wide(self) -> C64 {
                C64::new(self.re.into(), self.im.into())
            }
            fn bits(self) -> [u64; 2] {
                [self.re, self.im].map(|part| u64::from(part.to_bits()))
            }
        })+
    };
}

numbers!(f32, f64);

/// Smith's quotient, in the order of operations that the documentation names.
macro_rules! smith {
    ($a:ident, $b:ident) => {{
        let (turned, by) = if $b.re.abs() >= $b.im.abs() {
            ($a, $b)
        } else {
            // Both times -i.
            (Complex::new($a.im, -$a.re), Complex::new($b.im, -$b.re))
        };
        let ratio = by.im / by.re;
        let divisor = by.re + by.im * ratio;
        Complex::new(
            (turned.re + turned.im * ratio) / divisor,
            (turned.im - turned.re * ratio) / divisor,
        )
    }};
}

#[test]
fn arithmetic_of_every_layout() {
    arithmetic::<C32>(rust_only, [|a, b| a + b, |a, b| a - b, |a, b| a * b, |a, b| smith!(a, b)]);
    arithmetic::<C64>(rust_only, [|a, b| a + b, |a, b| a - b, |a, b| a * b, |a, b| smith!(a, b)]);
}

/// Numbers of magnitudes from 2^-range to 2^range.
fn uneven<T: Number>(len: usize, range: i32, seed: u64) -> Vec<T> {
    let mut random = Random::new(seed);
    let mut part = || {
        let scale = 2_f64.powi(random.below(2 * range as usize + 1) as i32 - range);
        (random.below(2001) as f64 / 1000.0 - 1.0003) * scale
    };
    (0..len).map(|_| T::of(C64::new(part(), part()))).collect()
}

/// The bits of products and scaled sums are those of `num_complex`.
#[test]
fn products_have_the_bits_of_num_complex() -> Result<()> {
    for (_, _here) in devices() {
        let (a, b) = (uneven::<C32>(700, 20, 1), uneven::<C32>(700, 20, 2));
        let (ours_a, ours_b) = (SmartArray::from(a.clone()), SmartArray::from(b.clone()));
        let factor = C32::new(0.3, -7.1);
        let mut out = SmartArray::<C32, _>::uninit(700);
        let check = |out: &SmartArray<C32, _>, expected: &dyn Fn(C32, C32) -> C32| -> Result<()> {
            for ((a, b), out) in a.iter().zip(&b).zip(out.to_vec()?) {
                assert_eq!(out.bits(), expected(*a, *b).bits(), "{a} and {b}");
            }
            Ok(())
        };
        ops::mul(&ours_a, &ours_b, &mut out)?;
        check(&out, &|a, b| a * b)?;
        ops::scaled_add(factor, &ours_a, &mut out)?;
        check(&out, &|a, b| a * b + factor * a)?;
        ops::div(&ours_a, &ours_b, &mut out)?;
        check(&out, &|a, b| smith!(a, b))?;
    }
    Ok(())
}

/// The documented bound, beside quotients of `num_complex` in `f64`.
#[test]
fn quotients_are_within_the_documented_bound() -> Result<()> {
    let _here = rust().enter();
    let (a, b) = (uneven::<C32>(20_000, 25, 3), uneven::<C32>(20_000, 25, 4));
    let mut out = SmartArray::<C32, _>::uninit(a.len());
    ops::div(&SmartArray::from(a.clone()), &SmartArray::from(b.clone()), &mut out)?;
    for ((a, b), out) in a.iter().zip(&b).zip(out.to_vec()?) {
        let exact = a.wide() / b.wide();
        let difference = out.wide() - exact;
        let error = difference.re.hypot(difference.im) / exact.re.hypot(exact.im);
        assert!(error <= 4.0 * C32::EPSILON, "{a} / {b}: {out}, {error}");
    }
    let large = C32::new(1e30, 1e30);
    let cases = [
        (large, C32::new(1e30, -1e30), C32::new(0.0, 1.0)),
        (large, C32::new(1e-5, 0.0), large / 1e-5),
        (C32::new(1e-30, 2e-30), C32::new(0.0, 1e-30), C32::new(2.0, -1.0)),
        (C32::new(f32::MAX, 1.0), C32::new(f32::MAX, 0.0), C32::new(1.0, 1.0 / f32::MAX)),
    ];
    for (a, b, expected) in cases {
        let mut out = SmartArray::<C32, _>::uninit(1);
        ops::div(&SmartArray::from([a]), b, &mut out)?;
        assert_eq!(out.get(0)?, expected, "{a} / {b}");
        ops::div(&SmartArray::from([a]), C32::new(0.0, 0.0), &mut out)?;
        let quotient = out.get(0)?;
        assert!(quotient.re.is_nan() && quotient.im.is_nan(), "{quotient}");
    }
    Ok(())
}

/// The devices, and whether each runs bodies in Rust: each kernel of CUDA C is compiled, so that
/// only some are.
fn devices_and_kinds() -> impl Iterator<Item = (bool, (Device, Entered))> {
    [true, false].into_iter().zip(devices())
}

/// A table of small whole numbers, whose sums and products are exact.
fn whole<T: Number>(rows: usize, columns: usize, seed: usize) -> Array2<T> {
    let part = |n: usize| (n % 15) as f64 - 7.0;
    Array2::from_shape_fn((rows, columns), |(i, j)| {
        T::of(C64::new(part(i * 31 + j * 17 + seed * 7), part(i * 13 + j * 3 + seed)))
    })
}

/// Shapes that take one stage and several, by blocks and by threads.
const SHAPES: [(usize, usize); 5] = [(1, 1), (3, 70), (40, 9), (2, 20_000), (9000, 3)];

fn sums<T: Number + Debug>() -> Result<()> {
    for (rows, columns) in SHAPES {
        let table = whole::<T>(rows, columns, 1);
        let ours = SmartArray::from(table.clone());
        let close = |seen: T, sum: T, count: usize| {
            let (seen, exact) = (seen.wide(), sum.wide() / count as f64);
            let error = (seen - exact).re.abs() + (seen - exact).im.abs();
            assert!(error <= 2.0 * T::EPSILON * (exact.re.abs() + exact.im.abs()), "{exact}");
        };
        assert_eq!(ours.sum()?, table.sum());
        close(ours.mean()?, table.sum(), table.len());
        assert_eq!(ours.t().sum()?, table.sum());
        for axis in [Axis(0), Axis(1)] {
            let sums = table.sum_axis(axis);
            let mut out = SmartArray::<T, _>::uninit(sums.len());
            ops::sum_axis(&ours, axis, &mut out)?;
            assert_eq!(out.host()?.view(), sums, "{rows} x {columns}, {axis:?}");
            ops::mean_axis(&ours, axis, &mut out)?;
            let pairs = out.to_vec()?.into_iter().zip(sums);
            pairs.for_each(|(seen, sum)| close(seen, sum, table.len_of(axis)));
        }
    }
    Ok(())
}

#[test]
fn sums_and_means_are_ndarrays() -> Result<()> {
    for (_, _here) in devices() {
        sums::<C32>()?;
    }
    let _here = rust().enter();
    sums::<C64>()
}

#[test]
fn sums_stay_within_the_bound_and_do_not_change() -> Result<()> {
    let _here = rust().enter();
    let numbers = uneven::<C32>(2 * PARALLEL_LEN_MIN + 3, 10, 5);
    let ours = SmartArray::from(numbers.clone());
    let exact: C64 = numbers.iter().map(|z| z.wide()).sum();
    let size: f64 = numbers.iter().map(|z| z.wide().re.abs() + z.wide().im.abs()).sum();
    let sum = ours.sum()?;
    let difference = sum.wide() - exact;
    let bound = (20.0 + 2.0 * (numbers.len() as f64).log2()) * C32::EPSILON;
    assert!(difference.re.abs() + difference.im.abs() <= bound * size);
    for _ in 0..3 {
        assert_eq!(ours.sum()?.bits(), sum.bits());
        assert_eq!(ours.dot(&ours)?.bits(), ours.dot(&ours)?.bits());
    }
    Ok(())
}

#[test]
fn products_and_counts_of_all_elements() -> Result<()> {
    let _here = rust().enter();
    let i = C64::new(0.0, 1.0);
    for len in [0, 1, 2, 7, 1000, 20_003] {
        let powers = SmartArray::full(len, i);
        assert_eq!(powers.product()?, i.powu(len as u32 % 4));
    }
    let zeros = SmartArray::from([C32::new(0.0, -0.0), C32::new(0.0, 2.0), C32::new(-1.0, 0.0)]);
    assert_eq!((zeros.count_nonzero()?, zeros.any()?, zeros.all()?), (2, true, false));
    let mut products = SmartArray::<C64, _>::uninit(3);
    ops::product_axis(&SmartArray::full((6, 3), i), Axis(0), &mut products)?;
    assert_eq!(products.to_vec()?, [C64::new(-1.0, 0.0); 3]);
    Ok(())
}

/// `c = a b` by loops.
fn by_loops<T: Number>(a: &Array2<T>, b: &Array2<T>) -> Array2<T> {
    Array2::from_shape_fn((a.nrows(), b.ncols()), |(i, j)| {
        (0..a.ncols()).fold(T::ZERO, |sum, k| sum + a[[i, k]] * b[[k, j]])
    })
}

fn matrix_products<T: Number + Debug>() -> Result<()> {
    for (n, k, m) in [(1, 1, 1), (3, 5, 2), (33, 65, 31), (7, 1, 130), (2, 0, 3)] {
        let (a, b) = (whole::<T>(n, k, 1), whole::<T>(k, m, 2));
        let expected = by_loops(&a, &b);
        let (ours_a, ours_b) = (SmartArray::from(a.clone()), SmartArray::from(b.clone()));
        let mut c = SmartArray::<T, _>::uninit((n, m));
        ops::matmul(&ours_a, &ours_b, &mut c)?;
        assert_eq!(c.host()?.view(), expected);
        let turned = SmartArray::from(a.t().as_standard_layout().into_owned());
        let mut columns = SmartArray::<T, _>::uninit((n, m).f());
        ops::matmul(&turned.t(), &ours_b.slice(s![.., ..]), &mut columns)?;
        assert_eq!(columns.host()?.view(), expected);
    }
    let (table, line) = (whole::<T>(9, 300, 3), whole::<T>(1, 300, 4).row(0).to_owned());
    let mut column = SmartArray::<T, _>::uninit(9);
    ops::matmul(&SmartArray::from(table.clone()), &SmartArray::from(line.clone()), &mut column)?;
    assert_eq!(column.host()?.view(), table.dot(&line));
    Ok(())
}

#[test]
fn matrix_products_are_those_of_loops() -> Result<()> {
    for (_, _here) in devices() {
        matrix_products::<C32>()?;
    }
    let _here = rust().enter();
    matrix_products::<C64>()
}

#[test]
fn dot_does_not_conjugate() -> Result<()> {
    for (_, _here) in devices() {
        let i = SmartArray::from([C32::new(0.0, 1.0), C32::new(0.0, 2.0)]);
        assert_eq!(i.dot(&i)?, C32::new(-5.0, 0.0));
        for len in [1, 300, 20_001] {
            let (a, b) = (whole::<C32>(1, len, 1), whole::<C32>(1, len, 2));
            let (a, b): (Array1<C32>, Array1<C32>) = (a.row(0).to_owned(), b.row(0).to_owned());
            let found = SmartArray::from(a.clone()).dot(&SmartArray::from(b.clone()))?;
            assert_eq!(found, a.dot(&b));
        }
    }
    Ok(())
}

#[test]
fn masks_and_moves_keep_every_bit() -> Result<()> {
    for (is_rust, (_, _here)) in devices_and_kinds() {
        let nan = f32::from_bits(0x7fc0_1234);
        let numbers = [C32::new(-0.0, nan), C32::new(1.0, 2.0), C32::new(0.0, 1e-45)];
        let bits = |array: SmartArray<C32, ndarray::Ix1>| -> Result<Vec<[u64; 2]>> {
            Ok(array.to_vec()?.into_iter().map(C32::bits).collect())
        };
        let of = |places: &[usize]| places.iter().map(|n| numbers[*n].bits()).collect::<Vec<_>>();
        let ours = SmartArray::from(numbers);
        let mut out = SmartArray::<C32, _>::uninit(3);
        ops::copy(&ours.slice(s![..;-1]), &mut out)?;
        assert_eq!(bits(out)?, of(&[2, 1, 0]));
        let mut out = SmartArray::<C32, _>::uninit(4);
        ops::gather(&ours, &SmartArray::from([1_u64, 0, 0, 2]), &mut out)?;
        assert_eq!(bits(out.try_clone()?)?, of(&[1, 0, 0, 2]));
        let mask = SmartArray::from([0_u8, 1, 1, 0]);
        let (first, last) = (SmartArray::full(1, numbers[0]), SmartArray::full(1, numbers[2]));
        ops::select(&mask, &first, &last, &mut out)?;
        assert_eq!(bits(out.try_clone()?)?, of(&[2, 0, 0, 2]));
        let mut equal = SmartArray::<u8, _>::uninit(3);
        ops::equal(&ours, &ours, &mut equal)?;
        assert_eq!(equal.to_vec()?, [0, 1, 1], "NaN is equal to nothing");
        if !is_rust {
            continue;
        }
        ops::not_equal(&ours, C32::new(1.0, 2.0), &mut equal)?;
        assert_eq!(equal.to_vec()?, [1, 0, 1]);
        assert_eq!(bits(out.compress(&mask)?)?, of(&[0, 0]));
        ops::scatter(&ours, &SmartArray::from([3_u64, 2, 1]), &mut out)?;
        assert_eq!(bits(out.try_clone()?)?, of(&[2, 2, 1, 0]));
        out.fill(numbers[1])?;
        assert_eq!(bits(out)?, of(&[1; 4]));
    }
    Ok(())
}

/// A cast to real numbers keeps the real part, as NumPy's `astype`, with the values of `as`.
#[test]
fn casts_of_both_parts() -> Result<()> {
    for (is_rust, (_, _here)) in devices_and_kinds() {
        let numbers = [C64::new(1.0 / 3.0, 1e300), C64::new(-7.9, 2.0), C64::new(300.5, f64::NAN)];
        let ours = SmartArray::from(numbers);
        let mut narrow = SmartArray::<C32, _>::uninit(3);
        ops::cast(&ours, &mut narrow)?;
        let expected = numbers.map(|z| C32::of(z).bits());
        let narrowed: Vec<_> = narrow.to_vec()?.into_iter().map(C32::bits).collect();
        let same = |(one, other): (&[u64; 2], &[u64; 2])| one[0] == other[0];
        assert!(narrowed.iter().zip(&expected).all(same) && narrowed[..2] == expected[..2]);
        let mut bytes = SmartArray::<u8, _>::uninit(3);
        ops::cast(&ours, &mut bytes)?;
        assert_eq!(bytes.to_vec()?, [0, 0, 255]);
        if !is_rust {
            continue;
        }
        let mut halves = SmartArray::<half::f16, _>::uninit(3);
        ops::cast(&narrow, &mut halves)?;
        assert_eq!(halves.to_vec()?, numbers.map(|z| half::f16::from_f32(z.re as f32)));
        let mut wide = SmartArray::<C64, _>::uninit(3);
        ops::cast(&SmartArray::from([-3_i64, 0, 1 << 53]), &mut wide)?;
        let expected = [-3.0, 0.0, 9_007_199_254_740_992.0].map(|re| C64::new(re, 0.0));
        assert_eq!(wide.to_vec()?, expected);
    }
    Ok(())
}
