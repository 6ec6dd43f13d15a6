//! Comparisons, logic on masks, and what is asked of them, beside plain loops.

use half::{bf16, f16};
use ndarray::{Array2, Axis, Zip, s};
use resident::{DeviceArray, Result, SmartArray, ops};

use crate::part::Random;
use crate::{devices, rust};

type Comparison<T> =
    fn(&SmartArray<T, ndarray::Ix2>, T, &mut SmartArray<u8, ndarray::Ix2>) -> Result<()>;

/// Each comparison of every pair of some values, with arrays and with numbers.
fn comparisons<T: ops::Ordered + ops::Right<T>>(values: &[T]) -> Result<()> {
    let n = values.len();
    let column = SmartArray::from(Array2::from_shape_vec((n, 1), values.to_vec()).expect("n"));
    let row = SmartArray::from(Array2::from_shape_vec((1, n), values.to_vec()).expect("n"));
    let mut mask = SmartArray::<u8, _>::uninit((n, n));
    let mut of_number = SmartArray::<u8, _>::uninit((n, 1));
    macro_rules! each {
        ($($name:ident: $operator:tt),+) => {
            $(ops::$name(&column, &row, &mut mask)?;
            let expected =
                Array2::from_shape_fn((n, n), |(i, j)| u8::from(values[i] $operator values[j]));
            assert_eq!(mask.host()?.view(), expected, stringify!($name));
            let compare: Comparison<T> = |a, b, mask| ops::$name(a, b, mask);
            for (j, value) in values.iter().enumerate() {
                compare(&column, *value, &mut of_number)?;
                assert_eq!(of_number.host()?.view(), expected.slice(s![.., j..=j]));
            })+
        };
    }
    each!(equal: ==, not_equal: !=, less: <, less_equal: <=, greater: >, greater_equal: >=);
    Ok(())
}

#[test]
fn comparisons_are_rusts() -> Result<()> {
    for (_, _here) in devices() {
        comparisons(&[-1.0_f32, -0.0, 0.0, 1.5, f32::INFINITY, f32::NAN])?;
    }
    let _here = rust().enter();
    comparisons(&[i64::MIN, -1, 0, i64::MAX])?;
    comparisons(&[f16::NEG_ONE, f16::ZERO, f16::NAN, f16::MAX])?;
    comparisons(&[-1.0_f64, 0.0, f64::NAN])?;
    comparisons(&[i32::MIN, 0, 7])?;
    comparisons(&[0_u32, u32::MAX])?;
    comparisons(&[0_u64, u64::MAX])?;
    comparisons(&[0_u8, 128, 255])?;
    comparisons(&[bf16::NEG_ONE, bf16::NAN, bf16::MAX])
}

#[test]
fn parts_are_compared_and_nothing_beside_is_written() -> Result<()> {
    for (_, _here) in devices() {
        let table = Array2::from_shape_fn((9, 12), |(i, j)| (i * 7 + j * 5) as i32 % 10);
        let ours = DeviceArray::from_host(&table)?;
        let mut mask = DeviceArray::<u8, _>::full((9, 12), 9)?;
        let (part, other) = (s![1..8;2, 10..;-1], s![..4, ..2]);
        ops::less(&ours.slice(part), &ours.slice(other), &mut mask.slice_mut(part))?;
        let mut expected = Array2::<u8>::from_elem((9, 12), 9);
        Zip::from(expected.slice_mut(part))
            .and(table.slice(part))
            .and(table.slice(other))
            .for_each(|mask, a, b| *mask = u8::from(a < b));
        assert_eq!(mask.copy_to_host()?, expected);
    }
    Ok(())
}

#[test]
fn every_element_of_a_mask_but_0_is_true() -> Result<()> {
    for (_, _here) in devices() {
        let values = [0_u8, 1, 2, 255];
        let n = values.len();
        let a = SmartArray::from(Array2::from_shape_vec((n, 1), values.to_vec()).expect("n"));
        let b = SmartArray::from(values);
        let mut out = SmartArray::<u8, _>::uninit((n, n));
        let is = |x: u8| x != 0;
        macro_rules! each {
            ($($name:ident: $operator:tt),+) => {
                $(ops::$name(&a, &b, &mut out)?;
                let expected = Array2::from_shape_fn((n, n), |(i, j)| {
                    u8::from(is(values[i]) $operator is(values[j]))
                });
                assert_eq!(out.host()?.view(), expected, stringify!($name));)+
            };
        }
        each!(logical_and: &&, logical_or: ||, logical_xor: !=);
        let mut not = SmartArray::<u8, _>::uninit(n);
        ops::logical_not(&b, &mut not)?;
        assert_eq!(not.to_vec()?, [1, 0, 0, 0]);
    }
    Ok(())
}

