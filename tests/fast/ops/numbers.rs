//! Sums: their error, and that they do not change from run to run.

use ndarray::{Array1, Array2, Axis};
use resident::{Result, SmartArray, ops};

use crate::{PARALLEL_LEN_MIN, cuda, devices, rust};

/// Numbers of very different sizes, all above zero, so that the sum of them is the sum of their
/// absolute values.
fn uneven(len: usize) -> Array1<f32> {
    let mut state = 12_345_u32;
    Array1::from_shape_simple_fn(len, || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f32::from_bits(0x3000_0000 + (state >> 5))
    })
}

/// The documented bound, in units of `f32::EPSILON` and of the sum of absolute values.
fn bound(len: usize) -> f64 {
    20.0 + 2.0 * (len as f64).log2()
}

#[test]
fn sums_are_within_the_documented_bound() -> Result<()> {
    let first = rust();
    for device in [Some(first.clone()), cuda()].into_iter().flatten() {
        let _here = device.enter();
        for len in [1, 33, 1000, 8193, 70_000, 2 * PARALLEL_LEN_MIN + 3] {
            if len > PARALLEL_LEN_MIN && device != first {
                continue;
            }
            let xs = uneven(len);
            let exact: f64 = xs.iter().map(|x| f64::from(*x)).sum();
            let found = f64::from(SmartArray::from(xs).sum()?);
            let error = (found - exact).abs() / exact / f64::from(f32::EPSILON);
            assert!(error <= bound(len), "{len}: {error} on {device}");
        }
    }
    Ok(())
}

#[test]
fn sums_along_axes_are_within_the_documented_bound() -> Result<()> {
    for (device, _here) in devices() {
        for (rows, columns) in [(9000, 40), (40, 9000), (3, 20_000)] {
            let table = Array2::from_shape_vec((rows, columns), uneven(rows * columns).to_vec())
                .expect("as many");
            let ours = SmartArray::from(table.clone());
            for axis in [Axis(0), Axis(1)] {
                let exact = table.mapv(f64::from).sum_axis(axis);
                let mut out = SmartArray::<f32, _>::uninit(exact.len());
                ops::sum_axis(&ours, axis, &mut out)?;
                for (found, exact) in out.to_vec()?.into_iter().zip(exact) {
                    let error = (f64::from(found) - exact).abs() / exact;
                    let bound = bound(table.len_of(axis)) * f64::from(f32::EPSILON);
                    assert!(error <= bound, "{rows} x {columns}, {axis:?}: {error} on {device}");
                }
            }
        }
    }
    Ok(())
}

#[test]
fn sums_of_negative_zeros_are_zero_as_ndarrays() -> Result<()> {
    for (device, _here) in devices() {
        for shape in [(1, 1), (3, 1), (1, 300), (40, 40)] {
            let zeros = Array2::<f32>::from_elem(shape, -0.0);
            let ours = SmartArray::from(zeros.clone());
            let expected = zeros.sum().to_bits();
            assert_eq!(expected, 0);
            let ones = SmartArray::ones(shape);
            let sums =
                [ours.sum()?, ours.mean()?, ours.dot(&ours)?, ours.dot(&ones)?, ours.norm_l2()?];
            assert_eq!(sums.map(f32::to_bits), [expected; 5], "{shape:?} on {device}");
            let is_zero = |sum: &f32| sum.to_bits() == expected;
            for axis in [Axis(0), Axis(1)] {
                let mut out = SmartArray::uninit(zeros.len() / zeros.len_of(axis));
                ops::sum_axis(&ours, axis, &mut out)?;
                assert!(out.host()?.iter().all(is_zero), "{shape:?}, {axis:?} on {device}");
                let mut running = SmartArray::uninit(shape);
                ops::cumulative_sum_axis(&ours, axis, &mut running)?;
                assert!(running.host()?.iter().all(is_zero), "{shape:?}, {axis:?} on {device}");
            }
            let (turned, mut products) = (ones.t(), SmartArray::uninit((shape.0, shape.0)));
            ops::matmul(&ours, &turned, &mut products)?;
            assert!(products.host()?.iter().all(is_zero), "products of {shape:?} on {device}");
        }
    }
    Ok(())
}

#[test]
fn sums_do_not_change_from_run_to_run() -> Result<()> {
    let first = rust();
    for device in [Some(first.clone()), cuda()].into_iter().flatten() {
        let _here = device.enter();
        let ours =
            SmartArray::from(uneven(if device == first { 2 * PARALLEL_LEN_MIN } else { 1 << 15 }));
        let before = [ours.sum()?, ours.dot(&ours)?, ours.norm_l2()?].map(f32::to_bits);
        for _ in 0..3 {
            let again = [ours.sum()?, ours.dot(&ours)?, ours.norm_l2()?].map(f32::to_bits);
            assert_eq!(before, again);
        }
    }
    Ok(())
}
