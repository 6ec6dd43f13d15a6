//! Elements that a mask chooses, different elements, counts of indices, and exclusive sums.

use half::f16;
use ndarray::{Array1, Array2, Axis, s};
use resident::{DeviceArray, Error, Result, SmartArray, ops};

use crate::devices;
use crate::part::Random;

fn table(rows: usize, columns: usize, below: usize) -> Array2<i32> {
    let mut random = Random::new((rows * columns) as u64);
    Array2::from_shape_simple_fn((rows, columns), || random.below(below) as i32)
}

#[test]
fn chosen_elements_come_in_row_major_order() -> Result<()> {
    for (_, _here) in devices() {
        for (rows, columns) in [(0, 3), (1, 1), (5, 7), (40, 300)] {
            let (table, choice) = (table(rows, columns, 100), table(rows, columns, 3));
            let expected = |table: ndarray::ArrayView2<'_, i32>,
                            choice: ndarray::ArrayView2<'_, i32>| {
                let chosen = table.into_iter().zip(choice).filter(|(_, mask)| **mask != 0);
                chosen.map(|(element, _)| *element).collect::<Vec<_>>()
            };
            let mask = SmartArray::from(choice.mapv(|x| x as u8 * 100));
            let ours = SmartArray::from(table.clone());
            let seen = ours.compress(&mask)?;
            assert_eq!(seen.to_vec()?, expected(table.view(), choice.view()));
            let seen = ours.t().compress(&mask.t())?;
            assert_eq!(seen.to_vec()?, expected(table.t(), choice.t()));
            let part = s![..;-2, ..;3];
            let seen = DeviceArray::from_host(&table)?.slice(part).compress(&mask.slice(part))?;
            assert_eq!(seen.to_vec()?, expected(table.slice(part), choice.slice(part)));
        }
        let halves = SmartArray::from([f16::ONE, f16::NAN, f16::ZERO]);
        let chosen = halves.compress(&SmartArray::from([1_u8, 0, 1]))?;
        assert_eq!(chosen.to_vec()?, [f16::ONE, f16::ZERO]);
        let refused = halves.compress(&SmartArray::from([1_u8, 0]));
        assert!(matches!(refused, Err(Error::Shape { .. })), "{refused:?}");
    }
    Ok(())
}

#[test]
fn different_elements_ascend() -> Result<()> {
    for (_, _here) in devices() {
        for (rows, columns) in [(0, 2), (1, 1), (6, 9), (30, 200)] {
            let table = table(rows, columns, 50);
            let mut expected: Vec<i32> = table.iter().copied().collect();
            expected.sort_unstable();
            expected.dedup();
            let ours = SmartArray::from(table);
            assert_eq!(ours.unique()?.to_vec()?, expected);
            assert_eq!(ours.t().unique()?.to_vec()?, expected);
        }
        let floats = SmartArray::from([f32::NAN, 0.0, -1.0, f32::NAN, -0.0, f32::INFINITY]);
        let seen = floats.unique()?.to_vec()?;
        assert_eq!(seen[..3], [-1.0, 0.0, f32::INFINITY]);
        assert!(seen[1].is_sign_positive() && seen[3].is_nan() && seen.len() == 4, "{seen:?}");
    }
    Ok(())
}

#[test]
fn indices_are_counted() -> Result<()> {
    for (_, _here) in devices() {
        let indices = table(20, 300, 37);
        let mut expected = vec![0; 40];
        indices.iter().for_each(|index| expected[*index as usize] += 1);
        let narrow = SmartArray::from(indices.mapv(|x| x as u32));
        let mut counts = SmartArray::<u64, _>::full(40, 7);
        ops::bincount(&narrow.t(), &mut counts)?;
        assert_eq!(counts.to_vec()?, expected);
        let wide = SmartArray::from(indices.mapv(|x| x as u64));
        let mut spread = SmartArray::<u32, _>::full(80, 7);
        ops::bincount(&wide, &mut spread.slice_mut(s![..;-2]))?;
        assert!(spread.slice(s![..;-2]).to_vec()?.into_iter().map(u64::from).eq(expected.clone()));
        assert!(spread.slice(s![..;2]).to_vec()?.iter().all(|beside| *beside == 7));
        let nothing = SmartArray::<u32, _>::zeros(0);
        ops::bincount(&nothing, &mut counts)?;
        assert_eq!(counts.to_vec()?, [0; 40]);
    }
    Ok(())
}

#[test]
fn an_index_beyond_the_counts_is_refused_and_nothing_is_written() -> Result<()> {
    for (_, _here) in devices() {
        let index = SmartArray::from([0_u64, 9, 4, 2]).named("index");
        let mut counts = SmartArray::<u32, _>::full(4, 7).named("counts");
        let error = ops::bincount(&index, &mut counts).expect_err("9 is beyond");
        let text = error.to_string();
        let words = "expects indices below 4, the length of the array, but got 9, the index at 1";
        assert!(text.contains(words), "{text}");
        assert_eq!(counts.to_vec()?, [7; 4]);
        let none = &mut counts.slice_mut(s![..0]);
        assert!(ops::bincount(&SmartArray::from([0_u32]), none).is_err());
    }
    Ok(())
}

#[test]
fn exclusive_sums_are_those_of_the_elements_before() -> Result<()> {
    for (_, _here) in devices() {
        for (rows, columns) in [(1, 1), (3, 5), (2, 5000), (70, 130)] {
            let table = table(rows, columns, 1000);
            let ours = SmartArray::from(table.clone());
            let exclusive = |values: ndarray::ArrayView1<'_, i32>| {
                let mut sum = 0;
                let before = |x: &i32| {
                    sum += x;
                    sum - x
                };
                values.iter().map(before).collect::<Vec<_>>()
            };
            let mut seen = SmartArray::<i32, _>::uninit(rows * columns);
            ops::exclusive_sum(&ours, &mut seen)?;
            let line = Array1::from_iter(table.iter().copied());
            assert_eq!(seen.to_vec()?, exclusive(line.view()));
            let mut seen = SmartArray::<i32, _>::uninit((rows, columns));
            for axis in [Axis(0), Axis(1)] {
                ops::exclusive_sum_axis(&ours, axis, &mut seen)?;
                let seen = seen.host()?;
                for (seen, lane) in seen.lanes(axis).into_iter().zip(table.lanes(axis)) {
                    assert_eq!(seen.to_vec(), exclusive(lane));
                }
            }
        }
        // No difference of sums: infinity less infinity would be no number.
        let mut seen = SmartArray::<f32, _>::uninit(3);
        ops::exclusive_sum(&SmartArray::from([1.0, f32::INFINITY, 2.0]), &mut seen)?;
        assert_eq!(seen.to_vec()?, [0.0, 1.0, f32::INFINITY]);
    }
    Ok(())
}