#[test]
fn any_all_and_counts_are_those_of_loops() -> Result<()> {
    for (_, _here) in devices() {
        let mut random = Random::new(2);
        for (rows, columns) in [(3, 5), (70, 300), (1, 20_000)] {
            for one_in in [1, 5000] {
                let element = || if random.below(one_in) == 0 { 3_u8 } else { 0 };
                let table = Array2::from_shape_simple_fn((rows, columns), element);
                check_counts(&table)?;
            }
        }
    }
    Ok(())
}

fn check_counts(table: &Array2<u8>) -> Result<()> {
    let ours = SmartArray::from(table.clone());
    let count = |values: ndarray::ArrayView1<'_, u8>| values.iter().filter(|x| **x != 0).count();
    let all: usize = table.rows().into_iter().map(count).sum();
    assert_eq!(ours.count_nonzero()?, all as u64);
    assert_eq!((ours.any()?, ours.all()?), (all > 0, all == table.len()));
    for axis in [Axis(0), Axis(1)] {
        let counts: Vec<usize> = table.lanes(axis).into_iter().map(count).collect();
        let mut seen = SmartArray::<u64, _>::uninit(counts.len());
        ops::count_nonzero_axis(&ours, axis, &mut seen)?;
        assert!(seen.to_vec()?.into_iter().eq(counts.iter().map(|count| *count as u64)));
        let mut flags = SmartArray::<u8, _>::uninit(counts.len());
        ops::any_axis(&ours, axis, &mut flags)?;
        assert!(flags.to_vec()?.into_iter().eq(counts.iter().map(|count| u8::from(*count > 0))));
        ops::all_axis(&ours, axis, &mut flags)?;
        let len = table.len_of(axis);
        assert!(flags.to_vec()?.into_iter().eq(counts.iter().map(|count| u8::from(*count == len))));
    }
    Ok(())
}

#[test]
fn nan_counts_and_nothing_has_neither_any_nor_a_gap() -> Result<()> {
    for (_, _here) in devices() {
        let a = SmartArray::from([f32::NAN, -0.0, 0.0]);
        assert_eq!((a.count_nonzero()?, a.any()?, a.all()?), (1, true, false));
        let nothing = SmartArray::<f32, _>::zeros((0, 3));
        assert_eq!((nothing.count_nonzero()?, nothing.any()?, nothing.all()?), (0, false, true));
        assert_eq!(nothing.product()?, 1.0);
        let mut products = SmartArray::<f32, _>::uninit(3);
        ops::product_axis(&nothing, Axis(0), &mut products)?;
        assert_eq!(products.to_vec()?, [1.0; 3]);
    }
    Ok(())
}

#[test]
fn products_wrap_around_and_are_those_of_rows() -> Result<()> {
    for (_, _here) in devices() {
        let table = Array2::from_shape_fn((40, 700), |(i, j)| (i * 700 + j) as i64 * 2 + 3);
        let ours = DeviceArray::from_host(&table)?;
        let product = |values: ndarray::ArrayView1<'_, i64>| {
            values.iter().fold(1, |product: i64, x| product.wrapping_mul(*x))
        };
        let rows: Vec<i64> = table.rows().into_iter().map(product).collect();
        let mut seen = SmartArray::<i64, _>::uninit(40);
        ops::product_axis(&ours, Axis(1), &mut seen)?;
        assert_eq!(seen.to_vec()?, rows);
        let columns: Vec<i64> = table.columns().into_iter().map(product).collect();
        let mut seen = SmartArray::<i64, _>::uninit(700);
        ops::product_axis(&ours, Axis(0), &mut seen)?;
        assert_eq!(seen.to_vec()?, columns);
        assert_eq!(ours.product()?, rows.into_iter().fold(1, i64::wrapping_mul));
    }
    Ok(())
}
