//! Sorting, beside the standard library's.

use std::cmp::Ordering;

use ndarray::{Array2, Axis, Ix2, s};
use resident::{DeviceArray, Error, Result, SmartArray, ops};

use crate::part::Random;
use crate::{LARGE_SIDE, PARALLEL_LEN_MIN, devices, rust};

/// Few different numbers, some of them NaN, zeros of both signs and infinite.
fn table(rows: usize, columns: usize) -> Array2<f32> {
    let mut random = Random::new(5);
    Array2::from_shape_simple_fn((rows, columns), || match random.below(40) {
        0 => f32::NAN,
        1 => -0.0,
        2 => 0.0,
        3 => f32::INFINITY,
        4 => f32::NEG_INFINITY,
        other => (other % 13) as f32 - 6.0,
    })
}

/// NaN last, else ascending: NumPy's order.
fn order(x: f32, y: f32) -> Ordering {
    x.partial_cmp(&y).unwrap_or_else(|| x.is_nan().cmp(&y.is_nan()))
}

fn expected_places(table: &Array2<f32>) -> Array2<u64> {
    let mut places = Array2::zeros(table.dim());
    for (mut places, row) in places.rows_mut().into_iter().zip(table.rows()) {
        let mut sorted: Vec<u64> = (0..row.len() as u64).collect();
        sorted.sort_by(|x, y| order(row[*x as usize], row[*y as usize]));
        places.iter_mut().zip(sorted).for_each(|(place, sorted)| *place = sorted);
    }
    places
}

fn bits(table: impl IntoIterator<Item = f32>) -> Vec<u32> {
    table.into_iter().map(f32::to_bits).collect()
}

fn expected_rows(table: &Array2<f32>) -> Vec<u32> {
    let places = expected_places(table);
    bits(places.indexed_iter().map(|((row, _), place)| table[(row, *place as usize)]))
}

#[test]
fn rows_of_all_lengths_are_sorted_and_equal_elements_keep_their_order() -> Result<()> {
    for (_, _here) in devices() {
        for (rows, columns) in
            [(1, 1), (3, 2), (4, 15), (2, 16), (5, 17), (1, 32), (3, 33), (2, 1000), (0, 4), (4, 0)]
        {
            let table = table(rows, columns);
            let mut places = SmartArray::<u64, _>::uninit((rows, columns));
            let mut ours = SmartArray::from(table.clone());
            ops::argsort(&ours, &mut places)?;
            assert_eq!(places.to_vec()?, expected_places(&table).into_raw_vec_and_offset().0);
            ops::sort(&mut ours)?;
            assert_eq!(bits(ours.to_vec()?), expected_rows(&table), "{rows} x {columns}");
        }
    }
    Ok(())
}

#[test]
fn parts_are_sorted_and_nothing_beside() -> Result<()> {
    for (_, _here) in devices() {
        let whole = table(40, 50);
        let mut ours = DeviceArray::from_host(&whole)?;
        ops::sort(&mut ours.slice_mut(s![1..30;3, 2..40;-2]))?;
        let mut expected = whole.clone();
        let part = whole.slice(s![1..30;3, 2..40;-2]).to_owned();
        let sorted = expected_rows(&part).into_iter().map(f32::from_bits);
        expected.slice_mut(s![1..30;3, 2..40;-2]).iter_mut().zip(sorted).for_each(|(x, y)| *x = y);
        assert_eq!(bits(ours.copy_to_host()?), bits(expected));
        let mut columns = SmartArray::from(whole.clone());
        ops::sort(&mut columns.view_mut().reversed_axes())?;
        let turned = whole.t().as_standard_layout().into_owned();
        assert_eq!(bits(columns.t().to_vec()?), expected_rows(&turned));
        let mut places = SmartArray::<u64, _>::uninit((50, 40));
        ops::argsort(&SmartArray::from(whole.clone()).t(), &mut places)?;
        assert_eq!(places.to_vec()?, expected_places(&turned).into_raw_vec_and_offset().0);
    }
    Ok(())
}

#[test]
fn many_elements_are_sorted_by_all_cores() -> Result<()> {
    let _here = rust().enter();
    for (rows, columns) in [(1, PARALLEL_LEN_MIN + 7), (LARGE_SIDE, LARGE_SIDE)] {
        let mut random = Random::new(9);
        let table = Array2::from_shape_simple_fn((rows, columns), || random.below(1 << 20) as u32);
        let mut ours = SmartArray::from(table.clone());
        if rows == 1 {
            argsort_one_row(&ours, table.as_slice().expect("a row"))?;
        }
        ops::sort(&mut ours)?;
        let mut expected = table;
        for mut row in expected.axis_iter_mut(Axis(0)) {
            row.as_slice_mut().expect("a row").sort_unstable();
        }
        assert!(ours.host()?.view() == expected, "{rows} x {columns}");
    }
    Ok(())
}

