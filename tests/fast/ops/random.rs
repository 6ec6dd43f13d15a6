//! Random numbers: the same on all devices and in all layouts, and distributed as they should be.

use ndarray::{Array1, Array2, s};
use resident::{Device, Result, SmartArray, ops};

use crate::{LARGE_SIDE, cuda, devices, rust};

/// The numbers of a device, as bits.
fn numbers(device: &Device, seed: u64, len: usize) -> Result<[Vec<u64>; 4]> {
    let _here = device.enter();
    let (mut floats, mut doubles) =
        (SmartArray::<f32, _>::uninit(len), SmartArray::<f64, _>::uninit(len));
    ops::random_uniform(seed, &mut floats)?;
    ops::random_uniform(seed, &mut doubles)?;
    let bits = |a: Vec<f32>| a.into_iter().map(|x| u64::from(x.to_bits())).collect();
    let bits_of_doubles = |a: Vec<f64>| a.into_iter().map(f64::to_bits).collect();
    let uniform = [bits(floats.to_vec()?), bits_of_doubles(doubles.to_vec()?)];
    ops::random_normal(seed, &mut floats)?;
    ops::random_normal(seed, &mut doubles)?;
    let normal = [bits(floats.to_vec()?), bits_of_doubles(doubles.to_vec()?)];
    let ([a, b], [c, d]) = (uniform, normal);
    Ok([a, b, c, d])
}

#[test]
fn bodies_in_rust_and_in_cuda_c_give_the_same_bits() -> Result<()> {
    let Some(cuda) = cuda() else { return Ok(()) };
    for seed in [0, 1, 0x1234_5678_9abc_def0, u64::MAX] {
        assert_eq!(numbers(&rust(), seed, 5001)?, numbers(&cuda, seed, 5001)?, "{seed}");
    }
    Ok(())
}

/// Words of Philox4x32-10 with key 0 and counter 0, which are Random123's known answers.
#[test]
fn uniform_numbers_are_words_of_philox() -> Result<()> {
    for (_, _here) in devices() {
        let words = [0x6627_e8d5_u32, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8];
        let mut floats = SmartArray::<f32, _>::uninit(4);
        ops::random_uniform(0, &mut floats)?;
        assert_eq!(floats.to_vec()?, words.map(|word| (word >> 8) as f32 / 16_777_216.0));
        let mut doubles = SmartArray::<f64, _>::uninit(2);
        ops::random_uniform(0, &mut doubles)?;
        let long = |low: u32, high: u32| (u64::from(high) << 32 | u64::from(low)) >> 11;
        let expected = [long(words[0], words[1]), long(words[2], words[3])];
        assert_eq!(doubles.to_vec()?, expected.map(|bits| bits as f64 / 9_007_199_254_740_992.0));
    }
    Ok(())
}

#[test]
fn a_number_depends_on_its_place_in_row_major_order_alone() -> Result<()> {
    for (_, _here) in devices() {
        let mut line = SmartArray::<f32, _>::uninit(60);
        ops::random_uniform(7, &mut line)?;
        let expected = Array1::from(line.to_vec()?).into_shape_with_order((6, 10)).expect("60");
        let mut table = SmartArray::<f32, _>::zeros((20, 30));
        ops::random_uniform(7, &mut table.slice_mut(s![2..14;2, 10..30;-2]))?;
        assert_eq!(table.slice(s![2..14;2, 10..30;-2]).host()?.view(), expected);
        let mut turned = SmartArray::<f32, _>::zeros((10, 6));
        ops::random_uniform(7, &mut turned.view_mut().reversed_axes())?;
        assert_eq!(turned.t().host()?.view(), expected);
        let mut whole = Array2::zeros((20, 30));
        whole.slice_mut(s![2..14;2, 10..30;-2]).assign(&expected);
        assert_eq!(table.host()?.view(), whole, "nothing beside the part is written");
    }
    Ok(())
}

#[test]
fn many_numbers_are_those_of_few() -> Result<()> {
    let _here = rust().enter();
    let (rows, columns) = (LARGE_SIDE, LARGE_SIDE);
    let mut all = SmartArray::<f64, _>::uninit((rows, columns));
    let mut line = SmartArray::<f64, _>::uninit(columns * 3);
    ops::random_normal(3, &mut all)?;
    ops::random_normal(3, &mut line)?;
    assert_eq!(all.slice(s![..3, ..]).to_vec()?, line.to_vec()?);
    ops::random_uniform(3, &mut all)?;
    let all: Array2<f64> = all.into_array()?;
    let mut end = SmartArray::<f64, _>::uninit(rows * columns);
    ops::random_uniform(3, &mut end.slice_mut(s![..;1]))?;
    assert_eq!(all.iter().copied().collect::<Vec<_>>(), end.to_vec()?);
    Ok(())
}

/// The mean, the variance, and the part of the numbers in each of 64 ranges of equal probability.
#[test]
fn numbers_are_distributed_as_they_should_be() -> Result<()> {
    let _here = rust().enter();
    let len = 1 << 18;
    let mut a = SmartArray::<f64, _>::uninit(len);
    ops::random_uniform(11, &mut a)?;
    let uniform = a.to_vec()?;
    assert!(uniform.iter().all(|x| (0.0..1.0).contains(x)));
    assert_even(&uniform.iter().map(|x| (x * 64.0) as usize).collect::<Vec<_>>());
    ops::random_normal(11, &mut a)?;
    let normal = a.to_vec()?;
    let mean = normal.iter().sum::<f64>() / len as f64;
    let moment = |power| normal.iter().map(|x| x.powi(power)).sum::<f64>() / len as f64;
    assert!(mean.abs() < 0.01 && (moment(2) - 1.0).abs() < 0.02, "{mean} {}", moment(2));
    assert!(moment(3).abs() < 0.05 && (moment(4) - 3.0).abs() < 0.1, "{} {}", moment(3), moment(4));
    let beyond = |limit: f64| normal.iter().filter(|x| x.abs() > limit).count() as f64 / len as f64;
    let expected = [(1.0, 0.317_31), (2.0, 0.045_50), (3.0, 0.002_70)];
    for (limit, part) in expected {
        assert!((beyond(limit) - part).abs() < 0.004, "{limit}: {}", beyond(limit));
    }
    Ok(())
}

/// The sum of squares is beyond 120 once in 50,000 fair cases.
fn assert_even(ranges: &[usize]) {
    let mut counts = [0_f64; 64];
    ranges.iter().for_each(|range| counts[*range] += 1.0);
    let expected = ranges.len() as f64 / 64.0;
    let squares: f64 = counts.iter().map(|count| (count - expected).powi(2) / expected).sum();
    assert!(squares < 120.0, "{squares}");
}
