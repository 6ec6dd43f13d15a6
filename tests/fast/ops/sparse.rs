//! Products of sparse matrices, beside those of tables with zeros.

use ndarray::{Array1, Array2, s};
use resident::{DeviceArray, Error, Result, SmartArray, ops};

use crate::part::Random;
use crate::{PARALLEL_LEN_MIN, devices, rust};

/// A matrix, and the same as a table.
struct Matrix {
    starts: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<i64>,
    table: Array2<i64>,
}

/// Rows of up to `longest` entries, some without any.
fn matrix(rows: usize, width: usize, longest: usize) -> Matrix {
    let mut random = Random::new(rows as u64);
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    let mut table = Array2::zeros((rows, width));
    for row in 0..rows {
        for _ in 0..random.below(longest + 1) {
            let (column, value) = (random.below(width), random.below(100) as i64 - 50);
            columns.push(column as u32);
            values.push(value);
            table[(row, column)] += value;
        }
        starts.push(columns.len() as u32);
    }
    Matrix { starts, columns, values, table }
}

#[test]
fn products_are_those_of_tables() -> Result<()> {
    for (_, _here) in devices() {
        for (rows, width, longest) in [(1, 1, 1), (7, 5, 3), (40, 60, 30), (33, 9, 0)] {
            let Matrix { starts, columns, values, table } = matrix(rows, width, longest);
            let wide =
                |of: &[u32]| SmartArray::from(of.iter().map(|n| u64::from(*n)).collect::<Vec<_>>());
            let values = SmartArray::from(values);
            let line = Array1::from_shape_fn(width, |i| i as i64 * 3 - 4);
            let x = SmartArray::from(line.clone());
            let mut y = SmartArray::<i64, _>::uninit(rows);
            ops::csr_matvec(&wide(&starts), &wide(&columns), &values, &x, &mut y)?;
            assert_eq!(y.host()?.view(), table.dot(&line));
            let other = Array2::from_shape_fn((width, 6), |(i, j)| (i * 5 + j) as i64 % 7);
            let b = SmartArray::from(other.clone());
            let mut c = SmartArray::<i64, _>::uninit((rows, 6));
            let (starts, columns) = (SmartArray::from(starts), SmartArray::from(columns));
            ops::csr_matmul(&starts, &columns, &values, &b, &mut c)?;
            assert_eq!(c.host()?.view(), table.dot(&other));
        }
    }
    Ok(())
}

#[test]
fn parts_and_device_arrays_are_operands() -> Result<()> {
    for (_, _here) in devices() {
        let Matrix { starts, columns, values, table } = matrix(12, 8, 5);
        let starts = DeviceArray::from_host(&Array1::from(starts))?;
        let mut spread = Array1::<i64>::zeros(2 * values.len());
        spread.slice_mut(s![..;-2]).assign(&Array1::from(values));
        let (spread, columns) = (SmartArray::from(spread), SmartArray::from(columns));
        let line = Array1::from_shape_fn(8, |i| i as i64 - 3);
        let whole = Array2::from_shape_fn((8, 3), |(i, j)| if j == 1 { line[i] } else { 0 });
        let whole = SmartArray::from(whole);
        let mut y = DeviceArray::<i64, _>::zeros(24)?;
        let values = spread.slice(s![..;-2]);
        let to = &mut y.slice_mut(s![1..;2]);
        ops::csr_matvec(&starts, &columns, &values, &whole.column(1), to)?;
        let seen = y.copy_to_host()?;
        assert_eq!(seen.slice(s![1..;2]), table.dot(&line));
        assert!(seen.slice(s![..;2]).iter().all(|x| *x == 0));
    }
    Ok(())
}

#[test]
fn many_entries_are_multiplied_by_all_cores() -> Result<()> {
    let _here = rust().enter();
    let (rows, width, of_row) = (PARALLEL_LEN_MIN >> 8, 1000, 260);
    let starts: Vec<u32> = (0..=rows as u32).map(|row| row * of_row).collect();
    let columns: Vec<u32> =
        (0..rows as u32 * of_row).map(|n| n.wrapping_mul(7919) % width).collect();
    let values: Vec<u32> = (0..rows as u32 * of_row).map(|n| n % 11).collect();
    let x: Vec<u32> = (0..width).collect();
    let entry = |n: usize| values[n].wrapping_mul(x[columns[n] as usize]);
    let terms = |row: usize| row * of_row as usize..(row + 1) * of_row as usize;
    let sum = |row| terms(row).map(entry).fold(0, u32::wrapping_add);
    let expected: Vec<u32> = (0..rows).map(sum).collect();
    let (starts, columns) = (SmartArray::from(starts), SmartArray::from(columns.clone()));
    let (values, x) = (SmartArray::from(values.clone()), SmartArray::from(x.clone()));
    let mut y = SmartArray::<u32, _>::uninit(rows);
    ops::csr_matvec(&starts, &columns, &values, &x, &mut y)?;
    assert_eq!(y.to_vec()?, expected);
    let mut c = SmartArray::<u32, _>::uninit((rows, 1));
    ops::csr_matmul(&starts, &columns, &values, &x.reshape((1000, 1))?, &mut c)?;
    assert_eq!(c.to_vec()?, expected);
    Ok(())
}

/// What is wrong, and words of the message.
const BAD: [(&[u32], &[u32], &str); 6] = [
    (
        &[0, 2, 3],
        &[0, 3, 1],
        "expects `columns` below 3, as many as the right operand has rows, but got 3",
    ),
    (&[0, 2, 3], &[0, 1, u32::MAX], "4294967295, the column at 2"),
    (&[1, 2, 3], &[0, 1, 1], "`row_starts` that ascend from 0 to 3, the number of values"),
    (&[0, 3, 2], &[0, 1, 1], "2, the start at 2"),
    (&[0, 4, 3], &[0, 1, 1], "4, the start at 1"),
    (&[0, 2, 4], &[0, 1, 1], "4, the start at 2"),
];

#[test]
fn bad_indices_are_refused_and_nothing_is_written() -> Result<()> {
    for (_, _here) in devices() {
        for (starts, columns, words) in BAD {
            let starts = SmartArray::from(starts.to_vec()).named("starts");
            let columns = SmartArray::from(columns.to_vec()).named("columns");
            let (values, x) = (SmartArray::ones(3), SmartArray::<f32, _>::ones(3));
            let mut y = SmartArray::<f32, _>::full(2, 5.0);
            let refused = ops::csr_matvec(&starts, &columns, &values, &x, &mut y);
            let Err(error @ Error::Shape { .. }) = refused else { panic!("{refused:?}") };
            assert!(error.to_string().contains(words), "{error}");
            assert_eq!(y.to_vec()?, [5.0, 5.0]);
            let (b, mut c) = (SmartArray::ones((3, 2)), SmartArray::full((2, 2), 5.0));
            assert!(ops::csr_matmul(&starts, &columns, &values, &b, &mut c).is_err());
            assert_eq!(c.to_vec()?, [5.0; 4]);
        }
        let (starts, columns) = (SmartArray::from([0_u32, 1]), SmartArray::from([0_u32]));
        let (values, x) = (SmartArray::<f32, _>::ones(2), SmartArray::ones(1));
        let mut y = SmartArray::uninit(1);
        assert!(ops::csr_matvec(&starts, &columns, &values, &x, &mut y).is_err(), "two values");
    }
    Ok(())
}