/// Keys and places ascend together.
fn argsort_one_row(ours: &SmartArray<u32, Ix2>, row: &[u32]) -> Result<()> {
    let mut places = SmartArray::<u64, _>::uninit(ours.raw_dim());
    ops::argsort(ours, &mut places)?;
    let keys = places.to_vec()?.into_iter().map(|place| (row[place as usize], place));
    assert!(keys.clone().zip(keys.skip(1)).all(|(one, next)| one < next));
    Ok(())
}

#[test]
fn every_type_is_sorted() -> Result<()> {
    macro_rules! each {
        ($($type:ty),+) => {
            $({
                let values = [7, 3, 250, 0, 3, 9].map(|x: u8| x as $type);
                let mut ours = SmartArray::from(values);
                ops::sort(&mut ours)?;
                assert_eq!(ours.to_vec()?, [0, 3, 3, 7, 9, 250].map(|x: u8| x as $type));
            })+
        };
    }
    {
        let _here = rust().enter();
        each!(f32, f64, i32, i64, u32, u64, u8);
    }
    // What NVRTC compiles has other types too.
    for (_, _here) in devices() {
        each!(f64, u8);
        let mut signed = SmartArray::from([3_i64, i64::MIN, -1, i64::MAX]);
        ops::sort(&mut signed)?;
        assert_eq!(signed.to_vec()?, [i64::MIN, -1, 3, i64::MAX]);
    }
    Ok(())
}

#[test]
fn values_are_found_in_a_sorted_line() -> Result<()> {
    for (_, _here) in devices() {
        for len in [0, 1, 2, 7, 500] {
            let mut sorted = table(1, len).into_iter().collect::<Vec<_>>();
            sorted.sort_by(|x, y| order(*x, *y));
            let values = table(9, 11);
            let comes_before = |value: f32| {
                sorted.iter().filter(|x| order(**x, value) == Ordering::Less).count() as u64
            };
            let expected = values.t().mapv(comes_before);
            let turned: Vec<f32> = sorted.iter().rev().copied().collect();
            let (line, ours) = (SmartArray::from(turned), SmartArray::from(values));
            let mut index = SmartArray::<u64, _>::uninit((11, 9));
            ops::searchsorted(&line.slice(s![..;-1]), &ours.t(), &mut index)?;
            assert_eq!(*index.host()?, expected, "{len}");
        }
        let numbers = DeviceArray::from_host(&ndarray::arr1(&[1_u64, 5, 5, u64::MAX]))?;
        let mut place = SmartArray::<u64, _>::uninit(());
        for (value, expected) in [(0, 0), (1, 0), (5, 1), (6, 3), (u64::MAX, 3)] {
            ops::searchsorted(&numbers, &SmartArray::full((), value), &mut place)?;
            assert_eq!(place.get(())?, expected, "{value}");
        }
    }
    Ok(())
}

#[test]
fn a_table_is_not_searched() -> Result<()> {
    let _here = rust().enter();
    let table = SmartArray::<f32, _>::zeros((2, 3)).named("table");
    let (line, mut index) = (SmartArray::zeros(3).named("line"), SmartArray::full(2, 7).named("i"));
    let message = |outcome: Result<()>| match outcome {
        Err(Error::Shape { operation, expected, seen, .. }) => [operation, expected, seen],
        other => panic!("{other:?}"),
    };
    let seen = message(ops::searchsorted(&table, &line, &mut index));
    let expected = "`sorted` of one axis";
    assert_eq!(seen, ["ops::searchsorted", expected, "\"table\" of shape [2, 3]"]);
    let seen = message(ops::searchsorted(&line, &line, &mut index));
    let expected = "`index` of shape [3], the shape of `values`,";
    assert_eq!(seen, ["ops::searchsorted", expected, "\"i\" of shape [2]"]);
    assert_eq!(index.to_vec()?, [7, 7]);
    Ok(())
}

#[test]
fn a_result_of_another_shape_is_refused() {
    let _here = rust().enter();
    let mut places = SmartArray::<u64, _>::uninit(3);
    let refused = ops::argsort(&SmartArray::from([1, 2]), &mut places);
    let text = refused.expect_err("another shape").to_string();
    assert!(text.contains("argsort") && text.contains("[2]"), "{text}");
}
